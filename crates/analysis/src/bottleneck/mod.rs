//! The bottleneck: which finding stopped the server, which findings are its symptoms, and which
//! limits are ruled out.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::Goal;
use throng_observation::host::HostId;
use throng_observation::host::measured::{Host, hosts};
use throng_observation::run::RunData;

use crate::WithoutLoad;
use crate::context::Context;
use crate::demand::{self, ChatCost, Demand, JoinCost, Resource, joins};
use crate::findings::gate::{Gate, gate};
use crate::findings::score::{AHEAD_MIN, BOTTLENECK_MIN, CAP_COMPANY, SUSPECT_MIN, score};
use crate::findings::{
    CLIENT_SIDE, CONNECTED, Candidate, Evidence, Finding, FindingRole, GENERATOR, MEMORY, NEVER,
    NoFinding, RULES, SERVER_CRASHED, SOURCE_STOPPED,
};
use crate::knowledge::Knowledge;
use crate::reasons::{self, Reason};
use crate::windows::{LoadWindow, Windows, quality_by_second, second_range};

mod other_processes;
mod symptoms;

pub use other_processes::OtherProcessesCpu;

/// Least lines of evidence of a finding, and most lines of what is ruled out.
const EVIDENCE_MIN: usize = 3;
const RULED_OUT_MAX: usize = 8;

/// The verdict on the cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BottleneckVerdict {
    /// One finding stands out: at least 70 points, and 15 ahead of the next.
    Bottleneck,
    /// Two or more are full together or in turns: within 15 points of each other.
    CoBottleneck,
    /// The best finding has 50 to 69 points: a hint, not a result.
    Suspect,
    /// No resource that was measured is full.
    Unattributed,
    /// The server was not watched.
    NotMonitored,
    /// The generator was the limit: the run says nothing about the server.
    GeneratorLimited,
    /// No load failed, so there is nothing to explain.
    #[default]
    NothingFailed,
}

/// What stopped the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// The certainty of the answer.
    pub verdict: BottleneckVerdict,
    /// The key of the finding (docs/findings.md); `null` if there is none.
    pub finding: Option<String>,
    /// The answer as a sentence.
    pub title: String,
    /// The score of the finding, 0 to 100.
    pub score: Option<f64>,
    /// The resource and its owner.
    pub resource: Option<String>,
    /// The name of the thread that is the limit; `null` if it is none.
    #[serde(default)]
    pub thread: Option<String>,
    /// The setting that gives this thread room; `null` where none is known.
    #[serde(default)]
    pub setting: Option<String>,
    /// The counters that show it.
    pub evidence: Vec<Evidence>,
    /// Numbers of the series in `run.db` behind the first line of evidence.
    pub series: Vec<u32>,
    /// Limits that were checked and are not the cause.
    pub ruled_out: Vec<String>,
    /// The recommended change.
    pub change: Option<String>,
    /// The predicted effect of the change; `null` where the demand model gives none.
    pub prediction: Option<demand::Prediction>,
    /// Other findings with 50 points or more, and their relation to this one.
    pub other_findings: Vec<Finding>,
    /// What was not monitored.
    pub not_monitored: Vec<String>,
    /// Begin and end of the baseline, seconds of the run.
    pub baseline_s: Option<[f64; 2]>,
    /// Begin and end of the largest load that passed.
    pub pass_s: Option<[f64; 2]>,
    /// Begin and end of the load that failed.
    pub fail_s: Option<[f64; 2]>,
    /// The first bad second of the failing load.
    pub first_bad_s: Option<i64>,
    /// Which clauses made the seconds of the failing load bad, the most frequent first: known
    /// without any cause.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// The cause of a failing load and the costs of users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// What stopped the server.
    pub bottleneck: Bottleneck,
    /// What a user costs of each resource, the resource that saturates first first.
    pub demand: Vec<Demand>,
    /// What a join costs.
    pub joins: Option<JoinCost>,
    /// What a chat costs the thread of its server; `None` where there is none, or it could not be
    /// told.
    pub chat: Option<ChatCost>,
    /// CPU use of other processes that the server needed; `None` if it did not affect the server.
    pub other_processes_cpu: Option<OtherProcessesCpu>,
    /// What is so without load, of a plain run.
    pub without_load: Option<WithoutLoad>,
}

