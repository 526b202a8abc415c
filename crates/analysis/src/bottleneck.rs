//! The verdict: which finding stopped the server, which only follow from it, and what was looked at and is fine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::Goal;
use throng_observation::host::Unit;
use throng_observation::host::measured::{Host, hosts};
use throng_observation::run::RunData;

use crate::context::Context;
use crate::demand::{self, Demand, JoinCost, joins};
use crate::findings::gate::{Gate, gate};
use crate::findings::score::{AHEAD_MIN, BOTTLENECK_MIN, CAP_COMPANY, SUSPECT_MIN, score};
use crate::findings::{
    Candidate, CheckResult, Evidence, Finding, FindingRole, GENERATOR, NEVER_CONNECTED, OF_THE_CROWD,
    PROCESS_STOPPED, RULES, SERVER_CRASHED,
};
use crate::knowledge::Knowledge;
use crate::windows::Windows;

mod other_processes;
mod symptoms;

pub use other_processes::OtherProcessesCpu;

/// Lines of evidence that a finding has at least, and of what was not the limit at most.
const EVIDENCE_MIN: usize = 3;
const RULED_OUT_MAX: usize = 8;

/// What was found out about the cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BottleneckVerdict {
    /// One finding stands out: at least 70 points, and 15 ahead of the next.
    Bottleneck,
    /// Two or more are full at once, or by turns: within 15 points of each other.
    CoBottleneck,
    /// The best has 50 to 69 points: look there first, and do not trust it.
    Suspect,
    /// Nothing that was looked at is full: not a resource that can be seen.
    Unattributed,
    /// Nobody watched the server.
    NotMonitored,
    /// The generator was the limit: nothing is said about the server.
    GeneratorLimited,
    /// No load failed, so there is nothing to explain.
    #[default]
    NothingFailed,
}

/// What stopped the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// How sure.
    pub verdict: BottleneckVerdict,
    /// The key of the finding (docs/findings.md); `null` where there is none.
    pub finding: Option<String>,
    /// The answer in a sentence.
    pub title: String,
    /// Its score, 0 to 100.
    pub score: Option<f64>,
    /// Which resource, of whom.
    pub resource: Option<String>,
    /// What it is told by.
    pub evidence: Vec<Evidence>,
    /// Numbers of the series in `run.db` that the first line of evidence is about.
    pub series: Vec<u32>,
    /// What was looked at and is not the limit.
    pub ruled_out: Vec<String>,
    /// What to change.
    pub change: Option<String>,
    /// What the change would give; `null` where the demand model cannot tell.
    pub prediction: Option<demand::Prediction>,
    /// Other findings with 50 points or more, and how they stand to this one.
    pub other_findings: Vec<Finding>,
    /// What nobody looked at.
    pub not_monitored: Vec<String>,
    /// From when to when the floor lasted, seconds of the run.
    pub baseline_s: Option<[f64; 2]>,
    /// The same of the largest load that passed.
    pub pass_s: Option<[f64; 2]>,
    /// The same of the load that failed.
    pub fail_s: Option<[f64; 2]>,
    /// The first bad second of the failing load.
    pub first_bad_s: Option<i64>,
}

/// The cause and the costs of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// What stopped the server.
    pub bottleneck: Bottleneck,
    /// What a user costs of each resource, the one that ends first first.
    pub demand: Vec<Demand>,
    /// What a join costs.
    pub joins: Option<JoinCost>,
    /// Who else used the CPUs that the server needed; `None` where nobody did, or it did no harm.
    pub other_processes_cpu: Option<OtherProcessesCpu>,
}

