//! How a participant leaves. The last one destroys the room that the run created.

use std::time::Instant;

use serde_json::json;

use super::config::room_json;
use super::event::PluginEvent;
use super::{JanusRequest, State, VideoRoom};
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
            // Without a session id only the connection can be closed.
            State::Opening(_) => return self.goodbye(),
            State::Leaving(_) => return,
            State::Entering | State::Present => {}
        }
        if let Some(handle) = self.publisher {
            let why = "Janus: the goodbye";
            if matches!(self.state, State::Present) {
                // A participant could join between the check that the room is empty and its
                // destruction.
                let may_end = self.config.new_room.is_some() && !others_follow;
                let ask = if may_end { JanusRequest::Leave } else { JanusRequest::Farewell };
                self.ask(now, handle, json!({ "request": "leave" }), None, (ask, why));
                self.state = State::Leaving(ResponseDeadline::new(now, GOODBYE_WITHIN, why));
                if ask == JanusRequest::Leave {
                    return;
                }
            }
        }
        self.end_session(now);
    }

    /// The last participant destroys the room: the server answers requests one after another, so
    /// that exactly one of several leaving participants finds it empty.
    pub(super) fn who_is_left(&mut self, now: Instant, handle: Handle) {
        let list = json!({ "request": "listparticipants", "room": room_json(&self.config.room) });
        self.ask(now, handle, list, None, (JanusRequest::WhoIsLeft, "Janus: the goodbye"));
    }

    pub(super) fn destroy_if_empty(&mut self, now: Instant, handle: Handle, said: &PluginEvent) {
        if let Some(room) = &self.config.new_room
            && said.participants.as_ref().is_some_and(Vec::is_empty)
        {
            // Its answer is awaited: Janus handles plugin messages in separate threads, and could
            // end the session first.
            let end = room.end(&self.config.room);
            self.ask(now, handle, end, None, (JanusRequest::EndRoom, "Janus: the goodbye"));
            self.state =
                State::Leaving(ResponseDeadline::new(now, GOODBYE_WITHIN, "Janus: the goodbye"));
        } else {
            self.end_session(now);
        }
    }

    /// Ends the session; this detaches its handles and frees their ports.
    pub(super) fn end_session(&mut self, now: Instant) {
        let destroy = self.session.destroy(now, JanusRequest::Destroy);
        self.say(destroy);
        self.state =
            State::Leaving(ResponseDeadline::new(now, GOODBYE_WITHIN, "Janus: the goodbye"));
    }

    pub(super) fn goodbye(&mut self) {
        self.state = State::Over;
        self.outputs.push_back(RoomOutput::Close);
        self.outputs.push_back(RoomOutput::Goodbye);
    }
}
