//! The run's side of `throng tap`: the socket in its folder, and the process that decodes.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_decode::Program;
use throng_engine::TapCounts;
use throng_observation::run::DecodedRow;
use throng_process::{Ended, Started, end_throng_with_this_thread};
use throng_store::{RunFolder, StoreError};

use crate::console::say;

/// How long the reader may take after the run, for FFmpeg to flush and for its rows to be written.
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// The tap of a run in progress.
pub(crate) struct RunTap {
    folder: PathBuf,
    engine: Arc<throng_engine::Tap>,
    reader: Option<(Child, Started)>,
}

impl RunTap {
    /// Listens in `folder`, and starts the reader if the scenario wants one.
    pub(crate) fn start(folder: &Path, tap: &throng_scenario::Tap) -> anyhow::Result<Self> {
        let engine = throng_engine::Tap::listen(folder)?;
        if tap.decode {
            // A missing FFmpeg is an error before the run, not after it.
            Program::default().version()?;
        }
        let mut run_tap = Self { folder: folder.to_owned(), engine, reader: None };
        if tap.decode || tap.keep {
            let mut command = Command::new(std::env::current_exe()?);
            // Ctrl-C goes to the run; the reader ends with the run.
            command.process_group(0).arg("tap").arg(folder).arg("--of-run");
            for (flag, is_set) in
                [("--decode", tap.decode), ("--keep", tap.keep), ("--ssim", tap.ssim)]
            {
                if is_set {
                    command.arg(flag);
                }
            }
            // In order: what was decoded until then is in the folder.
            end_throng_with_this_thread(&mut command, Ended::InOrder);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let reader = command.spawn()?;
            let registered = Started::group(reader.id());
            run_tap.reader = Some((reader, registered));
        }
        Ok(run_tap)
    }

    pub(crate) fn engine(&self) -> Arc<throng_engine::Tap> {
        Arc::clone(&self.engine)
    }

    /// Waits until the reader has written its rows, and reports lost frames. Call it after the
    /// crowd has left.
    pub(crate) fn finish(self) {
        let Self { folder, engine, reader } = self;
        let counts = engine.counts();
        // This is the ring's last producer; its drop signals the end to the reader.
        drop(engine);
        print_lost(&counts);
        let Some((mut reader, _registered)) = reader else { return };
        let given_up_at = Instant::now() + READER_TIMEOUT;
        while matches!(reader.try_wait(), Ok(None)) {
            if Instant::now() > given_up_at {
                say("warning: the tap's reader did not end in time and is killed; its figures \
                     are lost");
                let _ = reader.kill();
                let _ = reader.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut said = String::new();
        if let Some(stderr) = reader.stderr.take() {
            let _ = stderr.take(64 << 10).read_to_string(&mut said);
        }
        said.lines().for_each(say);
        if let Err(error) = keep_lost(&folder, &counts) {
            say(&format!("warning: the frames that the tap lost are not in the report: {error}"));
        }
    }
}

fn print_lost(counts: &TapCounts) {
    let reasons = [
        (counts.no_room, "did not fit, or came before the key frame after one that did not"),
        (counts.too_large, "were larger than half the ring"),
        (counts.reader_gone, "arrived after the reader had ended"),
        (counts.no_producer_slot, "came from threads for which the ring had no place"),
    ];
    let texts: Vec<String> = reasons
        .into_iter()
        .filter(|(frames, _)| *frames > 0)
        .map(|(frames, reason)| format!("{frames} {reason}"))
        .collect();
    if !texts.is_empty() {
        say(&format!(
            "tap: {} of {} frames did not get to the reader: {}",
            counts.lost_frames(),
            counts.offered,
            texts.join(", ")
        ));
    }
}

/// Adds the frames that never reached the reader to its rows. A track with rows gets them in its
/// last row. The lost frames already include those that the reader itself dropped.
fn keep_lost(folder: &Path, counts: &TapCounts) -> Result<(), StoreError> {
    if counts.lost.is_empty() {
        return Ok(());
    }
    let known = RunFolder::decoded(folder)?;
    let rows: Vec<DecodedRow> = counts
        .lost
        .iter()
        .filter_map(|(&(participant, track), &(codec, lost))| {
            let of_track =
                || known.iter().filter(|row| row.participant == participant && row.track == track);
            let known_lost: u64 = of_track().map(|row| row.frames_dropped).sum();
            let mut row = of_track()
                .max_by_key(|row| row.second)
                .cloned()
                .unwrap_or_else(|| throng_decode::empty_row(participant, track, codec));
            row.frames_dropped += lost.saturating_sub(known_lost);
            (lost > known_lost).then_some(row)
        })
        .collect();
    if rows.is_empty() { Ok(()) } else { RunFolder::add_decoded(folder, &rows) }
}
