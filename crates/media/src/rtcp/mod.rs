//! RTCP (RFC 3550, 4585, 5104, 3611 and WebRTC's additions): compound packets read in place,
//! written by [`RtcpWriter`].
//!
//! ```
//! use throng_media::rtcp::{Compound, Rtcp};
//! # let datagram = [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
//! for packet in Compound::new(&datagram) {
//!     match packet {
//!         Ok(Rtcp::PictureLoss(pli)) => assert_eq!(pli.media_ssrc, 2),
//!         Ok(_) => {}
//!         Err(error) => eprintln!("counted, and the good packets before it stay: {error}"),
//!     }
//! }
//! ```

mod compound;
pub use compound::{Compound, Rtcp};

mod frame;
pub use frame::RtcpError;

mod report;
pub use report::{ReceiverReport, ReportBlock, SenderInfo, SenderReport};

mod description;
pub use description::{Bye, SourceDescription};

mod nack;
pub use nack::Nack;

mod keyframe;
pub use keyframe::{FullIntraRequest, PictureLoss};

mod remb;
pub use remb::Remb;

mod transport_feedback;
pub use transport_feedback::{Arrival, PacketStatus, TransportFeedback};

mod extended;

mod writer;
pub use writer::{Report, RtcpWriter};
