//! Where everything meets: a scenario becomes a plan, the engine plays it, the store keeps it, the report tells it.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use throng_engine::{Guards, Join, ParticipantFactory, RunConfig, RunHandle, TlsOptions};
use throng_media::quality::WallClock;
use throng_observation::RunTime;
use throng_observation::run::{Ending, Row, RunInfo};
use throng_protocol::factory;
use throng_protocol::signalling::janus::NewRoom;
use throng_protocol::signalling::{RelayServer, RunMark};
use throng_protocol::webrtc::{StepTimeouts, Weights, crypto};
use throng_report::ObjectiveResult;
use throng_scenario::{ApiKey, Destination, Plan, Scenario, TurnServer};
use throng_store::RunFolder;
use throng_watch::SourceConfig;

use crate::args::Common;
use crate::canary::{self, Canaries};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::live::{Display, NoDisplay, PlainDisplay, Subject, TerminalDisplay};
use crate::permission::{self, Permission};
use crate::report::{self, ReportOptions};
use crate::rolling_objectives::RollingObjectives;
use crate::store_writer::StoreWriter;
use crate::tap::RunTap;
use crate::watchers::{self, Agents, Watchers};
use crate::{CliError, media, say, say_lines};

/// Rows that may wait for the store, which has memory laid out for them; a second of a thousand participants is a few.
const ROWS_WAITING_MAX: usize = 16_384;

/// How often a person sees something new.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// How often objectives are judged while the run goes on.
const JUDGE_EVERY: Duration = Duration::from_secs(2);

/// Plays `scenario` and reports; the exit code says how it ended.
pub(crate) fn run(scenario: &Scenario, common: &Common) -> Result<Exit, CliError> {
    throng_engine::share_one_arena();
    let interrupt = Interrupt::listen().map_err(|error| CliError::new(Exit::Invalid, error))?;
    let plan = scenario.plan();
    if let Some(problem) = foreign_source(&plan) {
        return Err(CliError::usage(problem));
    }
    let packs = watchers::packs(common.packs.as_deref())?;
    let agents = Agents::connect(&plan);
    let browser = canary::program(&plan)?;
    let permission = permission(&plan, common, &agents)?;
    let warnings = warnings(&plan);
    warnings.iter().for_each(|warning| say_lines(&format!("warning: {warning}")));

    let path = folder(scenario, common);
    // The folder comes first: a run that cannot be kept is not begun.
    let info = info(scenario, &plan, &permission, warnings);
    say_baseline(&plan);
    let display = display(&plan, common);
    let is_judged = !plan.objectives.is_empty()
        && (common.until_missed || display.shows_objectives() || watchers::wait_for_failure(&plan));
    let rolling = is_judged.then(|| RollingObjectives::new(info.clone()));
    let mut writer = RunFolder::create(&path, &info).map_err(|error| CliError::new(Exit::Usage, error))?;
    let tap = plan.tap.as_ref().map(|tap| RunTap::start(&path, tap)).transpose();
    let tap = tap.map_err(|error| CliError { exit: Exit::Usage, error })?;
    let canaries = Canaries::start(&plan, browser, &permission)?;
    let engine_tap = tap.as_ref().map(RunTap::engine);
    let (handle, rows, rows_in) = start(scenario, &plan, &permission, common, engine_tap)?;
    canaries.begin(handle.started_at(), &rows_in);
    let mut watchers = Watchers::start(
        &plan,
        handle.started_at(),
        rows_in,
        &SourceConfig { packs, allowed: permission.address_check(), ..SourceConfig::default() },
        agents,
        !display.shows_objectives(),
    );
    writer.starts_at(handle.started_at_unix_us()).map_err(|error| CliError::new(Exit::Invalid, error))?;
    let kept = rolling.clone();
    let hear = move |row: &Row| kept.iter().for_each(|rolling| rolling.take(row));
    let sink = StoreWriter::start(writer, rows, hear).map_err(|error| CliError::new(Exit::Invalid, error))?;

    let judged = Judged { rolling: rolling.as_ref(), ends_run: common.until_missed };
    let quit = watch(&handle, &interrupt, display, &judged, &mut watchers);
    canaries.stop();
    let end = handle.wait();
    tap.into_iter().for_each(RunTap::finish);
    watchers.stop();
    let ending = match (quit, &end.why) {
        (StopCause::ObjectiveMissed, _) => {
            say("an objective was missed: the run ended there, as asked");
            Ending::Complete
        }
        (StopCause::Over, Some(why)) => {
            say(&format!("the run ended early: {why}"));
            end.ending
        }
        (StopCause::Over, None) => end.ending,
    };
    let kept = sink.finish(ending, end.ended_at);
    if let Err(error) = &kept {
        say(&format!("the end of the run could not be stored, what follows is partial: {error}"));
    }
    let wanted =
        ReportOptions { json: common.json, csv: common.csv || scenario.output.csv, details: common.details };
    let exit = report::make(&path, &wanted).map_err(|error| CliError::new(Exit::Invalid, error))?;
    Ok(if kept.is_ok() { exit } else { Exit::Invalid })
}

