//! User-seconds. They add up, but only where every worker that closed the second offered joins
//! throughout: a second that one share of the crowd had ended early is no trial of the whole crowd.

use throng_observation::{ExperienceRow, SecondClosed};

use super::family::Family;

/// The end of a second as all workers had it.
#[derive(Debug, Default)]
pub(super) struct End {
    rows: Family<ExperienceRow>,
    is_cut_short: bool,
    is_generator_limited: bool,
}

impl End {
    pub(super) fn add(&mut self, closed: SecondClosed) {
        self.is_cut_short |= closed.experience.is_empty();
        self.is_generator_limited |= closed.is_generator_limited;
        closed.experience.into_iter().for_each(|row| self.rows.add(row));
    }

    /// Users of a worker that has finished.
    pub(super) fn unserved(&mut self, rows: impl Iterator<Item = ExperienceRow>) {
        rows.for_each(|row| self.rows.add(row));
    }

    /// A worker did not tell how its second was: what is missing is a limit of the generator.
    pub(super) fn miss(&mut self) {
        self.is_generator_limited = true;
    }

    pub(super) fn closed(self, second: i64) -> SecondClosed {
        let experience =
            if self.is_cut_short { Vec::new() } else { self.rows.into_rows().collect() };
        SecondClosed { second, experience, is_generator_limited: self.is_generator_limited }
    }
}
