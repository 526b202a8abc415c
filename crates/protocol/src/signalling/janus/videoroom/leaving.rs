//! How a participant leaves. The last one destroys the room that the run made.

use std::time::Instant;

use serde_json::json;

use super::config::room_json;
use super::said::Said;
use super::{Ask, State, VideoRoom};
use crate::signalling::janus::session::Handle;
use crate::signalling::response_deadline::{GOODBYE_WITHIN, ResponseDeadline};
use crate::signalling::room::RoomOutput;

impl VideoRoom {
    pub(super) fn leave(&mut self, now: Instant, others_follow: bool) {
        match self.state {
            State::Idle | State::Over => {
                self.state = State::Over;
                return self.outputs.push_back(RoomOutput::Goodbye);
            }
            // No session id yet: closing the connection is all there is to say.
            State::Opening(_) => return self.goodbye(),
            State::Leaving(_) => return,
            State::Entering | State::Present => {}
        }
        if let Some(handle) = self.publisher {
            let why = "Janus: the goodbye";
            if matches!(self.state, State::Present) {
                // Between the look whether the room is empty and its end somebody could come in.
                let may_end = self.config.new_room.is_some() && !others_follow;
                let ask = if may_end { Ask::Leave } else { Ask::Farewell };
                self.ask(now, handle, json!({ "request": "leave" }), None, (ask, why));
                self.state = State::Leaving(ResponseDeadline::new(now, GOODBYE_WITHIN, why));
                if ask == Ask::Leave {
                    return;
                }
            }
        }
        self.end_session(now);
    }

    /// The last participant destroys the room: the server answers requests one after another, so that one of them sees it
    /// empty.
    pub(super) fn who_is_left(&mut self, now: Instant, handle: Handle) {
        let list = json!({ "request": "listparticipants", "room": room_json(&self.config.room) });
        self.ask(now, handle, list, None, (Ask::WhoIsLeft, "Janus: the goodbye"));
    }

    pub(super) fn destroy_if_empty(&mut self, now: Instant, handle: Handle, said: &Said) {
        if let Some(room) = &self.config.new_room
            && said.participants.as_ref().is_some_and(Vec::is_empty)
        {
            // Waited for: Janus takes messages to plugins in threads of their own, and would end the session before.
            let end = room.end(&self.config.room);
            self.ask(now, handle, end, None, (Ask::EndRoom, "Janus: the goodbye"));
            self.state = State::Leaving(ResponseDeadline::new(now, GOODBYE_WITHIN, "Janus: the goodbye"));
        } else {
            self.end_session(now);
        }
    }

    /// The end of the session detaches its handles and frees their ports.
    pub(super) fn end_session(&mut self, now: Instant) {
        let destroy = self.session.destroy(now, Ask::Destroy);
        self.say(destroy);
        self.state = State::Leaving(ResponseDeadline::new(now, GOODBYE_WITHIN, "Janus: the goodbye"));
    }

    pub(super) fn goodbye(&mut self) {
        self.state = State::Over;
        self.outputs.push_back(RoomOutput::Close);
        self.outputs.push_back(RoomOutput::Goodbye);
    }
}