/// Asks whether the plan may be played at all.
pub(crate) fn permission(plan: &Plan, common: &Common, agents: &Agents) -> Result<Permission, CliError> {
    // A file that cannot be played ends it before anybody is asked and anything is made.
    media::clips(plan)?;
    permission::permission(plan, common.consent_secret.as_deref(), &tls(plan, common)?, agents)
}

/// Starts to play the plan; what it sees comes from the receiver, and what watchers see may be sent to it too.
pub(crate) fn start(
    scenario: &Scenario,
    plan: &Plan,
    permission: &Permission,
    common: &Common,
    tap: Option<Arc<throng_engine::Tap>>,
) -> Result<(RunHandle, Receiver<Row>, SyncSender<Row>), CliError> {
    let config = RunConfig { tap, ..config(scenario, plan, permission, common)? };
    begin(config, plan, permission)
}

/// As [`start`], but nobody joins by plan: whoever is called does, as many as the plan has joins.
pub(crate) fn start_open(
    scenario: &Scenario,
    plan: &Plan,
    permission: &Permission,
    common: &Common,
) -> Result<(RunHandle, Receiver<Row>, SyncSender<Row>), CliError> {
    let config = config(scenario, plan, permission, common)?;
    let added_participants_max = u32::try_from(config.joins.len()).unwrap_or(u32::MAX);
    // Loads that fail are what is looked for: they must not end the run.
    let guards = Guards { connect_failure_ratio_max: f64::INFINITY, ..config.guards };
    begin(RunConfig { joins: Vec::new(), added_participants_max, guards, ..config }, plan, permission)
}

fn begin(
    config: RunConfig,
    plan: &Plan,
    permission: &Permission,
) -> Result<(RunHandle, Receiver<Row>, SyncSender<Row>), CliError> {
    let casting = casting(plan, permission)?;
    let (rows_in, rows) = mpsc::sync_channel(ROWS_WAITING_MAX);
    let handle = throng_engine::run(config, casting, rows_in.clone())
        .map_err(|error| CliError::new(Exit::Invalid, error))?;
    Ok((handle, rows, rows_in))
}

/// How TLS servers are judged.
fn tls(plan: &Plan, common: &Common) -> Result<TlsOptions, CliError> {
    let read = |file: &PathBuf| {
        std::fs::read(file).map_err(|error| CliError::usage(format!("--tls-ca {}: {error}", file.display())))
    };
    let extra_ca_pem = common.tls_ca.as_ref().map(read).transpose()?;
    Ok(TlsOptions { insecure: plan.target.tls_insecure, extra_ca_pem })
}

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopCause {
    /// The run was over, or a person ended it.
    Over,
    /// An objective was missed and that was to be the end.
    ObjectiveMissed,
}

/// The objectives while the run goes on.
struct Judged<'a> {
    rolling: Option<&'a RollingObjectives>,
    /// Whether a missed objective ends the run.
    ends_run: bool,
}

