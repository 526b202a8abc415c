//! How long a search takes, as it was announced, and the correction once it takes longer.

use std::time::Duration;

use throng_analysis::search::Estimate;
use throng_observation::RunTime;
use throng_scenario::units::write_duration;

/// What was said of the time that a search takes.
#[derive(Debug)]
pub(super) struct Announced {
    /// The longest time; `None` once it was corrected, and where none was said.
    longest: Option<RunTime>,
    /// When the search is stopped, finished or not.
    deadline: RunTime,
}

impl Announced {
    pub(super) fn new(longest: Option<RunTime>, deadline: RunTime) -> Self {
        Self { longest: longest.filter(|longest| *longest < deadline), deadline }
    }

    /// What to say, once, when the search takes longer than was announced.
    pub(super) fn correction(&mut self, now: RunTime) -> Option<String> {
        let longest = self.longest.filter(|longest| now >= *longest)?;
        self.longest = None;
        Some(format!(
            "this takes longer than the {} announced, as loads have to be held again; it stops \
             after {} at the latest",
            written(longest.as_secs_f64()),
            written(self.deadline.as_secs_f64())
        ))
    }
}

/// How long a search takes, as far as it is known, and when it is stopped at the latest.
pub(super) fn takes(
    estimate: Option<Estimate>,
    budget: Option<Duration>,
    deadline: RunTime,
) -> String {
    let stops_after_s = deadline.as_secs_f64();
    let ended = format!("it stops after {} with the result so far", written(stops_after_s));
    let Some(estimate) = estimate else { return ended };
    // Nothing takes longer than until the search is stopped.
    let [typical, shortest, longest] =
        [estimate.typical_s, estimate.shortest_s, estimate.longest_s]
            .map(|seconds| written(f64::from(seconds).min(stops_after_s)));
    let over = budget
        .filter(|budget| f64::from(estimate.typical_s) > budget.as_secs_f64())
        .map_or_else(String::new, |budget| {
            format!(", more than the budget of {}", write_duration(budget))
        });
    format!(
        "this takes about {typical}{over} ({shortest} to {longest}, by where the limit lies), \
         longer where loads have to be held again; {ended}"
    )
}

/// `45 s`, `2 min`, `2 min 30 s`.
fn written(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds:02} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_too_short_is_said_to_be_before_the_search() {
        let estimate = Estimate { typical_s: 158, shortest_s: 95, longest_s: 432 };
        let deadline = RunTime(150_000_000);
        assert_eq!(
            takes(Some(estimate), Some(Duration::from_secs(75)), deadline),
            "this takes about 2 min 30 s, more than the budget of 75s (1 min 35 s to 2 min 30 s, by where the limit lies), \
             longer where loads have to be held again; it stops after 2 min 30 s with the result so far"
        );
        let estimate = Estimate { typical_s: 70, ..estimate };
        assert!(
            takes(Some(estimate), Some(Duration::from_secs(75)), deadline)
                .starts_with("this takes about 1 min 10 s (")
        );
        let only_end = "it stops after 2 min 30 s with the result so far";
        assert_eq!(takes(None, None, deadline), only_end);
    }

    #[test]
    fn a_time_that_was_announced_is_corrected_once() {
        let at = |seconds: i64| RunTime(seconds * 1_000_000);
        let mut announced = Announced::new(Some(at(95)), at(150));
        assert_eq!(announced.correction(at(94)), None);
        let said = announced.correction(at(95)).unwrap();
        assert_eq!(
            said,
            "this takes longer than the 1 min 35 s announced, as loads have to be held again; it stops after 2 min 30 s at the latest"
        );
        assert_eq!(announced.correction(at(96)), None);
        // What is stopped first is never late.
        assert_eq!(Announced::new(Some(at(200)), at(150)).correction(at(200)), None);
    }
}
