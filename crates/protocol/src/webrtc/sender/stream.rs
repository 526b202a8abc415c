//! One sent stream: a clip, or one layer of a simulcast, with its sequence numbers and history.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_media::quality::WallClock;
use throng_media::rtcp::SenderInfo;
use throng_media::rtp::{
    AbsCaptureTime, Extension, ExtensionIds, Extensions, HeaderFields, NtpTime, write_header,
    write_rtx_payload,
};
use throng_media::source::Player;
use throng_observation::{Codec, MediaKind, SentCounters};

use super::history::{History, SentFrame};
use super::ladder::Ladder;
use super::voice::{Sound, Voice, level};
use crate::webrtc::srtp::{RTP_GROWTH_MAX, Sealer};

/// The shortest interval of key frames, however often they are requested: libwebrtc's
/// `kMinKeyframeSendIntervalMs`.
const KEY_FRAME_SPACING: Duration = Duration::from_millis(300);
/// A packet is not retransmitted again before the last retransmission can have arrived.
const REPEAT_SPACING: Duration = Duration::from_millis(30);
/// The time between a downgrade and the next upgrade: each change costs a key frame, and a rate
/// that did not fit will not fit immediately. libwebrtc tries an upgrade every few seconds
/// (`QualityScaler`).
const WORSE_FOR: Duration = Duration::from_secs(2);
/// How many retransmissions may be queued; more would arrive too late.
const REPEATS_MAX: usize = 256;
/// Room for the header with all extensions.
const HEADER_ROOM: usize = 64;

/// The negotiated parameters of a sent stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendPlan {
    /// `a=mid` of its media section.
    pub mid: String,
    /// Its simulcast layer, if any (`a=rid`).
    pub rid: Option<String>,
    /// Audio or video.
    pub kind: MediaKind,
    /// Payload type.
    pub payload_type: u8,
    /// Synchronization source.
    pub ssrc: u32,
    /// Payload type and SSRC of its retransmissions (RFC 4588); without them packets are
    /// retransmitted unchanged.
    pub repeats: Option<(u8, u32)>,
    /// The header extension ids of its media section.
    pub extension_ids: ExtensionIds,
}

/// A sent stream.
pub(super) struct Stream {
    pub(super) plan: SendPlan,
    player: Player,
    /// One video at several rates, among them that of `player`.
    ladder: Ladder,
    began_at: Instant,
    timestamp_base: u32,
    /// Extended sequence number of the next packet.
    next: u64,
    next_repeat: u64,
    /// Frames with packets to send, and how many packets of the first frame were sent.
    waiting: VecDeque<SentFrame>,
    gone: usize,
    /// Packets to retransmit, and when each was last retransmitted.
    repeats: VecDeque<u64>,
    repeated: VecDeque<(u64, Instant)>,
    history: History,
    voice: Voice,
    is_muted: bool,
    /// It is a simulcast layer that does not fit the target bitrate.
    is_left_out: bool,
    /// When the last downgrade happened.
    worse_since: Option<Instant>,
    key_frame_at: Option<Instant>,
    /// A key frame was requested too soon after the last one.
    key_frame_owed: bool,
    /// The sequence number of the last full intra request, by which a repeated one is recognised
    /// (RFC 5104 section 4.3.1).
    fir_sequence: Option<u8>,
    pub(super) counters: SentCounters,
    /// The packet count in the last sender report, which gives the timestamps their wall time;
    /// `None` before it.
    reported: Option<u64>,
    /// When the last packet of a frame left, and the longest pause between two such moments since
    /// the last query.
    left_at: Option<Instant>,
    pause_max: Duration,
}

impl Stream {
    pub(super) fn new(
        plan: SendPlan,
        ladder: Ladder,
        player: Player,
        rng: &mut fastrand::Rng,
        now: Instant,
    ) -> Self {
        Self {
            plan,
            player,
            ladder,
            began_at: now,
            timestamp_base: rng.u32(..),
            // Below 2^15, so that the first wrap is far and no peer assumes one (RFC 3711 section
            // 3.3.1).
            next: u64::from(rng.u16(1..0x8000)),
            next_repeat: u64::from(rng.u16(1..0x8000)),
            waiting: VecDeque::new(),
            gone: 0,
            repeats: VecDeque::new(),
            repeated: VecDeque::new(),
            history: History::default(),
            voice: Voice::talking(true),
            is_muted: false,
            is_left_out: false,
            worse_since: None,
            key_frame_at: None,
            key_frame_owed: false,
            fir_sequence: None,
            counters: SentCounters::default(),
            reported: None,
            left_at: None,
            pause_max: Duration::ZERO,
        }
    }

    /// Mean rate of the current clip, bits per second.
    pub(super) fn bitrate_bps(&self) -> f64 {
        if self.is_still() { 0.0 } else { self.player.clip().bitrate_bps() }
    }

