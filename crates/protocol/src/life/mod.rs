//! The life that participants of all kinds have.
//!
//! ```text
//! idle ── start ──▶ live ── leave ──▶ leaving ── over ──▶ over
//!   ╰─────────────────┴─────────────────┴──── end ─────────▲
//! ```
//! It goes on in this order only. What a kind of participant does while it is live is a state of
//! its own, which there is no longer than that. All outputs go through the life: a phase is told
//! the first time that it is reached, and nothing follows the one end.

use std::collections::VecDeque;
use std::time::Instant;

use throng_observation::{Detail, Failure, FailureReason, Observation, Outcome, Phase};

use crate::participant::{Output, Why};

/// A life with `S` as the state of its own.
pub(crate) struct Life<S> {
    stage: Stage<S>,
    has_reached: [bool; Phase::ALL.len()],
    outputs: VecDeque<Output>,
}

enum Stage<S> {
    Idle,
    Live(S),
    /// It says goodbye, and waits for the answer until then, or for what ends by itself.
    Leaving {
        by: Option<Instant>,
        outcome: Outcome,
    },
    Over,
}

impl<S> Life<S> {
    /// One that has not begun.
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Idle,
            has_reached: [false; Phase::ALL.len()],
            outputs: VecDeque::new(),
        }
    }

    /// Begins, if it has not, with `state`.
    pub(crate) fn start(&mut self, now: Instant, state: S) {
        if matches!(self.stage, Stage::Idle) {
            self.stage = Stage::Live(state);
            self.reach(Phase::Started, now);
        }
    }

    /// The state of its own, from the start until it leaves.
    pub(crate) fn live(&self) -> Option<&S> {
        match &self.stage {
            Stage::Live(state) => Some(state),
            Stage::Idle | Stage::Leaving { .. } | Stage::Over => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn live_mut(&mut self) -> Option<&mut S> {
        match &mut self.stage {
            Stage::Live(state) => Some(state),
            Stage::Idle | Stage::Leaving { .. } | Stage::Over => None,
        }
    }

    /// Goes on with `state`, if it is live.
    pub(crate) fn enter(&mut self, state: S) {
        if let Some(live) = self.live_mut() {
            *live = state;
        }
    }

    /// Leaves with `outcome`. Whether there is a goodbye to say, whose answer it waits for until
    /// `by`, or until [`Self::over`]: one that never began is over at once, and one that leaves
    /// goes on with that.
    pub(crate) fn leave(&mut self, by: Option<Instant>, outcome: Outcome) -> bool {
        match self.stage {
            Stage::Live(_) => {
                self.stage = Stage::Leaving { by, outcome };
                true
            }
            Stage::Idle => {
                self.end(outcome);
                false
            }
            Stage::Leaving { .. } | Stage::Over => false,
        }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.stage, Stage::Leaving { .. })
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Whether it has begun to leave.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_leaving() || self.is_over()
    }

    /// When its goodbye is overdue.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, Why)> {
        match &self.stage {
            Stage::Leaving { by, .. } => by.map(|by| (by, "goodbye overdue")),
            Stage::Idle | Stage::Live(_) | Stage::Over => None,
        }
    }

    /// Ends it if its goodbye is overdue, which is reported where `is_reported` says so.
    pub(crate) fn give_up_goodbye(
        &mut self,
        now: Instant,
        is_reported: impl FnOnce(&Outcome) -> bool,
    ) {
        if let Stage::Leaving { by: Some(by), outcome } = &self.stage
            && now >= *by
        {
            if is_reported(outcome) {
                self.observe(Observation::LeaveUnanswered);
            }
            self.over();
        }
    }

    /// Ends it if it leaves.
    pub(crate) fn over(&mut self) {
        if let Stage::Leaving { outcome, .. } = &self.stage {
            let outcome = outcome.clone();
            self.end(outcome);
        }
    }

    /// Ends it as `what` has: one that leaves has waited for that, another one fails.
    pub(crate) fn end_with(&mut self, what: &str) {
        let detail = format!("{what} ended by itself");
        self.end(Outcome::Failed(Failure::new(FailureReason::SignallingClosed, detail)));
    }

    /// Ends it with `outcome`, or, if it leaves, with the outcome of that.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        let outcome = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Leaving { outcome, .. } => outcome,
            Stage::Idle | Stage::Live(_) => outcome,
        };
        self.outputs.push_back(Output::Ended(outcome));
    }

    /// Reports `phase`, which was reached at `at`.
    pub(crate) fn reach(&mut self, phase: Phase, at: Instant) {
        self.observe(Observation::Reached(phase, at));
    }

    pub(crate) fn has_reached(&self, phase: Phase) -> bool {
        self.has_reached.get(phase as usize).is_some_and(|has_reached| *has_reached)
    }

    pub(crate) fn observe(&mut self, observation: Observation) {
        self.push(Output::Observed(observation));
    }

    pub(crate) fn anomaly(&mut self, place: &'static str, detail: impl Into<Detail>) {
        self.observe(Observation::ProtocolAnomaly { place, detail: detail.into() });
    }

    /// Puts out `output`, unless it is over or this tells of a phase again.
    pub(crate) fn push(&mut self, output: Output) {
        if !self.is_over() && !self.is_told_again(&output) {
            self.outputs.push_back(output);
        }
    }

    /// Whether `output` tells of a phase that was told of; notes that it is told.
    fn is_told_again(&mut self, output: &Output) -> bool {
        let Output::Observed(Observation::Reached(phase, _)) = output else { return false };
        let has_reached = self.has_reached.get_mut(*phase as usize);
        has_reached.is_some_and(|has_reached| std::mem::replace(has_reached, true))
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// The next output.
    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

impl<S> Extend<Output> for Life<S> {
    fn extend<T: IntoIterator<Item = Output>>(&mut self, outputs: T) {
        outputs.into_iter().for_each(|output| self.push(output));
    }
}

#[cfg(test)]
mod tests;
