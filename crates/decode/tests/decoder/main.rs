//! Tests with real FFmpeg, and of the reader of a tap.

mod ffmpeg;
mod tap;
