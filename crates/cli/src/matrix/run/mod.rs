//! One run of a cell: setup, server, crowd, and everything put back.

mod crowd;
mod judged;
mod server;

pub(super) use crowd::by_hand;
pub(super) use judged::measure;

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_folder::Folder;
use throng_report::matrix::{MatrixRun, RunStatus};
use throng_rig::{CpuTimes, Journal, RunningServer, SetupError, load_average, run_step};
use throng_scenario::masked_text;
use throng_scenario::matrix::{CellConfig, Measure, PlannedRun, SearchKeys};
use throng_scenario::units::write_duration;
use throng_store::create_private;

use self::judged::environment;
use self::server::is_accounted;
use super::folder::{self, MatrixFolder};
use super::machine::Machine;
use super::plan::MatrixPlan;
use super::progress::Progress;
use super::{needs, shown};
use crate::console::Interrupt;
use crate::fleet::FleetWorkers;
use crate::kept::FolderKind;
use crate::{run_id, watchers};

/// How long a setup command may take.
const STEP_WITHIN: Duration = Duration::from_secs(300);

/// The folder of the server's files, in a run folder.
const SERVER: &str = "server";

/// Runs cells, one after the other.
pub(super) struct CellRunner<'a> {
    pub(super) plan: &'a MatrixPlan,
    pub(super) folder: &'a MatrixFolder,
    pub(super) journal: Journal,
    /// What the cells shrink of this machine, which nobody else may meanwhile.
    pub(super) machine: Machine,
    pub(super) interrupt: &'a Interrupt,
    pub(super) consent_secret: Option<&'a str>,
    /// The workers that play the crowds, if this machine does not.
    pub(super) crew: Option<FleetWorkers>,
    /// Between which crowds the search of a baseline that chooses looks, in place of the file's.
    pub(super) between: Option<[u32; 2]>,
    /// Which run is in progress, for who looks.
    pub(super) progress: Progress,
}

/// Why a run has no figures.
struct NoRun {
    status: RunStatus,
    reason: String,
}

impl NoRun {
    fn failed(reason: impl std::fmt::Display) -> Self {
        Self::of(RunStatus::Failed, reason)
    }

    fn of(status: RunStatus, reason: impl std::fmt::Display) -> Self {
        // It may name a URL of the file, and have what a command said.
        Self { status, reason: masked_text(&reason.to_string()) }
    }
}

