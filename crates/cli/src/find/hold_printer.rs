//! The progress of a search on the terminal: a line for each load, when it is decided.

use throng_analysis::reasons::{self, Reason};
use throng_analysis::windows::{BySecond, SecondQuality};
use throng_observation::{Goal, HoldOutcome, HoldRow, RunTime, Unloaded};

use crate::console::say;

pub(super) struct HoldPrinter {
    is_quiet: bool,
    printed: Option<u32>,
    /// The seconds since the last line: they have those of the hold whose line is next.
    seconds: BySecond,
}

impl HoldPrinter {
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, printed: None, seconds: BySecond::new() }
    }

    /// Takes in a second, before the hold that it may end.
    pub(super) fn second(&mut self, second: i64, quality: SecondQuality) {
        if !self.is_quiet {
            self.seconds.insert(second, quality);
        }
    }

    /// Prints the row if its hold is over, and later the recovery after it.
    pub(super) fn step(&mut self, row: &HoldRow, passing: Option<u32>) {
        if self.is_quiet || row.until.is_none() {
            return;
        }
        if self.printed == Some(row.number) {
            if let Some(ms) = row.recovery_ms {
                say(&format!("{:>8}  recovered after {:.1} s", "", ms as f64 / 1e3));
            }
            return;
        }
        self.printed = Some(row.number);
        let broken = reasons::of_hold(&self.seconds, row, Goal::Acceptable);
        self.seconds.clear();
        say(&line(row, &broken, passing));
    }

    /// The smallest crowd is served badly by what is no limit of load.
    pub(super) fn unloaded(&self, unloaded: &Unloaded) {
        if !self.is_quiet {
            say(&format!(
                "at the smallest crowd already: {unloaded}, from the path, the source or the \
                 server itself; the search begins anew, and judges what comes on top of that"
            ));
        }
    }

    pub(super) fn end(&self, why: &str) {
        if !self.is_quiet {
            say(why);
        }
    }
}

/// `broken`: the clauses that made its users' seconds bad.
fn line(row: &HoldRow, broken: &[Reason], passing: Option<u32>) -> String {
    let verdict = match row.passed(Goal::Acceptable) {
        HoldOutcome::Yes => "passed",
        HoldOutcome::No => "FAILED",
        HoldOutcome::Undecided => "not decided",
    };
    let bad = row.bad_seconds[Goal::Acceptable as usize];
    let share = row.bad_user_seconds as f64 / row.user_seconds.max(1) as f64;
    let broken = reasons::words(broken).map_or_else(String::new, |words| format!(", {words}"));
    let why = row.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let best = passing
        .filter(|_| row.value.is_none())
        .map_or_else(String::new, |users| format!("; {users} served well so far"));
    let load = row.value.clone().unwrap_or_else(|| format!("{:>5} users", row.users));
    let rests_on = row.ended_settling().unwrap_or_else(|| {
        format!("{bad} of {} s bad, {:.2} % of user-seconds", row.seconds, share * 100.0)
    });
    format!(
        "{:>6.0} s  {:<8} {load}  {verdict:<7} {rests_on}{broken}{why}{best}",
        row.until.unwrap_or(RunTime(0)).as_secs_f64(),
        row.purpose.key(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::{Clause, Purpose};

    fn failed() -> HoldRow {
        HoldRow {
            purpose: Purpose::Bisect,
            users: 27,
            until: Some(RunTime(93_000_000)),
            seconds: 25,
            bad_seconds: [9, 7, 0],
            passed: [HoldOutcome::No, HoldOutcome::No, HoldOutcome::Yes],
            user_seconds: 675,
            bad_user_seconds: 27,
            ..HoldRow::default()
        }
    }

    #[test]
    fn a_load_is_a_line_with_its_verdict_and_what_it_rests_on() {
        let broken = [
            Reason { clause: Clause::Latency, ratio: 1.0 },
            Reason { clause: Clause::Stall, ratio: 0.25 },
        ];
        let text = line(&failed(), &broken, Some(25));
        let expect = "bisect      27 users  FAILED  7 of 25 s bad, 4.00 % of user-seconds, \
                      mostly latency (100 %), stall 25 %; 25 served well so far";
        assert!(text.ends_with(expect), "{text}");
        let ended = HoldRow { why: Some("it was hopeless".into()), ..failed() };
        let text = line(&ended, &broken[..1], None);
        assert!(text.ends_with(" of user-seconds, latency alone: it was hopeless"), "{text}");
        let text = line(&HoldRow { bad_user_seconds: 0, ..failed() }, &[], None);
        assert!(text.ends_with(", 0.00 % of user-seconds"), "{text}");
    }

    #[test]
    fn a_load_that_ended_while_the_crowd_settled_has_no_seconds_that_were_bad() {
        let unjudged = HoldRow {
            purpose: Purpose::Demand,
            from: RunTime(81_000_000),
            seconds: 0,
            bad_seconds: [0; 3],
            user_seconds: 0,
            bad_user_seconds: 0,
            why: Some("more than 20 % of the users were badly served for 8 s".into()),
            ..failed()
        };
        let broken = [Reason { clause: Clause::Fps, ratio: 1.0 }];
        assert_eq!(
            line(&unjudged, &broken, Some(25)),
            "    93 s  demand      27 users  FAILED  after 12 s, while the crowd settled, fps \
             alone: more than 20 % of the users were badly served for 8 s; 25 served well so far"
        );
        let limited = HoldRow {
            passed: [HoldOutcome::Undecided; 3],
            why: Some("the generator was the limit".into()),
            ..unjudged
        };
        let text = line(&limited, &[], None);
        let expect = "not decided after 12 s, while the crowd settled: the generator was the limit";
        assert!(text.ends_with(expect), "{text}");
    }
}