/// Shows the run until it is over; a person, a signal or a missed objective may end it early. Profiles are taken at their
/// moments.
fn watch(
    handle: &RunHandle,
    interrupt: &Interrupt,
    mut display: Box<dyn Display>,
    judged: &Judged<'_>,
    watchers: &mut Watchers,
) -> StopCause {
    let (mut quit, mut is_stopping, mut has_failed) = (StopCause::Over, false, false);
    let mut judge_at = Instant::now() + JUDGE_EVERY;
    let mut objectives = judged.rolling.map(RollingObjectives::judge).unwrap_or_default();
    while !handle.is_finished() {
        let person_quits = display.show(&handle.live(), &objectives, &watchers.figures(), None);
        if !is_stopping && (person_quits || interrupt.is_set()) {
            handle.stop();
            is_stopping = true;
        }
        if let Some(rolling) = judged.rolling
            && !is_stopping
            && Instant::now() >= judge_at
        {
            judge_at = Instant::now() + JUDGE_EVERY;
            objectives = rolling.judge();
            has_failed |= objectives.iter().any(ObjectiveResult::is_missed);
            if judged.ends_run && has_failed {
                handle.stop();
                (quit, is_stopping) = (StopCause::ObjectiveMissed, true);
            }
        }
        if !is_stopping {
            watchers.look(has_failed);
        }
        std::thread::sleep(SHOW_EVERY);
    }
    display.show(&handle.live(), &objectives, &watchers.figures(), None);
    quit
}

/// Says that a watched run begins with a look at the idle server.
pub(crate) fn say_baseline(plan: &Plan) {
    if let [first, more @ ..] = plan.watch.as_slice() {
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let seconds = watchers::BASELINE.as_secs();
        say(&format!(
            "watching {}{more}: the idle server for {seconds} s, then the crowd comes",
            first.label()
        ));
    }
}

pub(crate) fn display(plan: &Plan, common: &Common) -> Box<dyn Display> {
    if common.quiet || (common.json && !std::io::stderr().is_terminal()) {
        return Box::new(NoDisplay);
    }
    let is_send_only = plan.destinations.iter().all(Destination::is_send_only);
    if !common.plain && std::io::stdout().is_terminal() {
        match TerminalDisplay::take(Subject { title: plan.target.display(), is_send_only }) {
            Ok(terminal) => return Box::new(terminal),
            Err(error) => say(&format!("no full-screen view on this terminal: {error}")),
        }
    }
    Box::new(PlainDisplay::new(std::io::stderr(), plan.summary_every, is_send_only))
}

/// What of the plan this machine will not allow, said before the run begins.
pub(crate) fn warnings(plan: &Plan) -> Vec<String> {
    let needs = throng_engine::preflight::Needs {
        participants: plan.expected.users.into(),
        // A datagram socket and a signalling connection, as long as the slowest protocol keeps both.
        descriptors_each: 2,
        ports_each: 1,
        source_ips: (source_ips(plan).len() as u64).max(1),
        receive_buffer_bytes: 1 << 20,
    };
    let limits = throng_engine::preflight::preflight(&needs);
    limits.iter().map(ToString::to_string).chain(foreign_source(plan)).chain(one_stream(plan)).collect()
}

/// Publishers of a cohort who would all publish the one stream that its URL names, of whom servers take the first.
fn one_stream(plan: &Plan) -> Vec<String> {
    let users = |cohort: usize| plan.joins.iter().filter(move |join| usize::from(join.cohort.0) == cohort);
    plan.destinations
        .iter()
        .enumerate()
        .filter(|(_, destination)| destination.is_send_only() && destination.target.api_key.is_none())
        .filter_map(|(cohort, destination)| {
            let mut joins = users(cohort).map(|join| join.place);
            let (one, other) = (joins.next()?, joins.max()?);
            let is_one = one != other && destination.endpoint(one, random(one)) == destination.endpoint(other, random(other));
            let name = plan.cohorts.get(cohort)?;
            is_one.then(|| {
                format!(
                    "all {name} go to {}, and servers take one publisher a stream (SRS, MediaMTX, OvenMediaEngine); \
                     write {{n}} into the URL's path or query, such as …/live-{{n}}/whip or …&stream={{n}}",
                    destination.target.display()
                )
            })
        })
        .collect()
}

