//! A publication by an FFmpeg process of the user: it reads FLV from its standard input, in real
//! time, and publishes it, as it is or encoded again.

use throng_observation::{Failure, FailureReason};
use throng_scenario::Secret;

use super::clock;
use super::place::IngestProtocol;
use crate::participant::TOLD;

/// How the picture is encoded again, with a clock in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Encoding {
    /// Width and height, pixels.
    pub(super) size: (u16, u16),
    pub(super) fps: f64,
    pub(super) bitrate_bps: f64,
    /// When the picture of time 0 is captured, milliseconds after midnight (UTC).
    pub(super) midnight_ms: u64,
}

/// Time between two key frames: the least that segments of HLS are cut at.
const KEY_FRAMES_EVERY_S: f64 = 2.0;

/// The arguments of an FFmpeg that publishes its standard input at `url`. With `is_told` it reads
/// options of its protocol, which are secret, from the file [`TOLD`], by `-fpre`.
pub(super) fn arguments(
    url: &str,
    is_told: bool,
    protocol: IngestProtocol,
    encoding: Option<Encoding>,
) -> Vec<String> {
    let mut arguments: Vec<String> =
        "-hide_banner -nostdin -loglevel warning -progress pipe:1 -stats_period 1 \
         -fflags nobuffer -probesize 100000 -analyzeduration 500000 -f flv -i pipe:0"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    let mut add = |text: String| arguments.push(text);
    match encoding {
        None => ["-c", "copy"].map(str::to_owned).into_iter().for_each(&mut add),
        Some(encoding) => {
            let (width, height) = encoding.size;
            let rate = format!("{:.0}", encoding.bitrate_bps);
            let frames = format!("{:.0}", (encoding.fps * KEY_FRAMES_EVERY_S).max(1.0));
            let filter = clock::filter(width.into(), height.into(), encoding.midnight_ms);
            // Marks of the input are side data that the encoder writes again.
            let options = [
                ("-vf", filter),
                ("-c:v", "libx264".into()),
                ("-preset", "veryfast".into()),
                ("-tune", "zerolatency".into()),
                ("-udu_sei", "1".into()),
                ("-b:v", rate.clone()),
                ("-maxrate", rate.clone()),
                ("-bufsize", rate),
                ("-g", frames.clone()),
                ("-keyint_min", frames),
                ("-sc_threshold", "0".into()),
                ("-c:a", "copy".into()),
            ];
            options.into_iter().for_each(|(name, value)| {
                add(name.to_owned());
                add(value);
            });
        }
    }
    let format = match protocol {
        IngestProtocol::Rtmp => "flv",
        IngestProtocol::Srt => "mpegts",
    };
    ["-f", format].map(str::to_owned).into_iter().for_each(&mut add);
    if is_told {
        ["-fpre", TOLD].map(str::to_owned).into_iter().for_each(&mut add);
    }
    add(url.to_owned());
    arguments
}

/// FFmpeg reads lines of a preset into 1000 bytes, with their end.
const PRESET_LINE_BYTES_MAX: usize = 998;

/// Options as the lines of a preset; `None` without any.
///
/// # Errors
/// One that no line can hold.
pub(super) fn preset(options: &[(&str, String)]) -> Result<Option<Secret>, Failure> {
    let mut lines = String::new();
    for (name, value) in options {
        let line = format!("{name}={value}\n");
        if value.chars().any(char::is_control) || line.len() > PRESET_LINE_BYTES_MAX {
            let name = name.trim_start_matches("rtmp_").trim_start_matches("srt_");
            let detail = format!("the {name} is too long for FFmpeg, or has control characters");
            return Err(Failure::new(FailureReason::InternalError, detail));
        }
        lines.push_str(&line);
    }
    Ok((!lines.is_empty()).then(|| Secret::new(lines)))
}

/// What libsrt says before FFmpeg's own words where a server answers the handshake by a refusal.
const SRT_REFUSED: &str = "REJECT reported from HS processing: ";

/// How it goes on where the passphrase is wrong, or one of the two sides has none.
const PASSPHRASE_REFUSED: [&str; 2] = ["Incorrect passphrase", "Password required or unexpected"];

/// Why an FFmpeg that ended with these words never published. All that names the target are words
/// of its protocols that say for sure what it did; others say no more than that FFmpeg ended.
pub(super) fn reason(words: &str) -> FailureReason {
    // The last line of any version is of the connection, with the system's error.
    if words.ends_with(": Connection refused") {
        return FailureReason::Tcp;
    }
    if let Some((_, why)) = words.split_once(SRT_REFUSED) {
        let is_of_passphrase = PASSPHRASE_REFUSED.iter().any(|known| why.starts_with(known));
        return if is_of_passphrase { FailureReason::Unauthorized } else { FailureReason::Refused };
    }
    // Its handshake was in vain. FFmpeg has one error for that, whatever libsrt knows of it.
    let is_srt = |line: &str| line.contains("Connection to srt://");
    if words.split("; ").any(|line| is_srt(line) && line.ends_with("failed: Input/output error")) {
        return FailureReason::Srt;
    }
    FailureReason::SignallingClosed
}

