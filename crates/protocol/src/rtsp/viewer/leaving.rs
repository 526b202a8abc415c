//! The ways out: asked to leave, after a failure, and what is said with the goodbye.

use std::time::Instant;

use throng_observation::{Failure, Outcome};

use super::Viewer;
use crate::participant::Output;

impl Viewer {
    pub(super) fn leave(&mut self, now: Instant) {
        self.part(now, self.session.outcome_of_leaving());
    }

    /// Leaves with `failure`; one that leaves already ends with that.
    pub(super) fn fail(&mut self, now: Instant, failure: Failure) {
        if self.session.life.is_leaving() {
            return self.session.over();
        }
        self.part(now, Outcome::Failed(failure));
    }

    fn part(&mut self, now: Instant, outcome: Outcome) {
        if !self.session.life.is_ending() {
            self.say_goodbye(now);
            self.session.part(now, outcome);
        }
    }

    /// Ends the media: what still arrives is not counted, nor reported after the end.
    fn say_goodbye(&mut self, now: Instant) {
        let Some(mut receiver) = self.receiver.take() else { return };
        receiver.finish(now);
        for at in 0..self.session.tracks.len() {
            self.session.send_rtcp(at, receiver.goodbye());
        }
        self.session.life.extend(receiver.take_observed().map(Output::Observed));
    }
}
