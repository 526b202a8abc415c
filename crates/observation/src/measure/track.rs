//! Received tracks, with the names of W3C webrtc-stats (`RTCInboundRtpStreamStats`) where they
//! exist.

use super::counters;

counters! {
    /// Sums over an interval; all add up over time and over tracks.
    TrackCounters {
        /// RTP packets received in their first transmission: no duplicates, no retransmissions.
        packets_original: u64 = Count was "packets_received";
        /// RTP payload bytes of every packet, without padding and headers: repeats, on an RTX
        /// stream or not, and duplicates are included.
        payload_bytes: u64 = Bytes as "W3C bytesReceived";
        /// RTP headers, extensions and padding of the same packets.
        header_bytes: u64 = Bytes as "W3C headerBytesReceived";
        /// Bytes on the wire of every datagram of this track: with RTP header, SRTP tag, UDP and IP
        /// header.
        wire_bytes: u64 = Bytes;
        /// Packets expected from the sequence numbers less those received; negative within one
        /// interval when packets counted lost earlier arrived late.
        packets_lost: i64 = Count as "RFC 3550 A.3";
        /// Packets that arrived after they had been counted lost, but not because of a NACK.
        packets_late: u64 = Count;
        /// Packets that had arrived before.
        packets_duplicate: u64 = Count;
        /// Packets with a lower sequence number than one before them, that were not counted lost.
        packets_reordered: u64 = Count as "RFC 4737 type-P-reordered";
        /// Packets recovered by retransmission, on an RTX stream or the original one.
        packets_recovered: u64 = Count;
        /// RTCP Generic NACK messages sent.
        nack_sent: u64 = Count as "W3C nackCount, RFC 4585 6.2.1" csv "nack_sent";
        /// Picture Loss Indications sent.
        pli_sent: u64 = Count as "W3C pliCount, RFC 4585 6.3.1";
        /// Full Intra Requests sent.
        fir_sent: u64 = Count as "W3C firCount, RFC 5104 4.3.1";
        /// Frames of which every packet arrived.
        frames_complete: u64 = Count;
        /// Complete frames whose references were all decodable too.
        frames_decodable: u64 = Count;
        /// Decodable key frames.
        key_frames: u64 = Count;
        /// Incomplete frames that were abandoned: a packet did not arrive in time.
        frames_dropped: u64 = Count;
        /// Freezes begun.
        freeze_count: u64 = Count as "W3C freezeCount" chart "Freezes" of "freezes begun";
        /// Time frozen in this interval, freezes in progress included, so that a picture that never
        /// returns counts in every interval.
        freeze_us: u64 = Microseconds as "W3C totalFreezesDuration";
        /// Time of this interval in which the track was meant to play.
        active_us: u64 = Microseconds;
        /// Datagrams of this track that could not be decrypted or parsed.
        packets_unreadable: u64 = Count was "packets_discarded";
        /// Time of this interval in which the track was expected and received nothing, after its
        /// time to start: part of `active_us`.
        missing_us: u64 = Microseconds since "missing time";
        /// Packets that arrived on an RTX stream (RFC 4588), needed or not.
        rtx_packets_received: u64 = Count as "W3C retransmittedPacketsReceived" since "RTX streams";
    }
}
