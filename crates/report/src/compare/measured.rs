//! One run, as a comparison needs it: its figures with parts, its machines, whether it may be
//! compared at all.

use std::collections::BTreeMap;
use std::ops::Range;

use throng_analysis::bottleneck::BottleneckVerdict;
use throng_analysis::comparison::{Figure, blocks, machines::Facts};
use throng_analysis::experiment::mean;
use throng_analysis::windows::{SecondQuality, quality_by_second};
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{Host, Window, hosts, mean_of_all};
use throng_observation::run::RunData;
use throng_observation::{LatencyBasis, Received};
use throng_scenario::Metric;

use crate::figures::Figures;
use crate::html::OverTime;
use crate::judge;
use crate::{Quantity, RunOutcome, Summary, planned, planned_objectives};

/// The name of the generator's machine.
pub(super) const GENERATOR: &str = "generator";

/// The fewest participants whose common fate stands for those who would have joined at other
/// moments.
const UNANIMOUS_MIN: usize = 10;

/// The verdict of a search whose largest load passed.
const AT_LEAST: &str = "at_least";

/// One run.
#[derive(Clone, Debug, Default)]
pub struct MeasuredRun {
    /// Where it is, for the reader.
    pub folder: String,
    /// Wall clock of its first intended join, microseconds since the Unix epoch.
    pub started_at_unix_us: i64,
    /// The throng that made it.
    pub throng_version: String,
    /// The target's URL, without secrets.
    pub target: String,
    /// Its answer in one sentence.
    pub headline: String,
    /// Whether it searched for the capacity.
    pub is_search: bool,
    /// Why it decides nothing; `None` if it does.
    pub unusable: Option<String>,
    /// The scenario as run, TOML.
    pub scenario: String,
    /// SHA-256 of the published files by path.
    pub media_files: BTreeMap<String, String>,
    /// Facts by machine.
    pub machines: BTreeMap<String, Facts>,
    /// CPU steal by machine: mean share of all CPU time.
    pub steal_ratio: BTreeMap<String, f64>,
    /// What stopped the server: key and sentence; `None` if nothing failed.
    pub limit: Option<(String, String)>,
    /// What the search found, as a value of the scenario where one was varied.
    pub values: Vec<String>,
    /// What a reader must know of the capacity.
    pub capacity_note: Option<String>,
    /// Whether every load that was tried passed: the capacity is this or more.
    pub is_lower_bound: bool,
    /// The step in which the capacity was searched.
    pub capacity_step: u32,
    /// What the latency of live streams was measured by; `None` where none was played.
    pub latency_basis: Option<LatencyBasis>,
    /// The figures.
    pub figures: BTreeMap<Quantity, Figure>,
    /// The objectives, and whether each was met; `None` if it was not measured.
    pub objectives: Vec<(String, Quantity, Option<bool>)>,
    /// How it went, for pages.
    pub(crate) over_time: OverTime,
}

impl MeasuredRun {
    /// Measures a run that was read with [`super::CompareRows`].
    #[must_use]
    pub fn of(folder: &str, run: &RunData, summary: &Summary) -> Self {
        let objectives = planned_objectives(run);
        let is_search = !run.holds.is_empty();
        let quantities: Vec<Quantity> = if is_search {
            vec![Quantity::Capacity, Quantity::ServerCpuPerUser]
        } else {
            Quantity::standard().chain(objectives.iter().map(Quantity::of)).collect()
        };
        let met = |text: &str| {
            let result = summary.objectives.iter().find(|result| result.text == text)?;
            (result.result != "not_measured").then_some(result.met)
        };
        let watched = hosts(run);
        Self {
            folder: folder.to_owned(),
            started_at_unix_us: run.info.started_at_unix_us,
            throng_version: run.info.throng_version.clone(),
            target: summary.target.clone(),
            headline: summary.headline.clone(),
            is_search,
            unusable: unusable(summary),
            scenario: run.info.scenario.clone(),
            media_files: run.info.media_files.clone(),
            machines: machines(run, &watched),
            steal_ratio: steal(run, &watched),
            limit: limit(summary),
            values: summary
                .capacity
                .as_ref()
                .map(|capacity| capacity.values.clone())
                .unwrap_or_default(),
            capacity_note: capacity_note(summary),
            is_lower_bound: summary
                .capacity
                .as_ref()
                .is_some_and(|capacity| capacity.verdict == AT_LEAST),
            capacity_step: run.holds.iter().map(|hold| hold.step).max().unwrap_or(1).max(1),
            latency_basis: summary
                .playback
                .as_ref()
                .and_then(|playback| Some(playback.latency.as_ref()?.basis())),
            figures: Meter::of(run, summary, &watched).all(&quantities),
            objectives: objectives
                .iter()
                .filter(|_| !is_search)
                .map(|objective| {
                    (objective.text.clone(), Quantity::of(objective), met(&objective.text))
                })
                .collect(),
            over_time: OverTime::of(run),
        }
    }
}