    /// Payload bytes of the largest frame of the current clip.
    pub(super) fn frame_bytes_max(&self) -> usize {
        if self.is_still() { 0 } else { self.player.clip().frame_bytes_max() }
    }

    /// Mean rate without limits, bits per second.
    pub(super) fn wanted_bps(&self) -> f64 {
        self.ladder.top().bitrate_bps()
    }

    pub(super) fn is_muted(&self) -> bool {
        self.is_muted
    }

    /// Whether it sends nothing for now.
    fn is_still(&self) -> bool {
        self.is_muted || self.is_left_out
    }

    /// See [`crate::participant::Participant::prefetch`].
    pub(super) fn prefetch(&self, prefetcher: &mut Prefetcher<'_>) {
        self.history.prefetch(prefetcher);
    }

    /// When the next frame is captured.
    pub(super) fn next_frame_at(&self) -> Instant {
        self.began_at + self.player.next_due()
    }

    pub(super) fn codec(&self) -> Codec {
        self.player.clip().codec()
    }

    #[cfg(test)]
    pub(super) fn clip(&self) -> &Arc<throng_media::source::Clip> {
        self.player.clip()
    }

    /// The packets of the frame that is being sent.
    #[cfg(test)]
    pub(super) fn waiting_packets(&self) -> usize {
        self.waiting.front().map_or(0, |frame| frame.packets() as usize)
    }

    /// Whether its packets have transport-wide sequence numbers. As in libwebrtc (`PacketRouter`),
    /// the extension of its section decides, for audio too.
    pub(super) fn is_numbered(&self) -> bool {
        self.plan.extension_ids.id(Extension::TransportSequence).is_some()
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.repeats.is_empty()
    }

    pub(super) fn set_talking(&mut self, is_talking: bool) {
        self.voice.set_talking(is_talking);
    }

    pub(super) fn set_muted(&mut self, is_muted: bool) {
        if self.is_muted && !is_muted {
            self.player.request_key_frame();
        }
        self.is_muted = is_muted;
    }

    /// Switches to `ladder`, beginning with a key frame.
    pub(super) fn show(&mut self, ladder: &Ladder) {
        self.ladder = ladder.clone();
        self.player.switch_to(Arc::clone(ladder.top()));
        self.worse_since = None;
    }

    /// Plays the rung that fits `bps`; a change begins with a key frame. Returns whether that rung
    /// is playing: an upgrade may have to wait.
    pub(super) fn keep_to(&mut self, bps: f64, now: Instant) -> bool {
        let (clip, played) = (self.ladder.fitting(bps), self.player.clip());
        if Arc::ptr_eq(clip, played) {
            return true;
        }
        let is_worse = clip.bitrate_bps() < played.bitrate_bps();
        if !self.may_change(is_worse, now) {
            return false;
        }
        self.worse_since = is_worse.then_some(now);
        self.player.switch_to(Arc::clone(clip));
        true
    }

    /// Drops or resumes this simulcast layer; it resumes with a key frame. Returns whether that is
    /// done.
    pub(super) fn leave_out(&mut self, is_left_out: bool, now: Instant) -> bool {
        if self.is_left_out == is_left_out {
            return true;
        }
        if !self.may_change(is_left_out, now) {
            return false;
        }
        self.is_left_out = is_left_out;
        self.worse_since = is_left_out.then_some(now);
        if !is_left_out {
            self.player.request_key_frame();
        }
        true
    }

    fn may_change(&self, is_worse: bool, now: Instant) -> bool {
        let is_soon = |since| now.saturating_duration_since(since) < WORSE_FOR;
        is_worse || !self.worse_since.is_some_and(is_soon)
    }

    /// A receiver needs a key frame.
    pub(super) fn key_frame_requested(&mut self, now: Instant) {
        // A stream that resumes begins with a key frame anyway.
        if self.plan.kind == MediaKind::Audio || self.is_still() {
            return;
        }
        let is_soon = |at: Instant| now.saturating_duration_since(at) < KEY_FRAME_SPACING;
        if self.key_frame_at.is_some_and(is_soon) {
            self.key_frame_owed = true;
        } else {
            self.player.request_key_frame();
            self.key_frame_at = Some(now);
        }
    }

    pub(super) fn full_intra_requested(&mut self, now: Instant, sequence: u8) {
        self.counters.fir_received += 1;
        if self.fir_sequence.replace(sequence) != Some(sequence) {
            self.key_frame_requested(now);
        }
    }

