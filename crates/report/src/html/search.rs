//! How the capacity was found: each load and its outcome, and the soak.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use throng_analysis::reasons;
use throng_analysis::windows::{BySecond, quality_by_second};
use throng_observation::run::RunData;
use throng_observation::units::percent;
use throng_observation::{Goal, HoldOutcome, HoldRow};

use super::markup::{known, notes, table};
use crate::summary::{CapacitySummary, Summary};

/// Most loads in the table; a search has a few tens.
const HOLDS_MAX: usize = 500;
/// The column of outcomes.
const OUTCOME: usize = 3;

pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let Some(capacity) = &summary.capacity else { return String::new() };
    let mut out = String::from("<h2>How the capacity was found</h2>");
    let soak = capacity.soak.as_ref().map(|soak| format!("Soak: {}", soak.sentence()));
    out.push_str(&notes(soak.iter().chain(&capacity.notes)));
    let seconds = quality_by_second(run);
    let judged: BTreeSet<u32> = HoldRow::judged_alike(&run.holds).map(|hold| hold.number).collect();
    let row_of = |hold: &HoldRow| {
        let mut cells = row(hold, capacity, &seconds);
        if !judged.contains(&hold.number)
            && let Some(outcome) = cells.get_mut(OUTCOME)
        {
            "from before the search began anew".clone_into(outcome);
        }
        cells
    };
    let rows: Vec<_> = run.holds.iter().take(HOLDS_MAX).map(row_of).collect();
    let _ = write!(out, "<details><summary>All {} loads that were held</summary>", run.holds.len());
    out.push_str(&table(
        &[
            "at",
            "purpose",
            "load",
            "outcome",
            "judged",
            "bad",
            "stretches",
            "of user-seconds",
            "because of",
            "recovered after",
            "why it ended",
        ],
        &rows,
    ));
    out.push_str("</details>");
    out
}

fn row(hold: &HoldRow, capacity: &CapacitySummary, seconds: &BySecond) -> Vec<String> {
    let outcome = match hold.passed(Goal::Acceptable) {
        HoldOutcome::Yes => "passed",
        HoldOutcome::No => "failed",
        HoldOutcome::Undecided => "not decided",
    };
    let share = hold.bad_user_seconds as f64 / hold.user_seconds.max(1) as f64;
    let broken = reasons::words(&reasons::of_hold(seconds, hold, Goal::Acceptable));
    let settling = hold.ended_settling();
    let of_judged = |text: String| if settling.is_some() { "–".to_owned() } else { text };
    let ended: Vec<&str> = settling.as_deref().into_iter().chain(hold.why.as_deref()).collect();
    vec![
        format!("{:.0} s", hold.from.as_secs_f64()),
        hold.purpose.key().to_owned(),
        capacity.load(hold.users),
        outcome.to_owned(),
        of_judged(format!("{} s", hold.seconds)),
        of_judged(format!("{} s", hold.bad_seconds[Goal::Acceptable as usize])),
        of_judged(hold.bad_stretches.to_string()),
        of_judged(percent(share)),
        broken.unwrap_or_else(|| "–".to_owned()),
        known(hold.recovery_ms, |ms| format!("{:.1} s", ms as f64 / 1e3)),
        ended.join(": "),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{example, summarise};

    #[test]
    fn a_search_shows_each_load_and_its_soak_and_a_plain_run_shows_nothing() {
        let mut run = example::searched();
        let soak = HoldRow {
            number: 99,
            purpose: throng_observation::Purpose::Soak,
            users: 36,
            seconds: 600,
            bad_seconds: [580; 3],
            passed: [HoldOutcome::No; 3],
            why: Some("<b>".into()),
            ..run.holds[0].clone()
        };
        run.holds.push(HoldRow { broke_at: soak.judged_from, ..soak });
        let of = |run: &RunData| render(run, &summarise(run, &[], Duration::ZERO));
        let page = of(&run);
        assert!(page.contains(&format!("All {} loads", run.holds.len())), "{page}");
        assert!(
            page.contains("Soak: 36 users for 600 s, 580 s bad") && page.contains("not sustained"),
            "{page}"
        );
        assert!(!page.contains("<b>") && page.contains("<td>confirm</td>"), "{page}");
        assert!(page.contains("<td>mostly delay (100 %), fps 10 %</td>"), "{page}");
        assert_eq!(of(&example::healthy(1, 1)), "");
    }

    #[test]
    fn a_load_that_ended_while_the_crowd_settled_shows_no_figures_of_judged_seconds() {
        let mut run = example::searched();
        let before = render(&run, &summarise(&run, &[], Duration::ZERO));
        let last = run.holds.last_mut().expect("the load that was confirmed");
        (last.seconds, last.bad_seconds, last.bad_stretches) = (0, [0; 3], 1);
        last.why = Some("most were badly served".into());
        let page = render(&run, &summarise(&run, &[], Duration::ZERO));
        let unjudged = "<td class=\"n\">–</td>".repeat(4);
        assert!(page.contains(&unjudged) && !before.contains(&unjudged), "{page}");
        let ended = "<td>after 40 s, while the crowd settled: most were badly served</td>";
        assert!(page.contains(ended), "{page}");
    }

    #[test]
    fn loads_that_were_judged_by_other_bounds_are_marked_and_give_no_reasons() {
        let run = example::searched();
        let mut begun_anew = run.clone();
        let unloaded = throng_observation::Unloaded { delay_us: 290_000, ..Default::default() };
        begun_anew.holds.iter_mut().for_each(|hold| hold.unloaded = Some(unloaded));
        let failed =
            run.holds.iter().rfind(|hold| hold.passed(Goal::Acceptable) == HoldOutcome::No);
        let before =
            HoldRow { number: 0, unloaded: None, ..failed.cloned().expect("a load that failed") };
        begun_anew.holds.iter_mut().for_each(|hold| hold.number += 1);
        begun_anew.holds.insert(0, before);
        let (plain, anew) =
            (&summarise(&run, &[], Duration::ZERO), &summarise(&begun_anew, &[], Duration::ZERO));
        assert_eq!(render(&run, plain).matches("before the search began anew").count(), 0);
        assert_eq!(
            render(&begun_anew, anew).matches("from before the search began anew").count(),
            1
        );
        let goals =
            |summary: &Summary| summary.capacity.as_ref().map(|capacity| capacity.goals.clone());
        assert_eq!(goals(plain), goals(anew));
    }
}
