//! Estimates the capacity of the path from packet arrival times: transport-wide feedback
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01) in, an upper bound on the rate out.
//!
//! The rate follows Google's congestion control (draft-ietf-rmcat-gcc-02 section 5.5, libwebrtc's
//! `AimdRateControl`): when a queue grows, 0.85 of the received rate; then a slow increase. There
//! is no bound before a queue grew, and none once it is far above the rate that the sender wants.
//! There are no probe packets: the next rung that fits is the probe, so the bound may grow above
//! 1.5 times the received rate.

use std::time::{Duration, Instant};

use throng_media::rtcp::TransportFeedback;
use throng_observation::MediaKind;

use super::sent_log::{PacketOutcome, SentLog};
use super::trendline::{Trendline, Usage};

/// The share of the received rate that remains after a back-off.
pub(super) const BACK_OFF: f64 = 0.85;
/// Growth per second while the capacity of the path is unknown.
const GROWTH: f64 = 1.08;
/// Growth per second near the known capacity: a packet per response time
/// (`GetNearMaxIncreaseRateBpsPerSecond`), 1,000 bytes in 300 ms.
const GROWTH_BPS: f64 = 1_000.0 * 8.0 / 0.3;
/// If the received rate differs from the known capacity by this share, the path has changed.
const FULL_MARGIN: f64 = 0.15;
/// A queue needs this time to empty before its growth has a meaning again.
const BACK_OFF_EVERY: Duration = Duration::from_millis(300);
/// The lowest bound: without packets there is no feedback.
const FLOOR_BPS: f64 = 10_000.0;
/// The received rate is measured over this many steps of 0.1 s: a second, with its key frame.
const STEPS: usize = 10;
const STEP_US: i64 = 100_000;
/// The fewest complete steps for a measurement.
const STEPS_MIN: i64 = 5;
/// Loss is reported over at least this time and this many packets.
const LOSS_EVERY: Duration = Duration::from_secs(1);
const LOSS_PACKETS_MIN: u32 = 20;
/// How many packet statuses of a report are evaluated; the rest of a longer one is ignored.
const STATUSES_MAX: usize = 2_048;

/// The estimate of one sender.
pub(super) struct Estimate {
    began_at: Instant,
    sent: SentLog,
    trend: Trendline,
    arrived: ArrivedRate,
    reported: u32,
    lost: u32,
    loss_reported_at: Instant,
    ceiling_bps: Option<f64>,
    /// The received rate when the path was full.
    full_bps: Option<f64>,
    changed_at: Instant,
    backed_off_at: Option<Instant>,
}

