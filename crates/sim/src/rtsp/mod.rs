//! Real RTSP servers of other projects, and the files that they play.

mod files;
mod gst;
mod vlc;

pub use files::{FPS, MediaFile, SECONDS};
pub use gst::{GstRtspServer, Login, LoginMethod, Options, RecordedStream, Recording};
pub use vlc::Vlc;