/// Why a run says nothing about the server.
fn unusable(summary: &Summary) -> Option<String> {
    if summary.partial {
        return Some(format!("partial: {}", summary.partial_reasons.join("; ")));
    }
    match summary.outcome {
        RunOutcome::Invalid | RunOutcome::Disputed => Some(summary.headline.clone()),
        RunOutcome::Error if summary.participants.intended == 0 => {
            Some("no participant was to join".into())
        }
        RunOutcome::Error | RunOutcome::Met | RunOutcome::Missed => None,
    }
}

fn machines(run: &RunData, watched: &[Host<'_>]) -> BTreeMap<String, Facts> {
    let generator = (GENERATOR.to_owned(), run.info.generator_host.clone());
    let hosts =
        watched.iter().filter_map(|host| Some((host.name().to_owned(), host.info?.facts.clone())));
    std::iter::once(generator).chain(hosts).filter(|(_, facts)| !facts.is_empty()).collect()
}

fn steal(run: &RunData, watched: &[Host<'_>]) -> BTreeMap<String, f64> {
    let of_process = run.generator.iter().filter(|row| row.thread.is_none());
    let generator =
        mean(of_process.map(|row| row.steal_ratio)).map(|mean| (GENERATOR.to_owned(), mean));
    let of_host = |host: &Host<'_>| {
        let cpus =
            host.metric(metric::HOST_CPU_BUSY).first()?.limit().filter(|cpus| *cpus > 0.0)?;
        let cores = host.metric(metric::HOST_CPU_STEAL).first()?.mean(host.window)?;
        Some((host.name().to_owned(), cores / cpus))
    };
    generator.into_iter().chain(watched.iter().filter_map(of_host)).collect()
}

fn limit(summary: &Summary) -> Option<(String, String)> {
    let found = summary.bottleneck.as_ref()?;
    match (found.verdict, &found.finding) {
        (BottleneckVerdict::NothingFailed, _) => None,
        (_, Some(finding)) => Some((finding.clone(), found.title.clone())),
        (BottleneckVerdict::NotMonitored, None) => {
            Some(("not_monitored".into(), "service failed, and the server was not watched".into()))
        }
        (_, None) => Some((
            "unattributed".into(),
            "service failed, and no resource that was measured is full".into(),
        )),
    }
}

fn capacity_note(summary: &Summary) -> Option<String> {
    let capacity = summary.capacity.as_ref()?;
    match capacity.verdict.as_str() {
        AT_LEAST => Some(
            "every load that was tried passed, so its capacity is only known to be at least this"
                .into(),
        ),
        "not_sustained" => Some("its capacity did not last for the whole soak".into()),
        _ => None,
    }
}

/// Measures quantities over the whole and over parts.
struct Meter<'a> {
    summary: &'a Summary,
    watched: &'a [Host<'a>],
    whole: Figures<'a>,
    by_time: Vec<Figures<'a>>,
    quality: BTreeMap<i64, SecondQuality>,
    received: Received,
    /// The window of rates, and its parts.
    window: Window,
    parts: Vec<Window>,
}

