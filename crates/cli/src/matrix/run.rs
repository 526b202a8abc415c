//! One run of a cell: setup, server, crowd, and everything put back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use throng_observation::run::Ending;
use throng_observation::shell;
use throng_report::matrix::{MatrixRun, RunFigures, RunStatus, figures};
use throng_report::{ReportRows, RunOutcome, Summary};
use throng_rig::{
    CpuTimes, Journal, Limits, Readiness, RunningServer, ServerSpec, SetupError, Sign, StartError,
    Undo, governor, load_average, run_step,
};
use throng_scenario::matrix::{CellConfig, Measure, PlannedRun, ReadyWhen, SearchKeys, Server};
use throng_scenario::units::write_duration;
use throng_scenario::{TokenSource, masked_override, masked_text};
use throng_store::{RunFolder, StoreError, create_private};

use super::child::{self, CrowdEnd};
use super::folder::{self, MatrixFolder};
use super::machine::Machine;
use super::plan::{HoldTimes, MatrixPlan, NOT_WATCHED};
use super::{needs, shown};
use crate::console::{Exit, Interrupt};
use crate::fleet::Crew;
use crate::{report, run_id, watchers};

/// How long a setup command may take.
const STEP_WITHIN: Duration = Duration::from_secs(300);

/// The folder of the server's files, in a run folder.
const SERVER: &str = "server";

/// What the names of variables begin with that hold an override with a secret.
const SET_VARIABLE: &str = "THRONG_SET_";

