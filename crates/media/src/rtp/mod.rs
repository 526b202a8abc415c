//! RTP (RFC 3550) for receivers and senders: borrowed views, no allocation per packet.
//!
//! On an SRTP path read the clear header first ([`RtpHeader::parse`]), decrypt in place, then take
//! [`RtpHeader::payload`].

mod classify;
pub use classify::{PacketKind, classify};

mod header;
pub use header::{ExtensionBlock, FIXED_HEADER_LEN, RtpError, RtpHeader};

mod element;
pub use element::Elements;

mod extension;
pub use extension::{
    AbsCaptureTime, AbsSendTime, AudioLevel, Extension, ExtensionIds, Extensions, PlayoutDelay,
};

mod write;
pub use write::{HeaderFields, write_header};

mod ntp;
pub use ntp::NtpTime;

mod rtx;
pub use rtx::{original_packet, write_rtx_payload};
