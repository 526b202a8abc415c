//! A viewer's streams: their source, and the numbering and SRTP of their packets for this viewer.

use std::net::SocketAddr;
use std::time::Instant;

use throng_media::rtcp::{Report, RtcpWriter, SenderInfo};
use throng_media::rtp::{AbsCaptureTime, Extensions, HeaderFields, NtpTime, write_header};
use throng_protocol::webrtc::srtp::{RTP_GROWTH_MAX, Sealer};

use crate::media_files::MediaFile;
use crate::peer::NegotiatedMedia;
use crate::source::{Burst, Source};

/// A stream to a viewer.
pub(crate) struct Stream {
    pub(crate) agreed: NegotiatedMedia,
    /// Its source.
    pub(crate) source: Source,
    /// Media captured later is not sent.
    ends_at: Option<Instant>,
    /// Since when it stutters, if that is planted.
    stutters_from: Option<Instant>,
    place: SourcePosition,
    /// SRTP index of the next new packet.
    next_index: u64,
    rtx_index: u64,
    packets: u32,
    octets: u32,
    /// RTP timestamp and capture time of the last packet, for sender reports.
    last: Option<(u32, Instant)>,
}

/// How the source's packet numbers map to the stream's.
#[derive(Clone, Copy, Debug)]
enum SourcePosition {
    /// Waiting for a key frame.
    Waiting,
    /// Packet `origin` of the source is `index` of the stream, and so on; timestamps are shifted.
    Playing { origin: u64, index: u64, timestamp_shift: u32 },
}

/// A viewer's SRTP keys and destination.
pub(crate) struct ViewerTransport {
    pub(crate) sealer: Sealer,
    pub(crate) to: SocketAddr,
    /// Transport-wide sequence number of the next packet.
    pub(crate) transport_sequence: u16,
    /// Its file, if a disk limit is planted.
    pub(crate) file: Option<MediaFile>,
}

impl ViewerTransport {
    /// Whether as many bytes as `burst` have been read, so that it may be sent.
    #[inline]
    pub(crate) fn has_read(&mut self, burst: &Burst) -> bool {
        let Some(file) = &mut self.file else { return true };
        file.take(burst.payloads.iter().map(Vec::len).sum())
    }
}

/// The packet that a NACK requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    /// The packet of the source to send again, with this SRTP index.
    Packet { number: u64, index: u64 },
    /// Never sent, or from before a change of source.
    Unknown,
}

impl Stream {
    pub(crate) fn new(
        agreed: NegotiatedMedia,
        source: Source,
        ends_at: Option<Instant>,
        stutters_from: Option<Instant>,
    ) -> Self {
        // RFC 3550 §5.1 wants a random start; below 2^15 so that the first wrap is not taken for a
        // reordering.
        let first = u64::from(fastrand::u16(..0x7fff));
        Self {
            agreed,
            source,
            ends_at,
            stutters_from,
            place: SourcePosition::Waiting,
            next_index: first,
            rtx_index: u64::from(fastrand::u16(..0x7fff)),
            packets: 0,
            octets: 0,
            last: None,
        }
    }

    /// Switches to `source` at its next key frame.
    pub(crate) fn switch(&mut self, source: Source) {
        if self.source != source {
            self.source = source;
            self.place = SourcePosition::Waiting;
        }
    }

    /// Whether `burst` is to be sent; the first key frame begins the stream.
    #[inline]
    pub(crate) fn takes(&mut self, burst: &Burst) -> bool {
        if self.ends_at.is_some_and(|at| burst.captured_at >= at) {
            return false;
        }
        let since =
            self.stutters_from.map(|from| burst.captured_at.saturating_duration_since(from));
        if since.is_some_and(|since| since.as_secs() % 3 == 2) {
            self.pause();
            return false;
        }
        match self.place {
            SourcePosition::Playing { origin, .. } if burst.first_packet >= origin => true,
            _ if !burst.key_frame => false,
            _ => {
                self.begin(burst);
                true
            }
        }
    }

    /// Sends nothing more until the next key frame.
    pub(crate) fn pause(&mut self) {
        self.place = SourcePosition::Waiting;
    }

    fn begin(&mut self, burst: &Burst) {
        // Timestamps of a new source continue those of the stream by the time that has really
        // passed.
        let timestamp = match self.last {
            None => burst.timestamp,
            Some((last, at)) => {
                let passed = burst.captured_at.saturating_duration_since(at).as_micros() as u64;
                let ticks = passed * u64::from(self.agreed.codec.clock_rate()) / 1_000_000;
                last.wrapping_add((ticks as u32).max(1))
            }
        };
        self.place = SourcePosition::Playing {
            origin: burst.first_packet,
            index: self.next_index,
            timestamp_shift: timestamp.wrapping_sub(burst.timestamp),
        };
    }

    /// Appends packet `number_in_burst` of `burst` to `out` as SRTP; false if that fails.
    #[inline]
    pub(crate) fn write(
        &mut self,
        burst: &Burst,
        number_in_burst: usize,
        transport: &mut ViewerTransport,
        out: &mut Vec<u8>,
    ) -> bool {
        let (SourcePosition::Playing { origin, index, timestamp_shift }, Some(payload)) =
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
        self.seal(&fields, index, burst, None, payload, transport, out)
    }

    /// Which packet of the source was sent with `sequence`.
    pub(crate) fn sent_as(&self, sequence: u16) -> Resend {
        let SourcePosition::Playing { origin, index: first, .. } = self.place else {
            return Resend::Unknown;
        };
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

    /// Appends the packet with `index` again: as RTX (RFC 4588) if negotiated, otherwise the
    /// identical packet.
    pub(crate) fn write_again(
        &mut self,
        burst: &Burst,
        number_in_burst: usize,
        index: u64,
        transport: &mut ViewerTransport,
        out: &mut Vec<u8>,
    ) -> bool {
        let (SourcePosition::Playing { timestamp_shift, .. }, Some(payload)) =
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
            return self.seal(&fields, index, burst, None, payload, transport, out);
        };
        let original = fields.sequence;
        let rtx_index = self.rtx_index;
        self.rtx_index += 1;
        fields = HeaderFields { payload_type, ssrc, sequence: rtx_index as u16, ..fields };
        self.seal(&fields, rtx_index, burst, Some(original), payload, transport, out)
    }

    #[inline]
    fn seal(
        &self,
        fields: &HeaderFields,
        index: u64,
        burst: &Burst,
        original_sequence: Option<u16>,
        payload: &[u8],
        transport: &mut ViewerTransport,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        // Sealing another header with the same index would expose the key (AEAD nonce reuse):
        // without RTX a packet has no transport-wide number, which would differ.
        let transport_sequence = self.agreed.rtx.is_some().then(|| {
            transport.transport_sequence = transport.transport_sequence.wrapping_add(1);
            transport.transport_sequence
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
        match transport.sealer.seal_rtp(packet, plain_len, header_len, fields.ssrc, index) {
            Ok(len) => {
                out.truncate(start + len);
                true
            }
            Err(_) => false,
        }
    }

    /// Writes a sender report (RFC 3550 §6.4.1) as SRTCP to `scratch`; false before anything was
    /// sent.
    pub(crate) fn write_report(
        &self,
        now: Instant,
        wall_clock: NtpTime,
        transport: &mut ViewerTransport,
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
        transport.sealer.seal_rtcp(scratch).is_ok()
    }
}
