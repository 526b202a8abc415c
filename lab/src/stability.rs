//! One plant, many times: one limit has one name, however the machine schedules it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::table::Judged;

/// Least share of the repeats that the machine let throng decide.
const DECIDED_MIN: f64 = 0.5;

/// How often each name was given to one plant.
pub(crate) struct Names {
    plant: &'static str,
    repeats: u32,
    given: BTreeMap<String, u32>,
    /// Whether each decided answer is right: its verdict, its name, and no objection to it.
    are_right: bool,
}

impl Names {
    /// The names in the answers of so many repeats. An undecided answer names nothing.
    pub(crate) fn of(
        plant: &'static str,
        repeats: u32,
        answers: impl Iterator<Item = Judged>,
    ) -> Self {
        let mut names = Self { plant, repeats, given: BTreeMap::new(), are_right: true };
        for answer in answers.filter(|answer| !answer.is_undecided()) {
            *names.given.entry(answer.cause().to_owned()).or_default() += 1;
            names.are_right &= answer.is_right();
        }
        names
    }

    /// Whether it has one name at most, and each answer is right.
    pub(crate) fn is_stable(&self) -> bool {
        self.given.len() <= 1 && self.are_right
    }

    /// Whether enough answers were decided to say so.
    pub(crate) fn is_decided(&self) -> bool {
        f64::from(self.decided()) >= DECIDED_MIN * f64::from(self.repeats)
    }

    fn decided(&self) -> u32 {
        self.given.values().sum()
    }
}

/// A line for each plant.
pub(crate) fn markdown(all: &[Names]) -> String {
    let mut page = String::from(
        "| Planted | Repeats | Names | Undecided | Verdict |\n|---|---|---|---|---|\n",
    );
    for names in all {
        let given: Vec<String> =
            names.given.iter().map(|(name, times)| format!("{name} ({times})")).collect();
        let verdict = match (names.is_stable(), names.is_decided()) {
            (false, _) => "WRONG",
            (true, false) => "undecided",
            (true, true) => "stable",
        };
        let undecided = names.repeats.saturating_sub(names.decided());
        let _ = writeln!(
            page,
            "| {} | {} | {} | {undecided} | {verdict} |",
            names.plant,
            names.repeats,
            given.join(", ")
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{judged, objected};

    fn names(answers: &[(&str, &str)]) -> Names {
        let answers = answers.iter().map(|(verdict, finding)| judged(verdict, finding, 0.0));
        Names::of("line", 4, answers)
    }

    #[test]
    fn a_plant_is_stable_with_one_right_name() {
        let line = ("found", "line_rate");
        for (answers, is_stable, is_decided) in [
            (vec![line; 4], true, true),
            (vec![line, line, line, ("found", "path_loss")], false, true),
            (vec![("found", "cpu_full"); 4], false, true),
            (vec![line, line, line, ("found", "")], false, true),
            // What the machine spoiled is no name.
            (vec![line, line, ("undecidable", ""), ("invalid", "generator_limited")], true, true),
            (vec![line, ("undecidable", "")], true, false),
            (Vec::new(), true, false),
        ] {
            let names = names(&answers);
            assert_eq!(
                (names.is_stable(), names.is_decided()),
                (is_stable, is_decided),
                "{answers:?}"
            );
        }
    }

    #[test]
    fn a_right_name_in_a_wrong_answer_is_not_stable() {
        let line = || judged("found", "line_rate", 0.0);
        let of = |last: Judged| Names::of("line", 4, [line(), line(), line(), last].into_iter());
        assert!(of(line()).is_stable());
        assert!(!of(judged("at_least", "line_rate", 0.0)).is_stable(), "another verdict");
        assert!(!of(objected("found", "line_rate")).is_stable(), "an objection to what is said");
        assert!(
            !of(objected("undecidable", "line_rate")).is_stable(),
            "an objection is no disturbance"
        );
    }

    #[test]
    fn the_page_says_how_often_each_name_was_given() {
        let page = markdown(&[names(&[("found", "line_rate"), ("found", "path_loss")])]);
        assert!(
            page.ends_with("| line | 4 | line_rate (1), path_loss (1) | 2 | WRONG |\n"),
            "{page}"
        );
    }
}
