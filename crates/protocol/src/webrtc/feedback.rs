//! The RTCP of a receiver: receiver reports, NACKs, key frame requests, arrival times.

use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_media::rtcp::{Arrival, Report, ReportBlock, RtcpWriter};
use throng_media::rtp::NtpTime;
use throng_observation::MediaKind;

use super::receiver::Track;
use super::sdp::Feedback;
use super::srtp::ControlSealer;
use crate::reports::{LastSenderReport, cname};

/// Mean time between receiver reports of a stream: libwebrtc's (`kDefaultVideoReportInterval`,
/// `kDefaultAudioReportInterval`). Each is drawn between half and one and a half of it (RFC 3550
/// 6.2), so that participants that joined together do not report together.
const VIDEO_REPORT_INTERVAL: Duration = Duration::from_secs(1);
const AUDIO_REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Time between transport-wide feedback messages: browsers vary it between 50 ms and 250 ms, and
/// begin with this.
const TRANSPORT_FEEDBACK_INTERVAL: Duration = Duration::from_millis(100);
/// At this number of unreported arrivals, feedback is sent early.
const ARRIVALS_MAX: usize = 1_000;

/// The report state of one track.
pub(super) struct ReportState {
    feedback: Feedback,
    report_interval: Duration,
    next_report_at: Instant,
    /// The value in the last report.
    fraction_lost: u8,
    fir_sequence: u8,
    last_sender_report: LastSenderReport,
}

impl ReportState {
    /// When its next report is due.
    pub(super) fn next_report_at(&self) -> Instant {
        self.next_report_at
    }

    pub(super) fn source_changed(&mut self) {
        self.last_sender_report = LastSenderReport::default();
    }

    pub(super) fn sender_report(&mut self, ntp: NtpTime, arrived_at: Instant) {
        self.last_sender_report.arrived(ntp, arrived_at);
    }
}

/// Writes and seals the session's RTCP; the only owner of its SRTCP index.
pub(super) struct Reporter {
    sealer: ControlSealer,
    ssrc: u32,
    cname: String,
    random: fastrand::Rng,
    clock: WallClock,
    reduced_size: bool,
    transport: Option<TransportArrivals>,
    remb: Option<ReceiveRate>,
    missing: Vec<u16>,
}