/// A source address that is not this host's: nobody who is dealt it could join.
fn foreign_source(plan: &Plan) -> Option<String> {
    let (address, why) = throng_engine::preflight::foreign_address(source_ips(plan))?;
    let ours: Vec<_> = throng_engine::preflight::own_addresses().iter().map(ToString::to_string).collect();
    Some(format!(
        "source address {address} (--source-ip, source_ips) is not one of this host's: {why}\n  \
         help: use one of {}, or give it to an interface (`ip addr add {address} dev …`)",
        ours.join(", ")
    ))
}

/// The local addresses that the plan deals to its participants.
pub(crate) fn source_ips(plan: &Plan) -> BTreeSet<IpAddr> {
    plan.joins.iter().filter_map(|join| join.source_ip).collect()
}

fn config(
    scenario: &Scenario,
    plan: &Plan,
    permission: &Permission,
    common: &Common,
) -> Result<RunConfig, CliError> {
    let join = |join: &throng_scenario::Join| Join {
        participant: join.participant,
        cohort: join.cohort,
        place: join.place,
        at: RunTime::after_start(join.at),
        leave_at: join.leave_at.map(RunTime::after_start),
        others_follow: join.others_follow,
        source_ip: join.source_ip,
    };
    let joins = plan.joins.iter().map(join).collect();
    let usual = RunConfig::new(joins, RunTime::after_start(plan.duration), permission.reach());
    let lead = if plan.watch.is_empty() { usual.lead } else { watchers::BASELINE };
    Ok(RunConfig {
        threads: common.threads,
        tls: tls(plan, common)?,
        bad_if: throng_scenario::bad_if(&scenario.objectives),
        consents: permission.consents(),
        guards: Guards { mbit_per_s_max: permission.mbit_per_s_max(), ..Guards::default() },
        cohorts: u16::try_from(plan.cohorts.len()).unwrap_or(u16::MAX),
        lead,
        ..usual
    })
}

fn casting(plan: &Plan, permission: &Permission) -> Result<Arc<dyn ParticipantFactory>, CliError> {
    // Made now: the self-tests of cryptography take a tenth of a second, which would else be part of the first joins.
    crypto::shared().map_err(|error| CliError::new(Exit::Invalid, error))?;
    let unix_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let casting = factory::TargetFactory {
        endpoint: plan.target.endpoint.clone(),
        token: plan
            .target
            .token
            .as_ref()
            .map(permission::token)
            .transpose()?
            .map(|token| token.expose().to_owned()),
        api_key: plan.target.api_key.as_ref().map(api_secret).transpose()?,
        may_reach: permission.reach(),
        clock: WallClock { at: Instant::now(), unix_ns: u64::try_from(unix_ns).unwrap_or(u64::MAX) },
        server: permission.server(),
        seed: 0,
        timeouts: StepTimeouts::default(),
        tapped: plan.tap.as_ref().map(|tap| tap.selection.clone()).unwrap_or_default(),
        conference: conference(plan, unix_ns)?,
        mark: mark(),
        ice_transport_policy: plan.target.ice_transport_policy,
        stun: plan.target.stun.clone(),
        turn: plan.target.turn.as_ref().map(|turn| relay(turn, plan)).transpose()?,
    };
    let (roles, destinations) = (plan.roles.clone(), plan.destinations.clone());
    Ok(Arc::new(move |join: &Join| {
        let cohort = usize::from(join.cohort.0);
        let role = roles.get(cohort).cloned().unwrap_or_default();
        let joins_at = Duration::from_micros(u64::try_from(join.at.0).unwrap_or(0));
        let number = join.participant.0;
        match destinations.get(cohort) {
            Some(destination) => {
                let endpoint = destination.endpoint(join.place, random(number));
                casting.participant_at(&endpoint, number, joins_at, &role)
            }
            None => casting.participant(number, joins_at, &role),
        }
    }))
}

/// What tells the names of this process's participants from those of others: drawn once.
pub(crate) fn mark() -> RunMark {
    static MARK: OnceLock<RunMark> = OnceLock::new();
    MARK.get_or_init(|| RunMark::new(&format!("{:05x}", drawn() & 0xf_ffff))).clone()
}

