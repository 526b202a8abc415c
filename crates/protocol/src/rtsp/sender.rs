//! The media that a publisher sends: clips in real time as RTP, sender reports, and what the server
//! reports back.
//!
//! A frame's packets leave together, as ffmpeg's publisher sends them: RTSP has no feedback by
//! which to pace them. There are no retransmissions, and the rate is that of the clip.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_media::rtcp::{Compound, Report, ReportBlock, Rtcp, RtcpWriter, SenderInfo};
use throng_media::rtp::{ExtensionIds, Extensions, HeaderFields, NtpTime, write_header};
use throng_observation::{MediaKind, Observation};

use super::announce::payload_type;
use crate::participant::Why;
use crate::published::{self, PublishedMedia, PublishedTrack, SentIntervals};
use crate::reports::cname;

/// Mean time between sender reports of a track (RFC 3550 section 6.2 and its minimum); each is
/// drawn between half and one and a half of it. The first one goes with the first packet, so that
/// the server can align the tracks.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// One sent track.
struct Stream {
    track: PublishedTrack,
    ssrc: u32,
    payload_type: u8,
    sequence: u16,
    timestamp_base: u32,
    next_report_at: Instant,
}

/// Sends the tracks of one session.
pub(super) struct Sender {
    streams: Vec<Stream>,
    clock: WallClock,
    cname: String,
    rng: fastrand::Rng,
    round_trip_s: Option<f64>,
    intervals: SentIntervals,
}

impl Sender {
    /// A sender that begins to play at `now`; its intervals end on whole seconds after `joined_at`.
    pub(super) fn new(
        media: &[PublishedMedia],
        clock: WallClock,
        seed: u64,
        joined_at: Instant,
        now: Instant,
    ) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let streams = media.iter().enumerate().map(|(at, media)| Stream {
            track: PublishedTrack::new(media, now),
            ssrc: rng.u32(1..),
            payload_type: payload_type(at),
            sequence: rng.u16(..),
            timestamp_base: rng.u32(..),
            next_report_at: now,
        });
        let streams = streams.collect();
        let cname = cname(&mut rng);
        let intervals = SentIntervals::new(joined_at, now);
        Self { streams, clock, cname, rng, round_trip_s: None, intervals }
    }

    /// Passes the packets of all frames that are due to `each`, with the track's index, frame by
    /// frame. `overhead_bytes` are those of a packet's header on the connection.
    pub(super) fn frames(
        &mut self,
        now: Instant,
        overhead_bytes: u64,
        mut each: impl FnMut(usize, Vec<Vec<u8>>),
    ) {
        for (at, stream) in self.streams.iter_mut().enumerate() {
            while stream.track.next_frame_at() <= now {
                each(at, stream.frame(now, overhead_bytes, self.clock));
            }
        }
    }

    /// The next sender report that is due, with its track.
    pub(super) fn poll_report(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        let is_due = |stream: &Stream| {
            stream.track.counters.packets_sent > 0 && now >= stream.next_report_at
        };
        let (at, stream) =
            self.streams.iter_mut().enumerate().find(|(_, stream)| is_due(stream))?;
        stream.next_report_at = now + REPORT_INTERVAL.mul_f64(0.5 + self.rng.f64());
        let mut packet = Vec::with_capacity(96);
        let info = stream.report(now, self.clock);
        let _ = RtcpWriter::compound(&mut packet, Report::Sender(&info), &[], &self.cname);
        Some((at, packet))
    }

    /// The RTCP BYE of track `at`.
    pub(super) fn goodbye(&self, at: usize) -> Option<Vec<u8>> {
        let ssrc = self.streams.get(at)?.ssrc;
        let mut packet = Vec::with_capacity(96);
        let _ = RtcpWriter::compound(&mut packet, Report::Receiver(ssrc), &[], &self.cname)
            .bye(&[ssrc]);
        Some(packet)
    }

    /// Takes an RTCP packet of the server; false if a part of it is malformed.
    pub(super) fn rtcp(&mut self, arrived_at: Instant, bytes: &[u8]) -> bool {
        let mut is_good = true;
        for packet in Compound::new(bytes) {
            match packet {
                Ok(Rtcp::SenderReport(report)) => {
                    report.reports().for_each(|block| self.reported(arrived_at, &block));
                }
                Ok(Rtcp::ReceiverReport(report)) => {
                    report.reports().for_each(|block| self.reported(arrived_at, &block));
                }
                Ok(_) => {}
                Err(_) => is_good = false,
            }
        }
        is_good
    }

    fn reported(&mut self, arrived_at: Instant, block: &ReportBlock) {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.ssrc == block.ssrc) else {
            return;
        };
        stream.track.remote_loss_ratio = Some(f64::from(block.fraction_lost) / 256.0);
        if block.last_sr != 0 {
            let now = NtpTime::from_unix_ns(self.clock.unix_ns(arrived_at)).compact();
            let units = now.wrapping_sub(block.delay_since_last_sr).wrapping_sub(block.last_sr);
            // A server whose delay is wrong gives a negative time, which wraps to hours.
            if units < 60 << 16 {
                self.round_trip_s = Some(f64::from(units) / 65_536.0);
            }
        }
    }

    /// The connection took nothing for so long.
    pub(super) fn blocked(&mut self, duration: Duration) {
        published::blocked(self.streams.first_mut().map(|stream| &mut stream.track), duration);
    }

    /// The intervals of the tracks, if their second is over.
    pub(super) fn take_due_intervals(&mut self, now: Instant) -> Vec<Observation> {
        let tracks = self.streams.iter_mut().map(|stream| &mut stream.track);
        self.intervals.take_due(now, tracks, self.round_trip_s)
    }

    /// The intervals of the tracks since the last.
    pub(super) fn take_intervals(&mut self, now: Instant) -> Vec<Observation> {
        let tracks = self.streams.iter_mut().map(|stream| &mut stream.track);
        self.intervals.take(now, tracks, self.round_trip_s)
    }

    /// When something is due next, and what.
    pub(super) fn next_timeout(&self) -> (Instant, Why) {
        let frames =
            self.streams.iter().map(|stream| (stream.track.next_frame_at(), "frame to capture"));
        let reporting = self.streams.iter().filter(|stream| stream.track.counters.packets_sent > 0);
        let reports = reporting.map(|stream| (stream.next_report_at, "sender report due"));
        let interval = (self.intervals.next_at(), "end of the interval");
        frames
            .chain(reports)
            .fold(interval, |first, other| if other.0 < first.0 { other } else { first })
    }
}

