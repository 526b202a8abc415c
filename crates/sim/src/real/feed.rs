//! A live stream that ffmpeg publishes to a real server.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::RealServer;
use crate::live::STREAM;
use crate::support::{ChildGuard, SimError};

/// How long a server may take until it has the stream.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// One slice a picture; pixels that every decoder of H.264 knows.
const PICTURES: &str = "-pix_fmt yuv420p -x264-params nal-hrd=cbr:sliced-threads=0";

/// How the sound of a feed is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sound {
    /// AAC, which RTMP has.
    Aac,
    /// Opus, which WebRTC has.
    Opus,
}

impl Sound {
    fn options(self) -> &'static str {
        match self {
            // The stream has it.
            Self::Aac => "",
            Self::Opus => "-c:a libopus",
        }
    }
}

/// A running ffmpeg; it ends when dropped.
#[derive(Debug)]
pub struct Feed {
    process: ChildGuard,
}

impl Feed {
    /// Publishes a stream in `format` (such as `rtsp` or `flv`, with options of that muxer) to
    /// `url`, from the server's own namespace, and waits until the server has it.
    ///
    /// # Errors
    /// When ffmpeg cannot be started, or the server does not say in time that it has the stream;
    /// its log is part of the error.
    pub fn start(
        server: &RealServer<'_>,
        sound: Sound,
        format: &str,
        url: &str,
        is_there: impl Fn(&RealServer<'_>) -> bool,
    ) -> Result<Self, SimError> {
        let mut command = server.namespace().command("ffmpeg");
        command.args(["-nostdin", "-v", "warning"]).args(STREAM.split_whitespace());
        command.args(PICTURES.split_whitespace()).args(sound.options().split_whitespace());
        command.arg("-f").args(format.split_whitespace()).arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let feed = Self { process: ChildGuard::start(&mut command)? };
        let until = Instant::now() + READY_WITHIN;
        while !is_there(server) {
            if Instant::now() > until {
                let log = server.log();
                return Err(SimError::Said(format!("{url} is not there; the server:\n{log}")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(feed)
    }

    /// Kills it: it says no goodbye to the server.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill(mut self) -> Result<(), SimError> {
        Ok(self.process.child().kill()?)
    }
}