/// Explains a run: from the holds of its search, or from its seconds where it was a plain run.
#[must_use]
pub fn explain(run: &RunData, goal: Goal) -> Explanation {
    let windows = Windows::of(run, goal);
    let hosts = hosts(run);
    let watched: Vec<MonitoredHost<'_>> =
        hosts.iter().map(|host| MonitoredHost::of(host, &windows)).collect();
    let mut demand: Vec<Demand> = Vec::new();
    for watched in &watched {
        let named = |mut demand: Demand| {
            if watched.host.id.0 > 0 || hosts.len() > 1 {
                demand.instance =
                    format!("{} on {}", demand.instance, watched.host.name()).trim_start().to_owned();
            }
            demand
        };
        demand.extend(watched.demand.iter().cloned().map(named));
    }
    demand.sort_by(|a, b| a.users.unwrap_or(f64::INFINITY).total_cmp(&b.users.unwrap_or(f64::INFINITY)));
    Explanation {
        bottleneck: bottleneck(run, &windows, &watched),
        other_processes_cpu: watched.iter().find_map(|watched| {
            let context = Context::of(run, watched.host, &watched.knowledge, &windows, &watched.demand)?;
            other_processes::cpu(&context)
        }),
        joins: hosts.iter().find_map(|host| joins(run, host)),
        demand,
    }
}

/// A host with what is known of it and what a user costs on it.
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

/// What was looked at and is not the limit.
struct RuledOut {
    key: &'static str,
    /// In what state it was found.
    said: String,
    /// It looks like a limit, and was as much before: whoever sees it asks about it first.
    is_constant: bool,
}

/// Of what was not the limit, what people ask about first.
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

/// A candidate with its score, and the host's demand that its prediction needs.
struct ScoredCandidate<'a> {
    candidate: Candidate,
    score: f64,
    role: FindingRole,
    demand: &'a [Demand],
    /// The largest crowd that was tried of the two loads that are compared.
    tried: f64,
}

fn bottleneck(run: &RunData, windows: &Windows, watched: &[MonitoredHost<'_>]) -> Bottleneck {
    let span = |stretch: Option<crate::windows::LoadWindow>| {
        stretch.map(|s| [s.window.from_us as f64 / 1e6, s.window.until_us as f64 / 1e6])
    };
    let empty = Bottleneck {
        baseline_s: span(windows.base),
        pass_s: span(windows.pass),
        fail_s: span(windows.fail),
        first_bad_s: windows.first_bad_s,
        ..Bottleneck::default()
    };
    if windows.fail.is_none() {
        let title = "No load failed, so there is no limit to explain".into();
        return Bottleneck { title, ..empty };
    }
    let is_observed = watched.iter().any(|watched| !watched.host.metrics().is_empty());
    if !is_observed {
        return not_monitored(run, windows, empty);
    }
    let mut looked = CheckResults::default();
    for watched in watched {
        if let Some(context) = Context::of(run, watched.host, &watched.knowledge, windows, &watched.demand) {
            looked.look(&context, |_| true);
        }
    }
    looked.rank_causes();
    conclude(looked, is_observed, empty)
}

/// Without a watcher there is still what the crowd and its generator saw.
fn not_monitored(run: &RunData, windows: &Windows, empty: Bottleneck) -> Bottleneck {
    let mut data = RunData::default();
    data.host.hosts.push(throng_observation::host::HostInfo::default());
    let hosts = hosts(&data);
    let knowledge = Knowledge::default();
    let unwatched = "the server's host, processes and threads".to_owned();
    let mut looked = CheckResults::default();
    if let Some(context) = hosts.first().and_then(|host| Context::of(run, host, &knowledge, windows, &[])) {
        looked.look(&context, |key| OF_THE_CROWD.contains(&key));
    }
    looked.rank_causes();
    if looked.scored.iter().any(|scored| scored.score >= SUSPECT_MIN) {
        return conclude(CheckResults { not_monitored: vec![unwatched], ..looked }, false, empty);
    }
    Bottleneck {
        verdict: BottleneckVerdict::NotMonitored,
        title: "The cause was not observed: nobody watched the server".into(),
        change: Some(
            "Watch the server in the next run: [[watch]] in the scenario, or --watch (docs/watching.md)"
                .into(),
        ),
        not_monitored: vec![unwatched],
        ..empty
    }
}

/// What the findings said of all hosts.
#[derive(Default)]
struct CheckResults<'a> {
    scored: Vec<ScoredCandidate<'a>>,
    fine: Vec<RuledOut>,
    not_monitored: Vec<String>,
}

