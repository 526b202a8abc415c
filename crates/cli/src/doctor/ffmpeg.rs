//! FFmpeg and ffprobe.

use throng_process::find_program;

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let programs = ["ffmpeg", "ffprobe"].map(|name| find_program(&[name], &facts.path));
    let files: Vec<String> =
        programs.iter().flatten().map(|file| file.display().to_string()).collect();
    Check {
        name: "ffmpeg",
        found: if files.is_empty() { "not in PATH".to_owned() } else { files.join(", ") },
        verdict: Verdict::unless(
            files.len() == programs.len(),
            "off: publishers by SRT and with burn_clock, --tap and throng tap, decode and media",
        ),
        change: "`apt-get install ffmpeg`".to_owned(),
    }
}
