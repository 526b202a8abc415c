//! The rows of a run that a comparison needs: those of its report, and samples by the parts of the
//! run.

use std::ops::Range;

use throng_analysis::comparison::blocks;
use throng_observation::RowSelector;
use throng_observation::run::{RunData, TrackRow};

use crate::{ReportRows, planned};

/// The row selector of a comparison.
#[derive(Debug, Default)]
pub struct CompareRows(ReportRows);

impl RowSelector for CompareRows {
    fn stretches(&mut self, run: &RunData) -> Vec<i64> {
        let Range { start: from, end: until } = planned::compared_seconds(run);
        let mut begin = self.0.stretches(run);
        begin.extend(
            blocks::of_seconds(from, until).into_iter().flat_map(|part| [part.start, part.end]),
        );
        begin.extend([from, until]);
        begin.sort_unstable();
        begin.dedup();
        begin
    }

    fn tracks(&mut self, tracks: Vec<TrackRow>, run: &mut RunData) {
        self.0.tracks(tracks, run);
    }

    fn finish(&mut self, run: &mut RunData) {
        self.0.finish(run);
    }
}
