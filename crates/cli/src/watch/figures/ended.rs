//! Ended series, for the table at the end. Only those with the highest values are kept, so that
//! memory stays bounded while threads start and end.

use std::collections::BTreeMap;

use super::{ERRORS, Figure, LEVELS};

/// How many ended series of one metric are kept, and how many ended processes.
pub(super) const ENDED_MAX: usize = 64;

/// The metrics that the table shows of a process.
const OF_PROCESS: [&str; 4] = ["process.cpu", "process.threads", "process.rss", "process.fds"];

/// Series that have ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    by_metric: BTreeMap<String, Vec<Figure>>,
    /// By PID; the series of a process are kept or dropped together.
    processes: BTreeMap<String, Vec<Figure>>,
}

impl Ended {
    /// Takes a series that has ended.
    pub(super) fn take(&mut self, figure: Figure) {
        let metric = figure.of.metric.as_str();
        if OF_PROCESS.contains(&metric) {
            self.take_process(figure);
        } else if metric == "thread.cpu" || ERRORS.contains(&metric) || LEVELS.contains(&metric) {
            let kept = self.by_metric.entry(metric.to_owned()).or_default();
            kept.push(figure);
            if kept.len() > ENDED_MAX
                && let Some(least) = least(kept.iter().map(weight))
            {
                kept.swap_remove(least);
            }
        }
    }

    fn take_process(&mut self, figure: Figure) {
        let pid = figure.label("pid").to_owned();
        let of_process = self.processes.entry(pid.clone()).or_default();
        // Another process may have had the PID before.
        of_process.retain(|other| other.of.metric != figure.of.metric);
        of_process.push(figure);
        if self.processes.len() > ENDED_MAX {
            // The series of the process that is ending are not complete yet.
            let cpu = |figures: &Vec<Figure>| {
                figures.iter().find(|figure| figure.of.metric == "process.cpu").map_or(0.0, weight)
            };
            let others: Vec<_> =
                self.processes.iter().filter(|(other, _)| **other != pid).collect();
            let forgotten = least(others.iter().map(|(_, figures)| cpu(figures)));
            let forgotten =
                forgotten.and_then(|index| others.get(index)).map(|(pid, _)| (*pid).clone());
            if let Some(pid) = forgotten {
                self.processes.remove(&pid);
            }
        }
    }

    /// The kept series of a metric.
    pub(super) fn of<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Figure> {
        let of_processes =
            self.processes.values().flatten().filter(move |figure| figure.of.metric == metric);
        self.by_metric.get(metric).into_iter().flatten().chain(of_processes)
    }
}

/// The rank of a series: its sum, or, for a series with a limit, the highest share of the limit.
fn weight(figure: &Figure) -> f64 {
    match figure.of.limit {
        Some(limit) if LEVELS.contains(&figure.of.metric.as_str()) => figure.max / limit.max(1.0),
        _ if ERRORS.contains(&figure.of.metric.as_str()) => figure.max,
        _ => figure.sum,
    }
}

/// The index of the lowest rank.
fn least(weights: impl Iterator<Item = f64>) -> Option<usize> {
    weights.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index)
}
