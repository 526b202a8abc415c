//! `throng ipc`: the cost of passing frames of these sizes between two processes on this machine.

use std::io::{IsTerminal, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_ipc::{
    Assumptions, FrameSize, FrameSizes, IpcReport, Launcher, Plan, ReadMode, Transport, Workload,
};
use throng_store::{RunFolder, create_private};

use crate::console::{CliError, Exit, Interrupt, print, say};
use crate::{args, run_id};

/// The measurement's own file in a folder.
const RESULT: &str = "ipc.json";
/// A longer one was not written by throng.
const RESULT_BYTES_MAX: u64 = 32 << 20;
/// The longest list of sizes that is read.
const SIZES_BYTES_MAX: u64 = 16 << 20;
/// Frames a second of a stream without --fps: those of most cameras.
const FPS: f64 = 30.0;

pub(crate) fn measure(command: &args::Ipc) -> Result<Exit, CliError> {
    let plan = plan(command)?;
    let folder = make_folder(&command.output.clone().unwrap_or_else(run_id::default_folder))?;
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let launcher =
        Launcher { program: PathBuf::from("/proc/self/exe"), arguments: vec!["ipc-role".into()] };
    let talks = std::io::stderr().is_terminal();
    let report =
        throng_ipc::measure(&plan, &launcher, &|| interrupt.is_set(), &mut |transport, round| {
            if talks {
                say(&format!("measuring {} ({round}/{})", transport.name(), plan.rounds));
            }
        });
    let written = put(&folder, &report);
    show(&report, command.json);
    // A full disk must not keep the result from the terminal.
    tell_page(&written?, command.json);
    Ok(exit(&report))
}

/// The entry point of the processes that the measurement starts.
#[expect(clippy::unnecessary_wraps, reason = "every command has this shape")]
pub(crate) fn role() -> Result<Exit, CliError> {
    Ok(if throng_ipc::run_role() { Exit::Met } else { Exit::Invalid })
}

/// `throng report FOLDER` for a folder of a measurement: makes the page again from `ipc.json`.
/// `None` when the folder is not one.
pub(crate) fn remake(command: &args::Report) -> Option<Result<Exit, CliError>> {
    let path = command.run.join(RESULT);
    let json = kept(&path)?;
    if command.markdown.is_some() {
        return Some(Err(CliError::usage(
            "--markdown: a measurement of `throng ipc` has no Markdown",
        )));
    }
    Some(
        IpcReport::from_json(&json)
            .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
            .and_then(|report| {
                let folder = RunFolder::open(&command.run)
                    .map_err(|error| CliError::new(Exit::Usage, error))?;
                let page = put(&folder, &report)?;
                show(&report, command.json);
                tell_page(&page, command.json);
                Ok(exit(&report))
            }),
    )
}

/// What is in the file of a measurement; `None` where there is none, or a link or a pipe.
fn kept(path: &Path) -> Option<String> {
    let mut json = String::new();
    throng_folder::read(path).ok()?.take(RESULT_BYTES_MAX).read_to_string(&mut json).ok()?;
    Some(json)
}

fn show(report: &IpcReport, json: bool) {
    print(&if json { report.to_json() } else { report.text() });
}

/// Prints the path of the page; with JSON output on standard error.
fn tell_page(page: &Path, json: bool) {
    if json {
        say(&format!("report  {}", page.display()));
    } else {
        print(&format!("\nreport  {}\n", page.display()));
    }
}

fn exit(report: &IpcReport) -> Exit {
    if report.partial {
        Exit::Interrupted
    } else if report.has_failed_rows() || !report.has_figures() {
        Exit::Invalid
    } else {
        Exit::Met
    }
}

/// Makes the folder before the measurement, so that a folder that cannot be written ends the
/// command early.
fn make_folder(path: &Path) -> Result<RunFolder, CliError> {
    if path.join(RESULT).exists() {
        return Err(CliError::usage(format!(
            "{} holds a measurement already: name another folder",
            path.display()
        )));
    }
    create_private(path)
        .map_err(|error| CliError::usage(format!("--output {}: {error}", path.display())))?;
    RunFolder::open(path).map_err(|error| CliError::new(Exit::Usage, error))
}

/// Writes the report's files; returns the path of the page.
fn put(folder: &RunFolder, report: &IpcReport) -> Result<PathBuf, CliError> {
    let wrong = |error| CliError::new(Exit::Invalid, error);
    folder.put(RESULT, report.to_json()).map_err(wrong)?;
    folder.put("report.html", report.html()).map_err(wrong)
}

fn plan(command: &args::Ipc) -> Result<Plan, CliError> {
    let duration = args::duration("--for", &command.duration)?;
    if !(Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&duration) {
        return Err(CliError::usage("--for: 100ms to 1h can be measured"));
    }
    Ok(Plan {
        transports: transports(&command.only)?,
        workload: Workload {
            sizes: sizes(command)?,
            fps: command.fps,
            producers: command.producers,
        },
        reading: if command.read == "all" { ReadMode::All } else { ReadMode::Edges },
        duration,
        rounds: command.rounds,
        inspect: !command.quick,
        python: command.python.clone(),
        assumptions: Assumptions {
            price_core_hour: command.price_core_hour,
            streams: command.streams,
            fps: command.price_fps.or(command.fps).unwrap_or(FPS),
        },
    })
}

fn sizes(command: &args::Ipc) -> Result<FrameSizes, CliError> {
    let Some(path) = &command.sizes else {
        let frame = FrameSize::parse(&command.frame)
            .map_err(|error| CliError::usage(format!("--frame: {error}")))?;
        return Ok(frame.into());
    };
    let wrong = |error: String| CliError::usage(format!("--sizes {}: {error}", path.display()));
    let bytes = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if bytes > SIZES_BYTES_MAX {
        return Err(wrong(format!("{bytes} bytes are too many for a list of sizes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    FrameSizes::read_list(&text).map_err(|error| wrong(error.to_string()))
}

/// The named transports, in the order of the table.
fn transports(only: &[String]) -> Result<Vec<Transport>, CliError> {
    let mut wanted = Vec::new();
    for key in only {
        let transport = Transport::of_key(key.trim()).ok_or_else(|| {
            let known: Vec<_> = Transport::ALL.iter().map(|transport| transport.key()).collect();
            CliError::usage(format!(
                "--only: there is no transport `{key}`; there is {}",
                known.join(", ")
            ))
        })?;
        wanted.push(transport);
    }
    Ok(Transport::ALL
        .into_iter()
        .filter(|transport| only.is_empty() || wanted.contains(transport))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A test that waits for a writer does not end.
    #[test]
    fn a_pipe_or_a_link_is_no_measurement() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at(RESULT), "{}").unwrap();
        assert_eq!(kept(&at(RESULT)).as_deref(), Some("{}"));
        symlink(at(RESULT), at("link.json")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe.json")).status();
        assert!(made.unwrap().success());
        for name in ["link.json", "pipe.json", "absent.json"] {
            assert_eq!(kept(&at(name)), None, "{name}");
        }
    }

    #[test]
    fn the_folder_of_a_measurement_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("above/ipc");
        assert!(make_folder(&folder).is_ok());
        for made in [folder.as_path(), folder.parent().unwrap()] {
            let mode = made.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{mode:o}");
        }
    }
}
