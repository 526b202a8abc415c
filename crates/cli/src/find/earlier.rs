//! What an earlier search knew, from which this one goes on.

use std::path::Path;

use throng_observation::{HoldRow, RunTime};
use throng_store::RunFolder;

use crate::console::CliError;

/// The holds of an interrupted search, at negative times: before this run.
pub(super) fn earlier(folder: &Path) -> Result<Vec<HoldRow>, CliError> {
    let run = RunFolder::outline(folder).map_err(CliError::usage)?;
    before_the_end(run.holds).ok_or_else(|| {
        CliError::usage(format!("{} holds no search that can be continued", folder.display()))
    })
}

/// The holds from which a search goes on, by times before the end of the last one; `None` if none
/// has ended.
fn before_the_end(holds: Vec<HoldRow>) -> Option<Vec<HoldRow>> {
    let end = holds.iter().filter_map(|hold| hold.until).max()?;
    let before = |at: RunTime| RunTime(at.0 - end.0);
    // One that was cut off says no more than beyond what it was to be judged.
    let is_needed = |hold: &HoldRow| hold.until.is_some() || hold.unloaded.is_some();
    let shifted = holds.into_iter().filter(is_needed).map(|hold| HoldRow {
        from: before(hold.from),
        judged_from: hold.judged_from.map(before),
        until: hold.until.map(before),
        broke_at: hold.broke_at.map(before),
        ..hold
    });
    Some(shifted.collect())
}

#[cfg(test)]
mod tests {
    use throng_observation::Unloaded;

    use super::*;

    #[test]
    fn a_search_goes_on_with_what_it_knew_when_it_was_cut_off() {
        let hold = |number, until_s: Option<i64>, unloaded| HoldRow {
            number,
            until: until_s.map(|s| RunTime(s * 1_000_000)),
            unloaded,
            ..HoldRow::default()
        };
        let numbers = |holds: Vec<HoldRow>| -> Vec<u32> {
            before_the_end(holds).unwrap_or_default().iter().map(|hold| hold.number).collect()
        };
        assert_eq!(before_the_end(vec![hold(0, None, None)]), None);
        assert_eq!(numbers(vec![hold(0, Some(9), None), hold(1, None, None)]), [0]);
        let pattern = Some(Unloaded { delay_us: 290_000, ..Unloaded::default() });
        let cut = vec![hold(0, Some(9), None), hold(1, None, pattern)];
        assert_eq!(numbers(cut.clone()), [0, 1]);
        assert_eq!(before_the_end(cut).unwrap()[0].until, Some(RunTime(0)));
    }
}