/// The variable that holds the secret of the consent proof.
const CONSENT_VARIABLE: &str = "THRONG_CONSENT";

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
    pub(super) crew: Option<Crew>,
    /// Between which crowds the search of a baseline that chooses looks, in place of the file's.
    pub(super) between: Option<[u32; 2]>,
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
        self.crew.as_mut().and_then(Crew::gone)
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
        self.machine.check_is_as_before().map_err(NoRun::failed)?;
        self.set_up(&config, &folder)?;
        let as_shrunk = self.machine.as_shrunk(&shrunk).map_err(NoRun::failed)?;
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
        run.folder = folder.join("run.db").exists().then(|| folder::relative(planned, self.plan));
        let crew = self.crew.as_ref().map(Crew::by_hand).unwrap_or_default();
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
            let write = || {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                std::fs::write(&path, text)
            };
            write().map_err(|error: std::io::Error| {
                NoRun::failed(format!("{}: {error}", path.display()))
            })?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        command: &[String],
        server: &Server<String>,
        dir: &Path,
        name: &str,
    ) -> Result<RunningServer, NoRun> {
        let stop = server.stop.clone().unwrap_or_default();
        let disk =
            server.disk.as_ref().map(|disk| (PathBuf::from(&disk.path), disk.read_bytes_per_s));
        let ready = server.ready.as_ref().map(readiness).transpose().map_err(NoRun::failed)?;
        let spec = ServerSpec {
            command: command.to_vec(),
            env: server.env.clone(),
            cwd: server
                .cwd
                .as_ref()
                .map_or_else(|| self.plan.base.clone(), |cwd| self.plan.base.join(cwd)),
            ready,
            stop_signal: stop.signal,
            stop_within: stop.within,
            cpus: server.cpus.clone(),
            nofile: server.nofile,
            limits: Limits {
                cpu_quota: server.cpu_quota,
                memory_bytes: server.memory_bytes,
                disk_read: disk,
            },
            log: log_of(dir),
            name: name.to_owned(),
        };
        let interrupt = self.interrupt;
        RunningServer::start(spec, &mut self.journal, &|| interrupt.is_set()).map_err(|error| {
            match error {
                StartError::NotPossibleHere(_) => NoRun::of(RunStatus::Skipped, error),
                StartError::Interrupted => NoRun::of(RunStatus::Pending, error),
                error => NoRun::failed(error),
            }
        })
    }

    /// The arguments of the crowd's process.
    fn arguments(
        &self,
        sets: &[String],
        server: Option<&RunningServer>,
        config: &Server<String>,
        folder: &Path,
    ) -> Vec<String> {
        let mut words = command(self.plan, self.between);
        let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        sets.iter().for_each(|set| flag("--set", set));
        self.plan.options.allow_target.iter().for_each(|cidr| flag("--allow-target", cidr));
        if let Some(threads) = self.plan.options.threads {
            flag("--threads", &threads.to_string());
        }
        if let Some(server) = server.filter(|_| config.watch.as_deref() != Some(NOT_WATCHED)) {
            flag("--watch", &watch(server, &log_of(&folder.join(SERVER)), config.watch.as_deref()));
        }
        flag("--output", &shown(folder));
        words.push("--quiet".to_owned());
        words
    }

    fn crowd(
        &mut self,
        arguments: &[String],
        folder: &Path,
        mark: &str,
        server: &mut Option<RunningServer>,
    ) -> Result<CrowdEnd, NoRun> {
        self.journal.before(Undo::Processes(mark.to_owned())).map_err(NoRun::failed)?;
        let (mut arguments, mut variables) = apart(arguments);
        if let Some(secret) = self.consent_secret {
            let named = match TokenSource::parse(secret) {
                TokenSource::Inline(secret) => {
                    variables.push((CONSENT_VARIABLE.to_owned(), secret.expose().to_owned()));
                    format!("env:{CONSENT_VARIABLE}")
                }
                reference @ (TokenSource::Environment(_) | TokenSource::File(_)) => {
                    reference.to_string()
                }
            };
            arguments.extend(["--consent-secret".to_owned(), named]);
        }
        arguments.extend(self.crew.iter().flat_map(|crew| crew.flags().iter().cloned()));
        let bus = self.crew.as_ref().and_then(Crew::variable);
        variables.extend(bus.map(|(name, url)| (name.to_owned(), url)));
        let child = child::start(&arguments, &folder.join("run.log"), mark, variables)
            .map_err(|error| NoRun::failed(format!("throng cannot be started: {error}")))?;
        // A search on a server that has ended would go on for a long time; users of a hold count
        // what they did not get.
        let ends_with_server = !matches!(self.plan.matrix.measure, Measure::Hold(_));
        Ok(child::wait(child, server, self.interrupt, ends_with_server))
    }

    /// The status of a run by its exit code, and its figures.
    fn judged(&self, crowd: &CrowdEnd, folder: &Path, hold: Option<HoldTimes>) -> MatrixRun {
        let said = throng_rig::last_lines(&folder.join("run.log"), 4).join("; ");
        if crowd.was_interrupted {
            let reason = Some("interrupted".to_owned());
            return MatrixRun { status: RunStatus::Pending, reason, ..MatrixRun::default() };
        }
        let (figures, summary) = match measure(folder, hold) {
            Ok(measured) => measured,
            Err(error) => {
                let reason = Some(format!("the crowd did not come ({error}): {said}"));
                // Workers that do not come or do not play are no result of the cell: `--resume`
                // makes this run.
                let is_without_fleet =
                    self.crew.is_some() && crowd.code == Some(Exit::Invalid as i32);
                let status = if is_without_fleet { RunStatus::Pending } else { RunStatus::Failed };
                return MatrixRun { status, reason, ..MatrixRun::default() };
            }
        };
        let is = |exit: Exit| crowd.code == Some(exit as i32);
        let (status, reason) =
            if let Some(ended) = crowd.server_ended.as_ref().filter(|_| hold.is_none()) {
                (RunStatus::Failed, Some(ended.clone()))
            } else if is(Exit::Target) && hold.is_none() {
                // A search that reached nobody found no limit, not one of 0.
                (RunStatus::Invalid, Some(summary.headline.clone()))
            } else if is(Exit::Met) || is(Exit::Missed) || is(Exit::Target) {
                (RunStatus::Valid, None)
            } else if let Some(reason) =
                invalid(&summary).filter(|_| is(Exit::Invalid) || is(Exit::Disputed))
            {
                (RunStatus::Invalid, Some(reason))
            } else {
                (RunStatus::Failed, Some(format!("throng failed: {said}")))
            };
        let environment = played_by(&summary).into_iter().chain(left(&figures)).collect();
        MatrixRun { status, reason, environment, figures: Some(figures), ..MatrixRun::default() }
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

/// The figures of a run folder, and its summary.
pub(super) fn measure(
    folder: &Path,
    hold: Option<HoldTimes>,
) -> Result<(RunFigures, Summary), StoreError> {
    let run = RunFolder::read_selected(folder, &mut ReportRows::default())?;
    let summary = report::summary(&run);
    let seconds = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    let hold = hold.map(|times| (seconds(times.from_s), seconds(times.until_s)));
    // A guard of the engine, or a crash of throng, may have ended it before the hold: then all that
    // there is counts.
    let hold = hold.map(|(from, until)| match run.ended_at {
        Some(at) if run.ending != Ending::Complete && at.second() <= from => {
            (0, at.second().max(1))
        }
        _ => (from, until),
    });
    Ok((figures(&run, &summary, hold), summary))
}

/// Why a run that ended as planned decides nothing; `None` where throng itself failed.
fn invalid(summary: &Summary) -> Option<String> {
    let reasons = &summary.generator.reasons;
    if summary.generator.limited {
        return Some(format!("the generator was the limit: {}", reasons.join(" ")));
    }
    if summary.partial {
        return Some(format!("partial: {}", summary.partial_reasons.join("; ")));
    }
    if let Some(capacity) = &summary.capacity {
        return Some(capacity.statement.clone());
    }
    (summary.outcome == RunOutcome::Disputed).then(|| summary.headline.clone())
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

fn readiness(ready: &throng_scenario::matrix::Ready) -> Result<Readiness, String> {
    let sign = match &ready.when {
        ReadyWhen::Port(port) => Sign::Port(*port),
        ReadyWhen::Url(text) => {
            let url: url::Url = text.parse().map_err(|error| format!("{text}: {error}"))?;
            let port = url.port_or_known_default().unwrap_or(80);
            let path = match url.query() {
                Some(query) => format!("{}?{query}", url.path()),
                None => url.path().to_owned(),
            };
            Sign::Http { authority: format!("{}:{port}", url.host_str().unwrap_or_default()), path }
        }
        ReadyWhen::Log(pattern) => {
            Sign::Line(throng_rig::pattern(pattern).map_err(|error| error.to_string())?)
        }
    };
    Ok(Readiness { sign, within: ready.within })
}

/// What a server writes to its standard output and error, in the folder of its files.
fn log_of(dir: &Path) -> PathBuf {
    dir.join("output.log")
}

/// The watch of a server: all processes of its control group, where there is none those that listen
/// on its port; and its output, in which many say what they lack.
fn watch(server: &RunningServer, log: &Path, more: Option<&str>) -> String {
    let target = match (server.control_group(), server.port()) {
        (Some(group), _) => format!("cgroup={group}"),
        (None, Some(port)) => format!("port={port}"),
        (None, None) => format!("pid={}", server.pid()),
    };
    watch_with(&target, &shown(log), more)
}

/// A value of `--watch`, which a comma ends: a log whose path has one is not followed.
fn watch_with(target: &str, log: &str, more: Option<&str>) -> String {
    let log = (!log.contains(',')).then(|| format!("logs={log}"));
    let parts =
        [Some(target.to_owned()), log, more.filter(|more| !more.is_empty()).map(str::to_owned)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(",")
}

/// The words of a crowd's command line as all users of this machine may see them, and the variables
/// that hold the overrides with secrets.
fn apart(arguments: &[String]) -> (Vec<String>, Vec<(String, String)>) {
    let (mut words, mut variables) = (Vec::new(), Vec::new());
    for (index, word) in arguments.iter().enumerate() {
        if !is_override(arguments, index) || masked_override(word) == *word {
            words.push(word.clone());
            continue;
        }
        let name = format!("{SET_VARIABLE}{}", variables.len());
        words.push(format!("env:{name}"));
        variables.push((name, word.clone()));
    }
    (words, variables)
}

/// Whether a word is the value of a `--set`.
fn is_override(arguments: &[String], index: usize) -> bool {
    index
        .checked_sub(1)
        .and_then(|before| arguments.get(before))
        .is_some_and(|word| word == "--set")
}

/// The command line without secrets, and without what only this matrix needs.
pub(super) fn by_hand(arguments: &[String]) -> String {
    let mut words = vec!["throng"];
    let shown = |(index, word): (usize, &String)| {
        if is_override(arguments, index) { masked_override(word) } else { masked_text(word) }
    };
    let shown: Vec<String> = arguments.iter().enumerate().map(shown).collect();
    let mut rest = shown.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--output" | "--watch" => drop(rest.next()),
            "--quiet" => {}
            word => words.push(word),
        }
    }
    shell::line(words)
}

/// The workers of a run that a fleet played: those of two runs that are compared must be the same.
fn played_by(summary: &Summary) -> Option<(String, String)> {
    let mut names: Vec<&str> =
        summary.generator.workers.iter().map(|worker| worker.name.as_str()).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| ("played_by".to_owned(), names.join(" + ")))
}