/// Explains a run: from the holds of its search, or from its seconds if it is a plain run.
#[must_use]
pub fn explain(run: &RunData, goal: Goal) -> Explanation {
    let mut windows = Windows::of(run, goal);
    let without_load = WithoutLoad::of(run, goal);
    if without_load.is_some_and(|seen| seen.is_of_all) {
        // What is so with few users is no load that failed.
        (windows.fail, windows.onset, windows.first_bad_s) = (None, None, None);
    }
    let hosts = hosts(run);
    let all: Vec<MonitoredHost<'_>> =
        hosts.iter().map(|host| MonitoredHost::of(host, &windows)).collect();
    let found = bottleneck(run, &windows, &all);
    Explanation {
        bottleneck: Bottleneck { reasons: suffered(run, &windows, goal), ..found },
        other_processes_cpu: all
            .iter()
            .find_map(|watched| other_processes::cpu(&context(run, &windows, watched, &all)?)),
        joins: hosts.iter().find_map(|host| joins(run, host)),
        // Several servers may work for a chat, one handing on what another makes: the one that it
        // costs most limits it.
        chat: all
            .iter()
            .filter_map(|watched| ChatCost::of(run, watched.host, &watched.knowledge))
            .max_by(|a, b| a.cpu_s().total_cmp(&b.cpu_s())),
        demand: demand_of_all(&all),
        without_load,
    }
}

/// What the users of the failing load suffered from.
fn suffered(run: &RunData, windows: &Windows, goal: Goal) -> Vec<Reason> {
    let Some(fail) = windows.fail else { return Vec::new() };
    let seconds = quality_by_second(run);
    reasons::of(seconds.range(second_range(fail.window)).map(|(_, quality)| quality), goal)
}

/// The demand of a user on all watched hosts, the resource that saturates first first; what is of a
/// machine once, however many watch it.
fn demand_of_all(all: &[MonitoredHost<'_>]) -> Vec<Demand> {
    let mut demands: Vec<Demand> = Vec::new();
    let mut of_machines: Vec<(HostId, Resource, &str)> = Vec::new();
    for watched in all {
        let machine = machine(watched.host, all).first().map_or(watched.host.id, |host| host.id);
        for demand in &watched.demand {
            let of_machine = (machine, demand.resource, demand.instance.as_str());
            if demand.resource.is_of_machine() {
                if of_machines.contains(&of_machine) {
                    continue;
                }
                of_machines.push(of_machine);
            }
            let mut demand = demand.clone();
            if watched.host.id.0 > 0 || all.len() > 1 {
                demand.instance = format!("{} on {}", demand.instance, watched.host.name())
                    .trim_start()
                    .to_owned();
            }
            demands.push(demand);
        }
    }
    demands.sort_by(|a, b| {
        a.users.unwrap_or(f64::INFINITY).total_cmp(&b.users.unwrap_or(f64::INFINITY))
    });
    demands
}

/// The watches of the machine of `host`.
fn machine<'a>(host: &Host<'_>, all: &[MonitoredHost<'a>]) -> Vec<&'a Host<'a>> {
    all.iter().map(|other| other.host).filter(|other| other.is_same_machine(host)).collect()
}

/// The context of the checks on a watched host; `None` if no load failed.
fn context<'a>(
    run: &'a RunData,
    windows: &'a Windows,
    watched: &'a MonitoredHost<'a>,
    all: &'a [MonitoredHost<'a>],
) -> Option<Context<'a>> {
    let machine = machine(watched.host, all);
    Context::of(run, watched.host, machine, &watched.knowledge, windows, &watched.demand)
}

