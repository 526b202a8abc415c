//! The flags of `throng media`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::parsers::{picture_size, plain_bit_rate};

#[derive(Debug, Args)]
pub(crate) struct Media {
    #[command(subcommand)]
    pub(crate) command: MediaCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MediaCommand {
    /// Make a catalogue of video files, all different and of the same bitrate, for a server of
    /// files
    Make(MediaMake),
}

#[derive(Debug, Args)]
pub(crate) struct MediaMake {
    /// The video codec
    #[arg(long, value_enum, default_value_t = VideoCodec::H264)]
    pub(crate) codec: VideoCodec,
    /// Bits per second of the whole file: video, audio and container; such as 800k or 5M
    #[arg(long, value_name = "RATE", default_value = "5M", value_parser = plain_bit_rate)]
    pub(crate) bitrate: u64,
    /// The number of files
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(crate) count: u32,
    /// The length of each file
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    pub(crate) seconds: u32,
    /// The size of the picture, even numbers
    #[arg(
        long,
        value_name = "WIDTHxHEIGHT",
        default_value = "1280x720",
        value_parser = picture_size
    )]
    pub(crate) size: (u32, u32),
    /// Frames per second
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=120))]
    pub(crate) fps: u32,
    /// Frames from one key frame to the next [default: one second]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) gop: Option<u32>,
    /// The container [default: ts for mpeg2, webm for vp9, else mp4]
    #[arg(long, value_enum)]
    pub(crate) container: Option<Container>,
    /// MP4 in fragments, one per key frame, as for DASH and HLS
    #[arg(long, conflicts_with = "moov_last")]
    pub(crate) fragmented: bool,
    /// MP4 with its index (moov) at the end of the file instead of the start
    #[arg(long)]
    pub(crate) moov_last: bool,
    /// The folder of the files and of catalogue.json; made if it is not there
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// The FFmpeg that encodes; ffprobe is expected next to it
    #[arg(long, value_name = "PROGRAM", default_value = "ffmpeg")]
    pub(crate) ffmpeg: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VideoCodec {
    /// MPEG-2, with MP2 audio
    Mpeg2,
    /// H.264, with AAC
    H264,
    /// H.265, with AAC
    H265,
    /// MPEG-4 part 2, with AAC
    Mpeg4,
    /// VP9, with Opus in WebM and AAC in MP4
    Vp9,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Container {
    /// MP4
    Mp4,
    /// MPEG transport stream, padded to a constant rate
    Ts,
    /// WebM
    Webm,
}

impl VideoCodec {
    /// As on the command line and in `catalogue.json`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Mpeg2 => "mpeg2",
            Self::H264 => "h264",
            Self::H265 => "h265",
            Self::Mpeg4 => "mpeg4",
            Self::Vp9 => "vp9",
        }
    }
}

impl Container {
    /// As on the command line, in `catalogue.json`, and as the ending of file names.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::Ts => "ts",
            Self::Webm => "webm",
        }
    }
}
