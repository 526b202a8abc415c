//! A live stream that the real ffmpeg encodes and packages into a folder, as HLS or DASH, for a web
//! server to serve.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError};

/// How long ffmpeg may take until its first playlist is there.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The stream: 320 × 180, 25 frames a second with a key frame each second, a tone; one Mbit/s in
/// all, at a constant rate.
pub(crate) const STREAM: &str = "-re -f lavfi -i testsrc2=s=320x180:r=25 \
     -f lavfi -i sine=f=440:r=48000 -c:v libx264 -preset ultrafast -tune zerolatency -g 25 \
     -keyint_min 25 -sc_threshold 0 -b:v 900k -minrate 900k -maxrate 900k \
     -bufsize 300k -x264-params nal-hrd=cbr -c:a aac -b:a 96k";

/// A running encoder; it ends when dropped.
#[derive(Debug)]
pub struct LiveStream {
    _process: ChildGuard,
    folder: TempDir,
}

impl LiveStream {
    /// Encodes into a folder of its own with these options of ffmpeg's muxer, the last of which is
    /// the file, and waits until `is_ready` holds for the text of that file. `None` where ffmpeg is
    /// not installed.
    ///
    /// # Errors
    /// When ffmpeg does not bring the file in time; what it said is part of the error.
    pub fn start(options: &str, is_ready: impl Fn(&str) -> bool) -> Result<Option<Self>, SimError> {
        let options: Vec<&str> = options.split_whitespace().collect();
        Self::start_with(&options, options.last().copied().unwrap_or_default(), is_ready)
    }

    /// The same with options that may have blanks in them, and a file among those that they make.
    fn start_with(
        options: &[&str],
        file: &str,
        is_ready: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, SimError> {
        if Command::new("ffmpeg").arg("-version").output().is_err() {
            skipped("ffmpeg is not installed (scripts/setup.sh test)");
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let file = folder.path().join(file);
        // Options may name files of the folder.
        fs::write(folder.path().join("key.bin"), KEY)?;
        fs::write(folder.path().join("key.info"), "key.bin\nkey.bin\n")?;
        let log = folder.path().join("ffmpeg.log");
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "warning"]).args(STREAM.split_whitespace());
        command.args(options).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log)?);
        let process = ChildGuard::start(&mut command)?;
        let until = Instant::now() + READY_WITHIN;
        while !fs::read_to_string(&file).is_ok_and(|text| is_ready(&text)) {
            if Instant::now() > until {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(SimError::Said(format!("ffmpeg made no {}: {said}", file.display())));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Some(Self { _process: process, folder }))
    }

    /// HLS with segments of a second, eight in the playlist, with dates; more options of the muxer.
    /// It is ready with six.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn hls(more: &str) -> Result<Option<Self>, SimError> {
        let options = format!(
            "-f hls -hls_time 1 -hls_list_size 8 -hls_delete_threshold 4 \
             -hls_flags delete_segments+independent_segments+program_date_time {more} live.m3u8"
        );
        Self::start(&options, |playlist| playlist.matches("#EXTINF").count() >= 6)
    }

    /// The same in two renditions of one master playlist: `live-pictures.m3u8`, and
    /// `live-sound.m3u8`, to which the pictures refer as their audio.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn hls_with_separate_audio() -> Result<Option<Self>, SimError> {
        let renditions = "v:0,agroup:sound,name:pictures a:0,agroup:sound,default:yes,name:sound";
        let options = "-map 0:v -map 1:a -f hls -hls_time 1 -hls_list_size 8 \
                       -hls_delete_threshold 4 -hls_flags \
                       delete_segments+independent_segments+program_date_time -master_pl_name \
                       live.m3u8";
        let mut options: Vec<&str> = options.split_whitespace().collect();
        options.extend(["-var_stream_map", renditions, "live-%v.m3u8"]);
        Self::start_with(&options, "live-pictures.m3u8", |playlist| {
            playlist.matches("#EXTINF").count() >= 6
        })
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// One of its files.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The key that `-hls_key_info_file key.info` encrypts with.
const KEY: [u8; 16] = *b"a key of a test.";
