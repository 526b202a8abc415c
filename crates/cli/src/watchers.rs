//! The watchers of a run: started before the crowd, heard through a bounded queue, stopped after it. What goes wrong
//! with one of them is told and never ends the run.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::host::{HostEvent, HostEventKind, HostId, HostRow};
use throng_observation::run::{EventRow, Row};
use throng_scenario::{Moment, Plan, ProfileWish, Watch, Watched};
use throng_watch::profiler::{self, Options};
use throng_watch::scrape::Allowed;
use throng_watch::{Local, RowSender, Target, Told, ToldConfig, WatchConfig, Watching, packs};

use crate::say;
use crate::watched_now::{ServerFigures, WatchedNow};

/// How long before the first join a watched run begins: the idle server is what everything else is compared with.
pub(crate) const BASELINE: Duration = Duration::from_secs(5);

/// Rows of watchers that may wait for the store; with 2,000 threads some ten seconds of a disk that stands still.
const ROWS_WAITING_MAX: usize = 65_536;

/// How long a watcher may say nothing before it counts as lost; it tells of its own cost each second.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// Whether a profile waits for a missed objective.
pub(crate) fn wait_for_failure(plan: &Plan) -> bool {
    plan.watch.iter().flat_map(|watch| &watch.profile).any(|wish| wish.moment == Moment::Fail)
}

/// The watchers of a run.
pub(crate) struct Watchers {
    hosts: Vec<Host>,
    pump: Option<Pump>,
    rows: RowSender,
    run_rows: SyncSender<Row>,
    zero: Instant,
    full_at: Duration,
    /// Whether a person can be told at once; else what there is to tell waits for the end.
    speaks_at_once: bool,
    untold: Vec<String>,
}

/// One `[[watch]]`.
struct Host {
    id: HostId,
    watch: Watch,
    watching: Option<Watching>,
    told: Option<Told>,
    wishes: Vec<ProfileWish>,
    profiling: Vec<Profiling>,
    is_lost: bool,
}

/// A profile that is being taken, on a thread of its own: finding names takes a while.
struct Profiling {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// The thread that carries rows on to the store.
struct Pump {
    now: Arc<Mutex<WatchedNow>>,
    thread: JoinHandle<()>,
}

impl Watchers {
    /// Starts what the plan wants watched. `zero` is when the first join is due. Warnings are said (at the end,
    /// unless one `speaks_at_once`) and kept with the run.
    pub(crate) fn start(
        plan: &Plan,
        zero: Instant,
        run_rows: SyncSender<Row>,
        allowed: &Allowed,
        speaks_at_once: bool,
    ) -> Self {
        let (rows, received) = throng_watch::rows(ROWS_WAITING_MAX);
        let full_at = plan.joins.last().map_or(Duration::ZERO, |join| join.at);
        let (hosts, untold) = (Vec::new(), Vec::new());
        let mut watchers = Self { hosts, pump: None, rows, run_rows, zero, full_at, speaks_at_once, untold };
        if plan.watch.is_empty() {
            return watchers;
        }
        match Pump::start(received, watchers.run_rows.clone()) {
            Ok(pump) => watchers.pump = Some(pump),
            Err(error) => watchers.tell(None, &format!("nothing is watched: {error}")),
        }
        for (index, watch) in plan.watch.iter().enumerate() {
            let id = HostId(u8::try_from(index).unwrap_or(u8::MAX));
            let watching = match begin(id, watch, zero, &watchers.rows) {
                Ok(watching) => Some(watching),
                Err(why) => {
                    watchers.tell(Some(id), &format!("{} is not watched: {why}", watch.label()));
                    None
                }
            };
            let told = watching.as_ref().and_then(|watching| watchers.listen(id, watch, watching, allowed));
            let is_lost = watching.is_none();
            let wishes = if is_lost { Vec::new() } else { watch.profile.clone() };
            let (watch, profiling) = (watch.clone(), Vec::new());
            watchers.hosts.push(Host { id, watch, watching, told, wishes, profiling, is_lost });
        }
        watchers
    }

    /// Finds what is known of the server, keeps it with the run, and reads its logs and endpoints.
    fn listen(&mut self, id: HostId, watch: &Watch, watching: &Watching, allowed: &Allowed) -> Option<Told> {
        let names = names(watch, watching);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let packs = packs::of_server(&packs::built_in(), watch.pack.as_deref(), &names);
        if let (Some(pump), Ok(json)) = (&self.pump, serde_json::to_string(&packs))
            && let Some(row) = pump.know(id, json)
        {
            let _ = self.run_rows.send(Row::Host(row));
        }
        if let Some(name) = watch.pack.as_ref().filter(|name| packs.iter().all(|pack| pack.pack != **name)) {
            self.tell(Some(id), &format!("there is no knowledge pack `{name}`"));
        }
        let (logs, access_logs) = (watch.logs.clone(), watch.access_logs.clone());
        let config = ToldConfig { logs, access_logs, metrics: watch.metrics.clone(), packs };
        if config.logs.is_empty() && config.access_logs.is_empty() && config.metrics.is_empty() {
            return None;
        }
        match Told::begin(&config, id, self.zero, &self.rows, allowed) {
            Ok(told) => Some(told),
            Err(error) => {
                self.tell(Some(id), &format!("what {} tells of itself is not read: {error}", watch.label()));
                None
            }
        }
    }