impl CellRunner<'_> {
    /// Makes a run. Whatever happens, the machine is afterwards as before, or the notes say what is
    /// not.
    pub(super) fn run(&mut self, planned: &PlannedRun) -> MatrixRun {
        if let Some(gone) = self.gone() {
            return MatrixRun {
                status: RunStatus::Pending,
                reason: Some(gone),
                ..MatrixRun::default()
            };
        }
        let mut notes = Vec::new();
        let undone = |problem: String| format!("could not be undone: {problem}");
        // What the run before could not put back may be free by now.
        notes.extend(self.journal.undo_all().into_iter().map(undone));
        let before = self.journal.left();
        let busy =
            self.plan.matrix.is_proof().then(|| needs::Machine::now(self.interrupt).busy_ratio);
        let (started, load) = (CpuTimes::so_far(), load_average());
        let (mut run, used) = match self.measured(planned, &mut notes) {
            Ok(measured) => measured,
            Err(NoRun { status, reason }) => {
                (MatrixRun { status, reason: Some(reason), ..MatrixRun::default() }, None)
            }
        };
        notes.extend(self.journal.undo_down_to(before).into_iter().map(undone));
        run.notes = notes;
        if run.status != RunStatus::Valid
            && let Some(gone) = self.gone()
        {
            let reason = run.reason.take().map(|reason| format!("{reason}; ")).unwrap_or_default();
            run.reason = Some(format!("{reason}{gone}"));
        }
        run.environment.extend(environment(load, CpuTimes::so_far(), started));
        run.environment
            .extend(busy.map(|busy| ("busy_ratio_before".to_owned(), format!("{busy:.3}"))));
        let others = used.map(|used| used.others_ratio_since(started));
        run.environment
            .extend(others.map(|others| ("others_ratio".to_owned(), format!("{others:.4}"))));
        run
    }

    /// Which workers of `--on` have ended, in words.
    fn gone(&mut self) -> Option<String> {
        self.crew.as_mut().and_then(FleetWorkers::gone)
    }

    /// The run, and the CPU time of server and crowd until the server was stopped, if it is known.
    fn measured(
        &mut self,
        planned: &PlannedRun,
        notes: &mut Vec<String>,
    ) -> Result<(MatrixRun, Option<CpuTimes>), NoRun> {
        let cell = self
            .plan
            .cell(planned)
            .cloned()
            .ok_or_else(|| NoRun::failed("there is no such cell"))?;
        let folder = self.folder.run_folder(planned, self.plan);
        let dir = fresh(&folder).map_err(NoRun::failed)?;
        let config = self.plan.config(&cell, &dir);
        let shrunk = config.shrink.clone();
        let config = self
            .plan
            .confined(config)
            .map_err(|stop| NoRun::failed(format!("{:#}", stop.error)))?;
        let (sets, hold) = self
            .plan
            .overrides(&config)
            .map_err(|stop| NoRun::failed(format!("{:#}", stop.error)))?;
        let unchanged = self.machine.check_is_as_before().map_err(NoRun::failed)?;
        self.set_up(&config, &folder)?;
        let as_shrunk = self.machine.as_shrunk(&unchanged, &shrunk).map_err(NoRun::failed)?;
        self.write_files(&config)?;
        // In a container, and after a boot, numbers of processes come again.
        let (pid, random) = (std::process::id(), run_id::seed() & 0xffff_ffff);
        let name = format!("throng-matrix-{pid}-{random:08x}-{}-{}", cell.number, planned.repeat);
        let mut server = match &config.server.command {
            Some(command) => Some(self.start(command, &config.server, &dir, &name)?),
            None => None,
        };
        let arguments = self.arguments(&sets, server.as_ref(), &config.server, &folder);
        let crowd = self.crowd(&arguments, &folder, &format!("{name}-crowd"), &mut server);
        let stayed = self.machine.check_is_still(&as_shrunk);
        // What a stopped server's helpers used is counted nowhere if their parent ends first.
        let used = self.used(&config, server.as_ref());
        // Before anything else: the next cell needs the port.
        if let Some(server) = server {
            notes.extend(server.stop().notes);
        }
        let crowd = crowd?;
        if !crowd.was_interrupted {
            stayed.map_err(NoRun::failed)?;
        }
        notes.extend(crowd.server_ended.clone());
        let mut run = self.judged(&crowd, &folder, hold);
        let has_run = FolderKind::of(&folder) == Some(FolderKind::Run);
        run.folder = has_run.then(|| folder::relative(planned, self.plan));
        let crew = self.crew.as_ref().map(FleetWorkers::by_hand).unwrap_or_default();
        run.command = Some(by_hand(&[arguments.as_slice(), crew].concat()));
        Ok((run, used))
    }

    /// The CPU time so far, with that of this process, its crowds and the server; `None` where it
    /// is not known whose the server's is, so that it would count as that of others.
    fn used(&self, config: &CellConfig, server: Option<&RunningServer>) -> Option<CpuTimes> {
        let target = self.plan.scenario_of(config)?.target;
        let own = server.map(RunningServer::processes).unwrap_or_default();
        let listening: Vec<u32> = throng_watch::listeners(target.host_and_port().1)
            .into_iter()
            .map(|(pid, _)| pid)
            .collect();
        is_accounted(&own, &listening, watchers::may_be_own_host(&target))
            .then(|| CpuTimes::so_far().with(&own))
    }

    fn set_up(&mut self, config: &CellConfig, folder: &Path) -> Result<(), NoRun> {
        let log = folder.join("setup.log");
        for step in &config.setup {
            let is_over = || self.interrupt.is_set();
            let limits = (log.as_path(), STEP_WITHIN);
            run_step(&step.run, &step.undo, &self.plan.base, &mut self.journal, limits, &is_over)
                .map_err(|error| match error {
                SetupError::NotPossibleHere(_) => NoRun::of(RunStatus::Skipped, error),
                _ if is_over() => NoRun::of(RunStatus::Pending, error),
                error => NoRun::failed(error),
            })?;
        }
        Ok(())
    }

    fn write_files(&self, config: &CellConfig) -> Result<(), NoRun> {
        let files =
            self.plan.files(config).map_err(|stop| NoRun::failed(format!("{:#}", stop.error)))?;
        for (path, text) in files {
            put_file(&path, &text)
                .map_err(|error| NoRun::failed(format!("{}: {error}", path.display())))?;
        }
        Ok(())
    }
}

