//! What is said of a plan before its first run, and how long its runs take.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use throng_observation::units::count;
use throng_scenario::matrix::{Cell, Measure, PlannedRun};
use throng_scenario::units;

use super::super::chosen::SEARCHES_MAX;
use super::super::needs::minutes;
use super::MatrixPlan;
use crate::find;

impl MatrixPlan {
    /// How long the runs take, without the starts and stops of servers: with searches as long as
    /// their budget, and with searches that are stopped unfinished. Where a search is to choose
    /// what they measure, with the crowd of the scenario, and that search.
    pub(crate) fn takes(&self) -> [Duration; 2] {
        let least = self.takes_with(1, |budget| budget.max(find::BUDGET_MIN));
        [least, self.takes_with(SEARCHES_MAX, find::stops_after)]
    }

    /// The same with so many searches that choose, where one is needed.
    pub(super) fn takes_with(
        &self,
        first: u32,
        search_takes: impl Fn(Duration) -> Duration,
    ) -> Duration {
        let of = |cell: &Cell| match &self.matrix.measure {
            Measure::Find(search) => search_takes(search.budget),
            Measure::Hold(hold) | Measure::Auto { hold, .. } => {
                self.hold_takes(cell, *hold, self.held())
            }
        };
        let first = match &self.matrix.measure {
            Measure::Auto { search, .. } => search_takes(search.budget) * first,
            Measure::Hold(_) | Measure::Find(_) => Duration::ZERO,
        };
        let all = self.cells.iter().enumerate();
        let pairs: Duration =
            all.map(|(index, cell)| of(cell) * self.matrix.repeats_of(index)).sum();
        first + pairs
    }

    /// `6 cells, 12 runs`.
    fn size(&self) -> String {
        let runs = count(self.runs().len() as u64, "runs");
        match self.matrix.pairs {
            Some(pairs) => {
                format!(
                    "{}, {pairs} pairs each, {runs}",
                    count(self.cells.len() as u64 - 1, "variants")
                )
            }
            None => format!("{}, {runs}", count(self.cells.len() as u64, "cells")),
        }
    }

    /// `about 8 min`; of searches `about 8 to 16 min`.
    fn about(&self) -> String {
        let [least, most] = self.takes().map(minutes);
        if least < most {
            format!("about {least} to {most} min")
        } else {
            format!("about {least} min")
        }
    }

    /// The runs and how long they take: `1 variant, 4 pairs each, 8 runs, about 3 min`.
    pub(crate) fn needs(&self) -> String {
        format!("{}, {}", self.size(), self.about())
    }

    /// What is measured, where a search of the baseline chooses it or has chosen it.
    fn measured(&self) -> Option<String> {
        if let Some(chosen) = &self.chosen {
            return Some(chosen.why.clone());
        }
        let Measure::Auto { hold, search } = &self.matrix.measure else { return None };
        Some(format!(
            "held for {} or searched: a search of {} chooses it first (budget {})",
            units::write_duration(*hold),
            self.baseline(),
            units::write_duration(search.budget)
        ))
    }

    /// The lines before the first run.
    pub(crate) fn introduction(&self, folder: &Path) -> impl Iterator<Item = String> {
        let about = self.about();
        let played = self
            .options
            .workers
            .map(|many| format!(", played by {}", count(many as u64, "workers")));
        let (size, order, played) = (self.size(), self.order(), played.unwrap_or_default());
        let path = folder.display();
        let first = format!("{size}, {order} order, {about}{played}; folder {path}");
        std::iter::once(first).chain(self.measured())
    }

    /// A run in words, and of which pair it is: `variant=two, run 2; pair 2 of 4 of two`.
    pub(crate) fn label_with_pair(&self, planned: &PlannedRun) -> String {
        let label = self.label(planned);
        match (self.matrix.pairs, self.pair_of(planned)) {
            (None, _) => label,
            (Some(pairs), Some((number, variant))) => {
                format!("{label}; pair {number} of {pairs} of {variant}")
            }
            (Some(_), None) => format!("{label}; a pair that is made once more"),
        }
    }

    /// The number of the planned pair that a run is one of, and its variant.
    fn pair_of(&self, planned: &PlannedRun) -> Option<(usize, &str)> {
        let blocks = self.matrix.blocks();
        let at = blocks.iter().position(|block| block.runs.contains(planned))?;
        let block = blocks.get(at)?;
        let earlier = blocks.iter().take(at).filter(|other| other.variant == block.variant);
        let place = block.runs.iter().position(|run| run == planned)?;
        let variant = self.matrix.factors.first()?.levels.get(block.variant)?;
        Some((2 * earlier.count() + place / 2 + 1, variant.name.as_str()))
    }

    /// The cells and the order, for `--plan`.
    pub(crate) fn describe(&self) -> String {
        let about = self.about();
        let mut out = format!("{}, {} order, {about}\n", self.size(), self.order());
        if let Some(measured) = self.measured() {
            let _ = writeln!(out, "{measured}");
        }
        for (index, planned) in self.runs().iter().enumerate() {
            let number = self.cell(planned).map_or(0, |cell| cell.number);
            let _ = writeln!(out, "{:>4}  cell {number:>3}  {}", index + 1, self.label(planned));
        }
        out
    }
}
