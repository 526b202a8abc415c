//! The watchers of a run. They start before the crowd joins, send their rows through a bounded
//! queue, and stop after the crowd has left. Their failures are reported and never end the run,
//! except the loss of an agent that consented to the load.

use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::host::{HostEvent, HostEventKind, HostId, HostRow};
use throng_observation::pack::Pack;
use throng_observation::run::{EventRow, Row};
use throng_scenario::{Moment, Plan, Target, WatchTarget};
use throng_watch::{RowSender, SourceConfig};

use crate::console::{CliError, say};
use crate::live_hosts::ServerFigures;

mod agents;
pub(crate) use agents::{Agents, Agreement};

mod host;
use host::Host;

mod profile_schedule;
pub(crate) use profile_schedule::wait_for_failure;
use profile_schedule::{run_time, since};

mod row_forwarder;
use row_forwarder::RowForwarder;

/// How long before the first join a watched run begins, for a baseline of the idle server.
pub(crate) const BASELINE: Duration = Duration::from_secs(5);

/// Rows of watchers that may wait for the store: with 2,000 threads about ten seconds of a stalled
/// disk.
const ROWS_WAITING_MAX: usize = 65_536;

/// How long a watcher may send nothing before it counts as lost; it sends its own cost each second.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// How long before the crowd joins a process that is to be watched has to be there, seconds.
const FOUND_BEFORE_S: f64 = 1.0;

/// How long a run that ended before its time, and soon after a failure, waits for a watcher to see
/// that a process ended: its server's, it may be.
pub(crate) const LAST_LOOK: Duration = Duration::from_secs(3);
/// How often it is asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long the whole crowd is there before processes that do little are told, seconds.
const FULL_FOR_S: f64 = 2.0;

/// Prints that a watched run begins with a baseline of the idle server.
pub(crate) fn announce_baseline(plan: &Plan) {
    if let [first, more @ ..] = plan.watch.as_slice() {
        let more =
            if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let (label, seconds) = (first.label(), BASELINE.as_secs());
        say(&format!(
            "watching {label}{more}: the idle server for {seconds} s, then the crowd joins"
        ));
    }
}

/// Refuses to watch the port of a target that is elsewhere: who listens on the same port of this
/// host has nothing to do with the crowd. `is_own_host`: all addresses of the target are this
/// host's.
pub(crate) fn refuse_port_elsewhere(plan: &Plan, is_own_host: bool) -> Result<(), CliError> {
    let is_wanted =
        plan.watch.iter().any(|watch| matches!(watch.target, WatchTarget::TargetPort(_)));
    if is_own_host || !is_wanted {
        return Ok(());
    }
    let (host, port) = plan.target.host_and_port();
    Err(CliError::usage(format!(
        "--watch target watches what listens on port {port} of this host, and {host} is no known \
         address of this host. If it is another machine, run `throng watch --listen … --port \
         {port}` there, and write --watch agent=tls://… as it prints it; if it is a container or \
         a namespace of this machine, write --watch port={port}"
    )))
}

/// Whether a target may be this host: names are not resolved.
pub(crate) fn may_be_own_host(target: &Target) -> bool {
    let (host, _) = target.host_and_port();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_own = |address: IpAddr| {
        address.is_loopback() || throng_engine::preflight::own_addresses().contains(&address)
    };
    address.map_or(true, |address| is_own(address.to_canonical()))
}

/// The knowledge packs: the built-in ones, and those with which the user's folder extends or
/// replaces them.
pub(crate) fn packs(folder: Option<&Path>) -> Result<Vec<Pack>, CliError> {
    match folder {
        Some(folder) => throng_watch::packs::with_folder(folder)
            .map_err(|error| CliError::usage(format!("--packs {}: {error}", folder.display()))),
        None => Ok(throng_watch::packs::built_in()),
    }
}

pub(crate) struct Watchers {
    hosts: Vec<Host>,
    forwarder: Option<RowForwarder>,
    rows: RowSender,
    run_rows: SyncSender<Row>,
    zero: Instant,
    full_at: Duration,
    /// Whether warnings are printed at once, or at the end.
    prints_at_once: bool,
    deferred: Vec<String>,
}

impl Watchers {
    /// Starts the watches of the plan. `zero` is the intended time of the first join; `sources`
    /// holds the knowledge packs and which addresses may be asked. Warnings are printed, at once or
    /// at the end, and stored.
    pub(crate) fn start(
        plan: &Plan,
        zero: Instant,
        run_rows: SyncSender<Row>,
        sources: &SourceConfig,
        mut agents: Agents,
        prints_at_once: bool,
    ) -> Self {
        let (rows, received) = throng_watch::rows(ROWS_WAITING_MAX);
        let full_at = plan.joins.last().map_or(Duration::ZERO, |join| join.at);
        let (hosts, deferred) = (Vec::new(), Vec::new());
        let mut watchers = Self {
            hosts,
            forwarder: None,
            rows,
            run_rows,
            zero,
            full_at,
            prints_at_once,
            deferred,
        };
        if plan.watch.is_empty() {
            return watchers;
        }
        match RowForwarder::start(received, watchers.run_rows.clone()) {
            Ok(forwarder) => watchers.forwarder = Some(forwarder),
            Err(error) => watchers.warn(None, &format!("nothing is watched: {error}")),
        }
        let target_port = plan.target.is_loopback().then(|| plan.target.host_and_port().1);
        for (index, watch) in plan.watch.iter().enumerate() {
            let id = HostId(u8::try_from(index).unwrap_or(u8::MAX));
            let (mut host, problem) =
                Host::begin(id, (watch, target_port), || agents.take(index), zero, &watchers.rows);
            if let Some(problem) = problem {
                watchers.warn(Some(id), &problem);
            }
            let listening = host.listen(sources, zero, &watchers.rows);
            if let Some(packs) = &listening.packs {
                watchers.know(id, packs);
            }
            // The host's events contain it already.
            for problem in listening.problems {
                watchers.warn(None, &format!("{}: {problem}", watch.label()));
            }
            watchers.hosts.push(host);
        }
        watchers
    }

