//! Quality meters: one meter, one file. A receiver owns a [`TrackMeter`] for each track; it passes
//! every packet to the other meters and adds up their results.

mod track;
pub use track::{TrackConfig, TrackMeter};

mod packet;
mod presentation_order;
pub use packet::{CaptureTime, Packet};
pub use throng_observation::CaptureBasis;

mod wall_clock;
pub use wall_clock::WallClock;

mod sequence;
pub use sequence::{Arrival, SequenceMeter};

mod timestamp;
pub use timestamp::TimestampUnwrap;

mod jitter;
pub use jitter::JitterMeter;

mod oven_rtc_tester;
pub use oven_rtc_tester::OvenRtcTesterMeter;

mod source_rate;
pub use source_rate::SourceRateMeter;

mod nack;
pub use nack::NackList;

mod key_frame;
pub use key_frame::KeyFrameRequester;

mod freeze;
pub use freeze::{FreezeMeter, FreezeTotals};

mod delay;
pub use delay::DelayMeter;

mod skew;

mod capture;
pub use capture::CaptureMeter;

mod frames;
pub use frames::{CompleteFrame, FrameMeter, FrameOutcome, FramePacket};

mod reception;
pub use reception::{Reception, ReceptionMeter};

mod video;

mod samples;

mod decode_order;

mod transport_stream;
