//! What the coordinator has decided, until the bus has stored it. The bus comes first: whoever
//! collects the run has to know whose rows come from whom, and the decisions have numbers without
//! gaps, so that no later one is of use before.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use throng_fleet::message::{Decision, Reassignment};

/// From an attempt that failed to the next one.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Participants that are given to others, and what is told of it once that is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// What the others have to know.
    pub(super) reassignment: Reassignment,
    /// How many join anew.
    pub(super) anew: u32,
    /// As a sentence.
    pub(super) detail: String,
}

/// The decisions that wait, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    waiting: VecDeque<Decision>,
    /// What is told of those among them that give participants to others: how many join anew, and a
    /// sentence.
    told: VecDeque<(u32, String)>,
    again_at: Option<Instant>,
}

impl Decisions {
    /// One more of them is a reassignment, which is told so.
    pub(super) fn tell(&mut self, anew: u32, detail: String) {
        self.told.push_back((anew, detail));
    }

    /// Takes later ones.
    pub(super) fn extend(&mut self, decisions: Vec<Decision>) {
        self.waiting.extend(decisions);
    }

    /// Lets the bus keep what waits, in its order, until it does not: `keep` is asked for that one
    /// again after a while. Returns what the others have to know now.
    pub(super) fn keep_all(
        &mut self,
        now: Instant,
        keep: impl Fn(&Decision) -> bool,
    ) -> Vec<Given> {
        let mut given = Vec::new();
        if self.again_at.is_some_and(|at| now < at) {
            return given;
        }
        self.again_at = None;
        while let Some(decision) = self.waiting.front() {
            if !keep(decision) {
                self.again_at = Some(now + AGAIN_AFTER);
                break;
            }
            let reassignment = self.waiting.pop_front().and_then(|decision| decision.reassignment);
            if let Some(reassignment) = reassignment {
                let (anew, detail) = self.told.pop_front().unwrap_or_default();
                given.push(Given { reassignment, anew, detail });
            }
        }
        given
    }

    /// The workers whose participants nobody got, because the bus did not store who was to have
    /// them.
    pub(super) fn not_given(&self) -> impl Iterator<Item = u16> {
        self.waiting
            .iter()
            .filter(|decision| decision.reassignment.is_some())
            .map(|decision| decision.worker)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use throng_observation::RunTime;

    use super::*;

    fn decision(worker: u16, number: Option<u32>) -> Decision {
        let reassignment = number.map(|number| Reassignment {
            number,
            of: worker,
            to: vec![0],
            from: RunTime(9),
            ended: Vec::new(),
        });
        Decision { worker, gave_up: Some("silent".into()), reassignment }
    }

    #[test]
    fn a_decision_that_the_bus_does_not_store_is_kept_before_later_ones_and_told_when_it_is() {
        let (mut decisions, now) = (Decisions::default(), Instant::now());
        decisions.tell(3, "others play those of 1".into());
        decisions.extend(vec![decision(1, Some(1)), decision(2, None)]);
        let asked = RefCell::new(Vec::new());
        let keep = |stores: bool| {
            let asked = &asked;
            move |decision: &Decision| {
                asked.borrow_mut().push(decision.worker);
                stores
            }
        };
        assert!(decisions.keep_all(now, keep(false)).is_empty());
        decisions.tell(5, "others play those of 3".into());
        decisions.extend(vec![decision(3, Some(2))]);
        assert!(decisions.keep_all(now, keep(true)).is_empty(), "not at once");
        assert_eq!(decisions.not_given().collect::<Vec<_>>(), [1, 3]);
        let given = decisions.keep_all(now + AGAIN_AFTER, keep(true));
        assert_eq!(asked.take(), [1, 1, 2, 3]);
        let told: Vec<_> = given
            .iter()
            .map(|given| (given.reassignment.number, given.anew, given.detail.as_str()))
            .collect();
        assert_eq!(told, [(1, 3, "others play those of 1"), (2, 5, "others play those of 3")]);
        assert_eq!(decisions.not_given().count(), 0);
    }
}