impl Reporter {
    pub(super) fn new(sealer: ControlSealer, seed: u64, clock: WallClock) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let cname = cname(&mut random);
        Self {
            sealer,
            ssrc: random.u32(1..),
            cname,
            random,
            clock,
            reduced_size: false,
            transport: None,
            remb: None,
            missing: Vec::new(),
        }
    }

    /// The report state of a new track.
    pub(super) fn report_state(
        &mut self,
        kind: MediaKind,
        feedback: Feedback,
        now: Instant,
    ) -> ReportState {
        let report_interval = match kind {
            MediaKind::Video => VIDEO_REPORT_INTERVAL,
            MediaKind::Audio => AUDIO_REPORT_INTERVAL,
        };
        ReportState {
            feedback,
            report_interval,
            // The first report is sent after half an interval (RFC 3550 6.2).
            next_report_at: now + self.drawn(report_interval) / 2,
            fraction_lost: 0,
            fir_sequence: 0,
            last_sender_report: LastSenderReport::default(),
        }
    }

    /// Sets what the session negotiated. Like browsers, it sends bitrate estimates (REMB) only
    /// where transport-wide feedback, their successor, was not agreed.
    pub(super) fn agreed(&mut self, transport_cc: bool, remb: bool, reduced_size: bool) {
        self.reduced_size = reduced_size;
        if transport_cc {
            self.transport.get_or_insert_with(TransportArrivals::default);
        } else {
            self.transport = None;
        }
        self.remb = (remb && !transport_cc).then(|| self.remb.take().unwrap_or_default());
    }

    /// A packet with this transport-wide sequence number arrived.
    #[inline]
    pub(super) fn arrived(&mut self, sequence: u16, arrived_at: Instant) {
        if let Some(transport) = &mut self.transport {
            let arrived_us = self.clock.unix_ns(arrived_at) / 1_000;
            transport.add(Arrival { sequence, arrived_us }, arrived_at);
        }
    }

    /// A number of bytes arrived on the wire.
    #[inline]
    pub(super) fn received(&mut self, wire_bytes: u32) {
        if let Some(rate) = &mut self.remb {
            rate.bytes += u64::from(wire_bytes);
        }
    }

    /// The next deadline other than those of tracks.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.transport.as_ref().and_then(|transport| transport.send_at)
    }

    /// The next datagram that is due, if any. All that arrived until `heard` is known.
    ///
    /// Each stream has its own reports and requests, as in libwebrtc. Janus uses only the first
    /// report block to find the medium of a datagram, and drops datagrams without one: of several
    /// blocks it would process one.
    pub(super) fn due(
        &mut self,
        now: Instant,
        heard: Instant,
        tracks: &mut [Track],
    ) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        for at in 0..tracks.len() {
            let Some(track) = tracks.get_mut(at).filter(|track| track.has_sender()) else {
                continue;
            };
            self.requests(now, heard, track, &mut body);
            let reports = now >= track.report_state.next_report_at;
            if !reports && body.is_empty() {
                continue;
            }
            let mut block = None;
            if reports || !self.reduced_size {
                block = report_block(track, now);
            }
            if reports {
                track.report_state.next_report_at =
                    now + self.drawn(track.report_state.report_interval);
                self.estimate(now, at, tracks, &mut body);
            }
            if block.is_some() || !body.is_empty() {
                return self.datagram(reports || !self.reduced_size, block, body);
            }
        }
        let media_ssrc = tracks.iter().find(|track| track.has_begun())?.ssrc;
        self.transport.as_mut()?.write(now, self.ssrc, media_ssrc, &mut body);
        if body.is_empty() {
            return None;
        }
        self.datagram(!self.reduced_size, None, body)
    }

    /// A report, of `block` if there is one, where a report is needed; followed by `body`.
    fn datagram(
        &mut self,
        has_report: bool,
        block: Option<ReportBlock>,
        mut body: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let mut packet = Vec::with_capacity(128 + body.len());
        if has_report {
            let report = Report::Receiver(self.ssrc);
            let _ = RtcpWriter::compound(&mut packet, report, block.as_slice(), &self.cname);
        }
        packet.append(&mut body);
        self.seal(packet)
    }

    /// The bitrate estimate, after the report of `tracks[at]` if that is the report which carries
    /// it.
    fn estimate(&mut self, now: Instant, at: usize, tracks: &[Track], body: &mut Vec<u8>) {
        let Some(rate) = &mut self.remb else { return };
        let agreed = tracks
            .iter()
            .enumerate()
            .filter(|(_, track)| track.has_sender() && track.report_state.feedback.remb);
        // The first of the tracks with the most frequent reports.
        let transport = agreed.min_by_key(|(_, track)| track.report_state.report_interval);
        if transport.is_none_or(|(transport, _)| transport != at) {
            return;
        }
        let loss = tracks.iter().map(|track| track.report_state.fraction_lost).max().unwrap_or(0);
        if let Some(bits_per_second) = rate.estimate(now, loss) {
            let ssrcs: Vec<u32> = tracks.iter().map(|track| track.ssrc).collect();
            let ssrcs = ssrcs.get(..ssrcs.len().min(255)).unwrap_or_default();
            let _ = RtcpWriter::reduced_size(body).remb(self.ssrc, bits_per_second, ssrcs);
        }
    }

    /// NACKs and key frame requests of a track.
    fn requests(&mut self, now: Instant, heard: Instant, track: &mut Track, body: &mut Vec<u8>) {
        if track.meter.next_timeout().is_none_or(|at| at > heard) {
            return;
        }
        track.meter.timeout(heard);
        self.missing.clear();
        track.meter.take_nacks(now, heard, &mut self.missing);
        if !self.missing.is_empty() {
            let _ = RtcpWriter::reduced_size(body).nack(self.ssrc, track.ssrc, &self.missing);
        }
        let (pli, fir) = (track.report_state.feedback.pli, track.report_state.feedback.fir);
        if (pli || fir) && track.meter.wants_key_frame(heard) {
            let writer = RtcpWriter::reduced_size(body);
            if pli {
                let _ = writer.picture_loss(self.ssrc, track.ssrc);
                track.meter.pli_sent();
            } else {
                let _ = writer.full_intra_request(
                    self.ssrc,
                    track.ssrc,
                    track.report_state.fir_sequence,
                );
                track.report_state.fir_sequence = track.report_state.fir_sequence.wrapping_add(1);
                track.meter.fir_sent();
            }
        }
    }

    pub(super) fn goodbye(&mut self) -> Option<Vec<u8>> {
        let mut packet = Vec::new();
        let _ = RtcpWriter::compound(&mut packet, Report::Receiver(self.ssrc), &[], &self.cname)
            .bye(&[self.ssrc]);
        self.seal(packet)
    }

    fn seal(&mut self, mut packet: Vec<u8>) -> Option<Vec<u8>> {
        self.sealer.seal_rtcp(&mut packet).ok().map(|()| packet)
    }

    fn drawn(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(0.5 + self.random.f64())
    }
}