impl Estimate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began_at: now,
            sent: SentLog::default(),
            trend: Trendline::default(),
            arrived: ArrivedRate::default(),
            reported: 0,
            lost: 0,
            loss_reported_at: now,
            ceiling_bps: None,
            full_bps: None,
            changed_at: now,
            backed_off_at: None,
        }
    }

    /// Packet `sequence` of size `bytes` was sent.
    pub(super) fn sent(&mut self, now: Instant, sequence: u16, bytes: usize, kind: MediaKind) {
        let sent_us = now.saturating_duration_since(self.began_at).as_micros() as u32;
        self.sent.sent(sequence, sent_us, bytes, kind);
    }

    /// Packet `sequence` was sent once more with the same number, because the receiver missed it.
    /// It counts as lost, and the arrival of its repeat says nothing about the path: it would be
    /// taken for a packet that was under way since it was first sent.
    pub(super) fn repeated(&mut self, sequence: u16) {
        let Some(sent) = self.sent.tell(sequence, PacketOutcome::Repeated) else { return };
        let is_first = u32::from(sent.fate == PacketOutcome::NotReported);
        self.reported += is_first;
        self.lost += is_first;
    }

    /// Handles the receiver's report of arrival times.
    pub(super) fn feedback(&mut self, now: Instant, feedback: &TransportFeedback<'_>) {
        let mut usage = None;
        for status in feedback.packets().take(STATUSES_MAX) {
            let has_arrived = status.arrived_us.is_some();
            let fate = if has_arrived { PacketOutcome::Arrived } else { PacketOutcome::Lost };
            let Some(sent) = self.sent.tell(status.sequence, fate) else { continue };
            self.reported += u32::from(sent.fate == PacketOutcome::NotReported);
            let Some(arrived_us) = status.arrived_us else {
                self.lost += u32::from(sent.fate == PacketOutcome::NotReported);
                continue;
            };
            // It was late, not lost.
            self.lost = self.lost.saturating_sub(u32::from(sent.fate == PacketOutcome::Lost));
            // Audio only counts for loss: packets that wait behind each key frame of a clip would
            // be taken for a queue that grows (libwebrtc: `BweSeparateAudioPacketsSettings`).
            if sent.kind == MediaKind::Audio {
                continue;
            }
            self.arrived.add(arrived_us, sent.bytes);
            self.trend.arrived(sent.sent_us, arrived_us);
            if usage != Some(Usage::Over) {
                usage = Some(self.trend.usage());
            }
        }
        match usage {
            Some(Usage::Over) => self.back_off(now),
            Some(Usage::Normal) => self.grow(now),
            // The queue must empty before the rate grows.
            Some(Usage::Under) | None => {}
        }
        self.changed_at = now;
    }

    /// Share of packets lost, once a second.
    pub(super) fn take_loss(&mut self, now: Instant) -> Option<f64> {
        let is_soon = now.saturating_duration_since(self.loss_reported_at) < LOSS_EVERY;
        if is_soon || self.reported < LOSS_PACKETS_MIN {
            return None;
        }
        let (reported, lost) = (std::mem::take(&mut self.reported), std::mem::take(&mut self.lost));
        self.loss_reported_at = now;
        Some(f64::from(lost.min(reported)) / f64::from(reported))
    }

    /// The bound for video packets with a transport-wide sequence number, bits per second; `None`
    /// while there is no sign of a limit.
    pub(super) fn ceiling_bps(&self) -> Option<f64> {
        self.ceiling_bps
    }

    /// Removes the bound if it is above `bps`.
    pub(super) fn forget_above(&mut self, bps: f64) {
        if self.ceiling_bps.is_some_and(|ceiling| ceiling > bps) {
            (self.ceiling_bps, self.full_bps) = (None, None);
        }
    }

    fn back_off(&mut self, now: Instant) {
        let is_soon = |at| now.saturating_duration_since(at) < BACK_OFF_EVERY;
        let Some(arrived_bps) = self.arrived.bps() else { return };
        if self.backed_off_at.is_some_and(is_soon) {
            return;
        }
        self.backed_off_at = Some(now);
        let lower = (BACK_OFF * arrived_bps).max(FLOOR_BPS);
        self.ceiling_bps = Some(self.ceiling_bps.map_or(lower, |ceiling| ceiling.min(lower)));
        let known = self.full_bps.filter(|full| (arrived_bps / full - 1.0).abs() < FULL_MARGIN);
        self.full_bps = Some(known.map_or(arrived_bps, |full| 0.95 * full + 0.05 * arrived_bps));
    }

    fn grow(&mut self, now: Instant) {
        let Some(ceiling) = self.ceiling_bps else { return };
        let passed_s = now.saturating_duration_since(self.changed_at).as_secs_f64().min(1.0);
        let arrived_bps = self.arrived.bps().unwrap_or(0.0);
        self.full_bps = self.full_bps.filter(|full| arrived_bps < full * (1.0 + FULL_MARGIN));
        self.ceiling_bps = Some(match self.full_bps {
            Some(_) => ceiling + GROWTH_BPS * passed_s,
            None => ceiling * GROWTH.powf(passed_s),
        });
    }
}

/// The received rate, over the last second of the receiver's clock.
#[derive(Debug, Default)]
struct ArrivedRate {
    /// Bytes of the complete steps, and of the current one, in a ring.
    bytes: [u64; STEPS + 1],
    /// The current step, and the first.
    step: i64,
    began: Option<i64>,
}

impl ArrivedRate {
    fn add(&mut self, arrived_us: i64, bytes: u16) {
        let step = arrived_us.div_euclid(STEP_US);
        let ahead = step.saturating_sub(self.step);
        // A clock that jumps resets the measurement; a small step back is a reordered packet.
        if self.began.is_none() || ahead.saturating_abs() > 3 * STEPS as i64 {
            *self = Self { bytes: [0; STEPS + 1], step, began: Some(step) };
        }
        if step > self.step {
            for over in (self.step + 1..=step).rev().take(STEPS + 1) {
                self.bytes.get_mut(slot(over)).into_iter().for_each(|slot| *slot = 0);
            }
            self.step = step;
        }
        if self.step - step <= STEPS as i64
            && let Some(slot) = self.bytes.get_mut(slot(step))
        {
            *slot += u64::from(bytes);
        }
    }

    /// Bits per second over the complete steps; `None` while there are too few.
    fn bps(&self) -> Option<f64> {
        let over = (self.step - self.began?).min(STEPS as i64);
        if over < STEPS_MIN {
            return None;
        }
        let all: u64 = self.bytes.iter().sum();
        let current = self.bytes.get(slot(self.step))?;
        Some((all - current) as f64 * 8.0 * 1e6 / (over * STEP_US) as f64)
    }
}

/// The index of a step in the ring.
fn slot(step: i64) -> usize {
    step.rem_euclid(STEPS as i64 + 1) as usize
}

#[cfg(test)]
mod tests;
