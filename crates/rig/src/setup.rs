//! Commands before the server starts, such as mounting a disk: their undoing is in the journal
//! before they run.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use std::os::unix::process::CommandExt;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Signal;

use crate::journal::{Journal, JournalError, Undo};
use crate::output::last_lines_of;
use crate::processes::signal_group;

/// Exit status of a command that says that its step is not possible on this machine
/// (`EX_UNAVAILABLE`, sysexits.h).
const UNAVAILABLE: i32 = 69;
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Lines of a failed command's output in its message.
const LINES: usize = 3;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The command says that it cannot work here: exit status 69.
    #[error("{0}")]
    NotPossibleHere(String),
    /// It failed, or took too long.
    #[error("{0}")]
    Failed(String),
    /// Its undoing could not be written down, so that it was not run.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Runs one command, whose undoing `undo` is written to `journal` first. Its output goes to `log`.
///
/// # Errors
/// If it fails, takes longer than `within`, or `is_over` ends it.
pub fn run_step(
    run: &[String],
    undo: &[String],
    cwd: &Path,
    journal: &mut Journal,
    (log, within): (&Path, Duration),
    is_over: &dyn Fn() -> bool,
) -> Result<(), SetupError> {
    let mut change = None;
    if !undo.is_empty() {
        let undo = Undo::Command { words: undo.to_vec(), cwd: cwd.to_owned() };
        change = Some(journal.before(undo)?);
    }
    let log = throng_folder::append(log).ok();
    let end = ended(run, cwd, log.as_ref(), within, is_over);
    let said = log.map(|file| last_lines_of(file, LINES)).unwrap_or_default();
    if let Some(change) = change {
        match &end {
            Ok(Some(1..)) => journal.failed(change)?,
            Err(NoEnd::NotStarted(_)) => journal.undone(change)?,
            // One that was killed is perhaps done: its undoing is not less needed than that of any
            // other.
            Ok(Some(_) | None) | Err(NoEnd::Killed(_)) => {}
        }
    }
    match end {
        Ok(Some(0)) => Ok(()),
        Ok(Some(UNAVAILABLE)) => {
            let said = said.join("; ");
            let why = if said.is_empty() { format!("`{}` says so", program(run)) } else { said };
            Err(SetupError::NotPossibleHere(why))
        }
        Ok(code) => Err(SetupError::Failed(failure(run, code, &said))),
        Err(NoEnd::NotStarted(why) | NoEnd::Killed(why)) => Err(SetupError::Failed(why)),
    }
}

/// Why a command has not ended by itself, in words.
#[derive(Debug)]
enum NoEnd {
    /// It cannot be started: it has done nothing.
    NotStarted(String),
    /// It was killed.
    Killed(String),
}

/// Runs a command to its end.
///
/// # Errors
/// In words, with what it wrote last.
pub fn run_to_end(
    words: &[String],
    cwd: &Path,
    within: Duration,
    is_over: &dyn Fn() -> bool,
) -> Result<(), String> {
    // In memory: it has no name that somebody else could have taken, and needs no room on a disk.
    let output = memfd_create("throng-step", MemfdFlags::CLOEXEC).ok().map(File::from);
    match ended(words, cwd, output.as_ref(), within, is_over) {
        Ok(Some(0)) => Ok(()),
        Ok(code) => {
            let said = output.map(|file| last_lines_of(file, LINES)).unwrap_or_default();
            Err(failure(words, code, &said))
        }
        Err(NoEnd::NotStarted(why) | NoEnd::Killed(why)) => Err(why),
    }
}

fn failure(words: &[String], code: Option<i32>, said: &[String]) -> String {
    let how =
        code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit status: {code}"));
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
    format!("`{}` failed ({how}){said}", program(words))
}

/// How a message names a command: its arguments may have secrets.
fn program(words: &[String]) -> &str {
    words.first().map_or("", String::as_str)
}