fn report_block(track: &mut Track, now: Instant) -> Option<ReportBlock> {
    let reception = track.meter.reception()?;
    track.report_state.fraction_lost = reception.fraction_lost;
    let (last_sr, delay_since_last_sr) = track.report_state.last_sender_report.lsr_and_dlsr(now);
    Some(ReportBlock {
        ssrc: track.ssrc,
        fraction_lost: reception.fraction_lost,
        cumulative_lost: reception.cumulative_lost,
        highest_sequence: reception.extended_highest_sequence,
        jitter: reception.jitter,
        last_sr,
        delay_since_last_sr,
    })
}

/// Arrivals that are not reported yet, in the order of their sequence numbers.
#[derive(Default)]
struct TransportArrivals {
    arrivals: Vec<Arrival>,
    count: u8,
    send_at: Option<Instant>,
}

impl TransportArrivals {
    #[inline]
    fn add(&mut self, arrival: Arrival, now: Instant) {
        let follows =
            |earlier: &Arrival| arrival.sequence.wrapping_sub(earlier.sequence) as i16 > 0;
        // The place is almost always the end; for reordered packets the search starts there.
        let place = self.arrivals.iter().rposition(follows).map_or(0, |before| before + 1);
        if self.arrivals.get(place).is_some_and(|same| same.sequence == arrival.sequence) {
            return;
        }
        if self.arrivals.len() < 2 * ARRIVALS_MAX {
            self.arrivals.insert(place, arrival);
        }
        if self.arrivals.len() >= ARRIVALS_MAX {
            self.send_at = Some(now);
        }
        self.send_at.get_or_insert(now + TRANSPORT_FEEDBACK_INTERVAL);
    }

    fn write(&mut self, now: Instant, ssrc: u32, media_ssrc: u32, body: &mut Vec<u8>) {
        if self.send_at.is_some_and(|at| now >= at) {
            let writer = RtcpWriter::reduced_size(body);
            let _ = writer.transport_feedback(ssrc, media_ssrc, &mut self.count, &self.arrivals);
            self.arrivals.clear();
            self.send_at = None;
        }
    }
}

/// The received rate, for REMB.
#[derive(Default)]
struct ReceiveRate {
    bytes: u64,
    since: Option<Instant>,
}

impl ReceiveRate {
    /// The bitrate that the sender may use. The rule of browsers' receive-side estimate: 1.5 times
    /// the received rate while the loss is below 10 % (so that a probing sender finds more), above
    /// that the received rate minus half the loss. `None` at the first call.
    fn estimate(&mut self, now: Instant, fraction_lost: u8) -> Option<u64> {
        let since = self.since.replace(now);
        let bytes = std::mem::take(&mut self.bytes);
        let seconds = now.checked_duration_since(since?)?.as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let received = bytes as f64 * 8.0 / seconds;
        let loss = f64::from(fraction_lost) / 256.0;
        let allowed =
            if loss < 0.1 { received * 1.5 + 100_000.0 } else { received * (1.0 - loss / 2.0) };
        Some(allowed as u64)
    }
}
