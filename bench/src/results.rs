//! All runs of one benchmark, and their medians and ratios.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use crate::floor::Floor;
use crate::generator::{Kind, Receive};
use crate::machine::Machine;
use crate::measure::{Joining, Playing, STEAL_MAX};
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
    /// Runs of the floor with ordinary sockets.
    pub floor: Vec<Floor>,
    /// Runs of the floor with a ring.
    pub floor_ring: Vec<Floor>,
    /// Runs that were repeated and are not part of the above, as too much CPU time was stolen from
    /// them: a sentence for each.
    pub repeated: Vec<String>,
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
    /// Whether the hypervisor withheld too much CPU time from one of them.
    pub is_stolen: bool,
}

impl Spread {
    /// Of `values`; `None` when there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let (low, high) = (values.get((values.len() - 1) / 2)?, values.get(values.len() / 2)?);
        Some(Self {
            median: f64::midpoint(*low, *high),
            min,
            max,
            count: values.len(),
            is_stolen: false,
        })
    }

    /// Of measurements, each with the share of CPU time that was stolen from it.
    #[must_use]
    pub fn of_stolen(measured: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let (values, stolen): (Vec<f64>, Vec<f64>) = measured.into_iter().unzip();
        let is_stolen = stolen.iter().any(|ratio| *ratio > STEAL_MAX);
        Some(Self { is_stolen, ..Self::of(values)? })
    }
}

/// CPU time per join of `viewers`, milliseconds, of the runs of one generator that count: less the
/// median of those with one viewer, divided by the viewers beyond the first. `None` without a run
/// of each size.
#[must_use]
pub fn ms_per_join<'a>(
    runs: impl IntoIterator<Item = &'a Joining>,
    viewers: u32,
) -> Option<Spread> {
    let valid = runs.into_iter().filter(|run| run.excluded().is_none());
    let (one, more): (Vec<&Joining>, Vec<&Joining>) = valid.partition(|run| run.viewers == 1);
    let one = Spread::of_stolen(one.into_iter().map(|run| (run.cpu_us as f64, run.steal_ratio)))?;
    let others = f64::from(viewers.saturating_sub(1).max(1));
    let ms = |run: &Joining| (run.cpu_us as f64 - one.median) / others / 1_000.0;
    let crowd = more.into_iter().filter(|run| run.viewers == viewers);
    let spread = Spread::of_stolen(crowd.map(|run| (ms(run), run.steal_ratio)))?;
    Some(Spread { is_stolen: spread.is_stolen || one.is_stolen, ..spread })
}

/// The figures of one generator at one number of viewers; absent if no run counts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// CPU time per packet received, microseconds.
    pub us_per_packet: Option<Spread>,
    /// Resident memory per viewer, kB.
    pub kb_per_viewer: Option<Spread>,
    /// Memory of the receive rings, MB.
    pub ring_mb: Option<Spread>,
    /// CPU time per join, milliseconds.
    pub ms_per_join: Option<Spread>,
    /// The share of the generator's CPU that the hypervisor withheld while they played, percent; of
    /// all runs.
    pub steal_percent: Option<Spread>,
    /// The share of one CPU that Janus used while they played, percent; of all runs, also those
    /// that do not count.
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
        let alone = Spread::of(
            self.alone.iter().filter(|run| run.kind == kind).map(|run| run.rss_kb as f64),
        );
        let joining = self.joining.iter().filter(|run| run.kind == kind);
        Figures {
            us_per_packet: Spread::of_stolen(
                valid.iter().map(|run| (run.us_per_packet(), run.steal_ratio)),
            ),
            kb_per_viewer: alone.and_then(|alone| {
                Spread::of(valid.iter().map(|run| (run.rss_kb as f64 - alone.median) / others))
            }),
            ring_mb: Spread::of(valid.iter().map(|run| run.ring_kb as f64 / 1024.0)),
            ms_per_join: ms_per_join(joining, viewers),
            steal_percent: Spread::of(all().map(|run| 100.0 * run.steal_ratio)),
            server_percent: Spread::of(all().map(|run| 100.0 * run.server_cpu_ratio)),
            server_busy_percent: Spread::of(all().map(|run| 100.0 * run.server_core_busy_ratio)),
            runs: all().count(),
        }
    }

    /// The CPU time of the floor with `viewers`, microseconds per packet.
    #[must_use]
    pub fn floor_us(&self, receive: Receive, viewers: u32) -> Option<Spread> {
        Spread::of_stolen(
            self.floors(receive, viewers).map(|run| (run.cpu_us_per_packet, run.steal_ratio)),
        )
    }

    /// The share of the floor's CPU that the hypervisor withheld, percent.
    #[must_use]
    pub fn floor_steal_percent(&self, receive: Receive, viewers: u32) -> Option<Spread> {
        Spread::of(self.floors(receive, viewers).map(|run| 100.0 * run.steal_ratio))
    }

    fn floors(&self, receive: Receive, viewers: u32) -> impl Iterator<Item = &Floor> {
        let runs = match receive {
            Receive::Sockets => &self.floor,
            Receive::Ring => &self.floor_ring,
        };
        runs.iter().filter(move |run| run.viewers == viewers)
    }

    /// A sentence for each run that does not count.
    #[must_use]
    pub fn excluded(&self) -> Vec<String> {
        let playing = self.playing.iter().filter_map(|run| {
            Some(format!(
                "{}, {} viewers playing: {}",
                run.kind.name(),
                run.viewers,
                run.excluded()?
            ))
        });
        let joining = self.joining.iter().filter_map(|run| {
            Some(format!(
                "{}, {} viewers joining: {}",
                run.kind.name(),
                run.viewers,
                run.excluded()?
            ))
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
        let median =
            |values: &[f64]| Spread::of(values.iter().copied()).map(|spread| spread.median);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[5.0, 1.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn one_stolen_measurement_marks_them_all() {
        let is_stolen = |measured: &[(f64, f64)]| {
            Spread::of_stolen(measured.iter().copied())
                .map(|spread| (spread.median, spread.is_stolen))
        };
        assert_eq!(is_stolen(&[]), None);
        assert_eq!(is_stolen(&[(1.0, 0.0), (3.0, STEAL_MAX)]), Some((2.0, false)));
        assert_eq!(is_stolen(&[(1.0, 0.0), (3.0, 0.11)]), Some((2.0, true)));
    }
}