    /// Stores the packs of a server with the run.
    fn know(&self, id: HostId, packs: &[Pack]) {
        if let (Some(forwarder), Ok(json)) = (&self.forwarder, serde_json::to_string(packs))
            && let Some(row) = forwarder.hosts().know(id, json)
        {
            let _ = self.run_rows.send(Row::Host(row));
        }
    }

    /// Starts profiles whose moment has come, detects lost watchers, and stores new packs.
    /// `has_failed`: an objective was missed.
    pub(crate) fn look(&mut self, has_failed: bool) {
        let at = since(self.zero);
        let mut warnings = Vec::new();
        let has_settled = at > self.full_at.as_secs_f64() + FULL_FOR_S;
        let may_be_another = has_settled && self.hosts.iter().any(Host::may_watch_another);
        // Two watches may share the work: one of a helper, one of who listens.
        let watched: Vec<_> = if may_be_another {
            self.hosts.iter().flat_map(Host::processes).collect()
        } else {
            Vec::new()
        };
        for host in &mut self.hosts {
            let of_hosts = self.forwarder.as_ref().map(|forwarder| forwarder.hosts());
            let silent = of_hosts.as_ref().and_then(|hosts| hosts.silent_for(host.id));
            let cores = of_hosts.as_ref().and_then(|hosts| hosts.cpu(host.id));
            let has_process = of_hosts.is_some_and(|hosts| hosts.has_found_process(host.id));
            let moment = (at, self.full_at, has_failed);
            let said = host.profile_when_due(moment, has_process, &self.rows);
            warnings.extend(said.into_iter().map(|what| (host.id, what)));
            if has_settled {
                let another = host.watches_another(cores, &watched);
                warnings.extend(another.map(|what| (host.id, what)));
            }
            let is_silent =
                silent.is_some_and(|silent| silent > SILENT_MAX.max(host.watch.every * 5));
            let is_missing = !has_process && at > -FOUND_BEFORE_S && host.names_a_process();
            if is_missing && !host.is_lost && !host.is_missing_told {
                host.is_missing_told = true;
                let what = format!(
                    "{}: no such process runs; it is watched as soon as one starts",
                    host.watch.label()
                );
                warnings.push((host.id, what));
            }
            if !host.is_lost && is_silent {
                host.is_lost = true;
                let what =
                    format!("the watcher of {} is lost: it sends nothing more", host.watch.label());
                warnings.push((host.id, what));
            }
        }
        warnings.into_iter().for_each(|(id, what)| self.warn(Some(id), &what));
        let news: Vec<_> =
            self.hosts.iter().filter_map(|host| Some((host.id, host.new_packs()?))).collect();
        news.into_iter().for_each(|(id, packs)| self.know(id, &packs));
    }

    /// The current figures of the watched hosts.
    pub(crate) fn figures(&self) -> Vec<ServerFigures> {
        self.forwarder.as_ref().map(|forwarder| forwarder.hosts().figures()).unwrap_or_default()
    }

    /// Waits a moment for the end of a process that was there before the crowd: a run may end in
    /// the second in which its server does. The end of another, such as a job, is not waited for.
    pub(crate) fn wait_for_an_end(&self) {
        let until = Instant::now() + LAST_LOOK;
        let Some(forwarder) = &self.forwarder else { return };
        while Instant::now() < until && !forwarder.hosts().has_seen_an_end(LAST_LOOK) {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Ends watching. Profiles in progress end early and are kept.
    pub(crate) fn stop(mut self) {
        let mut missed = Vec::new();
        for host in &mut self.hosts {
            missed.extend(host.stop().into_iter().map(|moment| (host.id, moment)));
        }
        for (id, moment) in missed.into_iter().filter(|(_, moment)| *moment != Moment::Fail) {
            self.add_host_event(
                id,
                &format!("no profile at {}: the run ended before that moment", moment.name()),
            );
        }
        let dropped = self.rows.dropped();
        if dropped > 0 {
            self.warn(
                None,
                &format!("{dropped} rows of the watchers arrived too fast and are missing"),
            );
        }
        self.deferred.iter().for_each(|warning| say(warning));
        let Self { forwarder, rows, .. } = self;
        // The forwarder ends when the last sender is dropped.
        drop(rows);
        if let Some(forwarder) = forwarder {
            forwarder.end();
        }
    }

    /// Prints a warning, and adds it to the events of the host and of the run.
    fn warn(&mut self, id: Option<HostId>, what: &str) {
        let warning = format!("warning: {what}");
        if self.prints_at_once {
            say(&warning);
        } else {
            self.deferred.push(warning);
        }
        if let Some(id) = id {
            self.add_host_event(id, what);
        }
        let at = self.now();
        let event = EventRow {
            at,
            participant: None,
            kind: "watch_failed".into(),
            count: 1,
            detail: what.into(),
        };
        // Without a store there is nowhere to write it.
        let _ = self.run_rows.try_send(Row::Event(event));
    }

    fn add_host_event(&self, host: HostId, what: &str) {
        let event = HostEvent::new(host, self.now(), HostEventKind::Watcher, what);
        self.rows.send(HostRow::Event(event));
    }

    fn now(&self) -> RunTime {
        run_time(since(self.zero))
    }
}
