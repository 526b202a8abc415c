//! `throng worker`: waits for a share of a run, asks its own consent guard, and plays it.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use throng_engine::{NewParticipant, RunEnd, RunHandle};
use throng_fleet::message::{ClockSaid, CrowdChange, Offer, Ready};
use throng_fleet::shares::Shares;
use throng_fleet::{Assignment, Part, Wanted, Worker};
use throng_observation::run::{Ending, ParticipantId, ParticipantRow, Row};
use throng_observation::{Failure, FailureReason, Outcome, RunTime};
use throng_scenario::{Network, Override, Plan, Scenario};

use super::clock_source::ClockSource;
use super::feed::{self, Due, Feed};
use super::worker_spool::{self, WorkerSpool};
use super::{build, bus, bus_wait, error, may_be_plain, reached};
use crate::args::{self, Common};
use crate::console::{CliError, Exit, Interrupt, say};
use crate::session::{self, EnginePart, Prepared};
use crate::{media, run_id};

/// How often the worker looks what is wanted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// After an interrupt, how long the rows may take to be on the bus.
const LAST_ROWS_WITHIN: Duration = Duration::from_secs(10);

/// The same where rows that are not are kept on disk.
const KEPT_ROWS_WITHIN: Duration = Duration::from_secs(3);

/// In place of the bus's address: it is in the first line of the input.
const STANDARD_INPUT: &str = "-";

fn first_line() -> Result<String, CliError> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(CliError::usage)?;
    match line.trim() {
        "" => Err(CliError::usage("--fleet -: the input has no line with the bus's address")),
        url => Ok(url.to_owned()),
    }
}

/// Whoever started the worker holds its input open: at its end, by a connection that broke too, the
/// worker ends.
fn end_with_input(interrupt: Interrupt) -> Result<(), CliError> {
    let reading = std::thread::Builder::new().name("input".into()).spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        interrupt.set();
    });
    reading.map(drop).map_err(CliError::invalid)
}

/// Plays one share after another.
pub(crate) fn worker(command: &args::Worker) -> Result<Exit, CliError> {
    throng_engine::share_one_arena();
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let mut config = bus(&command.bus)?
        .ok_or_else(|| CliError::usage("a worker needs its bus: --fleet nats://HOST"))?;
    if config.url == STANDARD_INPUT {
        config.url = first_line()?;
        end_with_input(interrupt.clone())?;
    }
    let allowed = networks(&command.allow_target)?;
    let clock_source = ClockSource::of(command.clock_error.as_deref())?;
    let offer = offer(command)?;
    let name = offer.name.clone();
    let spool = WorkerSpool::open(command)?;
    let connect = || Worker::connect(&config, offer.clone(), &may_be_plain(&allowed));
    let worker = reached(bus_wait(command.fleet_wait.as_deref())?, &interrupt, connect)?;
    spool.hand_in(&worker, &interrupt)?;
    let mut last = Exit::Met;
    loop {
        say(&format!("worker {name} waits on {}", config.shown()));
        let Some(assignment) = worker.next_order(&|| interrupt.is_set()).map_err(error)? else {
            return Ok(Exit::Interrupted);
        };
        let played =
            play(assignment, command, (allowed.as_slice(), clock_source), &spool, &interrupt);
        spool.is_idle();
        if let Err(why) = &played {
            say(&format!("not played: {:#}", why.error));
        }
        last = played.map_or_else(|why| why.exit, |()| last);
        if command.once || interrupt.is_set() {
            return Ok(if interrupt.is_set() { Exit::Interrupted } else { last });
        }
        last = Exit::Met;
    }
}

fn networks(texts: &[String]) -> Result<Vec<Network>, CliError> {
    let network = |text: &String| {
        text.parse::<Network>()
            .map_err(|error| CliError::usage(format!("--allow-target {text}: {error}")))
    };
    texts.iter().map(network).collect()
}

fn offer(command: &args::Worker) -> Result<Offer, CliError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    let host = || {
        std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
    };
    Ok(Offer {
        id: format!("{:016x}", run_id::seed()),
        name: command.name.clone().unwrap_or_else(host),
        build: build::build()?,
        cores,
        weight: command.weight.unwrap_or(cores),
        index: command.index,
    })
}

