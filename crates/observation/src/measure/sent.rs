//! Tracks that a participant sends, with the names of W3C webrtc-stats
//! (`RTCOutboundRtpStreamStats`, `RTCRemoteInboundRtpStreamStats`) where they exist.

use super::counters;

counters! {
    /// Sums over an interval; all add up over time and over tracks.
    SentCounters {
        /// RTP packets sent, repeats left out.
        packets_sent: u64 = Count as "W3C packetsSent − retransmittedPacketsSent";
        /// Payload bytes of those packets.
        payload_bytes: u64 = Bytes;
        /// Bytes of those packets as SRTP, without UDP and IP headers.
        wire_bytes: u64 = Bytes;
        /// Packets sent again.
        retransmitted_packets: u64 = Count as "W3C retransmittedPacketsSent";
        /// Their bytes as SRTP.
        retransmitted_bytes: u64 = Bytes;
        /// Frames of video, packets of audio.
        frames_sent: u64 = Count as "W3C framesSent";
        /// Key frames of video sent.
        key_frames_sent: u64 = Count as "W3C keyFramesEncoded";
        /// NACK messages received.
        nack_received: u64 = Count as "W3C nackCount";
        /// PLI messages received.
        pli_received: u64 = Count as "W3C pliCount";
        /// FIR messages received.
        fir_received: u64 = Count as "W3C firCount";
        /// Time in which the connection took no bytes of a publisher over TCP, because the server
        /// did not read or the line was too slow. Counted once for all tracks of a publisher.
        /// ffmpeg shows it as `speed=` below 1.
        blocked_us: u64 = Microseconds since "publishers over TCP";
    }
}
