//! Files made by ffmpeg, and the frames that ffprobe finds in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use throng_observation::MediaKind;

/// A folder with one file in it, or a playlist and its segments.
pub(crate) struct Made {
    folder: TempDir,
    name: String,
}

impl Made {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }
}

/// 2.2 seconds of a test picture with sound, which is not a whole number of frames of sound, coded
/// and written as these options say; `None` where ffmpeg cannot.
pub(crate) fn make(options: &str, name: &str) -> Option<Made> {
    make_of(
        "-f lavfi -i testsrc2=s=160x90:r=25:d=2.2 -f lavfi -i sine=r=48000:d=2.2",
        options,
        name,
    )
}

/// The same, of other inputs.
#[expect(
    clippy::print_stderr,
    reason = "a skipped test must be reported where the test runner shows it"
)]
pub(crate) fn make_of(inputs: &str, options: &str, name: &str) -> Option<Made> {
    let folder = TempDir::new().unwrap();
    let made = Command::new("ffmpeg")
        .current_dir(folder.path())
        .args(["-v", "error", "-nostdin", "-y"])
        .args(inputs.split(' '))
        .args(options.split(' '))
        .arg(name)
        .output();
    match made {
        Ok(made) if made.status.success() => Some(Made { folder, name: name.to_owned() }),
        Ok(made) => {
            eprintln!(
                "skipped: ffmpeg here cannot `{options}`: {}",
                String::from_utf8_lossy(&made.stderr)
            );
            None
        }
        Err(error) => {
            eprintln!("skipped: no ffmpeg here: {error}");
            None
        }
    }
}

/// A frame, as ffprobe calls a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    pub(crate) presentation_us: Option<i64>,
    pub(crate) decode_us: Option<i64>,
    pub(crate) duration_us: Option<i64>,
    pub(crate) bytes: u32,
    pub(crate) is_key: bool,
}

/// The frames of each stream of audio and video, in the order of the streams.
pub(crate) fn probe(path: &Path) -> Vec<(MediaKind, Vec<Probed>)> {
    let fields = "packet=stream_index,codec_type,pts_time,dts_time,duration_time,size,flags";
    let out = Command::new("ffprobe")
        .args(["-v", "error", "-show_packets", "-show_entries", fields, "-of", "json"])
        .arg(path)
        .output()
        .expect("ffprobe comes with ffmpeg");
    let read: Value = serde_json::from_slice(&out.stdout).expect("ffprobe writes JSON");
    let mut streams: Vec<(i64, MediaKind, Vec<Probed>)> = Vec::new();
    for packet in read["packets"].as_array().expect("packets") {
        let kind = match packet["codec_type"].as_str() {
            Some("video") => MediaKind::Video,
            Some("audio") => MediaKind::Audio,
            _ => continue,
        };
        let index = packet["stream_index"].as_i64().unwrap();
        let at = streams.iter().position(|(known, ..)| *known == index).unwrap_or_else(|| {
            streams.push((index, kind, Vec::new()));
            streams.len() - 1
        });
        streams[at].2.push(Probed {
            presentation_us: micros(&packet["pts_time"]),
            decode_us: micros(&packet["dts_time"]),
            duration_us: micros(&packet["duration_time"]),
            bytes: packet["size"].as_str().unwrap().parse().unwrap(),
            is_key: packet["flags"].as_str().unwrap().starts_with('K'),
        });
    }
    streams.sort_by_key(|(index, ..)| *index);
    streams.into_iter().map(|(_, kind, frames)| (kind, frames)).collect()
}

/// The duration of the whole file, by ffprobe.
pub(crate) fn probe_duration_us(path: &Path) -> Option<i64> {
    let out = Command::new("ffprobe")
        .args(["-v", "error", "-show_entries", "format=duration", "-of", "json"])
        .arg(path)
        .output()
        .ok()?;
    micros(&serde_json::from_slice::<Value>(&out.stdout).ok()?["format"]["duration"])
}

fn micros(seconds: &Value) -> Option<i64> {
    let seconds: f64 = seconds.as_str()?.parse().ok()?;
    Some((seconds * 1e6).round() as i64)
}
