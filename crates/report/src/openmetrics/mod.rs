//! The figures of a run in progress, and of watched hosts, as Prometheus reads them: OpenMetrics
//! 1.0, the text format 0.0.4 before it, or the protobuf format, which has native histograms.
//!
//! ```text
//! rows, judged objectives, progress of a search -> Metrics -> Exposition -> text, protobuf, OTLP
//! ```
//! Names, units and meanings of sums, of objectives and of hosts come from their catalogues, so
//! that a new one is exposed without a line here; the others are in `declared.rs`. Labels are
//! bounded: a larger crowd, server or fleet has no more series. `crate::otlp` sends the same
//! families.

mod bounded;
mod declared;
mod exposition;
mod family;
mod fleet;
mod format;
mod histogram;
mod hosts;
mod native;
mod page;
mod protobuf;
mod run;
mod shown;
#[cfg(test)]
mod tests;
mod text;

pub use exposition::{Exposition, SERIES_MAX};
pub use format::Format;
pub use page::markdown;
pub use run::Glance;
pub use text::TextFormat;

pub(crate) use exposition::{Labels, Value};
pub(crate) use family::{Family, Kind};
pub(crate) use histogram::{BOUNDS, Buckets};
pub(crate) use native::{NativeBuckets, SCHEMA, ZERO_SECONDS};

use throng_analysis::search::{End, Progress, SearchPhase};
use throng_observation::fleet::FleetNow;
use throng_observation::host::HostRow;
use throng_observation::run::{Row, RunInfo};
use throng_observation::{Purpose, untrusted};
use throng_scenario::{Objective, Threshold};

use crate::{ObjectiveResult, Summary};
use fleet::FleetFigures;
use hosts::HostFigures;
use run::RunFigures;

/// All that is exposed of a command in progress.
#[derive(Debug)]
pub struct Metrics {
    version: String,
    /// The scenario and the run, once both are known.
    subject: Option<(String, String)>,
    run: Option<RunFigures>,
    /// The workers that play the crowd, if this process does not.
    fleet: Option<FleetFigures>,
    hosts: HostFigures,
    objectives: Vec<ObjectiveResult>,
    search: Option<(Progress, bool)>,
    /// What limited the server, and how many of 100 points speak for it; the first is the cause.
    findings: Vec<(String, f64)>,
}

impl Metrics {
    /// Of a run that is about to begin.
    #[must_use]
    pub fn of_run(info: &RunInfo) -> Self {
        let (run, fleet) = (Some(RunFigures::new(info)), FleetFigures::new(&info.workers));
        Self { run, fleet, ..Self::of_watch(&info.throng_version) }
    }

    /// Of watched hosts alone, by this version of throng.
    #[must_use]
    pub fn of_watch(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            subject: None,
            run: None,
            fleet: None,
            hosts: HostFigures::default(),
            objectives: Vec::new(),
            search: None,
            findings: Vec::new(),
        }
    }

    /// The name of the scenario, and of the run's folder.
    pub fn set_subject(&mut self, scenario: &str, run: &str) {
        self.subject = Some((shown(scenario), shown(run)));
    }

    /// Takes a row on its way to the store.
    pub fn take(&mut self, row: &Row) {
        if let Row::Host(row) = row {
            self.hosts.take(row);
        } else {
            self.run.iter_mut().for_each(|run| run.take(row));
            self.fleet.iter_mut().for_each(|fleet| fleet.take(row));
        }
    }

    /// How it goes for the workers of a fleet; nothing of a run without one.
    pub fn set_fleet(&mut self, now: FleetNow) {
        if let Some(fleet) = &mut self.fleet {
            fleet.set(now);
        }
    }

    /// Takes a row of a watched host.
    pub fn take_host(&mut self, row: &HostRow) {
        self.hosts.take(row);
    }

    /// The objectives as they are judged now.
    pub fn set_objectives(&mut self, objectives: &[ObjectiveResult]) {
        self.objectives = objectives.to_vec();
    }

    /// How far a search has come; `is_over`: it has ended, for whatever reason.
    pub fn set_search(&mut self, progress: Progress, is_over: bool) {
        self.search = Some((progress, is_over));
    }

    /// The run is over, and this came of it.
    pub fn end(&mut self, summary: &Summary) {
        let Some(found) = &summary.bottleneck else { return };
        let cause = found.finding.clone().zip(found.score);
        let others = found.other_findings.iter().map(|other| (other.finding.clone(), other.score));
        self.findings = cause.into_iter().chain(others).collect();
    }

    /// The last whole second of a run, and how far its search has come, and whether that is over;
    /// `None` of watched hosts alone.
    #[must_use]
    pub fn glance(&self) -> Option<(Glance, Option<(&Progress, bool)>)> {
        let run = self.run.as_ref()?;
        let search = self.search.as_ref().map(|(progress, is_over)| (progress, *is_over));
        Some((run.glance(), search))
    }

    /// What is known now.
    #[must_use]
    pub fn exposition(&self) -> Exposition {
        let mut out = Exposition::default();
        let mut info = vec![("version", self.version.clone())];
        if let Some((scenario, run)) = &self.subject {
            info.extend([("scenario", scenario.clone()), ("run", run.clone())]);
        }
        out.add(Family::of(&declared::INFO), [(info, Value::Number(1.0))]);
        self.add_objectives(&mut out);
        if let Some((progress, is_over)) = &self.search {
            add_search(&mut out, progress, *is_over);
        }
        let findings = self.findings.iter();
        let findings =
            findings.map(|(key, of)| (vec![("finding", shown(key))], Value::Number(*of)));
        out.add(Family::of(&declared::FINDING), findings);
        self.run.iter().for_each(|run| run.add_to(&mut out));
        self.fleet.iter().for_each(|fleet| fleet.add_to(&mut out));
        self.hosts.add_to(&mut out);
        out.finish()
    }

    fn add_objectives(&self, out: &mut Exposition) {
        let label = |of: &ObjectiveResult| vec![("objective", shown(&of.text))];
        for result in &self.objectives {
            let Ok(objective) = result.text.parse::<Objective>() else { continue };
            let is_of_source = matches!(objective.threshold, Threshold::OfSource(_));
            let (family, scale) = Family::of_objective(objective.metric.entry(), is_of_source);
            let value = result.measured.map(|measured| Value::Number(measured * scale));
            out.add(family, value.map(|value| (label(result), value)));
        }
        let judged = self.objectives.iter().filter(|of| of.met || of.is_missed());
        let met = judged.map(|of| (label(of), Value::Number(f64::from(u8::from(of.met)))));
        out.add(Family::of(&declared::OBJECTIVE_MET), met);
        if !self.objectives.is_empty() {
            let verdicts = one_of("verdict", VERDICTS, verdict(&self.objectives));
            out.add(Family::of(&declared::VERDICT), verdicts);
        }
    }
}

