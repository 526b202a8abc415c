//! `throng decode`: how many streams this machine decodes in real time.

use std::fmt::Display;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use throng_decode::capacity::{self, CapacityError, Conditions, Loop, Row, Video};
use throng_decode::{Program, encode, recorded_pictures};
use throng_observation::units::{duration_ms, percent};
use throng_report::columns::{Align, row};

use crate::args;
use crate::console::{CliError, Exit, print, print_json, say};

/// Length of the encoded loop that is decoded.
const LOOP_SECONDS: u32 = 4;
/// What is said of a number of streams, and how wide it is; a measurement takes seconds, so that
/// rows come one by one.
const HEAD: [&str; 9] = [
    "streams",
    "fps each",
    "CPU cores",
    "CPU/stream",
    "late",
    "dropped",
    "delay p50",
    "delay p99",
    "real time",
];
const WIDTHS: [usize; 9] = [8, 8, 9, 10, 7, 7, 9, 9, 0];
/// The most files of a run that are read; streams take them in turn.
const KEPT_MAX: usize = 256;
/// The most bytes of them together, which are in memory.
const KEPT_BYTES_MAX: u64 = 1 << 30;

pub(crate) fn decode(command: &args::Decode) -> Result<Exit, CliError> {
    let failed = |error: CapacityError| CliError::new(Exit::Usage, error);
    let program = Program { ffmpeg: command.ffmpeg.clone(), decoder: command.decoder.clone() };
    let version = program.version().map_err(|error| failed(error.into()))?;
    let duration = args::duration("--for", &command.duration)?;
    let late_after = args::duration("--late", &command.late)?;
    if duration < Duration::from_millis(500) {
        return Err(CliError::usage("--for: at least 500ms, such as 5s"));
    }
    let (loops, what) = match &command.run {
        Some(run) => (of_run(run)?, format!("the streams kept in {}", run.display())),
        None => {
            let video: Video = command
                .video
                .parse()
                .map_err(|error| CliError::usage(format!("--video: {error}")))?;
            let coded = encode(
                &program,
                video.codec,
                video.size,
                video.fps,
                video.bits_per_s,
                LOOP_SECONDS,
            );
            let coded = coded.map_err(|error| failed(error.into()))?;
            (Loop::of(video.codec, coded).into_iter().collect(), video.to_string())
        }
    };
    let conditions = Conditions { program, loops, duration, late_after };
    if !command.json {
        print(&head(&what, &version, &conditions));
    }
    let measure = |streams: u32| {
        let measured = capacity::measure(streams, &conditions);
        match &measured {
            Ok(measured) if !command.json => print(&line(measured)),
            Err(error) if !command.json => say(&format!("{streams:>8}  {error}")),
            _ => {}
        }
        measured
    };
    let is_search = command.streams.is_empty();
    let rows = if is_search {
        capacity::search(command.up_to, measure).map_err(failed)?
    } else {
        command
            .streams
            .iter()
            .copied()
            .map(measure)
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?
    };
    let largest = rows.iter().filter(|row| row.keeps_up()).map(|row| row.streams).max();
    if command.json {
        let rows: Vec<Value> = rows.iter().map(row_json).collect();
        let report = json!({
            "decode_version": 1, "video": what, "ffmpeg": version, "decoder": command.decoder,
            "late_after_ms": late_after.as_secs_f64() * 1e3, "rows": rows, "streams_max": largest,
        });
        print_json(&format!("{report:#}\n"));
    } else {
        print(&conclusion(largest, is_search, command.up_to, &what));
    }
    let all_keep_up = rows.iter().all(Row::keeps_up);
    Ok(if is_search || all_keep_up { Exit::Met } else { Exit::Missed })
}

/// The streams that a run's tap kept.
fn of_run(run: &Path) -> Result<Vec<Loop>, CliError> {
    let folder = run.join(throng_decode::tap::KEPT_FOLDER);
    let hint = "run it with --tap 3 --set tap.keep=true";
    let entries = std::fs::read_dir(&folder).map_err(|error| {
        CliError::usage(format!("no streams kept in {}: {error}; {hint}", folder.display()))
    })?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "mkv"));
    let (mut loops, mut room) = (Vec::new(), KEPT_BYTES_MAX);
    for file in files.iter().take(KEPT_MAX) {
        let wrong = |error: &dyn Display| CliError::usage(format!("{}: {error}", file.display()));
        let bytes = kept(file, room).map_err(|error| wrong(&error))?;
        room = room.saturating_sub(bytes.len() as u64);
        let (codec, pictures) = recorded_pictures(&bytes).map_err(|error| wrong(&error))?;
        loops.extend(Loop::of(codec, pictures));
    }
    if loops.is_empty() {
        return Err(CliError::usage(format!(
            "no stream in {} begins with a key frame; {hint}",
            folder.display()
        )));
    }
    Ok(loops)
}

