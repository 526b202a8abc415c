//! Decodes video with FFmpeg processes that are fed through pipes, and measures the pictures: the
//! reader of a run's tap, and the number of streams that a machine decodes in real time.

mod ffmpeg;
pub use ffmpeg::{DecodeError, Decoder, Feed, Output, Picture, Program};

mod stderr;

mod clip;
pub use clip::{CodedPicture, card, encode, pictures_of, recorded_pictures};

mod number;
pub use number::CardNumbers;

mod ssim;
pub use ssim::ssim;

mod reference;
pub use reference::References;

mod stream_meter;
pub use stream_meter::{FedFrame, StreamMeter, empty_row};

mod stream;
pub use stream::{StreamOptions, TappedStream};

pub mod tap;

pub mod capacity;
