//! `throng run --resume RUN`: collects what the workers of a run have left whose coordinator was
//! killed.
//!
//! The bus has all rows of the run from the first one on, the ends of its workers' parts, and what
//! the coordinator had decided, in their order. The crowd's rows are made again from these,
//! whatever the folder had of them already: so none counts twice, and doing it again changes
//! nothing.

mod collecting;
mod interrupted;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use throng_fleet::Coordinator;

use self::interrupted::InterruptedRun;
use super::record::{Collected, Record};
use super::{bus, bus_wait, may_be_plain, reached};
use crate::args::{Common, duration};
use crate::console::{CliError, Exit, Interrupt, say};
use crate::kept;
use crate::report::{self, ReportOptions};

/// How long a worker may be silent, unless the user says otherwise: one that was started again
/// hands its rows in within some seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whoever collects a run has this file of its folder locked. It has no bytes, and stays.
const LOCK: &str = "resume.lock";

/// Collects the run at `run`, and reports.
pub(crate) fn resume(run: &Path, common: &Common) -> Result<Exit, CliError> {
    let options = ReportOptions::of(common);
    options.check()?;
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let folder = kept::run_folder(run);
    let _locked = lock(&folder)?;
    let left = InterruptedRun::read(folder)?;
    if let Some(why) = left.is_complete() {
        say(&why);
        return Ok(Exit::Met);
    }
    let Some(config) = bus(&common.fleet.bus)? else {
        return Err(CliError::usage("--resume needs --fleet URL"));
    };
    let patience = common.fleet.fleet_wait.as_deref();
    let patience =
        patience.map(|text| duration("--fleet-wait", text)).transpose()?.unwrap_or(PATIENCE);
    let allowed = left.allowed(common)?;
    let find = || Coordinator::find(&config, &left.record.run, &may_be_plain(&allowed));
    let (coordinator, last) =
        reached(bus_wait(common.fleet.fleet_wait.as_deref())?, &interrupt, find)?;
    say(&format!("collecting the run from {}", coordinator.bus()));
    let missing = left.collect(&coordinator, last, patience, &interrupt)?;
    let is_complete = missing.is_empty();
    let collected =
        Collected { missing: missing.clone(), last: coordinator.last().unwrap_or(last) };
    // Before the bus forgets what would have to be collected again.
    left.record.with(collected).put(&left.folder).map_err(CliError::invalid)?;
    if is_complete {
        coordinator.forget();
    } else {
        say(&format!(
            "rows of {} are missing; if its --spool has kept any, a worker that is started again \
             with the same folder brings them, and the run can be resumed once more within a day",
            missing.join(", ")
        ));
    }
    report::make(&left.folder, &options).map_err(CliError::invalid)
}

/// Keeps others from collecting the run in a folder, until it is dropped. `None` where no fleet
/// played the run.
fn lock(folder: &Path) -> Result<Option<File>, CliError> {
    if !Record::is_in(folder) {
        return Ok(None);
    }
    let path = folder.join(LOCK);
    let problem = |error: std::io::Error| CliError::invalid(anyhow!("{}: {error}", path.display()));
    let file = throng_folder::append(&path).map_err(problem)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let shown = folder.display();
            Err(CliError::usage(format!(
                "{shown}: another `throng run --resume` collects this run"
            )))
        }
        Err(TryLockError::Error(error)) => Err(problem(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_who_collect_a_run_the_second_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let locked = |folder: &Path| lock(folder).map_err(|why| why.error.to_string());
        assert!(locked(folder.path()).is_ok_and(|file| file.is_none()), "no fleet played it");
        std::fs::write(folder.path().join("fleet.json"), "{}").expect("written");
        let first = locked(folder.path());
        assert!(matches!(&first, Ok(Some(_))), "{first:?}");
        let second = locked(folder.path());
        assert!(
            second
                .is_err_and(|why| why.contains("another `throng run --resume` collects this run"))
        );
        drop(first);
        assert!(matches!(locked(folder.path()), Ok(Some(_))));
    }

    /// A test that waits for a reader does not end.
    #[test]
    fn no_file_is_locked_through_a_link_and_no_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("fleet.json"), "{}").expect("written");
        let (path, elsewhere) = (folder.path().join(LOCK), folder.path().join("elsewhere"));
        let refused = || lock(folder.path()).map_err(|why| why.error.to_string()).unwrap_err();
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
        assert!(refused().ends_with("resume.lock: is a link, which is not followed"));
        assert!(!elsewhere.exists());
        std::fs::remove_file(&path).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("a pipe").success());
        assert!(refused().ends_with("resume.lock: is no ordinary file"));
    }
}