/// A kept stream of at most so many bytes.
fn kept(file: &Path, room: u64) -> std::io::Result<Vec<u8>> {
    let file = throng_folder::read(file)?;
    if file.metadata()?.len() > room {
        let gib = KEPT_BYTES_MAX >> 30;
        let help = format!("with it the streams are more than {gib} GiB: move some away");
        return Err(std::io::Error::other(help));
    }
    let mut bytes = Vec::new();
    file.take(room).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn head(what: &str, version: &str, conditions: &Conditions) -> String {
    let decoder = conditions.program.decoder.as_deref().unwrap_or("its own choice");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "{what}; {cores} cores, {version}, decoder: {decoder}; {:.1} s each, late after {:.0} \
         ms\n\n{}",
        conditions.duration.as_secs_f64(),
        conditions.late_after.as_secs_f64() * 1e3,
        row(&HEAD.map(str::to_owned), &WIDTHS, &[Align::Right]),
    )
}

fn line(of: &Row) -> String {
    let ms = |quantile: f64| match of.delay_us.quantile(quantile) {
        Some(us) => duration_ms(us as f64 / 1e3),
        None => "–".into(),
    };
    let share = |count: u64| percent(count as f64 / of.due.max(1) as f64);
    let keeps_up = if of.keeps_up() { "yes" } else { "NO" };
    let cells = [
        of.streams.to_string(),
        format!("{:.1}", of.fps()),
        format!("{:.2}", of.cpu_cores),
        percent(of.cpu_cores / f64::from(of.streams.max(1))),
        share(of.late),
        share(of.dropped),
        ms(0.5),
        ms(0.99),
        keeps_up.into(),
    ];
    row(&cells, &WIDTHS, &[Align::Right])
}

fn row_json(row: &Row) -> Value {
    let ms = |quantile: f64| row.delay_us.quantile_in(quantile, 1e3);
    json!({
        "streams": row.streams, "pictures_due": row.due, "pictures": row.pictures, "late": row.late,
        "dropped": row.dropped, "fps": row.fps(), "cpu_cores": row.cpu_cores,
        "cpu_cores_per_stream": row.cpu_cores / f64::from(row.streams.max(1)),
        "delay_ms_p50": ms(0.5), "delay_ms_p99": ms(0.99), "keeps_up": row.keeps_up(),
    })
}

fn conclusion(largest: Option<u32>, is_search: bool, up_to: u32, what: &str) -> String {
    match largest {
        None => format!("\nNot one of these counts of streams ({what}) is decoded in real time.\n"),
        Some(streams) if !is_search => format!("\n{streams} streams are decoded in real time.\n"),
        Some(streams) if streams == up_to => {
            format!(
                "\nAt least {streams} streams are decoded in real time; --up-to looks further.\n"
            )
        }
        Some(streams) => format!("\nUp to {streams} streams are decoded in real time.\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test that waits for a writer does not end.
    #[test]
    fn a_link_or_a_pipe_is_no_stream_that_was_kept() {
        let run = tempfile::tempdir().unwrap();
        let kept = run.path().join(throng_decode::tap::KEPT_FOLDER);
        std::fs::create_dir_all(&kept).unwrap();
        let file = kept.join("a.mkv");
        let refused = || of_run(run.path()).err().unwrap().error.to_string();
        std::os::unix::fs::symlink(run.path().join("elsewhere"), &file).unwrap();
        assert!(refused().ends_with("a.mkv: is a link, which is not followed"));
        std::fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        assert!(refused().ends_with("a.mkv: is no ordinary file"));
    }

    #[test]
    fn streams_as_long_as_a_disk_are_not_read() {
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join(throng_decode::tap::KEPT_FOLDER);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.mkv");
        std::fs::File::create(&file).unwrap().set_len(1 << 36).unwrap();
        let error = of_run(run.path()).err().unwrap().error.to_string();
        assert!(error.ends_with("a.mkv: with it the streams are more than 1 GiB: move some away"));
        std::fs::write(&file, "stream").unwrap();
        assert_eq!(kept(&file, 6).unwrap(), b"stream");
        assert!(kept(&file, 5).is_err());
    }
}
