//! The rows of a run that a comparison needs: those of its report, and samples by the parts of the
//! run.

use throng_analysis::comparison::blocks;
use throng_observation::RowSelector;
use throng_observation::run::{RunData, TrackRow};

use crate::{ReportRows, figures, planned};

/// The row selector of a comparison.
#[derive(Debug, Default)]
pub struct CompareRows(ReportRows);

impl RowSelector for CompareRows {
    fn stretches(&mut self, run: &RunData) -> Vec<i64> {
        let (from, until) = measured_seconds(run);
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

/// The seconds whose media counts: from the end of the warm-up to the last whole second, as in the
/// report of the run.
pub(super) fn measured_seconds(run: &RunData) -> (i64, i64) {
    let from = planned::warm_up_s(run).ceil() as i64;
    (from, (figures::duration_s(run).floor() as i64).max(from))
}
