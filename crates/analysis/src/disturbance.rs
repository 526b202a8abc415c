//! Disturbances: bad seconds under loads that pass, caused by a backup, a garbage collector or a
//! neighbour, with their times and period.

use throng_observation::HoldRow;
use throng_observation::run::RunData;

use crate::capacity::Capacity;
use crate::reasons::{self, Reason};
use crate::windows::{SecondQuality, quality_by_second};

/// Bad seconds with fewer good seconds between them are one disturbance.
const APART_S: i64 = 3;
/// Tolerance of a multiple of the period: a disturbance begins within a second, which is named
/// after its beginning.
const TOLERANCE_S: f64 = 1.5;
/// Least disturbances for a period.
const PERIODIC_MIN: usize = 4;
/// Largest probability that chance shows the same period.
const CHANCE_MAX: f64 = 0.01;
/// Most periods between two disturbances.
const PERIODS_BETWEEN: u32 = 6;
/// Most times that are listed; the rest is counted.
const NAMED_MAX: usize = 8;

/// The disturbances of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbances {
    /// First second and length of each, seconds of the run.
    pub times_s: Vec<(i64, i64)>,
    /// Their period, seconds, if they are periodic.
    pub period_s: Option<f64>,
    /// Which clauses made their seconds bad, the most frequent first.
    pub reasons: Vec<Reason>,
}

impl Disturbances {
    /// The disturbances in the judged seconds of loads that pass; `None` if there were none.
    #[must_use]
    pub fn of(run: &RunData, capacity: &Capacity) -> Option<Self> {
        let passing = capacity.users?;
        let goal = capacity.goal;
        let is_bad = |quality: &SecondQuality| quality.bad > 1 && quality.is_bad(goal);
        let quality_by_second = quality_by_second(run);
        let settled = |hold: &&HoldRow| hold.users <= passing && hold.limited_seconds == 0;
        let (mut times_s, mut bad): (Vec<(i64, i64)>, Vec<SecondQuality>) = Default::default();
        for hold in HoldRow::judged_alike(&run.holds).filter(settled) {
            let (Some(from), Some(until)) = (hold.judged_from, hold.until) else { continue };
            for (second, quality) in quality_by_second
                .range(from.second()..until.second())
                .filter(|(_, quality)| is_bad(quality))
            {
                bad.push(*quality);
                match times_s.last_mut() {
                    Some((first, length)) if second - (*first + *length) < APART_S => {
                        *length = second + 1 - *first;
                    }
                    _ => times_s.push((*second, 1)),
                }
            }
        }
        let starts: Vec<f64> = times_s.iter().map(|(first, _)| *first as f64).collect();
        let reasons = reasons::of(&bad, goal);
        (!times_s.is_empty()).then(|| Self { period_s: period(&starts), times_s, reasons })
    }

    /// As a sentence: "service was bad 4 times for up to 3 s under loads that pass, every 60 s: at
    /// 47, 107, 167, 227 s, mostly loss (92 %), fps 11 %".
    #[must_use]
    pub fn sentence(&self) -> String {
        let longest = self.times_s.iter().map(|(_, length)| *length).max().unwrap_or(0);
        let period = self.period_s.map_or_else(String::new, |s| format!(", every {s:.0} s"));
        let named: Vec<String> =
            self.times_s.iter().take(NAMED_MAX).map(|(first, _)| first.to_string()).collect();
        let more = match self.times_s.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why =
            reasons::words(&self.reasons).map_or_else(String::new, |words| format!(", {words}"));
        format!(
            "service was bad {} times for up to {longest} s under loads that pass{period}: at {} \
             s{more}{why}",
            self.times_s.len(),
            named.join(", ")
        )
    }
}

/// The period of which all distances are multiples, unless chance explains it.
fn period(starts: &[f64]) -> Option<f64> {
    let first = *starts.first()?;
    if starts.len() < PERIODIC_MIN {
        return None;
    }
    let distances = starts.windows(2).map(|pair| pair[1] - pair[0]);
    let shortest = distances.fold(f64::INFINITY, f64::min);
    let last = starts.last()? - first;
    let mut tried = 0.0;
    for periods in 1..=PERIODS_BETWEEN {
        tried += 1.0;
        let rough = shortest / f64::from(periods);
        // The longest distance gives the most precise value.
        let fine = last / (last / rough).round().max(1.0);
        let is_multiple = |at: &f64| {
            let periods = (at - first) / fine;
            (periods - periods.round()).abs() * fine <= TOLERANCE_S
        };
        let by_chance = (2.0 * TOLERANCE_S / fine).min(1.0).powi(starts.len() as i32 - 2) * tried;
        if starts.iter().all(is_multiple) && by_chance <= CHANCE_MAX {
            return Some(fine);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::{Clause, ExperienceRow, Goal, HoldOutcome, RunTime};

    #[test]
    fn a_disturbance_every_minute_is_periodic_though_some_were_not_seen() {
        assert_eq!(period(&[47.0, 107.0, 227.0, 288.0, 407.0]), Some(60.0));
        let fine = period(&[10.0, 130.0, 310.0, 370.0, 430.0, 610.0]);
        assert!(fine.is_some_and(|s| (s - 60.0).abs() < 0.5), "{fine:?}");
        assert_eq!(period(&[10.0, 37.0, 95.0, 101.0, 180.0]), None, "at any time");
        assert_eq!(period(&[10.0, 70.0, 130.0]), None, "three may be chance");
    }

    #[test]
    fn the_sentence_names_the_times_and_what_was_bad() {
        let second = |second: i64, clause: Clause, bad: u32| {
            let mut row = ExperienceRow { second, users: 20, bad, ..ExperienceRow::default() };
            row.clauses[clause as usize] = bad;
            row
        };
        let at = |s: i64| RunTime(s * 1_000_000);
        let hold = HoldRow {
            users: 20,
            judged_from: Some(at(5)),
            until: Some(at(200)),
            seconds: 195,
            passed: [HoldOutcome::Yes; 3],
            ..HoldRow::default()
        };
        let experience = vec![
            second(47, Clause::Freeze, 12),
            second(48, Clause::Freeze, 4),
            second(107, Clause::Loss, 4),
            // A single user's is no disturbance.
            second(150, Clause::Delay, 1),
        ];
        let run = RunData { holds: vec![hold], experience, ..RunData::default() };
        let capacity = Capacity::of(&run.holds, Goal::Acceptable).expect("a hold that ended");
        assert_eq!(
            Disturbances::of(&run, &capacity).map(|found| found.sentence()).as_deref(),
            Some(
                "service was bad 2 times for up to 2 s under loads that pass: at 47, 107 s, mostly freeze (80 %), \
                 loss 20 %"
            )
        );
    }
}