const VERDICTS: [&str; 3] = ["met", "missed", "not_measured"];

/// What the objectives come to at present.
fn verdict(objectives: &[ObjectiveResult]) -> &'static str {
    let [met, missed, not_measured] = VERDICTS;
    if objectives.iter().any(ObjectiveResult::is_missed) {
        missed
    } else if objectives.iter().all(|of| of.met) {
        met
    } else {
        not_measured
    }
}

/// The phases of a search in which nothing is held: for a while, and at the end.
const PAUSE: &str = "pause";
const OVER: &str = "over";

/// The load that is known to be served well: that of a search that came to its end by it, or of the
/// last complete repeat.
fn capacity(search: &Progress) -> Option<u32> {
    match search.end {
        Some(End::Found | End::Ceiling) => search.passing,
        Some(End::NeverPasses | End::NotSustained) => None,
        Some(End::GeneratorLimited | End::TooNoisy | End::NoRecovery) | None => {
            search.found.last().map(|(passing, _)| *passing)
        }
    }
}

fn add_search(out: &mut Exposition, search: &Progress, is_over: bool) {
    let phases = Purpose::ALL.into_iter().map(Purpose::key).chain([PAUSE, OVER]);
    let phase = match search.phase(is_over) {
        SearchPhase::Settling(purpose) | SearchPhase::Judging { purpose, .. } => purpose.key(),
        SearchPhase::Recovering => PAUSE,
        SearchPhase::Over => OVER,
    };
    out.add(Family::of(&declared::SEARCH_PHASE), one_of("phase", phases, phase));
    for (declared, figure) in [
        (&declared::SEARCH_LOAD, Some(search.users)),
        (&declared::SEARCH_JUDGED, Some(search.judged_s.0)),
        (&declared::SEARCH_REPEAT, Some(search.repeat.0)),
        (&declared::SEARCH_PASSING, search.passing),
        (&declared::SEARCH_FAILING, search.failing),
        (&declared::CAPACITY, capacity(search)),
    ] {
        let value = figure.map(|figure| (Labels::new(), Value::Number(f64::from(figure))));
        out.add(Family::of(declared), value);
    }
}

/// A series for each state, of which the present one is 1.
fn one_of(
    label: &'static str,
    states: impl IntoIterator<Item = &'static str>,
    present: &str,
) -> impl Iterator<Item = (Labels, Value)> {
    states.into_iter().map(move |state| {
        let is_present = f64::from(u8::from(state == present));
        (vec![(label, state.to_owned())], Value::Number(is_present))
    })
}

/// Text that others wrote, as the value of a label.
fn shown(text: &str) -> String {
    untrusted::name(text).into_owned()
}