    /// Begins the profiles that are due, and notices watchers that died. `has_failed`: an objective was missed.
    pub(crate) fn look(&mut self, has_failed: bool) {
        let at = since(self.zero);
        let mut told = Vec::new();
        for host in &mut self.hosts {
            let due: Vec<ProfileWish> =
                host.wishes.extract_if(.., |wish| is_due(wish, at, self.full_at, has_failed)).collect();
            for wish in due {
                match profile(host, &wish, at, &self.rows) {
                    Ok(Some(profiling)) => host.profiling.push(profiling),
                    // The processes are not there yet; the moment is not over.
                    Ok(None) => host.wishes.push(wish),
                    Err(why) => {
                        let what =
                            format!("no profile of {} at {}: {why}", host.watch.label(), wish.moment.name());
                        told.push((host.id, what));
                    }
                }
            }
            let silent = self.pump.as_ref().and_then(|pump| pump.silent_for(host.id));
            let is_silent = silent.is_some_and(|silent| silent > SILENT_MAX.max(host.watch.every * 5));
            if !host.is_lost && is_silent {
                host.is_lost = true;
                told.push((
                    host.id,
                    format!("the watcher of {} is lost: it says nothing more", host.watch.label()),
                ));
            }
        }
        told.into_iter().for_each(|(id, what)| self.tell(Some(id), &what));
    }

    /// What the watched hosts do at the moment.
    pub(crate) fn figures(&self) -> Vec<ServerFigures> {
        self.pump.as_ref().map(Pump::figures).unwrap_or_default()
    }

    /// Ends watching; profiles that are being taken end early and are kept.
    pub(crate) fn stop(mut self) {
        let mut missed = Vec::new();
        for host in &mut self.hosts {
            host.profiling.drain(..).for_each(Profiling::end);
            missed.extend(host.wishes.drain(..).map(|wish| (host.id, wish.moment)));
            if let Some(told) = host.told.take() {
                told.stop();
            }
            if let Some(watching) = host.watching.take() {
                watching.stop();
            }
        }
        for (id, moment) in missed.into_iter().filter(|(_, moment)| *moment != Moment::Fail) {
            self.happened(id, &format!("no profile at {}: that moment did not come", moment.name()));
        }
        let dropped = self.rows.dropped();
        if dropped > 0 {
            self.tell(None, &format!("{dropped} rows of the watchers came too fast and are missing"));
        }
        self.untold.iter().for_each(|warning| say(warning));
        let Self { pump, rows, .. } = self;
        // The pump ends when the last sender is gone.
        drop(rows);
        if let Some(pump) = pump {
            let _ = pump.thread.join();
        }
    }

    /// Tells the person, the host's happenings and the run's events.
    fn tell(&mut self, id: Option<HostId>, what: &str) {
        let warning = format!("warning: {what}");
        if self.speaks_at_once {
            say(&warning);
        } else {
            self.untold.push(warning);
        }
        if let Some(id) = id {
            self.happened(id, what);
        }
        let at = self.now();
        let event =
            EventRow { at, participant: None, kind: "watch_failed".into(), count: 1, detail: what.into() };
        // Without a store there is nobody to be told.
        let _ = self.run_rows.try_send(Row::Event(event));
    }

    fn happened(&self, host: HostId, what: &str) {
        let (at, kind, detail) = (self.now(), HostEventKind::Watcher, what.to_owned());
        self.rows.send(HostRow::Event(HostEvent { host, at, kind, detail }));
    }