/// What FFmpeg says of its progress on its standard output.
#[derive(Debug, Default)]
pub(super) struct Progress {
    line: String,
    has_output: bool,
}

/// Longest line that is read.
const LINE_BYTES_MAX: usize = 4096;

impl Progress {
    /// Takes the next bytes; whether they tell for the first time that media has gone out.
    pub(super) fn takes_media(&mut self, bytes: &[u8]) -> bool {
        let mut has_begun = false;
        for letter in String::from_utf8_lossy(bytes).chars() {
            if letter == '\n' {
                let line = std::mem::take(&mut self.line);
                let total = line
                    .strip_prefix("total_size=")
                    .and_then(|bytes| bytes.trim().parse::<u64>().ok());
                let frames = line
                    .strip_prefix("frame=")
                    .and_then(|frames| frames.trim().parse::<u64>().ok());
                if total.or(frames).is_some_and(|count| count > 0) && !self.has_output {
                    (self.has_output, has_begun) = (true, true);
                }
            } else if self.line.len() < LINE_BYTES_MAX {
                self.line.push(letter);
            }
        }
        has_begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_is_copied_unless_a_clock_is_burnt_in() {
        let copied = arguments("srt://127.0.0.1:9000", true, IngestProtocol::Srt, None);
        let expect = "-c copy -f mpegts -fpre {told} srt://127.0.0.1:9000";
        assert!(copied.join(" ").ends_with(expect), "{copied:?}");
        let encoding =
            Encoding { size: (640, 360), fps: 30.0, bitrate_bps: 1e6, midnight_ms: 5_000 };
        let encoded = arguments("rtmp://127.0.0.1", false, IngestProtocol::Rtmp, Some(encoding));
        let after = |name: &str| {
            encoded
                .iter()
                .position(|argument| argument == name)
                .and_then(|at| encoded.get(at + 1))
                .unwrap()
        };
        assert_eq!((after("-g").as_str(), after("-b:v").as_str()), ("60", "1000000"));
        assert_eq!(after("-vf").matches("drawbox").count(), 1 + 9 * 7);
        assert!(after("-vf").contains("(5000+t*1000+0.5)"));
        assert!(encoded.ends_with(&["-f", "flv", "rtmp://127.0.0.1"].map(str::to_owned)));
    }

    #[test]
    fn options_are_lines_and_none_can_begin_another() {
        let lines = |value: &str| preset(&[("srt_streamid", value.to_owned())]);
        let told = lines("#!::r=a,x=y").unwrap().unwrap();
        assert_eq!(told.expose(), "srt_streamid=#!::r=a,x=y\n");
        assert!(preset(&[]).unwrap().is_none());
        for value in ["a\nmetadata=x", "a\r", &"k".repeat(1_000)] {
            let error = lines(value).unwrap_err();
            assert!(error.detail.contains("streamid") && !error.detail.contains(value));
        }
    }

    #[test]
    fn only_words_that_are_sure_name_the_target() {
        use FailureReason::{Refused, SignallingClosed, Srt, Tcp, Unauthorized};
        let srt = "[srt @ 0x1] Connection to srt://127.0.0.1:9 failed: Input/output error; \
                   srt://127.0.0.1:9: Input/output error";
        let refused = |why: &str| format!("SRT.cn: {SRT_REFUSED}{why} - not processing; {srt}");
        for (words, expect) in [
            ("[rtmp @ 0x1] Cannot open connection; rtmp://[::1]:9: Connection refused", Tcp),
            ("Error opening output file x.; Error opening output files: Connection refused", Tcp),
            (srt, Srt),
            (refused("Incorrect passphrase").as_str(), Unauthorized),
            (refused("Password required or unexpected").as_str(), Unauthorized),
            (refused("Listener's backlog exceeded").as_str(), Refused),
            ("[rtmp @ 0x1] Server error: Connection refused by live", SignallingClosed),
            ("[srt @ 0x1] Connection to srt://[::1]:9 failed: Exit requested", SignallingClosed),
            ("rtmp://127.0.0.1:9: Input/output error", SignallingClosed),
            ("", SignallingClosed),
        ] {
            let said = format!("ffmpeg ended (exit status: 1): {words}");
            assert_eq!(reason(&said), expect, "{said}");
        }
    }

    #[test]
    fn output_has_begun_once_frames_or_bytes_are_counted() {
        let mut progress = Progress::default();
        assert!(!progress.takes_media(b"frame=0\nfps=0.0\ntotal_size=0\nprogress=cont"));
        assert!(!progress.takes_media(b"inue\nfra"));
        assert!(progress.takes_media(b"me=12\n"));
        assert!(!progress.takes_media(b"frame=40\n"));
        assert!(!progress.takes_media(&[b'x'; 100_000]));
    }
}
