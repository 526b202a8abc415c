//! Answers to what was posted, where the chat speaks over an event stream.

use std::time::Instant;

use http::StatusCode;
use throng_observation::{Failure, FailureReason};

use super::{State, Template};
use crate::chat::session::{Answer, Event, PostId};
use crate::excerpt;
use crate::participant::ChannelError;

/// Statuses of the request's class that say that it may succeed later (RFC 9110 section 15.5, RFC
/// 8470, RFC 6585).
const LATER: [u16; 3] = [408, 425, 429];

impl Template {
    /// What was posted is over: a text that is expected may be in the answer, whose first line is
    /// its status.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        id: PostId,
        result: Result<Answer, ChannelError>,
    ) -> Result<Vec<Event>, Failure> {
        let is_of_join = self.awaits(id);
        let step = self.step();
        let answer = match result {
            Ok(answer) => answer,
            Err(error) if is_of_join => {
                let Failure { reason, detail } = error.into();
                return Err(Failure::new(reason, format!("message {step} of the join: {detail}")));
            }
            Err(error) => {
                return Ok(vec![Event::Anomaly(format!("a POST was not answered: {error}"))]);
            }
        };
        self.traffic.frames_received += 1;
        let status = format!("HTTP {}", answer.status);
        let mut events = Vec::new();
        for line in std::iter::once(status.as_str()).chain(answer.body.lines()) {
            events.extend(self.line(now, line)?);
            if is_of_join && !self.awaits(id) {
                // Another nickname is tried.
                return Ok(events);
            }
        }
        // A success, or where to look at it, which is not looked at.
        if (200..400).contains(&answer.status) {
            if let State::Joins { post, .. } = &mut self.state {
                post.take_if(|post| *post == id);
            }
            events.extend(self.join_on(now));
        } else if is_of_join {
            return Err(self.refusal(&answer, step));
        } else {
            events.push(Event::Anomaly(format!("the answer to a POST: {}", self.said(&answer))));
        }
        Ok(events)
    }

    /// Whether the join waits for the answer to this request.
    fn awaits(&self, id: PostId) -> bool {
        matches!(&self.state, State::Joins { post: Some(post), .. } if *post == id)
    }

    /// The message of the join that is to be answered, from 1.
    fn step(&self) -> usize {
        match self.state {
            State::Joins { step, .. } => step + 1,
            State::Closed | State::Joined => 0,
        }
    }

    /// Why a message of the join was not accepted. Whether the server may accept it later is said
    /// by its status.
    fn refusal(&self, answer: &Answer, step: usize) -> Failure {
        let detail = format!("the answer to message {step} of the join: {}", self.said(answer));
        let reason = match answer.status {
            401 => FailureReason::Unauthorized,
            400..=499 if !LATER.contains(&answer.status) => FailureReason::Refused,
            status => FailureReason::HttpStatus(status),
        };
        Failure::new(reason, detail)
    }

    fn said(&self, answer: &Answer) -> String {
        let words =
            StatusCode::from_u16(answer.status).ok().and_then(|status| status.canonical_reason());
        let words = words.map_or_else(String::new, |words| format!(" {words}"));
        let said = excerpt::after_colon(&self.config.without_token(&answer.body));
        format!("HTTP status {}{words}{}{said}", answer.status, answer.retry_after)
    }
}