/// The share of CPU time that nobody used while the crowd was judged; waiting for disks is part of
/// it.
fn left(figures: &RunFigures) -> Option<(String, String)> {
    let idle = figures.idle_ratio? + figures.iowait_ratio.unwrap_or(0.0);
    Some(("idle_ratio".to_owned(), format!("{idle:.4}")))
}

/// Whether the CPU time of the target's server is that of the processes that were started (`own`),
/// by who is `listening` on the target's port here. A server that a daemon starts (a container, a
/// unit), or that was there before, is none of them; one on another machine uses nothing here.
/// `is_here`: the target may be this host, where only root sees who listens.
fn is_accounted(own: &[u32], listening: &[u32], is_here: bool) -> bool {
    if listening.is_empty() { !is_here } else { listening.iter().all(|pid| own.contains(pid)) }
}

/// What may differ between runs on one machine, and what tells machines apart.
fn environment(load: Option<f64>, now: CpuTimes, started: CpuTimes) -> BTreeMap<String, String> {
    let mut facts = throng_engine::host::fingerprint();
    facts.retain(|name, _| ["cpu_model", "cores", "kernel"].contains(&name.as_str()));
    facts.extend(governor().map(|governor| ("governor".to_owned(), governor)));
    facts.extend(load.map(|load| ("load_average_before".to_owned(), format!("{load:.2}"))));
    facts.insert("steal_ratio".to_owned(), format!("{:.4}", now.steal_ratio_since(started)));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_can_be_repeated_by_hand() {
        let words = [
            "run",
            "a.toml",
            "--set",
            "crowd.arrival={ every = \"1s\" }",
            "--watch",
            "pid=1",
            "--output",
            "x",
            "--quiet",
        ];
        let line = by_hand(&words.map(str::to_owned));
        assert_eq!(line, "throng run a.toml --set 'crowd.arrival={ every = \"1s\" }'");
        let line = by_hand(&["run", "$(id).toml", "--set", "a=x;y"].map(str::to_owned));
        assert_eq!(line, "throng run '$(id).toml' --set 'a=x;y'");
    }

    #[test]
    fn a_secret_is_in_the_environment_of_a_crowd_and_not_in_its_arguments() {
        let words = [
            "run",
            "a.toml",
            "--set",
            "target.token=\"S3CRET\"",
            "--set",
            "crowd.size=5",
            "--set",
            "target.url=ws://a:S3CRET@h/x",
            "--set",
            "target.api_secret=env:LIVEKIT",
        ]
        .map(str::to_owned);
        let (seen, variables) = apart(&words);
        assert_eq!(
            seen.join(" "),
            "run a.toml --set env:THRONG_SET_0 --set crowd.size=5 --set env:THRONG_SET_1 --set \
             target.api_secret=env:LIVEKIT"
        );
        let held = [("THRONG_SET_0", &words[3]), ("THRONG_SET_1", &words[7])];
        assert_eq!(variables, held.map(|(name, set)| (name.to_owned(), set.clone())));
        assert_eq!(
            by_hand(&words),
            "throng run a.toml --set 'target.token=…' --set crowd.size=5 --set \
             'target.url=ws://…@h/x' --set target.api_secret=env:LIVEKIT"
        );
    }

    #[test]
    fn a_server_that_somebody_else_started_is_not_counted_as_others() {
        let (own, docker) = ([7, 8], 99);
        assert!(is_accounted(&own, &[8], true), "a helper of the server listens");
        assert!(!is_accounted(&own, &[docker], true) && !is_accounted(&own, &[8, docker], true));
        assert!(!is_accounted(&[], &[docker], false), "no command, and it is here");
        assert!(!is_accounted(&own, &[], true), "somebody whom only root sees");
        assert!(is_accounted(&own, &[], false), "the server is on another machine");
    }

    #[test]
    fn the_output_of_a_server_is_followed() {
        for (log, more, expect) in [
            ("/runs/1/server/output.log", None, "cgroup=/a,logs=/runs/1/server/output.log"),
            ("/o.log", Some("profile=full"), "cgroup=/a,logs=/o.log,profile=full"),
            ("/o.log", Some(""), "cgroup=/a,logs=/o.log"),
            ("/of,two/o.log", None, "cgroup=/a"),
        ] {
            assert_eq!(watch_with("cgroup=/a", log, more), expect);
        }
    }

    #[test]
    fn an_address_is_taken_from_a_url() {
        let ready = |url: &str| {
            let when = ReadyWhen::Url(url.into());
            readiness(&throng_scenario::matrix::Ready { when, within: Duration::from_secs(1) })
                .unwrap()
                .sign
                .to_string()
        };
        assert_eq!(
            ready("http://127.0.0.1:8081/status?full"),
            "http://127.0.0.1:8081/status?full answers"
        );
        assert_eq!(ready("http://localhost"), "http://localhost:80/ answers");
    }
}
