//! All runs of one benchmark, and their medians and ratios.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use crate::floor::Floor;
use crate::generator::Kind;
use crate::machine::Machine;
use crate::measure::{Joining, Playing};
use crate::stream::Rate;

/// All measurements against Janus.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The start of the benchmark.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// The stream of the viewers.
    pub stream: Rate,
    /// Runs of one viewer: the cost of the process itself.
    pub alone: Vec<Playing>,
    /// Runs of playing crowds.
    pub playing: Vec<Playing>,
    /// Joins without media; those of one viewer are the baseline.
    pub joining: Vec<Joining>,
    /// Runs of the floor.
    pub floor: Vec<Floor>,
}

/// The median, minimum and maximum of several measurements of the same figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The number of measurements.
    pub count: usize,
}

impl Spread {
    /// Of `values`; `None` when there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let (low, high) = (values.get((values.len() - 1) / 2)?, values.get(values.len() / 2)?);
        Some(Self { median: f64::midpoint(*low, *high), min, max, count: values.len() })
    }
}

/// The figures of one generator at one number of viewers; absent if no run counts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// CPU time per packet received, microseconds.
    pub us_per_packet: Option<Spread>,
    /// Resident memory per viewer, kB.
    pub kb_per_viewer: Option<Spread>,
    /// CPU time per join, milliseconds.
    pub ms_per_join: Option<Spread>,
    /// The share of one CPU that Janus used while they played, percent; of all runs, also those that do not count.
    pub server_percent: Option<Spread>,
    /// The share of the time in which Janus's CPU was not idle, percent; of all runs.
    pub server_busy_percent: Option<Spread>,
    /// Number of playing runs.
    pub runs: usize,
}

impl Results {
    /// The numbers of viewers, in order.
    #[must_use]
    pub fn sizes(&self) -> Vec<u32> {
        let by_size: BTreeMap<u32, ()> = self.playing.iter().map(|run| (run.viewers, ())).collect();
        by_size.into_keys().collect()
    }

    /// The generators, in order.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let kinds: BTreeMap<Kind, ()> = self.playing.iter().map(|run| (run.kind, ())).collect();
        kinds.into_keys().collect()
    }

    /// The figures of `kind` with `viewers`.
    #[must_use]
    pub fn figures(&self, kind: Kind, viewers: u32) -> Figures {
        let all = || self.playing.iter().filter(|run| run.kind == kind && run.viewers == viewers);
        let valid: Vec<&Playing> = all().filter(|run| run.excluded().is_none()).collect();
        let others = f64::from(viewers.saturating_sub(1).max(1));
        let alone = Spread::of(self.alone.iter().filter(|run| run.kind == kind).map(|run| run.rss_kb as f64));
        let joins = || self.joining.iter().filter(|run| run.kind == kind && run.excluded().is_none());
        let one = Spread::of(joins().filter(|run| run.viewers == 1).map(|run| run.cpu_us as f64));
        let crowd = joins().filter(|run| run.viewers == viewers && viewers > 1);
        Figures {
            us_per_packet: Spread::of(valid.iter().map(|run| run.us_per_packet())),
            kb_per_viewer: alone.and_then(|alone| {
                Spread::of(valid.iter().map(|run| (run.rss_kb as f64 - alone.median) / others))
            }),
            ms_per_join: one.and_then(|one| {
                Spread::of(crowd.map(|run| (run.cpu_us as f64 - one.median) / others / 1_000.0))
            }),
            server_percent: Spread::of(all().map(|run| 100.0 * run.server_cpu_ratio)),
            server_busy_percent: Spread::of(all().map(|run| 100.0 * run.server_core_busy_ratio)),
            runs: all().count(),
        }
    }

    /// The CPU time of the floor with `viewers`, microseconds per packet.
    #[must_use]
    pub fn floor_us(&self, viewers: u32) -> Option<Spread> {
        Spread::of(self.floor.iter().filter(|run| run.viewers == viewers).map(|run| run.cpu_us_per_packet))
    }

    /// A sentence for each run that does not count.
    #[must_use]
    pub fn excluded(&self) -> Vec<String> {
        let playing = self.playing.iter().filter_map(|run| {
            Some(format!("{}, {} viewers playing: {}", run.kind.name(), run.viewers, run.excluded()?))
        });
        let joining = self.joining.iter().filter_map(|run| {
            Some(format!("{}, {} viewers joining: {}", run.kind.name(), run.viewers, run.excluded()?))
        });
        playing.chain(joining).collect()
    }

    /// Writes the results as JSON into `folder`, named by their date.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let name: String = self.date.chars().filter(char::is_ascii_digit).collect();
        let path = folder.join(format!("compare-{name}.json"));
        std::fs::write(&path, serde_json::to_string_pretty(self)?)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middle_ones() {
        let median = |values: &[f64]| Spread::of(values.iter().copied()).map(|spread| spread.median);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[5.0, 1.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    }
}
