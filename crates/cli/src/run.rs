//! Where everything meets: a scenario becomes a plan, the engine plays it, the store keeps it, the report tells it.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant, SystemTime};

use throng_engine::{Casting, Guards, Join, RunConfig, RunHandle, TlsOptions};
use throng_media::quality::WallClock;
use throng_observation::RunTime;
use throng_observation::run::{Ending, Row, RunInfo};
use throng_protocol::casting::ViewerCasting;
use throng_protocol::webrtc::viewer::Patience;
use throng_scenario::{Plan, Scenario};
use throng_store::RunFolder;

use crate::args::Common;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::live::{Display, Plain, Quiet, Terminal};
use crate::reach::{self, Permission};
use crate::report::{self, Wanted};
use crate::sink::Sink;
use crate::{Stop, say};

/// Rows that may wait for the store; a second of a thousand participants is a few.
const ROWS_WAITING_MAX: usize = 65_536;

/// How often a person sees something new.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// How often `--until-missed` judges, and how much of the run it looks at.
const JUDGE_EVERY: Duration = Duration::from_secs(2);
const JUDGED_SECONDS: i64 = 10;

/// Plays `scenario` and reports; the exit code says how it ended.
pub(crate) fn run(scenario: &Scenario, common: &Common) -> Result<Exit, Stop> {
    let interrupt = Interrupt::listen().map_err(|error| Stop::new(Exit::Invalid, error))?;
    let plan = scenario.plan();
    let permission = permission(&plan, common)?;
    let warnings = warnings(&plan);
    warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));

    let path = folder(scenario, common);
    // The folder comes first: a run that cannot be kept is not begun.
    let info = info(scenario, &plan, &permission, warnings);
    let mut writer = RunFolder::create(&path, &info).map_err(|error| Stop::new(Exit::Usage, error))?;
    let (handle, rows) = start(&plan, &permission, common)?;
    writer.starts_at(handle.started_at_unix_us()).map_err(|error| Stop::new(Exit::Invalid, error))?;
    let sink = Sink::start(writer, rows).map_err(|error| Stop::new(Exit::Invalid, error))?;

    let quit =
        watch(&handle, &interrupt, display(&plan, common), common.until_missed.then_some(path.as_path()));
    let end = handle.wait();
    let ending = match (quit, &end.why) {
        (Quit::Broken, _) => {
            say("an objective was missed: the run ended there, as asked");
            Ending::Complete
        }
        (Quit::Over, Some(why)) => {
            say(&format!("the run ended early: {why}"));
            end.ending
        }
        (Quit::Over, None) => end.ending,
    };
    let kept = sink.finish(ending, end.ended_at);
    if let Err(error) = &kept {
        say(&format!("the end of the run could not be stored, what follows is partial: {error}"));
    }
    let wanted =
        Wanted { json: common.json, csv: common.csv || scenario.output.csv, details: common.details };
    let exit = report::make(&path, &wanted).map_err(|error| Stop::new(Exit::Invalid, error))?;
    Ok(if kept.is_ok() { exit } else { Exit::Invalid })
}

/// Asks whether the plan may be played at all.
pub(crate) fn permission(plan: &Plan, common: &Common) -> Result<Permission, Stop> {
    reach::permission(plan, common.consent_token.as_deref(), &tls(plan, common)?)
}

/// Starts to play the plan; what it sees comes from the receiver.
pub(crate) fn start(
    plan: &Plan,
    permission: &Permission,
    common: &Common,
) -> Result<(RunHandle, Receiver<Row>), Stop> {
    let config = config(plan, permission, tls(plan, common)?, common.workers);
    let casting = casting(plan, permission)?;
    let (rows_in, rows) = mpsc::sync_channel(ROWS_WAITING_MAX);
    let handle =
        throng_engine::run(config, casting, rows_in).map_err(|error| Stop::new(Exit::Invalid, error))?;
    Ok((handle, rows))
}

/// How TLS servers are judged.
fn tls(plan: &Plan, common: &Common) -> Result<TlsOptions, Stop> {
    let read = |file: &PathBuf| {
        std::fs::read(file).map_err(|error| Stop::usage(format!("--tls-ca {}: {error}", file.display())))
    };
    let extra_ca_pem = common.tls_ca.as_ref().map(read).transpose()?;
    Ok(TlsOptions { insecure: plan.target.tls_insecure, extra_ca_pem })
}

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quit {
    /// The run was over, or a person ended it.
    Over,
    /// An objective was missed and that was to be the end.
    Broken,
}

