//! The confusion matrix.

use std::fmt::Write as _;
use std::time::Duration;

use crate::planted::Planted;
use crate::search::Outcome;

/// Largest error of a right capacity.
const ERROR_MAX: f64 = 0.05;
/// Least score of a confident finding.
const CONFIDENT: f64 = 70.0;
/// If a hypervisor takes more than this share of the CPU time, it counts as the cause of a
/// generator limit.
const STEAL_MIN: f64 = 0.01;
/// The finding that the generator did not offer the load.
const GENERATOR_LIMITED: &str = "generator_limited";

/// The result of one planted limit.
pub(crate) struct Judged {
    name: &'static str,
    what: &'static str,
    expects: &'static [&'static str],
    verdict: &'static str,
    outcome: Outcome,
    took: Duration,
    steal_ratio: f64,
}

impl Judged {
    /// `steal_ratio`: the share of the CPU time that a hypervisor took meanwhile.
    pub(crate) fn of(
        planted: &Planted,
        outcome: Outcome,
        took: Duration,
        steal_ratio: f64,
    ) -> Self {
        let Planted { name, what, expects, verdict, .. } = *planted;
        Self { name, what, expects, verdict, outcome, took, steal_ratio }
    }

    /// The key of the finding that it names, or `none`.
    pub(crate) fn cause(&self) -> &str {
        let finding = &self.outcome.answer.finding;
        if finding.is_empty() { "none" } else { finding }
    }

    /// Whether the cause is a right one.
    pub(crate) fn is_named(&self) -> bool {
        let answer = &self.outcome.answer;
        let is_expected = self.expects.contains(&answer.finding.as_str());
        if self.expects.is_empty() {
            answer.finding.is_empty() || answer.score < CONFIDENT
        } else {
            is_expected
        }
    }

    /// The verdict on the capacity's kind and the cause, and whether there is no objection to what
    /// is said.
    pub(crate) fn is_right(&self) -> bool {
        let answer = &self.outcome.answer;
        answer.verdict == self.verdict && self.is_named() && answer.objection.is_none()
    }

    /// The answer is that this host decides nothing, or that the generator was the limit and a
    /// hypervisor took its CPU time: no cause is claimed of the server. Otherwise throng is wrong
    /// about its generator.
    pub(crate) fn is_undecided(&self) -> bool {
        let answer = &self.outcome.answer;
        let is_open = matches!(answer.verdict.as_str(), "undecidable" | "invalid");
        let is_cpu_stolen = answer.finding == GENERATOR_LIMITED && self.steal_ratio > STEAL_MIN;
        (is_open || is_cpu_stolen) && !self.is_confidently_wrong()
    }

    /// A limit that is not planted is named with confidence, or there is an objection to what is
    /// said. That the generator was the limit is no such claim.
    fn is_confidently_wrong(&self) -> bool {
        let answer = &self.outcome.answer;
        let is_wrong =
            !self.is_named() && answer.score >= CONFIDENT && answer.finding != GENERATOR_LIMITED;
        is_wrong || answer.objection.is_some()
    }

    /// The relative error of the capacity.
    fn error(&self) -> Option<f64> {
        Some(self.outcome.answer.users? / self.outcome.truth? - 1.0)
    }

    pub(crate) fn line(&self) -> String {
        let answer = &self.outcome.answer;
        let users = answer.users.map_or_else(|| "–".to_owned(), |users| format!("{users:.0}"));
        let truth =
            self.outcome.truth.map_or_else(|| "–".to_owned(), |truth| format!("{truth:.1}"));
        let error =
            self.error().map_or_else(|| "–".to_owned(), |error| format!("{:+.0} %", error * 100.0));
        let finding = self.cause();
        let objection =
            answer.objection.as_ref().map_or_else(String::new, |said| format!("; {said}"));
        let busy_with = match answer.explained_by.as_slice() {
            [] => String::new(),
            explains => format!(", by {}", explains.join(", ")),
        };
        let right = match (self.is_right(), self.is_confidently_wrong()) {
            (true, _) => "right",
            (false, true) => "WRONG, confidently",
            (false, false) => "wrong",
        };
        format!(
            "| {} | {} | {} | {finding} ({:.0}){busy_with}{objection} | {right} | {truth} | \
             {users} | {error} | {:.0} |",
            self.name,
            self.what,
            answer.verdict,
            answer.score,
            self.took.as_secs_f64()
        )
    }
}

pub(crate) fn markdown(judged: &[Judged]) -> String {
    let mut page = String::from(
        "| Planted | What | Answer | Named (score) | Verdict | True limit | Found | Error | Took, \
         s |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for one in judged {
        let _ = writeln!(page, "{}", one.line());
    }
    let right = judged.iter().filter(|one| one.is_right()).count();
    let confidently = judged.iter().filter(|one| one.is_confidently_wrong()).count();
    let mut errors: Vec<f64> = judged.iter().filter_map(Judged::error).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2);
    let _ = writeln!(page, "\n{right} of {} right, {confidently} confidently wrong", judged.len());
    if let Some(median) = median {
        let near = errors.iter().filter(|error| **error <= ERROR_MAX).count();
        let _ = writeln!(
            page,
            "capacity: median error {:.1} %, {near} of {} within {:.0} %",
            median * 100.0,
            errors.len(),
            ERROR_MAX * 100.0
        );
    }
    page
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::search::Answer;

    const PLANTED: Planted = Planted {
        name: "line",
        what: "a line",
        expects: &["line_rate", "path_loss"],
        verdict: "found",
        is_short: true,
        plant: |_| Ok(Outcome::default()),
    };

    pub(crate) fn judged(verdict: &str, finding: &str, steal_ratio: f64) -> Judged {
        let answer = Answer {
            verdict: verdict.to_owned(),
            finding: finding.to_owned(),
            score: if finding.is_empty() { 0.0 } else { 90.0 },
            ..Answer::default()
        };
        Judged::of(&PLANTED, Outcome { answer, truth: None }, Duration::from_secs(60), steal_ratio)
    }

    /// An answer with an objection to what is said.
    pub(crate) fn objected(verdict: &str, finding: &str) -> Judged {
        let mut one = judged(verdict, finding, 0.0);
        one.outcome.answer.objection = Some("it would give 144".to_owned());
        one
    }

    #[test]
    fn the_generator_is_an_excuse_only_while_a_hypervisor_takes_its_cpu_time() {
        for (verdict, finding, steal_ratio, expect) in [
            ("found", "generator_limited", 0.0, false),
            ("found", "generator_limited", STEAL_MIN, false),
            ("found", "generator_limited", 0.02, true),
            ("found", "", 0.02, false),
            ("found", "one_thread_full", 0.02, false),
            ("invalid", "generator_limited", 0.0, true),
            ("undecidable", "", 0.0, true),
            ("undecidable", "one_thread_full", 0.02, false),
        ] {
            let one = judged(verdict, finding, steal_ratio);
            assert_eq!(one.is_undecided(), expect, "{verdict}, {finding}, {steal_ratio} stolen");
            assert!(!one.is_right());
        }
        assert!(judged("found", "line_rate", 0.0).is_right());
        let contradicts = objected("found", "line_rate");
        assert!(!contradicts.is_right() && !contradicts.is_undecided());
    }
}
