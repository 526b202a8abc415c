//! One watched host of a run: its watcher (this process or an agent), its logs and endpoints, and
//! its profiles.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_observation::host::{HostId, HostRow};
use throng_observation::pack::Pack;
use throng_scenario::{Moment, ProfileRequest, Watch, WatchTarget};
use throng_watch::profiler::{self, Options};
use throng_watch::remote::{RemoteAgent, RemoteWatch};
use throng_watch::{
    LocalHost, LocalWatch, RowSender, SourceConfig, SourceWatch, Target, WatchConfig,
    WatchedProcess, packs,
};

use super::profile_schedule::{is_due, run_time};

/// One `[[watch]]`.
pub(super) struct Host {
    pub(super) id: HostId,
    pub(super) watch: Watch,
    watching: Option<HostWatcher>,
    source_watch: Option<SourceWatch>,
    wishes: Vec<ProfileRequest>,
    profiling: Vec<Profiling>,
    pub(super) is_lost: bool,
    /// Whether it was told that no process of this kind is there.
    pub(super) is_missing_told: bool,
    /// The target's port, until it was looked who listens there; `None` where that does not matter.
    target_port: Option<u16>,
}

/// What watches it.
enum HostWatcher {
    Local(LocalWatch),
    Agent(RemoteWatch),
}

/// The knowledge packs of a host's server, and problems with its logs, endpoints or pack.
#[derive(Default)]
pub(super) struct PackLookup {
    pub(super) packs: Option<Vec<Pack>>,
    pub(super) problems: Vec<String>,
}

/// A profile in progress, on a thread of its own, because symbol lookup takes a while.
struct Profiling {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Host {
    /// Begins to watch, through `agent` if the watch names one. A host that cannot be watched
    /// counts as lost.
    pub(super) fn begin(
        id: HostId,
        (watch, target_port): (&Watch, Option<u16>),
        agent: impl FnOnce() -> Result<RemoteAgent, String>,
        zero: Instant,
        rows: &RowSender,
    ) -> (Self, Option<String>) {
        let watching = match &watch.agent {
            Some(_) => agent().map(|remote| {
                HostWatcher::Agent(remote.begin(id, watch.name.clone(), zero, rows.clone()))
            }),
            None => local(id, watch, zero, rows).map(HostWatcher::Local),
        };
        let (watching, problem) = match watching {
            Ok(watching) => (Some(watching), None),
            Err(why) => (None, Some(format!("{} is not watched: {why}", watch.label()))),
        };
        let is_lost = watching.is_none();
        let wishes = if is_lost { Vec::new() } else { watch.profile.clone() };
        let (watch, source_watch, profiling) = (watch.clone(), None, Vec::new());
        // Who chose by the port has whom the crowd meets; an agent is on another host.
        let target_port = match &watch.target {
            WatchTarget::Port(_)
            | WatchTarget::TargetPort(_)
            | WatchTarget::Command(_)
            | WatchTarget::ByAgent => None,
            WatchTarget::Process(_)
            | WatchTarget::Unit(_)
            | WatchTarget::Cgroup(_)
            | WatchTarget::Pid(_) => target_port,
        };
        let host = Self {
            id,
            watch,
            watching,
            source_watch,
            wishes,
            profiling,
            is_lost,
            is_missing_told: false,
            target_port,
        };
        (host, problem)
    }

    /// Finds the server's knowledge packs, and reads its logs and endpoints. An agent does both by
    /// its owner's flags; only a pack that the scenario names replaces the agent's.
    pub(super) fn listen(
        &mut self,
        sources: &SourceConfig,
        zero: Instant,
        rows: &RowSender,
    ) -> PackLookup {
        let unknown = |packs: &[Pack], name: &String| packs.iter().all(|pack| pack.pack != *name);
        match (&self.watching, &self.watch.pack) {
            (Some(HostWatcher::Local(watching)), pack) => {
                let sources = SourceConfig {
                    logs: self.watch.logs.clone(),
                    access_logs: self.watch.access_logs.clone(),
                    metrics: self.watch.metrics.clone(),
                    pack: pack.clone(),
                    ..sources.clone()
                };
                let targets = targets(&self.watch.target);
                let source_watch =
                    sources.begin(&targets, &watching.watched_processes(), self.id, zero, rows);
                let (packs, problems) =
                    (Some(source_watch.packs.clone()), source_watch.problems.clone());
                self.source_watch = Some(source_watch);
                PackLookup { packs, problems }
            }
            (Some(HostWatcher::Agent(_)), Some(name)) if unknown(&sources.packs, name) => {
                PackLookup {
                    packs: None,
                    problems: vec![format!("unknown knowledge pack `{name}`")],
                }
            }
            (Some(HostWatcher::Agent(_)), Some(name)) => {
                let packs = packs::of_server(&sources.packs, Some(name), &[]);
                PackLookup { packs: Some(packs), problems: Vec::new() }
            }
            _ => PackLookup::default(),
        }
    }