/// A watched host, the knowledge about its server, and the demand of a user on it.
struct MonitoredHost<'a> {
    host: &'a Host<'a>,
    knowledge: Knowledge,
    demand: Vec<Demand>,
}

impl<'a> MonitoredHost<'a> {
    fn of(host: &'a Host<'a>, windows: &Windows) -> Self {
        let knowledge = Knowledge::of(host.info);
        let demand = demand::of(host, &knowledge, windows);
        Self { host, knowledge, demand }
    }
}

/// A limit that was checked and is not the cause.
struct RuledOut {
    key: &'static str,
    machine: HostId,
    /// Its state, as a sentence.
    state: String,
    /// It looks like a limit but was as high before; listed first, because readers ask about it.
    is_constant: bool,
}

/// Findings of what all watches of a machine share: one watch tells them.
const OF_MACHINE: &[&str] = &["cpu_full", "cpu_steal", "softirq", "page_cache", "tcp_memory"];

/// The order in which limits are listed as ruled out: the ones that readers ask about first.
const RULED_OUT_ORDER: &[&str] = &[
    "cpu_full",
    "line_rate",
    "path_loss",
    "generator_limited",
    "disk_read",
    "memory",
    "one_thread_full",
    "udp_receive_buffer",
    "file_descriptors",
    "cpu_quota",
];

/// A candidate with its score, and the demand on its host for the prediction.
struct ScoredCandidate<'a> {
    candidate: Candidate,
    machine: HostId,
    /// The numbers of the processes whose series show it: two instances of one server have two
    /// limits.
    processes: BTreeSet<String>,
    score: f64,
    role: FindingRole,
    demand: &'a [Demand],
    /// The crowd of the passing load.
    served: f64,
    /// The larger crowd of the passing and the failing load.
    tried: f64,
}

impl ScoredCandidate<'_> {
    /// Whether both tell the same: of one resource of one machine and of the same processes, or of
    /// the crowd alone, which all hosts serve.
    fn tells_the_same(&self, other: &Self) -> bool {
        let (own, others) = (&self.candidate, &other.candidate);
        let is_of_crowd =
            own.series.is_empty() && others.series.is_empty() && own.title == others.title;
        own.key == others.key
            && own.resource == others.resource
            && (self.machine == other.machine && self.processes == other.processes || is_of_crowd)
    }
}

/// An answer that says only which windows were compared.
fn empty(windows: &Windows) -> Bottleneck {
    let span = |load: Option<LoadWindow>| {
        load.map(|load| [load.window.from_us as f64 / 1e6, load.window.until_us as f64 / 1e6])
    };
    Bottleneck {
        baseline_s: span(windows.base),
        pass_s: span(windows.pass),
        fail_s: span(windows.fail),
        first_bad_s: windows.first_bad_s,
        ..Bottleneck::default()
    }
}

fn bottleneck<'a>(
    run: &'a RunData,
    windows: &'a Windows,
    all: &'a [MonitoredHost<'a>],
) -> Bottleneck {
    let empty = empty(windows);
    if windows.fail.is_none() {
        let title = "No load failed, so there is no limit to explain".into();
        let nothing = || Bottleneck { title, ..empty };
        return windows
            .of_loss()
            .and_then(|windows| lost(run, &windows, all))
            .unwrap_or_else(nothing);
    }
    if all.iter().all(|watched| watched.host.metrics().is_empty()) {
        return not_monitored(run, windows, empty);
    }
    let mut results = CheckResults::default();
    for context in all.iter().filter_map(|watched| context(run, windows, watched, all)) {
        results.check(&context, |_| true);
    }
    results.rank_causes();
    conclude(results, true, empty)
}

/// The findings from events: a second or two suffice for them.
const OF_EVENTS: [&str; 3] = [SERVER_CRASHED, MEMORY, SOURCE_STOPPED];

