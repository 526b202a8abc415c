//! `throng tap`: the process that reads a run's tapped frames from the ring, decodes them and
//! writes its figures into the run folder.

use std::path::Path;
use std::time::{Duration, Instant};

use throng_decode::Program;
use throng_decode::tap::{TapOptions, TapResult};
use throng_observation::run::{DecodedRow, Ending};
use throng_store::{RunFolder, StoreError};

use crate::args::Tap;
use crate::console::{CliError, Exit, Interrupt, say};
use crate::report::{self, ReportOptions};

/// How long a run may take to begin, or to write its end.
const RUN_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) fn tap(command: &Tap) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    // A finished run does not open its socket any more.
    let is_over =
        RunFolder::outline(&command.run).is_ok_and(|run| run.ending != Ending::Unfinished);
    let program = Program { ffmpeg: command.ffmpeg.clone(), decoder: command.decoder.clone() };
    let options = TapOptions {
        decode: (command.decode || !command.keep).then_some(program),
        keep: command.keep,
        ssim: command.ssim,
        participants: command.participants,
        streams_max: command.streams_max,
        patience: if is_over { Duration::ZERO } else { RUN_TIMEOUT },
    };
    let tapped = throng_decode::tap::read(&command.run, &options, &|| interrupt.is_set())
        .map_err(|error| CliError::new(Exit::Usage, error))?;
    let rows = of_run(&command.run, &tapped).map_err(CliError::invalid)?;
    RunFolder::add_decoded(&command.run, &rows).map_err(CliError::invalid)?;
    print_counts(&tapped);
    if !command.of_run {
        remake(&command.run).map_err(CliError::invalid)?;
    }
    Ok(Exit::Met)
}

/// The rows, with seconds in the run's time.
fn of_run(folder: &Path, tapped: &TapResult) -> Result<Vec<DecodedRow>, StoreError> {
    let started_at_unix_us = RunFolder::outline(folder)?.info.started_at_unix_us;
    let second = |began_unix_us: i64| (began_unix_us - started_at_unix_us).div_euclid(1_000_000);
    Ok(tapped
        .rows
        .iter()
        .map(|(began, row)| DecodedRow { second: second(*began), ..row.clone() })
        .collect())
}

fn print_counts(tapped: &TapResult) {
    let pictures: u64 = tapped.rows.iter().map(|(_, row)| row.pictures).sum();
    let dropped: u64 = tapped.rows.iter().map(|(_, row)| row.frames_dropped).sum();
    say(&format!(
        "tap: {} streams, {pictures} pictures, {dropped} frames dropped on the way",
        tapped.streams
    ));
    if tapped.streams_skipped > 0 {
        say(&format!(
            "tap: {} more streams were not decoded (--streams-max)",
            tapped.streams_skipped
        ));
    }
    tapped.ring_drops().into_iter().for_each(|drops| say(&format!("tap: {drops}")));
    tapped.problems.iter().for_each(|problem| say(&format!("tap: {problem}")));
}

/// Makes the report again once the run has written its end.
fn remake(folder: &Path) -> Result<(), StoreError> {
    let given_up_at = Instant::now() + RUN_TIMEOUT;
    while RunFolder::outline(folder)?.ending == Ending::Unfinished && Instant::now() < given_up_at {
        std::thread::sleep(Duration::from_millis(200));
    }
    report::make(folder, &ReportOptions::default()).map(drop)
}