    /// Captures the frames that are due.
    pub(super) fn capture(&mut self, now: Instant) {
        while self.next_frame_at() <= now {
            let captured_at = self.next_frame_at();
            if std::mem::take(&mut self.key_frame_owed) {
                self.key_frame_requested(now);
            }
            let sound = if self.plan.kind == MediaKind::Audio {
                self.voice.next()
            } else {
                Sound::Voice { marker: false }
            };
            if self.is_still() || sound == Sound::Nothing {
                // The time while muted is no pause.
                self.left_at = None;
                self.player.skip();
                continue;
            }
            let clip = Arc::clone(self.player.clip());
            let frame = self.player.advance();
            let (is_voice, marker) = match sound {
                Sound::Voice { marker } => (true, marker),
                Sound::Comfort | Sound::Nothing => (false, false),
            };
            let sent = SentFrame { first: self.next, frame, captured_at, clip, is_voice, marker };
            self.next += sent.packets();
            self.counters.frames_sent += 1;
            if sent.clip.is_key(&frame) && self.plan.kind == MediaKind::Video {
                self.counters.key_frames_sent += 1;
                self.key_frame_at = Some(now);
            }
            self.waiting.push_back(sent);
        }
    }

    /// Queues the packets with sequence numbers `missing` for retransmission.
    pub(super) fn nacked(&mut self, now: Instant, missing: impl Iterator<Item = u16>) {
        while self
            .repeated
            .pop_front_if(|(_, at)| now.saturating_duration_since(*at) > REPEAT_SPACING)
            .is_some()
        {}
        for sequence in missing {
            // The index nearest below the newest with these low bits.
            let behind = (self.next as u16).wrapping_sub(sequence);
            let Some(index) = self.next.checked_sub(u64::from(behind)).filter(|_| behind != 0)
            else {
                continue;
            };
            let is_known = self.repeats.contains(&index)
                || self.repeated.iter().any(|(known, _)| *known == index);
            if !is_known && self.repeats.len() < REPEATS_MAX && self.gone(index).is_some() {
                self.repeats.push_back(index);
            }
        }
    }

    /// The frame of packet `index`, and the packet's position in it, if the packet was sent: the
    /// first packets of a large frame can be requested again while its last ones still wait.
    fn gone(&self, index: u64) -> Option<(&SentFrame, usize)> {
        let under_way = || {
            let frame = self.waiting.front()?;
            let packet = usize::try_from(index.checked_sub(frame.first)?).ok()?;
            (packet < self.gone).then_some((frame, packet))
        };
        self.history.find(index).or_else(under_way)
    }

    /// Writes and seals the next waiting packet; retransmissions first, because they are late
    /// already.
    pub(super) fn packet(&mut self, now: Instant, wire: &mut Wire<'_>) -> Option<Vec<u8>> {
        while let Some(index) = self.repeats.pop_front() {
            if let Some(packet) = self.repeat(now, index, wire) {
                return Some(packet);
            }
        }
        // Moved out while the packet is written, which borrows the stream.
        let sent = self.waiting.pop_front()?;
        let packet = self.gone;
        let number = self.is_numbered().then(|| wire.next_transport_sequence());
        if let Some(number) = number.filter(|_| self.plan.repeats.is_none()) {
            self.history.number(sent.first + packet as u64, number);
        }
        let written = self.write(&sent, packet, None, number, wire);
        self.gone += 1;
        if self.gone as u64 >= sent.packets() {
            self.gone = 0;
            if let Some(before) = self.left_at.replace(now) {
                self.pause_max = self.pause_max.max(now.saturating_duration_since(before));
            }
            self.history.keep(sent);
        } else {
            self.waiting.push_front(sent);
        }
        let (sealed, payload_len) = written?;
        self.counters.packets_sent += 1;
        self.counters.payload_bytes += payload_len as u64;
        self.counters.wire_bytes += sealed.len() as u64;
        Some(sealed)
    }

    fn repeat(&mut self, now: Instant, index: u64, wire: &mut Wire<'_>) -> Option<Vec<u8>> {
        let (sent, packet) = self.gone(index).map(|(sent, packet)| (sent.clone(), packet))?;
        // A packet that is retransmitted unchanged must be identical to the bit, because its nonce
        // is: it keeps its number, where libwebrtc gives it a new one.
        let number = match self.plan.repeats {
            _ if !self.is_numbered() => None,
            Some(_) => Some(wire.next_transport_sequence()),
            None => Some(self.history.number_of(index)?),
        };
        let (sealed, _) = self.write(&sent, packet, Some(index), number, wire)?;
        wire.repeated = number.filter(|_| self.plan.repeats.is_none());
        self.repeated.push_back((index, now));
        self.counters.retransmitted_packets += 1;
        self.counters.retransmitted_bytes += sealed.len() as u64;
        Some(sealed)
    }