/// What ended the server, or its source, of a run that ended with its users; `None` if no event
/// tells.
fn lost<'a>(
    run: &'a RunData,
    windows: &'a Windows,
    all: &'a [MonitoredHost<'a>],
) -> Option<Bottleneck> {
    let mut results = CheckResults::default();
    for context in all.iter().filter_map(|watched| context(run, windows, watched, all)) {
        results.check(&context, |key| OF_EVENTS.contains(&key));
    }
    results.scored.retain(|scored| {
        // That a server lived on while all were disconnected is a hint, and no proof.
        let is_source = scored.candidate.key == SOURCE_STOPPED && scored.score >= SUSPECT_MIN;
        is_source || scored.candidate.ends_service && scored.score >= BOTTLENECK_MIN
    });
    if results.scored.is_empty() {
        return None;
    }
    results.rank_causes();
    Some(conclude(results, true, empty(windows)))
}

/// The bottleneck of a server that was not watched, from what its users and the generator recorded.
fn not_monitored(run: &RunData, windows: &Windows, empty: Bottleneck) -> Bottleneck {
    let mut data = RunData::default();
    data.host.hosts.push(throng_observation::host::HostInfo::default());
    let hosts = hosts(&data);
    let knowledge = Knowledge::default();
    let unwatched = "the server's host, processes and threads".to_owned();
    let mut results = CheckResults::default();
    let context =
        hosts.first().and_then(|host| Context::of(run, host, vec![host], &knowledge, windows, &[]));
    if let Some(context) = context {
        results.check(&context, |key| CLIENT_SIDE.contains(&key));
    }
    results.rank_causes();
    if results.scored.iter().any(|scored| scored.score >= SUSPECT_MIN) {
        return conclude(CheckResults { not_monitored: vec![unwatched], ..results }, false, empty);
    }
    Bottleneck {
        verdict: BottleneckVerdict::NotMonitored,
        title: "The cause is not known: the server was not monitored".into(),
        change: Some(
            "Monitor the server in the next run: [[watch]] in the scenario, or --watch \
             (docs/watching.md)"
                .into(),
        ),
        not_monitored: vec![unwatched],
        ..empty
    }
}

/// The results of all checks on all hosts.
#[derive(Default)]
struct CheckResults<'a> {
    scored: Vec<ScoredCandidate<'a>>,
    ruled_out: Vec<RuledOut>,
    not_monitored: Vec<String>,
}

impl<'a> CheckResults<'a> {
    /// Runs the wanted checks on one host.
    fn check(&mut self, context: &Context<'a>, is_wanted: impl Fn(&str) -> bool) {
        for &(key, check) in RULES.iter().filter(|(key, _)| is_wanted(key)) {
            // Findings of the client side are the same for each watched host.
            if CLIENT_SIDE.contains(&key)
                && self.scored.iter().any(|known| known.candidate.key == key)
            {
                continue;
            }
            match check(context) {
                Ok(candidate) => self.rank(context, candidate),
                Err(NoFinding::NotApplicable) => {}
                Err(NoFinding::RuledOut(state)) => self.rule_out(context, key, state, false),
                Err(NoFinding::Constant(state)) => self.rule_out(context, key, state, true),
                Err(NoFinding::NotMonitored(what)) => {
                    if !self.not_monitored.iter().any(|known| known == what) {
                        self.not_monitored.push(what.to_owned());
                    }
                }
            }
        }
    }

    fn rank(&mut self, context: &Context<'a>, mut candidate: Candidate) {
        match gate(&candidate) {
            Gate::Shut(why) => return self.rule_out(context, candidate.key, why, true),
            Gate::Unproven => candidate.at_most = candidate.at_most.min(CAP_COMPANY),
            Gate::Untold => {
                candidate.at_most = candidate.at_most.min(CAP_COMPANY);
                candidate.title +=
                    "; whether users had worse service in those seconds is not known";
            }
            Gate::Open => {}
        }
        complete(context, &mut candidate);
        let (score, role, demand) =
            (score(&candidate, context), FindingRole::Suspect, context.demand);
        let served = context.windows.pass.map_or(0.0, |pass| pass.users);
        let tried = served.max(context.fail.users);
        let machine = context.machine_id();
        // Memory is of the machine or of a group, whichever processes of it a watch sees.
        let is_of_all = candidate.key == MEMORY;
        let processes =
            if is_of_all { BTreeSet::new() } else { context.processes_of(&candidate.series) };
        let new =
            ScoredCandidate { candidate, machine, processes, score, role, demand, served, tried };
        match self.scored.iter_mut().find(|known| known.tells_the_same(&new)) {
            Some(known) if known.score < new.score => *known = new,
            Some(_) => {}
            None => self.scored.push(new),
        }
    }

