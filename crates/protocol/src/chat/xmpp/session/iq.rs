//! What a stream asks of its server, and says.

use std::time::Instant;

use throng_scenario::VcardPolicy;

use super::{Step, Stream};
use crate::chat::xmpp::management::Management;
use crate::chat::xmpp::stanzas::{self, ns};

/// A request that was not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingIq {
    Bind,
    Session,
    HostInfo,
    RoomInfo,
    /// Of the room that it was in before the connection broke.
    RoomInfoAgain,
    RegisteredNick,
    History,
    Vcard,
    Ping,
    /// Its answer leads to nothing.
    Other,
}

impl Stream {
    /// Says something to the room.
    pub(super) fn message_to_room(&mut self, body: &str) {
        let (id, _) = self.ids.uuid();
        if self.config.has_chat_states {
            // Who types is seen by everybody.
            let (state, _) = self.ids.uuid();
            self.send(stanzas::chat_state(&state, &self.config.room, "composing"));
        }
        self.send(stanzas::message(
            &id,
            &self.jid,
            &self.config.room,
            body,
            self.config.has_chat_states,
        ));
    }

    /// What a closed tab sends.
    pub(super) fn say_goodbye(&mut self) {
        if self.step >= Step::Joins {
            self.send(stanzas::leave(&self.jid, &self.room.occupant()));
        }
        if self.step != Step::Closed {
            self.send(stanzas::close());
        }
    }

    pub(super) fn ask(&mut self, asked: PendingIq, frame: impl FnOnce(&Self, &str) -> String) {
        let (id, number) = self.ids.uuid();
        self.asked.insert(number, asked);
        let suffix = if matches!(asked, PendingIq::Other) { ":roster" } else { ":sendIQ" };
        let frame = frame(self, &format!("{id}{suffix}"));
        self.send(frame);
    }

    /// Asks for the nickname that it wants.
    pub(super) fn ask_nick(&mut self) {
        let Some(occupant) = self.room.wanted_occupant() else { return };
        let (id, _) = self.ids.uuid();
        self.send(stanzas::nickname(&id, &self.jid, &occupant));
    }

    /// Asks for an address.
    pub(super) fn bind(&mut self, now: Instant) {
        self.asked.insert(0, PendingIq::Bind);
        self.send(stanzas::bind("_bind_auth_2"));
        self.go(now, Step::Binds);
    }

    /// It has an address: what it is used with.
    pub(super) fn bound(&mut self, now: Instant) {
        if self.offers_management && self.config.has_management {
            self.send(stanzas::enable_management());
            self.go(now, Step::Enables);
        } else {
            self.online(now);
        }
    }

    /// The stream of before goes on: sends again what did not arrive, and enters the room again, as
    /// ConverseJS does in any case.
    pub(super) fn resumed(&mut self, now: Instant) {
        self.is_resumed = true;
        let again = self.management.as_mut().map(Management::take_unacked).unwrap_or_default();
        again.into_iter().for_each(|frame| self.send(frame));
        self.go(now, Step::Online);
        self.ask(PendingIq::RoomInfoAgain, |own, id| {
            stanzas::disco(id, &own.jid, &own.config.room, ns::DISCO_INFO)
        });
    }

    /// It has an address: asks what ConverseJS asks before it joins.
    pub(super) fn online(&mut self, now: Instant) {
        self.go(now, Step::Online);
        self.ask(PendingIq::HostInfo, |own, id| {
            stanzas::disco(id, &own.jid, &own.config.domain, ns::DISCO_INFO)
        });
        self.ask(PendingIq::Other, |_, id| stanzas::roster(id));
        self.ask(PendingIq::Vcard, |_, id| stanzas::vcard(id, None));
        self.ask(PendingIq::Vcard, |own, id| stanzas::vcard(id, Some(&own.config.room)));
        self.ask(PendingIq::RoomInfo, |own, id| {
            stanzas::disco(id, &own.jid, &own.config.room, ns::DISCO_INFO)
        });
    }

    pub(super) fn join(&mut self, now: Instant) {
        let (id, _) = self.ids.uuid();
        self.send(stanzas::join(&id, &self.jid, &self.room.occupant()));
        self.go(now, Step::Joins);
    }

    /// Asks for the vCards of those who wrote what the archive has.
    pub(super) fn ask_authors(&mut self) {
        let authors = std::mem::take(&mut self.authors);
        if self.config.vcards != VcardPolicy::None {
            authors.iter().for_each(|nick| self.ask_vcard(nick));
        }
    }

    /// Asks for the vCard of an occupant, once.
    pub(super) fn ask_vcard(&mut self, nick: &str) {
        if self.room.is_own(nick) || !self.known.insert(hash(nick)) {
            return;
        }
        let to = format!("{}/{nick}", self.config.room);
        self.ask(PendingIq::Vcard, |_, id| stanzas::vcard(id, Some(&to)));
    }
}

/// Names are remembered by a hash: a room may have thousands.
fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