/// What the crowd's process does, in its first words; a search looks `between` these crowds, if
/// there are any, in place of the file's.
pub(super) fn command(plan: &MatrixPlan, between: Option<[u32; 2]>) -> Vec<String> {
    let scenario = shown(&plan.scenario);
    match &plan.matrix.measure {
        Measure::Hold(_) => vec!["run".to_owned(), scenario],
        Measure::Find(SearchKeys { budget, start, ceiling })
        | Measure::Auto { search: SearchKeys { budget, start, ceiling }, .. } => {
            let mut words = vec!["find".to_owned(), scenario];
            words.extend(["--budget".to_owned(), write_duration(*budget)]);
            let ends = between.map_or([*start, *ceiling], |ends| ends.map(Some));
            for (flag, value) in ["--start", "--ceiling"].into_iter().zip(ends) {
                words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.to_string()]));
            }
            words
        }
    }
}

/// A file of the server, in place of what has its name and not of what a link of that name leads
/// to. A new one is its owner's alone: its variables may be secrets. Who may read one that was
/// there, may still, such as the user as which the server runs.
fn put_file(path: &Path, text: &str) -> std::io::Result<()> {
    let named = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = named.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let Ok(before) = path.symlink_metadata().and_then(only_a_file) else {
        return throng_folder::put_as(path, text.as_bytes(), 0o600);
    };
    let name = path.file_name().unwrap_or_default();
    Folder::open(folder)?.put_over(name, text.as_bytes(), before.mode())?;
    let (user, group) = (before.uid(), before.gid());
    let now = path.symlink_metadata()?;
    if (now.uid(), now.gid()) == (user, group) {
        return Ok(());
    }
    lchown(path, Some(user), Some(group))
}

fn only_a_file(found: Metadata) -> std::io::Result<Metadata> {
    if found.is_file() { Ok(found) } else { Err(ErrorKind::NotFound.into()) }
}

/// An empty run folder, also where an earlier run was cut off, with one for the server's files.
fn fresh(folder: &Path) -> std::io::Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    let dir = folder.join(SERVER);
    create_private(&dir)?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_of_the_server_replaces_a_link_and_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let [victim, file] = ["victim", "made/server.conf"].map(|name| place.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        put_file(&file, "first").unwrap();
        std::fs::remove_file(&file).unwrap();
        symlink(&victim, &file).unwrap();
        put_file(&file, "secret").unwrap();
        let mode = std::fs::symlink_metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "secret");
        // One that was there keeps who may read it.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        put_file(&file, "again").unwrap();
        let mode = std::fs::symlink_metadata(&file).unwrap().permissions().mode();
        assert_eq!(
            (mode & 0o7777, std::fs::read_to_string(&file).unwrap()),
            (0o640, "again".into())
        );
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
