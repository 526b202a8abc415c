//! The timing of files that ffmpeg makes, compared with what ffprobe reads from them: every frame,
//! its times, size and key flag. Skipped where they are not installed.

mod driver;
mod ffmpeg;
mod fragmented;
mod known;
mod manifests;
mod mp4;
mod transport_stream;
mod webm;