/// A number that differs by process.
fn drawn() -> u64 {
    static DRAWN: OnceLock<u64> = OnceLock::new();
    // The standard library seeds each of these by chance.
    *DRAWN.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// `{random}` of a participant: no two of a run have the same, because each step below can be taken back (SplitMix64).
fn random(participant: u32) -> u64 {
    let mut bits = drawn().wrapping_add(u64::from(participant).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn relay(turn: &TurnServer, plan: &Plan) -> Result<RelayServer, CliError> {
    Ok(RelayServer::of_scenario(turn, permission::token(&turn.password)?, plan.target.url()))
}

pub(crate) fn api_secret(api: &ApiKey) -> Result<factory::ApiSecret, CliError> {
    let secret = permission::token(&api.secret)?;
    Ok(factory::ApiSecret { key: api.key.clone(), secret, room: api.room.clone() })
}

/// What the participants of a conference share: the files that they play, who speaks how often, the room that is made.
fn conference(plan: &Plan, unix_ns: u128) -> Result<factory::ConferenceConfig, CliError> {
    let clips = media::clips(plan)?;
    let new_room = plan.room.as_ref().map(|room| new_room(plan, room, &clips, unix_ns)).transpose()?;
    let is_even = plan.roles.iter().all(|role| role.speaking_weight == 1);
    let weights = (!is_even).then(|| -> Weights {
        let talks = |join: &throng_scenario::Join| {
            plan.roles.get(usize::from(join.cohort.0)).map(|role| role.speaking_weight)
        };
        let weights: HashMap<String, u32> =
            plan.joins.iter().filter_map(|join| Some((join.participant.name(), talks(join)?))).collect();
        Arc::new(move |name| weights.get(name).copied().unwrap_or(1))
    });
    Ok(factory::ConferenceConfig {
        conversation: plan.conversation,
        weights,
        clips: Arc::new(clips),
        new_room,
    })
}

fn new_room(
    plan: &Plan,
    room: &throng_scenario::RoomConfig,
    clips: &media::Clips,
    unix_ns: u128,
) -> Result<NewRoom, CliError> {
    let sent = plan.roles.iter().filter_map(|role| {
        let publish = role.publish.as_ref().filter(|publish| publish.has_video())?;
        let of_file = publish.video_file.as_ref().and_then(|file| clips.get(file));
        Some(of_file.map_or(publish.codec, |clip| clip.codec()).name().to_ascii_lowercase())
    });
    let codecs = if room.video_codecs.is_empty() {
        sent.collect::<BTreeSet<_>>().into_iter().collect()
    } else {
        room.video_codecs.clone()
    };
    let admin_key = room.admin_key.as_ref().map(permission::token).transpose()?;
    Ok(NewRoom {
        // It need not be a secret: it keeps the run from destroying rooms that it did not make.
        secret: format!("throng-{unix_ns:x}"),
        admin_key: admin_key.map(|key| key.expose().to_owned()),
        // Who rejoins finds a place before the server has noticed that they left.
        publishers: room
            .publishers
            .unwrap_or_else(|| plan.expected.users.div_ceil(plan.target.rooms.max(1)).saturating_mul(2)),
        bitrate_bps: room.bits_per_s.unwrap_or(0.0) as u32,
        video_codecs: if codecs.is_empty() { "vp8".into() } else { codecs.join(",") },
    })
}

pub(crate) fn info(
    scenario: &Scenario,
    plan: &Plan,
    permission: &Permission,
    warnings: Vec<String>,
) -> RunInfo {
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
pub(crate) fn folder(scenario: &Scenario, common: &Common) -> PathBuf {
    let asked = common.output.clone().or_else(|| scenario.output.folder.clone().map(PathBuf::from));
    asked.unwrap_or_else(folder_named_by_time)
}

/// A new folder among the runs.
pub(crate) fn folder_named_by_time() -> PathBuf {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    PathBuf::from(format!("runs/{seconds}-{}", std::process::id()))
}