    /// Whether it is about a process of this machine that ought to be there already.
    pub(super) fn names_a_process(&self) -> bool {
        let is_here = matches!(self.watching, Some(HostWatcher::Local(_)));
        is_here
            && match &self.watch.target {
                WatchTarget::Process(_)
                | WatchTarget::Unit(_)
                | WatchTarget::Cgroup(_)
                | WatchTarget::Pid(_)
                | WatchTarget::Port(_)
                | WatchTarget::TargetPort(_) => true,
                WatchTarget::Command(_) | WatchTarget::ByAgent => false,
            }
    }

    /// The watched processes of this machine.
    pub(super) fn processes(&self) -> Vec<WatchedProcess> {
        match &self.watching {
            Some(HostWatcher::Local(watching)) => watching.processes(),
            Some(HostWatcher::Agent(_)) | None => Vec::new(),
        }
    }

    /// Whether it is still to be looked who listens on the target's port.
    pub(super) fn may_watch_another(&self) -> bool {
        self.target_port.is_some()
    }

    /// Where the watched processes use almost no CPU under the crowd (`cores`): whether others
    /// listen on the target's port than those that any watch is of (`all`). Looked at once.
    pub(super) fn watches_another(
        &mut self,
        cores: Option<f64>,
        all: &[WatchedProcess],
    ) -> Option<String> {
        let cores = cores?;
        let port = self.target_port.take()?;
        // One that watches nothing is told to.
        if cores >= IDLE_CORES_MAX || self.processes().is_empty() {
            return None;
        }
        let label = self.watch.label();
        another_listens((label.as_str(), all), cores, port, &throng_watch::listeners(port))
    }

    /// The server's packs, when there are new ones because its processes started late.
    pub(super) fn new_packs(&self) -> Option<Vec<Pack>> {
        self.source_watch.as_ref()?.changed_packs()
    }

    /// Starts profiles whose moment has come; returns problems. `has_process`: an
    /// agent has said that it found one.
    pub(super) fn profile_when_due(
        &mut self,
        (at_s, full_at, has_failed): (f64, Duration, bool),
        has_process: bool,
        rows: &RowSender,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let due: Vec<ProfileRequest> =
            self.wishes.extract_if(.., |wish| is_due(wish, at_s, full_at, has_failed)).collect();
        for wish in due {
            match self.profile(&wish, at_s, has_process, rows) {
                Ok(true) => {}
                // There is no process yet, and the moment has not passed.
                Ok(false) => self.wishes.push(wish),
                Err(why) => {
                    let (host, moment) = (self.watch.label(), wish.moment.name());
                    warnings.push(format!("no profile of {host} at {moment}: {why}"));
                }
            }
        }
        warnings
    }

    /// Begins a profile; `false` while there is no process yet.
    fn profile(
        &mut self,
        wish: &ProfileRequest,
        at_s: f64,
        has_process: bool,
        rows: &RowSender,
    ) -> Result<bool, String> {
        let is_baseline = wish.moment == Moment::Baseline;
        if is_baseline && at_s >= 0.0 {
            return Err("its processes started too late".into());
        }
        // A profile of the idle server ends when the first participant joins.
        let until_crowd = Duration::from_secs_f64((-at_s).max(0.0));
        let lasts = if is_baseline { wish.duration.min(until_crowd) } else { wish.duration };
        let watching = match &self.watching {
            Some(HostWatcher::Local(watching)) => watching,
            Some(HostWatcher::Agent(agent)) => {
                if has_process {
                    agent.profile(&wish.moment.name(), lasts);
                }
                return Ok(has_process);
            }
            None => return Ok(false),
        };
        let pids: Vec<u32> = watching.processes().iter().map(|process| process.pid).collect();
        if pids.is_empty() {
            return Ok(false);
        }
        let (moment, started_at) = (wish.moment.name(), run_time(at_s));
        let account = Some(rows.clone());
        let options =
            Options { host: self.id, moment, started_at, rows: account, ..Options::default() };
        let sampling = profiler::start(&pids, options).map_err(|error| error.to_string())?;
        let (rows, (stop, stopped)) = (rows.clone(), channel());
        let act = move || {
            let _: Result<(), RecvTimeoutError> = stopped.recv_timeout(lasts);
            rows.send(HostRow::Profile(Box::new(sampling.stop())));
        };
        let thread = std::thread::Builder::new()
            .name("profile".into())
            .spawn(act)
            .map_err(|e| e.to_string())?;
        self.profiling.push(Profiling { stop, thread });
        Ok(true)
    }

