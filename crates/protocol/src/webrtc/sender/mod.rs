//! The media path of a publisher: plays its clips in real time, paces and seals the packets, and
//! answers feedback: retransmissions, key frames, lower rates.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_media::quality::WallClock;
use throng_media::rtcp::{Compound, Report, ReportBlock, Rtcp, RtcpWriter, TransportFeedback};
use throng_media::rtp::NtpTime;
use throng_media::source::Player;
use throng_observation::{Counters as _, MediaKind, SentCounters, SentInterval, TrackId};

use self::estimate::Estimate;
use self::pacer::Pacer;
use self::stream::{Stream, Wire};
use self::target_bitrate::TargetBitrate;
use super::srtp::{Opener, Sealer, SessionKeys, SrtpError};
use crate::participant::Why;

mod allocation;
mod estimate;
mod history;
mod ladder;
mod pacer;
mod sent_log;
mod stream;
mod target_bitrate;
mod trendline;
mod voice;

pub use ladder::Ladder;
pub use stream::SendPlan;

/// Mean time between sender reports, drawn between half and one and a half of it (RFC 3550 section
/// 6.2).
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Header with its extensions, and authentication tag. Subtracted from packet sizes, because the
/// estimate is compared with the rates of clips, which count payload only.
const OVERHEAD_BYTES: usize = 40;

/// A track to send: its negotiated parameters, and its media.
#[derive(Clone, Debug)]
pub struct SentTrack {
    /// The negotiated parameters.
    pub plan: SendPlan,
    /// One video at one or more rates; the highest that is allowed is played.
    pub ladder: Ladder,
    /// The start position within the loop.
    pub offset: Duration,
}

/// The configuration of a [`Sender`].
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// Converts moments to wall time.
    pub clock: WallClock,
    /// Seed of the random values: timestamps, sequence numbers, report intervals.
    pub seed: u64,
    /// RTCP packets need no report in front.
    pub reduced_size_rtcp: bool,
    /// Whether the rate is reduced when receivers or the path require it.
    pub adapts: bool,
}

/// Sends the media of one peer connection.
pub struct Sender {
    opener: Opener,
    sealer: Sealer,
    options: SenderOptions,
    cname: String,
    rng: fastrand::Rng,
    streams: Vec<Stream>,
    pacer: Pacer,
    target_bitrate: TargetBitrate,
    /// Created when packets have transport-wide sequence numbers.
    estimate: Option<Box<Estimate>>,
    /// The allowed or the wanted rate has changed since it was distributed.
    is_unshared: bool,
    transport_sequence: u16,
    next_report_at: Instant,
    /// The stream that sends next, among those with waiting packets.
    turn: usize,
    round_trip_s: Option<f64>,
    /// By stream.
    remote_loss: Vec<Option<f64>>,
    reported: Vec<SentCounters>,
    reported_at: Instant,
}

impl Sender {
    /// A sender with the keys of a session; it begins to play at `now`.
    ///
    /// # Errors
    /// When the cryptographic library refuses the keys.
    pub fn new(
        keys: &SessionKeys,
        tracks: Vec<SentTrack>,
        options: SenderOptions,
        now: Instant,
    ) -> Result<Self, SrtpError> {
        let mut rng = fastrand::Rng::with_seed(options.seed);
        let streams: Vec<Stream> = tracks
            .into_iter()
            .map(|track| {
                let player = Player::starting_at(Arc::clone(track.ladder.top()), track.offset);
                Stream::new(track.plan, track.ladder, player, &mut rng, now)
            })
            .collect();
        let wanted_bps = streams.iter().map(Stream::wanted_bps).sum();
        let target_bitrate = TargetBitrate::new(wanted_bps, now);
        let is_numbered = streams.iter().any(Stream::is_numbered);
        let cname = crate::reports::cname(&mut rng);
        let first_report = REPORT_INTERVAL.mul_f64(0.5 * (0.5 + rng.f64()));
        Ok(Self {
            opener: keys.opener()?,
            sealer: keys.sealer()?,
            options,
            cname,
            rng,
            pacer: Pacer::new(target_bitrate.path_bps(now), now),
            target_bitrate,
            estimate: is_numbered.then(|| Box::new(Estimate::new(now))),
            is_unshared: false,
            transport_sequence: 0,
            next_report_at: now + first_report,
            turn: 0,
            round_trip_s: None,
            remote_loss: vec![None; streams.len()],
            reported: vec![SentCounters::default(); streams.len()],
            reported_at: now,
            streams,
        })
    }