    fn rule_out(
        &mut self,
        context: &Context<'_>,
        key: &'static str,
        state: String,
        is_constant: bool,
    ) {
        let machine = context.machine_id();
        let is_told = |known: &RuledOut| {
            known.state == state
                || known.key == key && known.machine == machine && OF_MACHINE.contains(&key)
        };
        if !self.ruled_out.iter().any(is_told) {
            self.ruled_out.push(RuledOut { key, machine, state, is_constant });
        }
    }

    /// Separates symptoms and explanations from causes. If no participant was ever served, no
    /// resource had a load, and none is suspected.
    fn rank_causes(&mut self) {
        // One watch of a machine may see what another does not: its processes are others.
        let scored = &self.scored;
        let is_found = |limit: &RuledOut| {
            let is_it = |s: &ScoredCandidate<'_>| {
                s.candidate.key == limit.key && s.machine == limit.machine
            };
            OF_MACHINE.contains(&limit.key) && scored.iter().any(is_it)
        };
        self.ruled_out.retain(|limit| !is_found(limit));
        let certain =
            || self.scored.iter().filter(|s| s.score >= BOTTLENECK_MIN).map(|s| &s.candidate);
        let is = |key: &str| certain().any(|candidate| candidate.key == key);
        let service_ended = certain().any(|candidate| candidate.ends_service);
        if NEVER.into_iter().any(is) && !is(GENERATOR) && !service_ended {
            self.scored.retain(|scored| NEVER.contains(&scored.candidate.key));
        }
        symptoms::rank_causes(&mut self.scored);
    }
}

/// Adds the effect on the users to the evidence, and fills it up to three lines.
fn complete(context: &Context<'_>, candidate: &mut Candidate) {
    candidate
        .evidence
        .retain(|line| line.baseline.is_some() || line.pass.is_some() || line.fail.is_some());
    let users = &context.users;
    let first_bad = context.first_bad_s();
    candidate
        .evidence
        .push(Evidence::ratio("users with a bad second", users.bad_ratio).crossed(first_bad));
    for line in users.evidence().into_iter().chain([Evidence::count(CONNECTED, users.connected)]) {
        let is_new = candidate.evidence.iter().all(|known| known.counter != line.counter);
        if candidate.evidence.len() < EVIDENCE_MIN && is_new {
            candidate.evidence.push(line);
        }
    }
}

fn finding(scored: &ScoredCandidate<'_>, role: FindingRole) -> Finding {
    let candidate = &scored.candidate;
    let eases = |demand: &Demand| (candidate.eases)(demand, candidate);
    Finding {
        finding: candidate.key.into(),
        title: candidate.title.clone(),
        score: (scored.score * 10.0).round() / 10.0,
        resource: candidate.resource.clone(),
        thread: candidate.thread.as_ref().map(|thread| thread.name.clone()),
        setting: candidate.thread.as_ref().and_then(|thread| thread.setting.clone()),
        role,
        evidence: candidate.evidence.clone(),
        series: candidate.series.iter().map(|series| series.0).collect(),
        change: candidate.change.clone(),
        prediction: demand::after(scored.demand, scored.served, scored.tried, eases),
    }
}

