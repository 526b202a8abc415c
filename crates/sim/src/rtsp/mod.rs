//! Real RTSP servers of other projects, and the files that they play.

mod files;
mod gst;
mod options;
mod vlc;

pub use files::{FPS, MediaFile, SECONDS};
pub use gst::{GstRtspServer, RecordedStream, Recording};
pub use options::{Login, LoginMethod, Options};
pub use vlc::Vlc;