    /// A sealed packet of a frame with the transport-wide sequence number `number`, as it is or as
    /// the retransmission of packet `repeats`, and its payload's length.
    fn write(
        &mut self,
        sent: &SentFrame,
        packet: usize,
        repeats: Option<u64>,
        number: Option<u16>,
        wire: &Wire<'_>,
    ) -> Option<(Vec<u8>, usize)> {
        let original = sent.first + packet as u64;
        let (payload_type, ssrc, index) = match (repeats, self.plan.repeats) {
            (Some(_), Some((payload_type, ssrc))) => {
                self.next_repeat += 1;
                (payload_type, ssrc, self.next_repeat)
            }
            _ => (self.plan.payload_type, self.plan.ssrc, original),
        };
        let is_rtx = ssrc != self.plan.ssrc;
        let is_last = packet as u64 + 1 == sent.packets();
        let marker = if self.plan.kind == MediaKind::Audio { sent.marker } else { is_last };
        let captured_unix_ns = wire.clock.unix_ns(sent.captured_at);
        let captured = AbsCaptureTime {
            captured: NtpTime::from_unix_ns(captured_unix_ns),
            clock_offset: None,
        };
        let rid = self.plan.rid.as_deref();
        let is_audio = self.plan.kind == MediaKind::Audio;
        let extensions = Extensions {
            mid: Some(&self.plan.mid),
            rid: rid.filter(|_| !is_rtx),
            repaired_rid: rid.filter(|_| is_rtx),
            abs_capture_time: (packet == 0).then_some(captured),
            audio_level: is_audio.then(|| level(sent.is_voice, sent.frame.number())),
            transport_sequence: number,
            ..Extensions::default()
        };
        let fields = HeaderFields {
            payload_type,
            marker,
            sequence: index as u16,
            timestamp: self.timestamp_base.wrapping_add(sent.frame.timestamp),
            ssrc,
        };
        let payload_len = sent.clip.payload_len(&sent.frame, packet);
        let mut buffer = Vec::with_capacity(HEADER_ROOM + payload_len + RTP_GROWTH_MAX);
        let header_len = write_header(&mut buffer, &fields, &self.plan.extension_ids, &extensions);
        if is_rtx {
            write_rtx_payload(&mut buffer, original as u16, &[]);
        }
        let begins_at = buffer.len();
        sent.clip.write_payload(&sent.frame, packet, captured_unix_ns, &mut buffer).then_some(())?;
        if !sent.is_voice {
            // An Opus packet with an empty frame: the receiver generates silence (RFC 6716 section
            // 3.2.1).
            *buffer.get_mut(begins_at)? &= !3;
            buffer.truncate(begins_at + 1);
        }
        let plain_len = buffer.len();
        buffer.resize(plain_len + wire.sealer.rtp_growth(), 0);
        let sealed_len =
            wire.sealer.seal_rtp(&mut buffer, plain_len, header_len, ssrc, index).ok()?;
        buffer.truncate(sealed_len);
        Some((buffer, plain_len - header_len))
    }

    /// The longest pause between two frames since the last call, microseconds.
    pub(super) fn take_pause_us(&mut self) -> u32 {
        u32::try_from(std::mem::take(&mut self.pause_max).as_micros()).unwrap_or(u32::MAX)
    }

    /// Whether it sends, or is about to.
    pub(super) fn is_active(&self) -> bool {
        self.counters.packets_sent > 0 || !self.waiting.is_empty()
    }

    /// Whether receivers lack a report for its timestamps, or only got one before its first packet.
    pub(super) fn is_unreported(&self) -> bool {
        match self.reported {
            None => self.is_active(),
            Some(packets) => packets == 0 && self.counters.packets_sent > 0,
        }
    }

    /// The content of a sender report at `now`.
    pub(super) fn report(&mut self, now: Instant, clock: WallClock) -> SenderInfo {
        self.reported = Some(self.counters.packets_sent);
        let rate = u128::from(self.player.clip().clock_rate());
        let ticks = now.saturating_duration_since(self.began_at).as_nanos() * rate / 1_000_000_000;
        SenderInfo {
            ssrc: self.plan.ssrc,
            ntp: NtpTime::from_unix_ns(clock.unix_ns(now)),
            rtp_timestamp: self.timestamp_base.wrapping_add(ticks as u32),
            packet_count: self.counters.packets_sent as u32,
            octet_count: self.counters.payload_bytes as u32,
        }
    }
}

/// The outgoing state that all streams of a peer connection share.
pub(super) struct Wire<'a> {
    pub(super) sealer: &'a Sealer,
    pub(super) clock: WallClock,
    /// The last transport-wide sequence number.
    pub(super) transport_sequence: &'a mut u16,
    /// The number of a packet that was written once more with it.
    pub(super) repeated: Option<u16>,
}

impl Wire<'_> {
    fn next_transport_sequence(&mut self) -> u16 {
        *self.transport_sequence = self.transport_sequence.wrapping_add(1);
        *self.transport_sequence
    }
}