impl<'a> Meter<'a> {
    fn of(run: &'a RunData, summary: &'a Summary, watched: &'a [Host<'a>]) -> Self {
        let Range { start: mut from, end: mut until } = planned::compared_seconds(run);
        if !run.holds.is_empty() {
            // Of a search, the largest load that passed.
            let passed =
                summary.bottleneck.as_ref().and_then(|found| found.pass_s).unwrap_or([0.0, 0.0]);
            (from, until) = (passed[0].ceil() as i64, passed[1].floor() as i64);
        }
        let window = |from: i64, until: i64| Window {
            from_us: from.saturating_mul(1_000_000),
            until_us: until.saturating_mul(1_000_000),
        };
        let parts = blocks::of_seconds(from, until);
        let whole = Figures::within(run, from..until.max(from), 0..u32::MAX);
        Self {
            summary,
            watched,
            by_time: parts.iter().map(|part| Figures::within(run, part.clone(), 0..0)).collect(),
            whole,
            quality: quality_by_second(run),
            received: Received::of_run(run),
            window: window(from, until),
            parts: parts.iter().map(|part| window(part.start, part.end)).collect(),
        }
    }

    fn all(&self, quantities: &[Quantity]) -> BTreeMap<Quantity, Figure> {
        quantities
            .iter()
            .filter_map(|quantity| Some((*quantity, self.figure(*quantity)?)))
            .collect()
    }

    fn figure(&self, quantity: Quantity) -> Option<Figure> {
        match quantity {
            Quantity::Capacity => self.capacity(),
            Quantity::Served => self.by_window(|window| self.served(window)),
            Quantity::Received => self.by_window(|window| self.received(window)),
            Quantity::ServerCpuPerUser => self.by_window(|window| {
                let users = self.users(window).filter(|users| *users > 0.0)?;
                Some(mean_of_all(self.watched, metric::PROCESS_CPU, window)? * 1e3 / users)
            }),
            Quantity::ServerMemory => {
                self.by_window(|window| mean_of_all(self.watched, metric::PROCESS_RSS, window))
            }
            // Those are of cells.
            Quantity::ServerCpu | Quantity::Iowait => None,
            Quantity::Metric { metric, statistic, is_of_source } => {
                let measure = |figures: &Figures<'_>| {
                    judge::measure(metric, statistic, is_of_source, figures)
                };
                let value = measure(&self.whole)?;
                let parts = if quantity.hangs_on_joins() {
                    self.unanimous(metric, value)
                } else {
                    self.by_time.iter().map(|part| measure(part).unwrap_or(f64::NAN)).collect()
                };
                Some(Figure { value, parts })
            }
        }
    }

    /// Two equal parts where all participants failed, or none: then it does not matter when each
    /// joined. Otherwise none.
    fn unanimous(&self, metric: Metric, failed_ratio: f64) -> Vec<f64> {
        let is_all_or_none =
            metric == Metric::Failed && (failed_ratio == 0.0 || failed_ratio == 1.0);
        if is_all_or_none && self.whole.intended.len() >= UNANIMOUS_MIN {
            vec![failed_ratio; 2]
        } else {
            Vec::new()
        }
    }

    fn by_window(&self, measure: impl Fn(Window) -> Option<f64>) -> Option<Figure> {
        let parts = self.parts.iter().map(|part| measure(*part).unwrap_or(f64::NAN)).collect();
        Some(Figure { value: measure(self.window)?, parts })
    }

    /// The largest crowd that was served well: 0 if none was. Its parts are the repeats of the
    /// search.
    fn capacity(&self) -> Option<Figure> {
        let capacity = self.summary.capacity.as_ref()?;
        let repeats: Vec<f64> = capacity.repeats.iter().map(|users| f64::from(*users)).collect();
        Some(Figure { value: f64::from(capacity.users.unwrap_or(0)), parts: repeats })
    }

    fn served(&self, window: Window) -> Option<f64> {
        let seconds = self.quality.range(seconds_of(window)).map(|(_, second)| *second);
        seconds.sum::<SecondQuality>().served_ratio()
    }

    /// Users that should be served, mean.
    fn users(&self, window: Window) -> Option<f64> {
        mean(self.quality.range(seconds_of(window)).map(|(_, second)| second.users as f64))
    }

    fn received(&self, window: Window) -> Option<f64> {
        let seconds = seconds_of(window);
        // Of a run that received something, a part in which nobody was there counts as nothing.
        let has_any = !seconds.is_empty() && !self.received.is_empty();
        has_any.then(|| self.received.bps(seconds).unwrap_or(0.0))
    }
}

/// The whole seconds of a window; none of a window that ends before it begins.
fn seconds_of(window: Window) -> Range<i64> {
    let (from, until) =
        (window.from_us.div_euclid(1_000_000), window.until_us.div_euclid(1_000_000));
    from..until.max(from)
}
