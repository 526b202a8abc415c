//! A viewer's streams: whose packets they carry, how these are numbered and sealed for this viewer alone.

use std::net::SocketAddr;
use std::time::Instant;

use throng_media::rtcp::{Report, RtcpWriter, SenderInfo};
use throng_media::rtp::{AbsCaptureTime, Extensions, HeaderFields, NtpTime, write_header};
use throng_protocol::webrtc::srtp::{RTP_GROWTH_MAX, Sealer};

use crate::peer::Agreed;
use crate::reel::Reel;
use crate::source::{Burst, Source};

/// A stream to a viewer.
pub(crate) struct Stream {
    pub(crate) agreed: Agreed,
    /// What it carries.
    pub(crate) source: Source,
    /// Nothing that was captured later is sent.
    ends_at: Option<Instant>,
    /// Since when it stutters, if it does.
    stutters_from: Option<Instant>,
    place: Place,
    /// SRTP index of the next packet that was never sent before.
    next_index: u64,
    rtx_index: u64,
    packets: u32,
    octets: u32,
    /// RTP timestamp and capture time of what was sent last, for sender reports.
    last: Option<(u32, Instant)>,
}

/// Where the source's numbers lie in the stream's.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Waiting for a burst to begin with.
    Waiting,
    /// Packet `origin` of the source is `index` of the stream, and so on; timestamps are shifted.
    Playing { origin: u64, index: u64, timestamp_shift: u32 },
}

/// The keys of a viewer and where its packets go.
pub(crate) struct Outlet {
    pub(crate) sealer: Sealer,
    pub(crate) to: SocketAddr,
    /// Transport-wide sequence number of the next packet.
    pub(crate) transport_sequence: u16,
    /// Its file, where media has to be read.
    pub(crate) reel: Option<Reel>,
}

impl Outlet {
    /// Whether `burst` has been read and may be sent; what comes after it is asked for.
    #[inline]
    pub(crate) fn has_read(&mut self, burst: &Burst) -> bool {
        let Some(reel) = &mut self.reel else { return true };
        reel.take(burst.payloads.iter().map(Vec::len).sum())
    }
}

/// What a NACK came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    /// The packet of the source to send again, with this SRTP index.
    Packet { number: u64, index: u64 },
    /// Never sent, or from before a change of source.
    Unknown,
}

impl Stream {
    pub(crate) fn new(
        agreed: Agreed,
        source: Source,
        ends_at: Option<Instant>,
        stutters_from: Option<Instant>,
    ) -> Self {
        // RFC 3550 §5.1 wants a random start; below 2^15 so that the first wrap is not taken for a reordering.
        let first = u64::from(fastrand::u16(..0x7fff));
        Self {
            agreed,
            source,
            ends_at,
            stutters_from,
            place: Place::Waiting,
            next_index: first,
            rtx_index: u64::from(fastrand::u16(..0x7fff)),
            packets: 0,
            octets: 0,
            last: None,
        }
    }

    /// Carries `source` from its next key frame on.
    pub(crate) fn switch(&mut self, source: Source) {
        if self.source != source {
            self.source = source;
            self.place = Place::Waiting;
        }
    }

    /// Whether `burst` is to be sent; the first key frame begins the stream.
    #[inline]
    pub(crate) fn takes(&mut self, burst: &Burst) -> bool {
        if self.ends_at.is_some_and(|at| burst.captured_at >= at) {
            return false;
        }
        let since = self.stutters_from.map(|from| burst.captured_at.saturating_duration_since(from));
        if since.is_some_and(|since| since.as_secs() % 3 == 2) {
            self.pause();
            return false;
        }
        match self.place {
            Place::Playing { origin, .. } if burst.first_packet >= origin => true,
            _ if !burst.key_frame => false,
            _ => {
                self.begin(burst);
                true
            }
        }
    }

    /// Sends nothing more until the next key frame.
    pub(crate) fn pause(&mut self) {
        self.place = Place::Waiting;
    }

    fn begin(&mut self, burst: &Burst) {
        // A new source goes on in the stream's time: as much later as really passed since the last frame.
        let timestamp = match self.last {
            None => burst.timestamp,
            Some((last, at)) => {
                let passed = burst.captured_at.saturating_duration_since(at).as_micros() as u64;
                let ticks = passed * u64::from(self.agreed.codec.clock_rate()) / 1_000_000;
                last.wrapping_add((ticks as u32).max(1))
            }
        };
        self.place = Place::Playing {
            origin: burst.first_packet,
            index: self.next_index,
            timestamp_shift: timestamp.wrapping_sub(burst.timestamp),
        };
    }