/// Prepares an order, and plays it when all are ready.
fn play(
    assignment: Assignment,
    command: &args::Worker,
    (allowed, clock_source): (&[Network], ClockSource),
    spool: &WorkerSpool,
    interrupt: &Interrupt,
) -> Result<(), CliError> {
    let common = Common {
        consent_secret: command.consent_secret.clone(),
        tls_ca: command.tls_ca.clone(),
        threads: command.threads,
        receive: command.receive,
        ..Common::default()
    };
    run_id::adopt_seed(assignment.order.seed);
    let mut share = match read(&assignment, allowed, command) {
        Ok(share) => share,
        Err(why) => return refuse(assignment, why),
    };
    let prepared = match Prepared::new(&share.scenario, &share.whole, &common) {
        Ok(prepared) => prepared,
        Err(why) => return refuse(assignment, why),
    };
    // Media and secrets are read before the worker says that it is ready: nothing is left to do at
    // the start.
    let clock = assignment.measure_clocks(clock_source.watch()).map_err(error);
    let engine = clock.and_then(|clock| {
        let now = Instant::now();
        let engine_part = EnginePart {
            joins: &share.part.joins,
            load_ratio: share.load_ratio(),
            wall: (now, clock.us_at(now).saturating_mul(1000)),
            added_participants_max: share.added_participants_max,
            is_fed: share.feed.is_some(),
            worker: assignment.order.worker,
        };
        Ok((engine_part.prepare(&prepared)?, clock))
    });
    let (engine, clock) = match engine {
        Ok(engine) => engine,
        Err(why) => return refuse(assignment, why),
    };
    let ready = share.ready(&prepared);
    let rows_wait = spool.of(&assignment.order);
    let part = assignment.ready(ready, clock, rows_wait, &|| interrupt.is_set()).map_err(error)?;
    let Some(part) = part else {
        say("the coordinator went away before the run began");
        return Ok(());
    };
    say(&format!(
        "plays {} participants of {}",
        share.part.joins.len(),
        share.whole.target.display()
    ));
    let rows = part.rows().map_err(error)?;
    let (own_rows, feed) = (rows.clone(), share.feed.take());
    let played = engine.play(part.started_at(), rows, |handle| {
        supervise(handle, &part, &share, feed, own_rows, interrupt);
    });
    match played {
        Ok(end) => finish(part, end, spool, interrupt),
        Err(why) => {
            let (ending, ended_at) = (Ending::Aborted, RunTime(0));
            let end = RunEnd {
                ending,
                why: Some(format!("{:#}", why.error)),
                ended_at,
                limited_seconds: 0,
            };
            finish(part, end, spool, interrupt);
            return Err(why);
        }
    }
    Ok(())
}

fn refuse(assignment: Assignment, why: CliError) -> Result<(), CliError> {
    assignment.refuse(&format!("{:#}", why.error));
    Err(why)
}

/// Delivers the last rows.
fn finish(part: Part, end: RunEnd, spool: &WorkerSpool, interrupt: &Interrupt) {
    let since = Instant::now();
    let within = if spool.is_on_disk() { KEPT_ROWS_WITHIN } else { LAST_ROWS_WITHIN };
    let gives_up = || interrupt.is_set() && since.elapsed() > within;
    end.why.iter().for_each(|why| say(&format!("ended: {why}")));
    let undelivered = part.finish(end.ending, end.why, end.ended_at, &gives_up);
    worker_spool::told(&undelivered).iter().for_each(|what| say(what));
}

/// A worker's share of a plan.
struct Share {
    scenario: Scenario,
    /// The whole plan, which this worker's owner lets no further than its own networks.
    whole: Plan,
    part: Plan,
    plan_sha256: String,
    users_max: Option<u32>,
    added_participants_max: Option<u32>,
    /// Where it may get participants of other workers.
    feed: Option<Feed>,
}

/// The secrets that a scenario names by reference, `env:NAME` and `file:PATH`.
pub(super) fn references(said: &str) -> impl Iterator<Item = &str> {
    said.split('"').filter(|text| text.starts_with("env:") || text.starts_with("file:"))
}