    fn now(&self) -> RunTime {
        run_time(since(self.zero))
    }
}

/// Time since the first join was due, in seconds; negative before.
fn since(zero: Instant) -> f64 {
    let now = Instant::now();
    match now.checked_duration_since(zero) {
        Some(after) => after.as_secs_f64(),
        None => -zero.duration_since(now).as_secs_f64(),
    }
}

fn run_time(at_s: f64) -> RunTime {
    RunTime((at_s * 1e6) as i64)
}

fn begin(id: HostId, watch: &Watch, zero: Instant, rows: &RowSender) -> Result<Watching, String> {
    if let Some(agent) = &watch.agent {
        return Err(format!("the agent at {agent} cannot be asked by this throng"));
    }
    let config = WatchConfig {
        name: watch.name.clone(),
        targets: vec![target(&watch.target)],
        period: watch.every,
        ..WatchConfig::default()
    };
    let local = Local::open(config).map_err(|error| error.to_string())?;
    local.begin(id, zero, rows.clone()).map_err(|error| error.to_string())
}

/// How long the processes of a target are waited for, so that what is known of them can be chosen.
const FOUND_WITHIN: Duration = Duration::from_secs(1);

/// By what names a server goes: its target's, and those of its processes if they are there.
fn names(watch: &Watch, watching: &Watching) -> Vec<String> {
    let until = Instant::now() + FOUND_WITHIN;
    while watching.processes().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut names: Vec<String> = watching.processes().into_iter().map(|process| process.name).collect();
    match &watch.target {
        Watched::Process(name) => names.push(name.clone()),
        Watched::Unit(name) => names.push(name.trim_end_matches(".service").to_owned()),
        Watched::Command(words) => {
            names.extend(words.first().and_then(|word| word.rsplit('/').next()).map(str::to_owned));
        }
        Watched::Cgroup(_) | Watched::Pid(_) | Watched::Port(_) => {}
    }
    names
}

fn target(watched: &Watched) -> Target {
    match watched.clone() {
        Watched::Process(name) => Target::Process(name),
        Watched::Unit(name) => Target::Unit(name),
        Watched::Cgroup(path) => Target::Cgroup(path),
        Watched::Pid(pid) => Target::Pid(pid),
        Watched::Port(port) => Target::Port(port),
        Watched::Command(words) => Target::Command(words),
    }
}

fn is_due(wish: &ProfileWish, at_s: f64, full_at: Duration, has_failed: bool) -> bool {
    match &wish.moment {
        Moment::Baseline => true,
        Moment::Full => at_s >= full_at.as_secs_f64(),
        Moment::Fail => has_failed,
        Moment::At(at) => at_s >= at.as_secs_f64(),
    }
}

/// Begins a profile; `None` while there is no process to profile and there may yet be one.
fn profile(
    host: &Host,
    wish: &ProfileWish,
    at_s: f64,
    rows: &RowSender,
) -> Result<Option<Profiling>, String> {
    let is_baseline = wish.moment == Moment::Baseline;
    if is_baseline && at_s >= 0.0 {
        return Err("its processes came too late".into());
    }
    let processes = host.watching.as_ref().map(Watching::processes).unwrap_or_default();
    if processes.is_empty() {
        return Ok(None);
    }
    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    let options = Options {
        host: host.id,
        moment: wish.moment.name(),
        started_at: run_time(at_s),
        ..Options::default()
    };
    let sampling = profiler::start(&pids, options).map_err(|error| error.to_string())?;
    // A profile of the idle server ends when the crowd comes.
    let until_crowd = Duration::from_secs_f64((-at_s).max(0.0));
    let lasts = if is_baseline { wish.duration.min(until_crowd) } else { wish.duration };
    let (rows, (stop, stopped)) = (rows.clone(), channel());
    let act = move || {
        let _: Result<(), RecvTimeoutError> = stopped.recv_timeout(lasts);
        rows.send(HostRow::Profile(Box::new(sampling.stop())));
    };
    let thread = std::thread::Builder::new().name("profile".into()).spawn(act).map_err(|e| e.to_string())?;
    Ok(Some(Profiling { stop, thread }))
}

impl Profiling {
    fn end(self) {
        // Over already, perhaps.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

impl Pump {
    fn start(received: Receiver<HostRow>, run_rows: SyncSender<Row>) -> std::io::Result<Self> {
        let now = Arc::new(Mutex::new(WatchedNow::default()));
        let its_now = Arc::clone(&now);
        let thread = std::thread::Builder::new().name("watch-rows".into()).spawn(move || {
            for row in received {
                let more = its_now.lock().unwrap_or_else(PoisonError::into_inner).take(&row);
                // A store that is slow holds up this thread; the queue before it fills, and what finds no room there is
                // counted.
                for row in std::iter::once(row).chain(more) {
                    if run_rows.send(Row::Host(row)).is_err() {
                        return;
                    }
                }
            }
        })?;
        Ok(Self { now, thread })
    }

    /// Keeps what is known of a host's server with it; the row that says so, if the host is known already.
    fn know(&self, host: HostId, packs: String) -> Option<HostRow> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).know(host, packs)
    }

    fn figures(&self) -> Vec<ServerFigures> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).figures()
    }

    fn silent_for(&self, host: HostId) -> Option<Duration> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).silent_for(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_due_at_their_moments() {
        let full_at = Duration::from_secs(10);
        for (moment, at_s, has_failed, expect) in [
            (Moment::Baseline, -4.0, false, true),
            (Moment::Full, 9.9, false, false),
            (Moment::Full, 10.0, false, true),
            (Moment::Fail, 30.0, false, false),
            (Moment::Fail, 3.0, true, true),
            (Moment::At(Duration::from_secs(5)), 4.9, true, false),
            (Moment::At(Duration::from_secs(5)), 5.0, false, true),
        ] {
            let wish = ProfileWish { duration: moment.usual_duration(), moment };
            assert_eq!(is_due(&wish, at_s, full_at, has_failed), expect, "{wish:?} at {at_s}");
        }
    }
}
