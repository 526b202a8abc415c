//! Media files that test servers play: encoded once per machine by ffmpeg, then shared by all tests
//! and processes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{SimError, run};

/// Length of every file.
pub const SECONDS: u32 = 10;
/// Frames per second of every video.
pub const FPS: u32 = 25;

/// Increased when the files change, so that older ones are not used.
const VERSION: u32 = 1;

/// A file of [`SECONDS`]; video is 640×360 at [`FPS`], one key frame per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaFile {
    /// H.264 without B-frames and AAC, in MP4.
    H264,
    /// H.264 with two B-frames between others and AAC, in MP4.
    H264BFrames,
    /// MPEG-2 video and MP2 audio, in an MPEG transport stream.
    Mpeg2,
    /// H.265, in MP4.
    H265,
    /// MPEG-4 part 2, in MP4.
    Mpeg4,
    /// JPEG pictures, in AVI.
    Mjpeg,
    /// G.711 A-law, in WAV.
    Pcma,
    /// MP3.
    Mp3,
}

const VIDEO: &str = "-f lavfi -i testsrc2=s=640x360:r=25:d=10";
const TONE: &str = "-f lavfi -i sine=f=440:r=48000:d=10";

impl MediaFile {
    /// The file; made when this machine does not have it yet, which takes a second or two.
    ///
    /// # Errors
    /// When ffmpeg is not installed, or lacks an encoder.
    pub fn path(self) -> Result<PathBuf, SimError> {
        // SAFETY: geteuid has no preconditions and cannot fail.
        let user = unsafe { libc::geteuid() };
        // Not below the home folder, which a server that runs as another user cannot read.
        let folder = std::env::temp_dir().join(format!("throng-test-media-{user}"));
        let path = folder.join(format!("{VERSION}-{}", self.name()));
        if path.exists() {
            return Ok(path);
        }
        fs::create_dir_all(&folder)?;
        let extension = format!("-{}", self.name());
        // Several processes may make it at a time: each writes its own file, and the last rename
        // wins.
        let mine = tempfile::Builder::new().suffix(&extension).tempfile_in(&folder)?;
        let mut command = Command::new("ffmpeg");
        command.args("-hide_banner -loglevel error -nostdin -y".split(' '));
        command.args(self.inputs().split_whitespace()).args(self.coding().split_whitespace());
        command.arg(mine.path());
        run(&mut command)?;
        fs::set_permissions(mine.path(), Permissions::from_mode(0o644))?;
        mine.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    fn name(self) -> &'static str {
        match self {
            Self::H264 => "h264-aac.mp4",
            Self::H264BFrames => "h264-bframes-aac.mp4",
            Self::Mpeg2 => "mpeg2-mp2.ts",
            Self::H265 => "h265.mp4",
            Self::Mpeg4 => "mpeg4.mp4",
            Self::Mjpeg => "mjpeg.avi",
            Self::Pcma => "pcma.wav",
            Self::Mp3 => "tone.mp3",
        }
    }

    fn inputs(self) -> String {
        match self {
            Self::H264 | Self::H264BFrames | Self::Mpeg2 => format!("{VIDEO} {TONE}"),
            Self::H265 | Self::Mpeg4 | Self::Mjpeg => VIDEO.into(),
            Self::Pcma | Self::Mp3 => TONE.into(),
        }
    }

    /// Bitrates are about 800 kbit/s of video and 128 kbit/s of sound.
    fn coding(self) -> &'static str {
        match self {
            Self::H264 => {
                "-c:v libx264 -preset veryfast -pix_fmt yuv420p -bf 0 -g 25 -b:v 800k -c:a aac \
                 -b:a 128k"
            }
            Self::H264BFrames => {
                "-c:v libx264 -preset veryfast -pix_fmt yuv420p -bf 2 -x264-params b-adapt=0 -g 25 \
                 -b:v 800k -c:a aac -b:a 128k"
            }
            Self::Mpeg2 => "-c:v mpeg2video -bf 0 -g 25 -b:v 800k -c:a mp2 -b:a 128k",
            Self::H265 => {
                "-c:v libx265 -preset ultrafast -pix_fmt yuv420p -x265-params \
                 log-level=error:bframes=0 -g 25 -b:v 800k -tag:v hvc1"
            }
            Self::Mpeg4 => "-c:v mpeg4 -bf 0 -g 25 -b:v 800k",
            // RTP carries JPEG with the standard Huffman tables only (RFC 2435).
            Self::Mjpeg => "-c:v mjpeg -huffman default -pix_fmt yuvj420p -q:v 8",
            Self::Pcma => "-c:a pcm_alaw -ar 8000 -ac 1",
            Self::Mp3 => "-c:a libmp3lame -b:a 128k",
        }
    }
}