impl Stream {
    /// The packets of the next frame.
    fn frame(&mut self, now: Instant, overhead_bytes: u64, clock: WallClock) -> Vec<Vec<u8>> {
        let captured_unix_ns = clock.unix_ns(self.track.next_frame_at());
        let frame = self.track.player.advance();
        let clip = Arc::clone(self.track.player.clip());
        let count = clip.packet_count(&frame);
        let mut packets = Vec::with_capacity(count);
        for at in 0..count {
            let fields = HeaderFields {
                payload_type: self.payload_type,
                // Sound is one talkspurt that began with the first packet (RFC 3551 section 4.1).
                marker: match self.track.kind {
                    MediaKind::Video => at + 1 == count,
                    MediaKind::Audio => self.track.counters.packets_sent == 0,
                },
                sequence: self.sequence,
                timestamp: self.timestamp_base.wrapping_add(frame.timestamp),
                ssrc: self.ssrc,
            };
            let mut packet = Vec::with_capacity(12 + clip.payload_len(&frame, at));
            let header_bytes = write_header(
                &mut packet,
                &fields,
                &ExtensionIds::default(),
                &Extensions::default(),
            );
            clip.write_payload(&frame, at, captured_unix_ns, &mut packet);
            self.sequence = self.sequence.wrapping_add(1);
            self.track.counters.packets_sent += 1;
            self.track.counters.payload_bytes += (packet.len() - header_bytes) as u64;
            self.track.counters.wire_bytes += packet.len() as u64 + overhead_bytes;
            packets.push(packet);
        }
        self.track.frame_left(now, clip.is_key(&frame));
        packets
    }

    /// The content of a sender report at `now`.
    fn report(&self, now: Instant, clock: WallClock) -> SenderInfo {
        let rate = u128::from(self.track.player.clip().clock_rate());
        let ticks =
            now.saturating_duration_since(self.track.began_at).as_nanos() * rate / 1_000_000_000;
        SenderInfo {
            ssrc: self.ssrc,
            ntp: NtpTime::from_unix_ns(clock.unix_ns(now)),
            rtp_timestamp: self.timestamp_base.wrapping_add(ticks as u32),
            packet_count: self.track.counters.packets_sent as u32,
            octet_count: self.track.counters.payload_bytes as u32,
        }
    }
}