/// The exit status of a command; `None` if a signal ended it. What it writes goes to `output`, if
/// there is one. It has a process group of its own, so that Ctrl-C does not leave half of it done.
fn ended(
    words: &[String],
    cwd: &Path,
    output: Option<&File>,
    within: Duration,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<i32>, NoEnd> {
    let Some((program, arguments)) = words.split_first() else { return Ok(Some(0)) };
    let output = || {
        let copy = output.and_then(|file| file.try_clone().ok());
        copy.map_or_else(Stdio::null, Stdio::from)
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(cwd).process_group(0);
    command.stdin(Stdio::null()).stdout(output()).stderr(output());
    let mut child = command
        .spawn()
        .map_err(|error| NoEnd::NotStarted(format!("`{program}` cannot be started: {error}")))?;
    let give_up_at = Instant::now() + within;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Ok(status.code());
        }
        let is_late = Instant::now() >= give_up_at;
        if is_late || is_over() {
            signal_group(&child, Signal::KILL);
            let _ = child.wait();
            let why = if is_late {
                format!("took longer than {} s", within.as_secs())
            } else {
                "was interrupted".into()
            };
            return Err(NoEnd::Killed(format!("`{program}` {why}")));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    /// What ends in the record of a run and in reports.
    #[test]
    fn a_message_names_the_program_of_a_step_and_not_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("journal")).unwrap();
        let log = folder.path().join("setup.log");
        let absent = ["absent-program", "--token", "S3CRET"].map(str::to_owned);
        let long = Duration::from_secs(60);
        let slow = words("sleep 9 # S3CRET");
        for (run, within, says) in [
            (&words("exit 1 # S3CRET")[..], long, "`sh` failed (exit status: 1)"),
            (&words("exit 69 # S3CRET")[..], long, "`sh` says so"),
            (&absent[..], long, "`absent-program` cannot be started"),
            (&slow[..], Duration::from_millis(50), "`sh` took longer"),
        ] {
            let limits = (log.as_path(), within);
            let error = run_step(run, &[], folder.path(), &mut journal, limits, &|| false);
            let said = error.unwrap_err().to_string();
            assert!(said.contains(says) && !said.contains("S3CRET"), "{said}");
        }
    }

    #[test]
    fn a_step_is_undone_even_if_it_failed_halfway() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("journal")).unwrap();
        let log = folder.path().join("setup.log");
        let (run, undo) = (words("touch half; echo no space >&2; exit 1"), words("rm half"));
        let second = Duration::from_secs(5);
        let error = run_step(&run, &undo, folder.path(), &mut journal, (&log, second), &|| false)
            .unwrap_err();
        assert!(matches!(&error, SetupError::Failed(why) if why.contains("no space")), "{error}");
        assert!(folder.path().join("half").exists());
        assert!(journal.undo_all().is_empty() && !folder.path().join("half").exists());
    }

    #[test]
    fn a_step_that_never_started_leaves_nothing_to_undo() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        let log = folder.path().join("setup.log");
        let (run, undo) = (vec!["/not/there".to_owned()], words("exit 1"));
        let limits = (log.as_path(), Duration::from_secs(5));
        let error =
            run_step(&run, &undo, folder.path(), &mut journal, limits, &|| false).unwrap_err();
        assert!(error.to_string().contains("cannot be started"), "{error}");
        assert_eq!(journal.left(), 0);
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().left(), 0);
    }

    #[test]
    fn a_step_can_say_that_it_is_not_possible_here() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("journal")).unwrap();
        let log = folder.path().join("setup.log");
        let run = words("echo needs root; exit 69");
        let error = run_step(
            &run,
            &[],
            folder.path(),
            &mut journal,
            (&log, Duration::from_secs(5)),
            &|| false,
        );
        assert!(matches!(error, Err(SetupError::NotPossibleHere(why)) if why == "needs root"));
    }

    /// Its output has no name: nobody else can have made a link of it before.
    #[test]
    fn what_an_undoing_writes_is_in_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let script = words("readlink /proc/self/fd/1 >&2; echo last; exit 3");
        let within = Duration::from_secs(5);
        let said = run_to_end(&script, folder.path(), within, &|| false).unwrap_err();
        assert!(said.contains("/memfd:") && said.ends_with("; last"), "{said}");
    }

    #[test]
    fn a_log_that_is_a_link_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let (log, victim) = (folder.path().join("setup.log"), folder.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &log).unwrap();
        let mut journal = Journal::open(&folder.path().join("journal")).unwrap();
        let limits = (log.as_path(), Duration::from_secs(5));
        let run = words("echo mine");
        run_step(&run, &[], folder.path(), &mut journal, limits, &|| false).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_step_that_hangs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let hang = words("sleep 100");
        let late =
            run_to_end(&hang, folder.path(), Duration::from_millis(50), &|| false).unwrap_err();
        assert!(late.contains("took longer"), "{late}");
        let over = run_to_end(&hang, folder.path(), Duration::from_secs(50), &|| true).unwrap_err();
        assert!(over.contains("interrupted"), "{over}");
        let absent = vec!["/not/there".to_owned()];
        assert!(run_to_end(&absent, folder.path(), Duration::from_secs(1), &|| false).is_err());
    }
}
