//! The planned rate of the crowd into the server: N × b, second by second.

use throng_observation::RunTime;
use throng_observation::run::{CohortId, RunData};

/// Planned rate into the server in each of `seconds`, bits per second on the wire. `None` where the
/// plan is not known or does not have a participant's rate (a recording has its own), and for a
/// search, whose crowd is not planned.
pub(crate) fn planned_in_bps(run: &RunData, seconds: &[i64]) -> Option<Vec<f64>> {
    if !run.holds.is_empty() {
        return None;
    }
    // Other targets do not count the rate in by sender, and have no visits.
    let plan = run.info.plan.as_ref().filter(|plan| !plan.joins.is_empty())?;
    let each: Vec<f64> =
        plan.cohorts.iter().map(|cohort| cohort.sent_bps).collect::<Option<_>>()?;
    let bits = |cohort: CohortId| each.get(usize::from(cohort.0)).copied().unwrap_or(0.0);
    let mut changes: Vec<(RunTime, f64)> = plan
        .joins
        .iter()
        .flat_map(|join| {
            let bits = bits(join.cohort);
            [Some((join.intended_at, bits)), join.leave_at.map(|at| (at, -bits))]
        })
        .flatten()
        .collect();
    changes.sort_by_key(|(at, _)| *at);
    let (mut changes, mut sum) = (changes.into_iter().peekable(), 0.0);
    let at_end_of = |second: &i64| {
        let end = RunTime(second.saturating_add(1).saturating_mul(1_000_000));
        while let Some((_, bits)) = changes.next_if(|(at, _)| *at < end) {
            sum += bits;
        }
        sum
    };
    Some(seconds.iter().map(at_end_of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conference::tests::lesson;
    use crate::example;

    fn planned(scenario: &str) -> Option<Vec<f64>> {
        let mut run = lesson(4, 10, |_| 1.0);
        let target = "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1\"\n";
        example::plan(&mut run, format!("{target}{scenario}"));
        planned_in_bps(&run, &(-2..10).collect::<Vec<_>>())
    }

    #[test]
    fn each_planned_participant_adds_what_it_sends() {
        let one = "[crowd]\nsize = 1\n[run]\nduration = \"10s\"\n";
        let b = *planned(one).unwrap().last().unwrap();
        // 240p at 256 kbit/s and speech, with their headers.
        assert!((300e3..360e3).contains(&b), "{b}");
        let four =
            planned("[crowd]\nsize = 4\narrival = { every = \"2s\" }\n[run]\nduration = \"10s\"\n")
                .unwrap();
        let expect = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0];
        for (planned, times) in four.iter().zip(expect) {
            assert!((planned - times * b).abs() < 1.0, "{four:?}");
        }
        // A participant that leaves stops sending.
        let short =
            planned("[crowd]\nsize = 1\nstay = \"4s\"\n[run]\nduration = \"10s\"\n").unwrap();
        assert!((short[4] - b).abs() < 1.0 && short[6].abs() < 1.0, "{short:?}");
    }

    #[test]
    fn what_is_not_in_the_scenario_is_not_planned() {
        let of_file =
            "[crowd]\nsize = 2\npublish = { video = \"lesson.mjr\" }\n[run]\nduration = \"10s\"\n";
        assert_eq!(planned(of_file), None);
        assert_eq!(planned("rubbish"), None);
        let mut search = lesson(4, 10, |_| 1.0);
        search.holds.push(throng_observation::HoldRow::default());
        assert_eq!(planned_in_bps(&search, &[1]), None);
    }
}