    /// Ends watching. Profiles in progress end early and are kept. Returns the moments that were
    /// not reached.
    pub(super) fn stop(&mut self) -> Vec<Moment> {
        self.profiling.drain(..).for_each(Profiling::end);
        if let Some(source_watch) = self.source_watch.take() {
            source_watch.stop();
        }
        match self.watching.take() {
            Some(HostWatcher::Local(watching)) => watching.stop(),
            Some(HostWatcher::Agent(agent)) => agent.stop(),
            None => {}
        }
        self.wishes.drain(..).map(|wish| wish.moment).collect()
    }
}

impl Profiling {
    fn end(self) {
        // The thread may have ended already.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Processes that use less CPU than this under a crowd may not be those that serve it, cores.
const IDLE_CORES_MAX: f64 = 0.01;

/// What to say where none of the processes that are `watched`, by whichever watch, listens on the
/// target's port and others do.
/// Those may be a proxy in front of the watched ones, whose crowd costs them little: only the user
/// knows.
fn another_listens(
    (label, watched): (&str, &[WatchedProcess]),
    cores: f64,
    port: u16,
    listening: &[(u32, String)],
) -> Option<String> {
    let is_watched = |pid: u32| watched.iter().any(|process| process.pid == pid);
    let (pid, name) = listening.first()?;
    let is_another = !watched.is_empty() && !listening.iter().any(|(pid, _)| is_watched(*pid));
    is_another.then(|| {
        let percent = cores * 100.0;
        format!(
            "{label} used {percent:.1} % of a core under this crowd, and {name} (PID {pid}) \
             listens on the target's port {port}: if that serves the crowd, --watch target \
             watches it"
        )
    })
}

fn local(id: HostId, watch: &Watch, zero: Instant, rows: &RowSender) -> Result<LocalWatch, String> {
    let config = WatchConfig {
        name: watch.name.clone(),
        targets: targets(&watch.target),
        period: watch.every,
        ..WatchConfig::default()
    };
    let local = LocalHost::open(config).map_err(|error| error.to_string())?;
    local.begin(id, zero, rows.clone()).map_err(|error| error.to_string())
}

fn targets(watched: &WatchTarget) -> Vec<Target> {
    vec![match watched.clone() {
        WatchTarget::Process(name) => Target::Process(name),
        WatchTarget::Unit(name) => Target::Unit(name),
        WatchTarget::Cgroup(path) => Target::Cgroup(path),
        WatchTarget::Pid(pid) => Target::Pid(pid),
        WatchTarget::Port(port) | WatchTarget::TargetPort(port) => Target::Port(port),
        WatchTarget::Command(words) => Target::Command(words),
        WatchTarget::ByAgent => return Vec::new(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_finds_a_bot_and_not_the_server_is_said_to() {
        let process = |pid, name: &str| WatchedProcess { pid, name: name.into(), target: 0 };
        let bot = [process(7, "node")];
        let server = [(9, "peertube".to_owned())];
        let said = |watched: &[WatchedProcess], listening: &[(u32, String)]| {
            another_listens(("process node", watched), 0.004, 9000, listening)
        };
        assert_eq!(
            said(&bot, &server).as_deref(),
            Some(
                "process node used 0.4 % of a core under this crowd, and peertube (PID 9) listens on the target's port 9000: \
                 if that serves the crowd, --watch target watches it"
            )
        );
        // The server is of this watch or of another one.
        let both = [process(7, "node"), process(9, "peertube")];
        assert_eq!(said(&both, &server), None);
        assert_eq!(said(&bot, &[]), None, "nobody is seen there");
        assert_eq!(said(&[], &server), None);
    }
}