/// What a plan from elsewhere may use of this machine: files below the folder in which the worker
/// was started, and the secrets that its owner allowed. Otherwise a plan could have any file or
/// variable sent to a target.
fn guard(scenario: &Scenario, plan: &Plan, allowed: &[String]) -> Result<(), CliError> {
    let said = scenario.to_toml();
    if let Some(reference) =
        references(&said).find(|text| !allowed.iter().any(|known| known == text))
    {
        return Err(CliError::target(format!(
            "the plan uses {reference} of this machine; its owner may allow that with --allow-secret {reference}"
        )));
    }
    let is_below = |path: &&String| {
        Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    match media::files(plan).find(|path| !is_below(path)) {
        Some(path) => Err(CliError::target(format!(
            "the plan sends {path}, which is not below the folder in which this worker was started"
        ))),
        None => Ok(()),
    }
}

/// Makes the plan of an order, and takes this worker's share of it.
fn read(
    assignment: &Assignment,
    allowed: &[Network],
    command: &args::Worker,
) -> Result<Share, CliError> {
    let order = &assignment.order;
    let origin = |path: &str| format!("the coordinator's {path}");
    let overrides: Vec<Override> = order
        .overrides
        .iter()
        .map(|(path, value, is_text)| Override {
            path: path.clone(),
            value: value.clone(),
            origin: origin(path),
            is_text: *is_text,
        })
        .collect();
    let scenario = Scenario::parse_with(&order.scenario, &overrides).map_err(CliError::usage)?;
    let is_search = order.added_participants_max.is_some();
    let scenario = if is_search { scenario.without_jitter() } else { scenario };
    let mut whole = scenario.plan();
    let plan_sha256 = build::plan_sha256(&scenario, &whole);
    // Whom this machine may load is its owner's decision, not that of a plan.
    whole.target.allow = allowed.to_vec();
    guard(&scenario, &whole, &command.allow_secret)?;
    let shares = Shares::of(&order.weights).map_err(CliError::usage)?;
    let part = whole.part(|number| shares.worker_of(number) == order.worker);
    if let Some(most) = command.max_users.filter(|most| part.expected.users > *most) {
        return Err(CliError::target(format!(
            "its share has {} participants at a time, and this worker plays at most {most}",
            part.expected.users
        )));
    }
    // The coordinator has the browsers, and watches hosts.
    (whole.canary, whole.watch) = (None, Vec::new());
    let (users_max, added_participants_max) = (command.max_users, order.added_participants_max);
    let mut share =
        Share { scenario, whole, part, plan_sha256, users_max, added_participants_max, feed: None };
    share.feed = order.reassigns.then(|| {
        let deal = feed::deal(&share.whole, &order.weights, &shares);
        Feed::new(deal, order.worker, share.users_max())
    });
    Ok(share)
}

impl Share {
    fn ready(&self, prepared: &Prepared<'_>) -> Ready {
        Ready {
            plan_sha256: self.plan_sha256.clone(),
            media_files: media::hashes(&self.whole),
            participants: u32::try_from(self.part.joins.len()).unwrap_or(u32::MAX),
            host: throng_engine::host::fingerprint(),
            warnings: prepared.with_left_out(session::warnings(&self.part, &prepared.pages)),
            mbit_per_s_max: prepared.permission.mbit_per_s_max(),
            clock: ClockSaid::default(), // known when it is said
        }
    }

    /// Participants at a time that a search may have here: what this worker's guard has judged.
    fn users_max(&self) -> usize {
        let judged = self.whole.expected.users;
        self.users_max.map_or(judged, |most| most.min(judged)) as usize
    }

    /// Its share of the load, 0 to 1.
    fn load_ratio(&self) -> f64 {
        let (own, all) = (self.part.joins.len() as f64, self.whole.joins.len() as f64);
        if all > 0.0 { own / all } else { 1.0 }
    }
}

/// Does what the coordinator wants, until the engine has finished.
fn supervise(
    handle: &RunHandle,
    part: &Part,
    share: &Share,
    mut feed: Option<Feed>,
    rows: SyncSender<Row>,
    interrupt: &Interrupt,
) {
    let users_max = share.users_max();
    let mut ids = BTreeMap::new();
    let mut is_stopping = false;
    while !handle.is_finished() {
        let Wanted { stop, changes, reassigned } = part.wanted();
        for change in changes {
            match change {
                CrowdChange::Add { .. } if ids.len() >= users_max => {
                    handle.stop_because(
                        "the coordinator asked for more participants than this worker may play",
                    );
                }
                CrowdChange::Add { participant, cohort, place, at, source_ip } => {
                    let new = NewParticipant {
                        participant: Some(participant),
                        cohort,
                        place,
                        at,
                        source_ip,
                    };
                    ids.insert(participant, handle.add_participant(new));
                }
                CrowdChange::Remove(participant) => {
                    let id: Option<ParticipantId> = ids.remove(&participant);
                    id.into_iter().for_each(|id| handle.remove_participant(id));
                }
                CrowdChange::JudgeBeyond(unloaded) => handle.judge_beyond(unloaded),
            }
        }
        let stop =
            stop.or_else(|| interrupt.is_set().then(|| "the worker was interrupted".to_owned()));
        if let Some(why) = stop.filter(|_| !is_stopping) {
            is_stopping = true;
            handle.stop_because(&why);
        }
        if let Some(feed) = feed.as_mut().filter(|_| !is_stopping) {
            reassigned.iter().for_each(|reassignment| feed.reassigned(reassignment));
            for due in feed.due(handle.now()) {
                give(due, handle, &share.whole, &mut ids, &rows);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // The part ends once all senders of rows are gone.
    drop(rows);
}

/// Gives the engine a join or a leave.
fn give(
    due: Due,
    handle: &RunHandle,
    plan: &Plan,
    ids: &mut BTreeMap<ParticipantId, ParticipantId>,
    rows: &SyncSender<Row>,
) {
    match due {
        Due::Join(dealt) => {
            let Some(join) = plan.joins.get(dealt.planned.0 as usize) else { return };
            let new = NewParticipant {
                participant: Some(dealt.visit.participant),
                cohort: join.cohort,
                place: join.place,
                at: dealt.visit.at,
                source_ip: join.source_ip,
            };
            ids.insert(dealt.visit.participant, handle.add_participant(new));
        }
        Due::Leave(participant) => {
            let id = ids.remove(&participant);
            id.into_iter().for_each(|id| handle.remove_participant(id));
        }
        Due::NotStarted(dealt, why) => {
            let at = dealt.visit.at;
            let row = ParticipantRow {
                participant: dealt.visit.participant,
                cohort: dealt.visit.cohort,
                intended_at: at,
                reached: BTreeMap::new(),
                ended_at: Some(at),
                outcome: Some(Outcome::Failed(Failure::new(FailureReason::NotStarted, why))),
                local_address: None,
            };
            let _ = rows.send(Row::Participant(Box::new(row)));
        }
    }
}