/// Shows the run until it is over; a person, a signal or a missed objective may end it early.
fn watch(
    handle: &RunHandle,
    interrupt: &Interrupt,
    mut display: Box<dyn Display>,
    judged: Option<&Path>,
) -> Quit {
    let (mut quit, mut is_stopping) = (Quit::Over, false);
    let mut judge_at = Instant::now() + JUDGE_EVERY;
    while !handle.is_finished() {
        let person_quits = display.show(&handle.live());
        if !is_stopping && (person_quits || interrupt.is_set()) {
            handle.stop();
            is_stopping = true;
        }
        if let Some(path) = judged
            && !is_stopping
            && Instant::now() >= judge_at
        {
            judge_at = Instant::now() + JUDGE_EVERY;
            if is_missed(path) {
                handle.stop();
                (quit, is_stopping) = (Quit::Broken, true);
            }
        }
        std::thread::sleep(SHOW_EVERY);
    }
    display.show(&handle.live());
    quit
}

/// Whether the last seconds of the run miss an objective.
fn is_missed(path: &Path) -> bool {
    let Ok(mut run) = RunFolder::read(path) else { return false };
    let last = run.crowd.iter().map(|row| row.second).max().unwrap_or(0);
    run.series.retain(|row| row.second > last - JUDGED_SECONDS);
    report::summary(&run).objectives.iter().any(throng_report::ObjectiveResult::is_missed)
}

fn display(plan: &Plan, common: &Common) -> Box<dyn Display> {
    if common.quiet || (common.json && !std::io::stderr().is_terminal()) {
        return Box::new(Quiet);
    }
    if !common.plain && std::io::stdout().is_terminal() {
        match Terminal::take(plan.target.display()) {
            Ok(terminal) => return Box::new(terminal),
            Err(error) => say(&format!("no full-screen view on this terminal: {error}")),
        }
    }
    Box::new(Plain::new(std::io::stderr(), plan.summary_every))
}

/// What of the plan this machine will not allow, said before the run begins.
pub(crate) fn warnings(plan: &Plan) -> Vec<String> {
    let needs = throng_engine::preflight::Needs {
        participants: plan.expected.users.into(),
        // A datagram socket and a signalling connection, as long as the slowest protocol keeps both.
        descriptors_each: 2,
        ports_each: 1,
        source_ips: source_ips(plan).max(1),
        receive_buffer_bytes: 1 << 20,
    };
    throng_engine::preflight::preflight(&needs).iter().map(ToString::to_string).collect()
}

/// How many local addresses the plan deals to its participants.
fn source_ips(plan: &Plan) -> u64 {
    let addresses: BTreeSet<_> = plan.joins.iter().filter_map(|join| join.source_ip).collect();
    addresses.len() as u64
}

fn config(plan: &Plan, permission: &Permission, tls: TlsOptions, workers: Option<usize>) -> RunConfig {
    let join = |join: &throng_scenario::Join| Join {
        participant: join.participant,
        cohort: join.cohort,
        at: RunTime::after_start(join.at),
        leave_at: join.leave_at.map(RunTime::after_start),
        source_ip: join.source_ip,
    };
    let joins = plan.joins.iter().map(join).collect();
    RunConfig {
        workers,
        tls,
        consent: permission.consent_check(),
        guards: Guards { mbit_per_s_max: permission.mbit_per_s_max(), ..Guards::default() },
        cohorts: u16::try_from(plan.cohorts.len()).unwrap_or(u16::MAX),
        ..RunConfig::new(joins, RunTime::after_start(plan.duration), permission.reach())
    }
}

fn casting(plan: &Plan, permission: &Permission) -> Result<Arc<dyn Casting>, Stop> {
    let unix_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let casting = ViewerCasting {
        endpoint: plan.target.endpoint.clone(),
        token: plan
            .target
            .token
            .as_ref()
            .map(reach::token)
            .transpose()?
            .map(|token| token.expose().to_owned()),
        may_reach: permission.reach(),
        clock: WallClock { at: Instant::now(), unix_ns: u64::try_from(unix_ns).unwrap_or(u64::MAX) },
        server: permission.server(),
        seed: 0,
        patience: Patience::default(),
    };
    Ok(Arc::new(move |join: &Join| casting.viewer(join.participant.0)))
}

fn info(scenario: &Scenario, plan: &Plan, permission: &Permission, warnings: Vec<String>) -> RunInfo {
    RunInfo {
        format: throng_store::FORMAT,
        throng_version: env!("CARGO_PKG_VERSION").into(),
        scenario: scenario.to_toml(),
        target: plan.target.display(),
        cohorts: plan.cohorts.clone(),
        started_at_unix_us: 0, // known when the engine has started
        planned_duration_us: i64::try_from(plan.duration.as_micros()).unwrap_or(i64::MAX),
        generator_host: throng_engine::host::fingerprint(),
        clock: permission.clock_error(),
        warnings,
    }
}

/// The run folder: as asked, or a new one named by the time.
fn folder(scenario: &Scenario, common: &Common) -> PathBuf {
    common.output.clone().or_else(|| scenario.output.folder.clone().map(PathBuf::from)).unwrap_or_else(|| {
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        PathBuf::from(format!("runs/{seconds}-{}", std::process::id()))
    })
}
