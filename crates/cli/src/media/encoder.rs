//! FFmpeg as a child process that ends with the command, and ffprobe's measurement of a file.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use throng_decode::Program;
use throng_process::{Ended, Started, end_with_this_thread};

use super::catalogue::Entry;
use super::encoding::Encoding;
use crate::console::{CliError, Interrupt};

/// The programs of FFmpeg.
#[derive(Clone, Debug)]
pub(super) struct Ffmpeg {
    ffmpeg: PathBuf,
    ffprobe: PathBuf,
}

impl Ffmpeg {
    /// The programs, if they are installed and have the encoders.
    pub(super) fn with_encoders(ffmpeg: &Path, encoders: [&str; 2]) -> Result<Self, CliError> {
        let program = Program { ffmpeg: ffmpeg.to_owned(), decoder: None };
        program.version().map_err(|error| CliError::usage(error.to_string()))?;
        let programs =
            Self { ffmpeg: ffmpeg.to_owned(), ffprobe: ffmpeg.with_file_name("ffprobe") };
        if let Err(error) = Command::new(&programs.ffprobe).arg("-version").output() {
            let program = programs.ffprobe.display();
            return Err(CliError::usage(format!(
                "no ffprobe ({program}: {error}): install it (Debian: apt-get install ffmpeg)"
            )));
        }
        let listed = Command::new(ffmpeg).args(["-hide_banner", "-encoders"]).output();
        let listed =
            listed.map_err(|error| CliError::usage(format!("{}: {error}", ffmpeg.display())))?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        match encoders.iter().find(|encoder| !lists(&listed, encoder)) {
            None => Ok(programs),
            Some(encoder) => Err(CliError::usage(format!(
                "{} has no encoder {encoder}: choose another --codec, or name an FFmpeg that has \
                 it with --ffmpeg PATH (Debian's package ffmpeg has it)",
                ffmpeg.display()
            ))),
        }
    }

    /// Makes `file`; `false` when a signal ended it before it was whole.
    pub(super) fn encode(
        &self,
        arguments: &[String],
        file: &Path,
        interrupt: &Interrupt,
    ) -> anyhow::Result<bool> {
        let mut command = Command::new(&self.ffmpeg);
        command.args(["-hide_banner", "-nostats", "-nostdin", "-loglevel", "error", "-y"]);
        command.args(arguments).arg(file).process_group(0);
        end_with_this_thread(&mut command, Ended::AtOnce);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| self.ffmpeg.display().to_string())?;
        let _registered = Started::group(child.id());
        let errors = child.stderr.take();
        // Read while it runs: FFmpeg would wait for room in the pipe.
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut errors) = errors {
                let _ = errors.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        let status = loop {
            if interrupt.is_set() {
                end(&mut child);
                return Ok(false);
            }
            match child.try_wait()? {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let said = reader.join().unwrap_or_default();
        // The end of a service reaches FFmpeg too, maybe before this process notices.
        if !status.success() && !interrupt.is_set() {
            return Err(anyhow!("FFmpeg ended with {status}: {said}"));
        }
        Ok(status.success() && !interrupt.is_set())
    }

    /// What ffprobe finds in `file`, which will be called `name`. It reads every packet.
    pub(super) fn measure(&self, file: &Path, name: &str) -> anyhow::Result<Entry> {
        let mut command = Command::new(&self.ffprobe);
        command.args(["-v", "error", "-select_streams", "v:0", "-count_packets", "-of", "json"]);
        command
            .args(["-show_entries", "stream=nb_read_packets:format=duration,size,bit_rate"])
            .arg(file);
        let output = command.output().with_context(|| self.ffprobe.display().to_string())?;
        if !output.status.success() {
            bail!("ffprobe: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        entry(&serde_json::from_slice(&output.stdout)?, name)
            .ok_or_else(|| anyhow!("ffprobe found no video of known length and size in {name}"))
    }
}

/// Ends FFmpeg at once; its file is removed by the caller.
fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// Whether a line of `ffmpeg -encoders` such as ` V....D libx264   H.264 …` names the encoder.
fn lists(listed: &str, encoder: &str) -> bool {
    listed.lines().any(|line| line.split_whitespace().nth(1) == Some(encoder))
}

fn entry(probed: &Value, name: &str) -> Option<Entry> {
    // ffprobe writes most numbers as text.
    let number = |value: &Value| value.as_str()?.parse::<f64>().ok();
    let format = probed.get("format")?;
    Some(Entry {
        file: name.to_owned(),
        bytes: number(format.get("size")?)? as u64,
        seconds: number(format.get("duration")?)?,
        bitrate: number(format.get("bit_rate")?)?,
        frames: number(probed.get("streams")?.get(0)?.get("nb_read_packets")?)? as u64,
    })
}

/// The file while it is made: hidden, and with the ending that it will have.
pub(super) fn partial(folder: &Path, name: &str) -> PathBuf {
    folder.join(OsString::from(format!(".partial-{name}")))
}

/// The name of file `number`, counted from 1: the first is `file-0.ts`, as `{stream}` in URLs
/// counts from 0.
pub(super) fn name(encoding: &Encoding, number: u32) -> String {
    format!("file-{}.{}", number.saturating_sub(1), encoding.container.key())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn encoders_are_found_by_their_whole_name() {
        let listed =
            " V..... = Video\n V....D libx264rgb   H.264\n V....D mpeg2video   MPEG-2 video\n";
        assert!(lists(listed, "mpeg2video") && !lists(listed, "libx264"));
    }

    #[test]
    fn what_ffprobe_prints_is_read() {
        let format = json!({ "duration": "4.000000", "size": "150000", "bit_rate": "300000" });
        let probed = json!({ "streams": [{ "nb_read_packets": "100" }], "format": format });
        let read = entry(&probed, "file-0.ts").unwrap();
        assert_eq!((read.bytes, read.frames, read.seconds), (150_000, 100, 4.0));
        assert!(read.off(300_000).abs() < 1e-9 && (read.off(200_000) - 0.5).abs() < 1e-9);
        assert_eq!(entry(&json!({ "streams": [], "format": {} }), "f"), None);
    }

    #[test]
    fn an_ffmpeg_that_is_not_there_is_named_with_its_package() {
        let error = Ffmpeg::with_encoders(Path::new("/none/ffmpeg"), ["a", "b"]).unwrap_err();
        let said = error.error.to_string();
        assert!(said.contains("/none/ffmpeg") && said.contains("apt-get install ffmpeg"), "{said}");
    }
}