    /// Appends packet `number_in_burst` of `burst` to `out`, sealed. False when it cannot be.
    #[inline]
    pub(crate) fn write(
        &mut self,
        burst: &Burst,
        number_in_burst: usize,
        outlet: &mut Outlet,
        out: &mut Vec<u8>,
    ) -> bool {
        let (Place::Playing { origin, index, timestamp_shift }, Some(payload)) =
            (self.place, burst.payloads.get(number_in_burst))
        else {
            return false;
        };
        let index = index + (burst.first_packet + number_in_burst as u64 - origin);
        self.next_index = self.next_index.max(index + 1);
        let timestamp = burst.timestamp.wrapping_add(timestamp_shift);
        self.last = Some((timestamp, burst.captured_at));
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(payload.len() as u32);
        let fields = HeaderFields {
            payload_type: self.agreed.payload_type,
            marker: burst.marker && number_in_burst + 1 == burst.payloads.len(),
            sequence: index as u16,
            timestamp,
            ssrc: self.agreed.ssrc,
        };
        self.seal(&fields, index, burst, None, payload, outlet, out)
    }

    /// Which packet of the source was sent with `sequence`.
    pub(crate) fn sent_as(&self, sequence: u16) -> Resend {
        let Place::Playing { origin, index: first, .. } = self.place else { return Resend::Unknown };
        // The newest index with these 16 bits.
        let newest = self.next_index.wrapping_sub(1);
        let back = u64::from((newest as u16).wrapping_sub(sequence));
        match newest.checked_sub(back) {
            Some(index) if index >= first && index < self.next_index => {
                Resend::Packet { number: origin + (index - first), index }
            }
            _ => Resend::Unknown,
        }
    }

    /// Appends what was sent as `index` once more: as RTX (RFC 4588) where agreed, otherwise the very same packet.
    pub(crate) fn write_again(
        &mut self,
        burst: &Burst,
        number_in_burst: usize,
        index: u64,
        outlet: &mut Outlet,
        out: &mut Vec<u8>,
    ) -> bool {
        let (Place::Playing { timestamp_shift, .. }, Some(payload)) =
            (self.place, burst.payloads.get(number_in_burst))
        else {
            return false;
        };
        let mut fields = HeaderFields {
            payload_type: self.agreed.payload_type,
            marker: burst.marker && number_in_burst + 1 == burst.payloads.len(),
            sequence: index as u16,
            timestamp: burst.timestamp.wrapping_add(timestamp_shift),
            ssrc: self.agreed.ssrc,
        };
        let Some((payload_type, ssrc)) = self.agreed.rtx else {
            return self.seal(&fields, index, burst, None, payload, outlet, out);
        };
        let original = fields.sequence;
        let rtx_index = self.rtx_index;
        self.rtx_index += 1;
        fields = HeaderFields { payload_type, ssrc, sequence: rtx_index as u16, ..fields };
        self.seal(&fields, rtx_index, burst, Some(original), payload, outlet, out)
    }

    #[inline]
    fn seal(
        &self,
        fields: &HeaderFields,
        index: u64,
        burst: &Burst,
        original_sequence: Option<u16>,
        payload: &[u8],
        outlet: &mut Outlet,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        // Sealing another header with the same index would betray the key (AEAD nonces): a packet that may be sent
        // again as it is carries no number that would differ.
        let transport_sequence = self.agreed.rtx.is_some().then(|| {
            outlet.transport_sequence = outlet.transport_sequence.wrapping_add(1);
            outlet.transport_sequence
        });
        let extensions = Extensions {
            abs_capture_time: Some(AbsCaptureTime { captured: burst.captured, clock_offset: None }),
            transport_sequence,
            ..Extensions::default()
        };
        let header_len = write_header(out, fields, &self.agreed.ids, &extensions);
        if let Some(original) = original_sequence {
            out.extend_from_slice(&original.to_be_bytes());
        }
        out.extend_from_slice(payload);
        let plain_len = out.len() - start;
        out.resize(start + plain_len + RTP_GROWTH_MAX, 0);
        let Some(packet) = out.get_mut(start..) else { return false };
        match outlet.sealer.seal_rtp(packet, plain_len, header_len, fields.ssrc, index) {
            Ok(len) => {
                out.truncate(start + len);
                true
            }
            Err(_) => false,
        }
    }

    /// Appends a sender report (RFC 3550 §6.4.1), sealed; false before anything was sent.
    pub(crate) fn write_report(
        &self,
        now: Instant,
        wall_clock: NtpTime,
        outlet: &mut Outlet,
        scratch: &mut Vec<u8>,
    ) -> bool {
        let Some((timestamp, at)) = self.last else { return false };
        let passed = now.saturating_duration_since(at).as_micros() as u64;
        let ticks = passed * u64::from(self.agreed.codec.clock_rate()) / 1_000_000;
        let sender = SenderInfo {
            ssrc: self.agreed.ssrc,
            ntp: wall_clock,
            rtp_timestamp: timestamp.wrapping_add(ticks as u32),
            packet_count: self.packets,
            octet_count: self.octets,
        };
        scratch.clear();
        let _ = RtcpWriter::compound(scratch, Report::Sender(&sender), &[], "throng-stage");
        outlet.sealer.seal_rtcp(scratch).is_ok()
    }
}
