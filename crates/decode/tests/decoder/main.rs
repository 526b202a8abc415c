//! Real FFmpeg: what goes in comes out; and the reading end of a tap.

mod ffmpeg;
mod tap;
