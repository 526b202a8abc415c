//! The planned rate of the crowd into the server: N × b, second by second.

use std::time::Duration;

use throng_observation::run::{CohortId, RunData};
use throng_scenario::{Part, Plan, Share};

/// Planned rate into the server in each of `seconds`, bits per second on the wire. `None` where the
/// scenario is unreadable or does not have a participant's rate (a recording has its own), and for
/// a search, whose crowd is not planned.
pub(crate) fn planned_in_bps(run: &RunData, seconds: &[i64]) -> Option<Vec<f64>> {
    if !run.holds.is_empty() {
        return None;
    }
    let plan = super::scenario(run)?.plan();
    // Other targets do not count the rate in by sender.
    if plan.target.part() != Part::Confer {
        return None;
    }
    let each: Vec<f64> = (0..plan.roles.len())
        .map(|cohort| bits_of_one(&plan, CohortId(u16::try_from(cohort).ok()?)))
        .collect::<Option<_>>()?;
    let bits = |cohort: CohortId| each.get(usize::from(cohort.0)).copied().unwrap_or(0.0);
    let mut changes: Vec<(Duration, f64)> = plan
        .joins
        .iter()
        .flat_map(|join| {
            let bits = bits(join.cohort);
            [Some((join.at, bits)), join.leave_at.map(|at| (at, -bits))]
        })
        .flatten()
        .collect();
    changes.sort_by_key(|(at, _)| *at);
    let (mut changes, mut sum) = (changes.into_iter().peekable(), 0.0);
    let at_end_of = |second: &i64| {
        let end = Duration::from_secs(u64::try_from(second + 1).unwrap_or(0));
        while let Some((_, bits)) = changes.next_if(|(at, _)| *at < end) {
            sum += bits;
        }
        sum
    };
    Some(seconds.iter().map(at_end_of).collect())
}

/// The rate of one participant of a cohort; `None` where it is assumed.
fn bits_of_one(plan: &Plan, cohort: CohortId) -> Option<f64> {
    let mut alone = plan.clone();
    alone.canary = None;
    alone.joins.retain(|join| join.cohort == cohort);
    // Adds up what is left.
    let expected = alone.share(Share::ALL).expected;
    let users = f64::from(expected.users.max(1));
    (!expected.assumed).then_some(expected.server_in_mbit_per_s * 1e6 / users)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conference::tests::lesson;

    fn planned(scenario: &str) -> Option<Vec<f64>> {
        let mut run = lesson(4, 10, |_| 1.0);
        run.info.scenario =
            format!("[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1\"\n{scenario}");
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
