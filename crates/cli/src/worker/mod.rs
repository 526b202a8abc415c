//! `throng worker`: waits for a share of a run, asks its own consent guard, and plays it.

mod share;
mod spool;
mod supervise;

use std::time::{Duration, Instant};

use throng_engine::RunEnd;
use throng_fleet::message::Offer;
use throng_fleet::{Assignment, BusConfig, Part, Worker};
use throng_observation::RunTime;
use throng_observation::run::Ending;
use throng_scenario::Network;

use self::spool::{WorkerSpool, told};
use self::supervise::supervise;
use crate::args::{self, Common};
use crate::console::{CliError, Exit, Interrupt, say};
use crate::fleet::clock_source::ClockSource;
use crate::fleet::{build, bus, bus_wait, error, may_be_plain, reached};
use crate::run_id;
use crate::session::{EnginePart, Prepared};

/// After an interrupt, how long the rows may take to be on the bus.
const LAST_ROWS_WITHIN: Duration = Duration::from_secs(10);

/// The same where rows that are not are kept on disk.
const KEPT_ROWS_WITHIN: Duration = Duration::from_secs(3);

/// In place of the bus's address: it is in the first line of the input.
const STANDARD_INPUT: &str = "-";

/// Plays one share after another.
pub(crate) fn worker(command: &args::Worker) -> Result<Exit, CliError> {
    throng_engine::share_one_arena();
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let mut config = bus(&command.bus)?
        .ok_or_else(|| CliError::usage("a worker needs its bus: --fleet nats://HOST"))?;
    if command.bus.fleet.as_deref() == Some(STANDARD_INPUT) {
        config.url = BusConfig::at(&first_line()?).map_err(error)?.url;
        end_with_input(interrupt.clone())?;
    }
    let allowed = args::networks(&command.allow_target)?;
    let clock_source = ClockSource::of(command.clock_error.as_deref())?;
    let offer = offer(command)?;
    let name = offer.name.clone();
    let spool = WorkerSpool::open(command)?;
    let connect = || Worker::connect(&config, offer.clone(), &may_be_plain(&allowed));
    let worker = reached(bus_wait(command.fleet_wait.as_deref())?, &interrupt, connect)?;
    spool.late_delivery(&worker, &interrupt)?;
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

fn offer(command: &args::Worker) -> Result<Offer, CliError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    Ok(Offer {
        id: format!("{:016x}", run_id::seed()),
        name: command.name.clone().unwrap_or_else(throng_watch::host_name),
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
    let mut share = match share::read(&assignment, allowed, command) {
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
    told(&undelivered).iter().for_each(|what| say(what));
}