impl<'a> CheckResults<'a> {
    /// Asks those findings about one host of which `is_wanted`.
    fn look(&mut self, context: &Context<'a>, is_wanted: impl Fn(&str) -> bool) {
        for &(key, check) in RULES.iter().filter(|(key, _)| is_wanted(key)) {
            // What the crowd tells it tells once, however many hosts are watched.
            if OF_THE_CROWD.contains(&key) && self.scored.iter().any(|known| known.candidate.key == key) {
                continue;
            }
            match check(context) {
                CheckResult::Suspect(candidate) => self.weigh(context, *candidate),
                CheckResult::NotApplicable => {}
                CheckResult::RuledOut(said) => self.fine(key, said, false),
                CheckResult::Constant(said) => self.fine(key, said, true),
                CheckResult::NotMonitored(what) => {
                    if !self.not_monitored.iter().any(|known| known == what) {
                        self.not_monitored.push(what.to_owned());
                    }
                }
            }
        }
    }

    fn weigh(&mut self, context: &Context<'a>, mut candidate: Candidate) {
        match gate(&candidate) {
            Gate::Shut(said) => return self.fine(candidate.key, said, true),
            Gate::Unproven => candidate.at_most = candidate.at_most.min(CAP_COMPANY),
            Gate::Open => {}
        }
        complete(context, &mut candidate);
        let score = score(&candidate, context);
        let tried = context.windows.pass.map_or(0.0, |pass| pass.users).max(context.fail.users);
        self.scored.push(ScoredCandidate {
            candidate,
            score,
            role: FindingRole::Suspect,
            demand: context.demand,
            tried,
        });
    }

    fn fine(&mut self, key: &'static str, said: String, is_constant: bool) {
        if self.fine.iter().all(|known| known.said != said) {
            self.fine.push(RuledOut { key, said, is_constant });
        }
    }

    /// Moves what follows and what explains out of the way of the causes. Where nobody was ever connected no resource was
    /// asked for anything, and none is suspected.
    fn rank_causes(&mut self) {
        let is = |key: &str| self.scored.iter().any(|s| s.candidate.key == key && s.score >= BOTTLENECK_MIN);
        if is(NEVER_CONNECTED) && ![GENERATOR, SERVER_CRASHED, PROCESS_STOPPED].into_iter().any(is) {
            self.scored.retain(|scored| scored.candidate.key == NEVER_CONNECTED);
        }
        symptoms::rank_causes(&mut self.scored);
    }
}

/// Every finding shows what it did to the users, and at least three lines.
fn complete(context: &Context<'_>, candidate: &mut Candidate) {
    candidate.evidence.retain(|line| line.baseline.is_some() || line.pass.is_some() || line.fail.is_some());
    let users = &context.users;
    let first_bad = context.windows.first_bad_s.map(|second| second as f64);
    candidate
        .evidence
        .push(Evidence::new("users with a bad second", Unit::Ratio, users.bad_ratio).crossed(first_bad));
    for line in [
        Evidence::new(
            "delay of the users' frames above their floor, median",
            Unit::Milliseconds,
            users.delay_ms,
        ),
        Evidence::new("packets lost for good", Unit::Ratio, users.loss_ratio),
        Evidence::new("connected participants", Unit::Count, users.connected),
    ] {
        let is_new = candidate.evidence.iter().all(|known| known.counter != line.counter);
        if candidate.evidence.len() < EVIDENCE_MIN && is_new {
            candidate.evidence.push(line);
        }
    }
}