    /// Whether there is nothing to send: the peer accepted no track.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match level {
            0 => prefetcher.value(&*self.streams),
            1 => self.streams.iter().for_each(|stream| stream.prefetch(prefetcher)),
            _ => {}
        }
    }

    /// Handles a datagram that is RTCP by its first bytes. Returns whether it was authentic.
    pub fn rtcp(&mut self, arrived_at: Instant, datagram: &mut [u8]) -> bool {
        let Ok(len) = self.opener.open_rtcp(datagram) else { return false };
        for packet in Compound::new(datagram.get(..len).unwrap_or_default()).flatten() {
            match packet {
                Rtcp::SenderReport(report) => {
                    report.reports().for_each(|block| self.reported(arrived_at, &block));
                }
                Rtcp::ReceiverReport(report) => {
                    report.reports().for_each(|block| self.reported(arrived_at, &block));
                }
                Rtcp::Nack(nack) => {
                    if let Some(stream) = self.stream(nack.media_ssrc) {
                        stream.counters.nack_received += 1;
                        stream.nacked(arrived_at, nack.sequences());
                    }
                }
                Rtcp::PictureLoss(pli) => {
                    if let Some(stream) = self.stream(pli.media_ssrc) {
                        stream.counters.pli_received += 1;
                        stream.key_frame_requested(arrived_at);
                    }
                }
                Rtcp::FullIntraRequest(fir) => {
                    for (ssrc, sequence) in fir.requests() {
                        if let Some(stream) = self.stream(ssrc) {
                            stream.full_intra_requested(arrived_at, sequence);
                        }
                    }
                }
                Rtcp::Remb(remb) => {
                    let bps = remb.bitrate_bps as f64 + self.audio_bitrate_of_others(remb.ssrcs());
                    self.target_bitrate.remb(arrived_at, bps);
                    self.is_unshared = true;
                }
                Rtcp::TransportFeedback(feedback) => self.arrived(arrived_at, &feedback),
                _ => {}
            }
        }
        true
    }

    /// Handles a report of which numbered packets arrived, and when. The estimate is a bound for
    /// video that is numbered; all else has its rate beside it.
    fn arrived(&mut self, now: Instant, feedback: &TransportFeedback<'_>) {
        let is_other = |s: &&Stream| s.plan.kind == MediaKind::Audio || !s.is_numbered();
        let others_bps: f64 = self.streams.iter().filter(is_other).map(Stream::bitrate_bps).sum();
        let Some(estimate) = &mut self.estimate else { return };
        estimate.feedback(now, feedback);
        estimate.forget_above(self.target_bitrate.probed_bps());
        self.target_bitrate.by_delay(now, estimate.ceiling_bps().map(|bps| bps + others_bps));
        if let Some(loss) = estimate.take_loss(now) {
            self.target_bitrate.loss(now, loss);
        }
        self.is_unshared = true;
    }

    fn stream(&mut self, ssrc: u32) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.plan.ssrc == ssrc)
    }

    fn reported(&mut self, arrived_at: Instant, block: &ReportBlock) {
        let Some(at) = self.streams.iter().position(|stream| stream.plan.ssrc == block.ssrc) else {
            return;
        };
        let loss = f64::from(block.fraction_lost) / 256.0;
        if let Some(slot) = self.remote_loss.get_mut(at) {
            *slot = Some(loss);
        }
        if block.last_sr != 0 {
            let now = NtpTime::from_unix_ns(self.options.clock.unix_ns(arrived_at)).compact();
            let units = now.wrapping_sub(block.delay_since_last_sr).wrapping_sub(block.last_sr);
            // Clocks that disagree give a negative time, which wraps to hours.
            if units < 60 << 16 {
                self.round_trip_s = Some(f64::from(units) / 65_536.0);
            }
        }
        self.target_bitrate.loss(arrived_at, loss);
        self.is_unshared = true;
    }

    fn sound_bps(&self) -> f64 {
        self.streams
            .iter()
            .filter(|s| s.plan.kind == MediaKind::Audio)
            .map(Stream::bitrate_bps)
            .sum()
    }

    /// The audio rate to add to a limit on `sources` that excludes audio: Janus limits video only.
    fn audio_bitrate_of_others(&self, mut sources: impl ExactSizeIterator<Item = u32>) -> f64 {
        let is_sound = |ssrc| {
            self.streams.iter().any(|s| s.plan.kind == MediaKind::Audio && s.plan.ssrc == ssrc)
        };
        if sources.len() == 0 || sources.any(is_sound) { 0.0 } else { self.sound_bps() }
    }

    /// Distributes the target bitrate among the videos; audio keeps its rate.
    fn apply_target_bitrate(&mut self, now: Instant) {
        let pictures_bps = self.target_bitrate.bps(now) - self.sound_bps();
        self.is_unshared =
            self.options.adapts && !allocation::allocate(&mut self.streams, pictures_bps, now);
        // Never below the sent rate, or packets would queue without bound.
        let sent: f64 = self.streams.iter().map(Stream::bitrate_bps).sum();
        let frames: usize = self.streams.iter().map(Stream::frame_bytes_max).sum();
        self.pacer.set_path(self.target_bitrate.path_bps(now).max(sent), frames);
    }

    /// Switches audio between speech and silence; no effect on video.
    pub fn set_talking(&mut self, is_talking: bool) {
        self.streams.iter_mut().for_each(|stream| stream.set_talking(is_talking));
    }

    /// Stops or resumes all tracks of a kind; video resumes with a key frame.
    pub fn set_muted(&mut self, kind: MediaKind, is_muted: bool) {
        self.streams
            .iter_mut()
            .filter(|s| s.plan.kind == kind)
            .for_each(|stream| stream.set_muted(is_muted));
        self.is_unshared = true;
    }

    /// Replaces the single-encoding video by another one of the same codec, as at the start or end
    /// of screen sharing. No effect on the layers of a simulcast.
    pub fn show(&mut self, ladder: &Ladder) {
        let codec = ladder.top().codec();
        let is_shown = |stream: &&mut Stream| stream.plan.rid.is_none() && stream.codec() == codec;
        self.streams.iter_mut().filter(is_shown).for_each(|stream| stream.show(ladder));
        // Includes muted video, which will need its rate later.
        self.target_bitrate.want(self.streams.iter().map(Stream::wanted_bps).sum());
        self.is_unshared = true;
    }

    /// Performs due actions.
    pub fn timeout(&mut self, now: Instant) {
        // Like an encoder, which applies its rate at the next frame: of several limits in a row, as
        // Janus sends them at first, only the last one counts.
        let is_due =
            |stream: &Stream| stream.plan.kind == MediaKind::Video && stream.next_frame_at() <= now;
        if self.is_unshared && self.streams.iter().any(is_due) {
            self.apply_target_bitrate(now);
        }
        self.streams.iter_mut().for_each(|stream| stream.capture(now));
    }

    /// The next sealed datagram that may leave now, control or media.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Vec<u8>> {
        // The first report of a stream precedes its first packet (RFC 6051 section 3.1), and is
        // repeated after it for servers that learn an SSRC from media only. Until a report arrives,
        // such a server can only align tracks by arrival; if a report then moves video back,
        // OvenMediaEngine takes it for video with B-frames.
        if now >= self.next_report_at || self.streams.iter().any(Stream::is_unreported) {
            self.next_report_at = now + REPORT_INTERVAL.mul_f64(0.5 + self.rng.f64());
            if let Some(report) = self.report(now) {
                return Some(report);
            }
        }
        // Audio is neither paced nor counted.
        if let Some(packet) = self.media_packet(now, MediaKind::Audio) {
            return Some(packet);
        }
        if self.pacer.next_at() > now {
            return None;
        }
        let packet = self.media_packet(now, MediaKind::Video)?;
        self.pacer.sent(now, packet.len());
        Some(packet)
    }

    /// Streams take turns packet by packet, so that no layer waits for a whole frame of another.
    fn media_packet(&mut self, now: Instant, kind: MediaKind) -> Option<Vec<u8>> {
        let before = self.transport_sequence;
        let mut wire = Wire {
            sealer: &self.sealer,
            clock: self.options.clock,
            transport_sequence: &mut self.transport_sequence,
            repeated: None,
        };
        let count = self.streams.len();
        let packet = (1..=count).find_map(|step| {
            let at = (self.turn + step) % count;
            let stream = self
                .streams
                .get_mut(at)
                .filter(|stream| stream.plan.kind == kind && stream.has_waiting())?;
            let packet = stream.packet(now, &mut wire)?;
            self.turn = at;
            Some(packet)
        })?;
        let repeated = wire.repeated;
        if let Some(estimate) = &mut self.estimate {
            if let Some(sequence) = repeated {
                estimate.repeated(sequence);
            } else if self.transport_sequence != before {
                let bytes = packet.len().saturating_sub(OVERHEAD_BYTES);
                estimate.sent(now, self.transport_sequence, bytes, kind);
            }
        }
        Some(packet)
    }

    fn report(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut packet = Vec::new();
        for stream in self.streams.iter_mut().filter(|stream| stream.is_active()) {
            let info = stream.report(now, self.options.clock);
            let _ = RtcpWriter::compound(&mut packet, Report::Sender(&info), &[], &self.cname);
        }
        if packet.is_empty() {
            return None;
        }
        self.sealer.seal_rtcp(&mut packet).ok().map(|()| packet)
    }

    /// The RTCP BYE datagram.
    pub fn goodbye(&mut self) -> Option<Vec<u8>> {
        let ssrcs: Vec<u32> = self.streams.iter().map(|stream| stream.plan.ssrc).collect();
        let mut packet = Vec::new();
        let _ =
            RtcpWriter::compound(&mut packet, Report::Receiver(*ssrcs.first()?), &[], &self.cname)
                .bye(&ssrcs);
        self.sealer.seal_rtcp(&mut packet).ok().map(|()| packet)
    }

    /// When to call [`Self::timeout`] and [`Self::poll_packet`] next, and why.
    #[must_use]
    pub fn next_timeout(&self) -> (Instant, Why) {
        let frame = self.streams.iter().map(Stream::next_frame_at).min();
        let waits = |stream: &Stream| stream.plan.kind == MediaKind::Video && stream.has_waiting();
        let paced = self.streams.iter().any(waits).then(|| self.pacer.next_at());
        let deadlines = [
            Some((self.next_report_at, "sender report due")),
            frame.map(|at| (at, "frame to capture")),
            paced.map(|at| (at, "packets paced")),
        ];
        deadlines
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
            .unwrap_or((self.next_report_at, "sender report due"))
    }

    /// The statistics of each stream since the last call. Tracks are numbered from `first_track`.
    pub fn take_intervals(&mut self, first_track: u16, now: Instant) -> Vec<SentInterval> {
        let allowed_bps = self.target_bitrate.bps(now);
        let wanted_bps = self.target_bitrate.wanted_bps();
        let length = now.saturating_duration_since(std::mem::replace(&mut self.reported_at, now));
        let streams =
            self.streams.iter_mut().zip(&mut self.reported).zip(&self.remote_loss).enumerate();
        streams
            .map(|(at, ((stream, reported), loss))| {
                let counters = stream.counters.since(reported);
                *reported = stream.counters;
                let pause_us_max = stream.take_pause_us();
                SentInterval {
                    track: TrackId(first_track.saturating_add(at as u16)),
                    kind: stream.plan.kind,
                    codec: stream.codec(),
                    ended_at: now,
                    length,
                    counters,
                    round_trip_s: self.round_trip_s,
                    remote_loss_ratio: *loss,
                    allowed_bps,
                    wanted_bps,
                    pause_us_max,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