fn named(found: Finding, verdict: BottleneckVerdict, empty: Bottleneck) -> Bottleneck {
    Bottleneck {
        verdict,
        finding: Some(found.finding),
        title: found.title,
        score: Some(found.score),
        resource: Some(found.resource),
        thread: found.thread,
        setting: found.setting,
        evidence: found.evidence,
        series: found.series,
        change: Some(found.change),
        prediction: found.prediction,
        ..empty
    }
}

fn conclude(results: CheckResults<'_>, is_monitored: bool, empty: Bottleneck) -> Bottleneck {
    let CheckResults { scored, mut ruled_out, not_monitored } = results;
    let (mut causes, mut rest): (Vec<_>, Vec<_>) =
        scored.into_iter().partition(|scored| scored.role == FindingRole::Suspect);
    causes.sort_by(|a, b| b.score.total_cmp(&a.score));
    rest.retain(|scored| scored.score >= SUSPECT_MIN);
    // A candidate below a suspect's score is ruled out as well.
    let low = causes.iter().position(|scored| scored.score < SUSPECT_MIN).unwrap_or(causes.len());
    for scored in causes.drain(low..) {
        let state = format!("{}: {:.0} of 100 points", scored.candidate.title, scored.score);
        let (key, machine) = (scored.candidate.key, scored.machine);
        ruled_out.push(RuledOut { key, machine, state, is_constant: false });
    }
    ruled_out.sort_by_key(|limit| {
        let place =
            RULED_OUT_ORDER.iter().position(|first| *first == limit.key).unwrap_or(usize::MAX);
        (!limit.is_constant, place)
    });
    ruled_out.truncate(RULED_OUT_MAX);
    let verdict = verdict(&causes, is_monitored);
    let answer = match causes.first() {
        Some(first) => named(finding(first, FindingRole::Cause), verdict, empty),
        None => Bottleneck {
            verdict,
            title: "No saturated resource: no limit that was measured is reached".into(),
            change: Some(
                "Look for a limit in the configuration or the code: the server's log around the \
                 first bad second, a profile of thread states (what threads wait for), and \
                 settings that bound users, rooms or rates"
                    .into(),
            ),
            ..empty
        },
    };
    let title = match (verdict, causes.first()) {
        (BottleneckVerdict::CoBottleneck, Some(first)) => {
            let near = causes.iter().filter(|scored| scored.score > first.score - AHEAD_MIN);
            let mut titles: Vec<&str> = Vec::new();
            for title in near.map(|scored| scored.candidate.title.as_str()) {
                if !titles.contains(&title) {
                    titles.push(title);
                }
            }
            at_once(&titles)
        }
        _ => answer.title,
    };
    let others = causes.iter().skip(1).chain(rest.iter());
    Bottleneck {
        title,
        other_findings: others.map(|scored| finding(scored, scored.role)).collect(),
        ruled_out: ruled_out.into_iter().map(|limit| limit.state).collect(),
        not_monitored,
        ..answer
    }
}

/// `Two limits at once: …; and …`; of one title, which several machines have, that.
fn at_once(titles: &[&str]) -> String {
    let number = match titles.len() {
        0 | 1 => return titles.join(""),
        2 => "Two".to_owned(),
        3 => "Three".to_owned(),
        more => more.to_string(),
    };
    format!("{number} limits at once: {}", titles.join("; and "))
}

/// The verdict on causes that are sorted by score.
fn verdict(causes: &[ScoredCandidate<'_>], is_monitored: bool) -> BottleneckVerdict {
    let second = causes.get(1).map_or(0.0, |second| second.score);
    match causes.first() {
        Some(first) if first.candidate.key == GENERATOR => BottleneckVerdict::GeneratorLimited,
        Some(first) if first.score < BOTTLENECK_MIN => BottleneckVerdict::Suspect,
        Some(first) if first.score - second < AHEAD_MIN && second >= SUSPECT_MIN => {
            BottleneckVerdict::CoBottleneck
        }
        Some(_) => BottleneckVerdict::Bottleneck,
        None if is_monitored => BottleneckVerdict::Unattributed,
        None => BottleneckVerdict::NotMonitored,
    }
}