fn finding(scored: &ScoredCandidate<'_>, role: FindingRole) -> Finding {
    let candidate = &scored.candidate;
    Finding {
        finding: candidate.key.into(),
        title: candidate.title.clone(),
        score: (scored.score * 10.0).round() / 10.0,
        resource: candidate.resource.clone(),
        role,
        evidence: candidate.evidence.clone(),
        series: candidate.series.iter().map(|series| series.0).collect(),
        change: candidate.change.clone(),
        prediction: demand::after(scored.demand, scored.tried, |demand| (candidate.eases)(demand, candidate)),
    }
}

fn named(found: Finding, verdict: BottleneckVerdict, empty: Bottleneck) -> Bottleneck {
    Bottleneck {
        verdict,
        finding: Some(found.finding),
        title: found.title,
        score: Some(found.score),
        resource: Some(found.resource),
        evidence: found.evidence,
        series: found.series,
        change: Some(found.change),
        prediction: found.prediction,
        ..empty
    }
}

fn conclude(looked: CheckResults<'_>, is_observed: bool, empty: Bottleneck) -> Bottleneck {
    let CheckResults { scored, mut fine, not_monitored } = looked;
    let (mut causes, mut rest): (Vec<_>, Vec<_>) =
        scored.into_iter().partition(|scored| scored.role == FindingRole::Suspect);
    causes.sort_by(|a, b| b.score.total_cmp(&a.score));
    // What was looked at more closely and does not reach a suspect's score is no limit either.
    let low = causes.iter().position(|scored| scored.score < SUSPECT_MIN).unwrap_or(causes.len());
    for scored in causes.drain(low..) {
        let said = format!("{}: {:.0} of 100 points", scored.candidate.title, scored.score);
        fine.push(RuledOut { key: scored.candidate.key, said, is_constant: false });
    }
    fine.sort_by_key(|fine| {
        let place = RULED_OUT_ORDER.iter().position(|first| *first == fine.key).unwrap_or(usize::MAX);
        (!fine.is_constant, place)
    });
    let mut fine: Vec<String> = fine.into_iter().map(|fine| fine.said).collect();
    rest.retain(|scored| scored.score >= SUSPECT_MIN);
    fine.truncate(RULED_OUT_MAX);
    let (first, second) = (causes.first(), causes.get(1).map_or(0.0, |second| second.score));
    let verdict = match first {
        Some(first) if first.candidate.key == GENERATOR => BottleneckVerdict::GeneratorLimited,
        Some(first) if first.score >= BOTTLENECK_MIN && first.score - second >= AHEAD_MIN => {
            BottleneckVerdict::Bottleneck
        }
        Some(first) if first.score >= BOTTLENECK_MIN && second >= SUSPECT_MIN => {
            BottleneckVerdict::CoBottleneck
        }
        Some(first) if first.score >= BOTTLENECK_MIN => BottleneckVerdict::Bottleneck,
        Some(_) => BottleneckVerdict::Suspect,
        None if is_observed => BottleneckVerdict::Unattributed,
        None => BottleneckVerdict::NotMonitored,
    };
    let Some(first) = first else {
        return Bottleneck {
            verdict,
            title: "Not a resource I can see: nothing that was looked at was full".into(),
            change: Some("Look for a limit in the configuration or the code: the server's log around the first bad second, a profile of thread states (what threads wait in), and settings that bound users, rooms or rates".into()),
            ruled_out: fine,
            not_monitored: not_monitored,
            other_findings: rest.iter().map(|scored| finding(scored, scored.role)).collect(),
            ..empty
        };
    };
    let mut named = named(finding(first, FindingRole::Cause), verdict, empty);
    if verdict == BottleneckVerdict::CoBottleneck {
        let together: Vec<&str> = causes
            .iter()
            .filter(|scored| scored.score > causes.first().map_or(0.0, |first| first.score) - AHEAD_MIN)
            .map(|scored| scored.candidate.title.as_str())
            .collect();
        named.title = format!("Two limits at once: {}", together.join("; and "));
    }
    let others = causes.iter().skip(1).chain(rest.iter());
    named.other_findings = others.map(|scored| finding(scored, scored.role)).collect();
    named.ruled_out = fine;
    named.not_monitored = not_monitored;
    named
}
