//! Who is in the room (XEP-0045), as far as a participant has to know.

use std::collections::BTreeSet;

use throng_observation::{Failure, FailureReason};

use super::stanzas::ns;
use super::xml::{Element, unescaped};
use crate::excerpt::excerpt;

/// Other nicknames that are tried where one is taken.
const NICKS_MAX: u32 = 5;

/// The room from one participant's place.
#[derive(Debug)]
pub(super) struct Room {
    /// Its address.
    address: String,
    /// Its nickname.
    own: Wish,
    /// The nickname that it has asked for in place of its own.
    change: Option<Wish>,
    others: BTreeSet<Box<str>>,
}

/// A nickname that was asked for, and the one that is tried now.
#[derive(Debug)]
struct Wish {
    wanted: String,
    nick: String,
    tried: u32,
}

impl Wish {
    fn new(wanted: &str) -> Self {
        Self { wanted: wanted.to_owned(), nick: wanted.to_owned(), tried: 1 }
    }

    /// Tries another one; `false` where enough were tried.
    fn next(&mut self) -> bool {
        if self.tried >= NICKS_MAX {
            return false;
        }
        self.tried += 1;
        self.nick = format!("{}-{}", self.wanted, self.tried);
        true
    }
}

/// What a presence was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoomEvent {
    /// Its own: all others came before (status 110).
    Joined,
    /// Somebody came.
    Entered(String),
    /// Its nickname is taken, and it tries another one.
    NickTaken,
    /// Its nickname has changed to this one.
    Renamed(String),
    /// The nickname that it asked for is taken, and it tries this one.
    ChangeTaken,
    /// It keeps its nickname, and why.
    ChangeRefused(String),
}

impl Room {
    pub(super) fn new(address: &str, nick: &str) -> Self {
        let address = address.to_owned();
        Self { address, own: Wish::new(nick), change: None, others: BTreeSet::new() }
    }

    /// Its own address in the room.
    pub(super) fn occupant(&self) -> String {
        format!("{}/{}", self.address, self.own.nick)
    }

    /// Its nickname.
    pub(super) fn nick(&self) -> &str {
        &self.own.nick
    }

    pub(super) fn is_own(&self, nick: &str) -> bool {
        self.own.nick == nick
    }

    /// Wants another nickname: the address to ask for is that of [`Self::wanted_occupant`].
    pub(super) fn wants(&mut self, nick: &str) {
        self.change = Some(Wish::new(nick));
    }

    /// The address in the room that it has asked for.
    pub(super) fn wanted_occupant(&self) -> Option<String> {
        self.change.as_ref().map(|wish| format!("{}/{}", self.address, wish.nick))
    }

    /// Nicknames of the others.
    pub(super) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|nick| &**nick)
    }

    /// Others in it.
    pub(super) fn occupants(&self) -> usize {
        self.others.len()
    }

    /// Takes a presence; fails where this participant has been put out, or is not let in.
    pub(super) fn presence(
        &mut self,
        presence: &Element<'_>,
    ) -> Result<Option<RoomEvent>, Failure> {
        let from = presence.attribute("from").map(unescaped).unwrap_or_default();
        let nick = match from.split_once('/') {
            Some((room, nick)) if room == self.address => nick,
            None if *from == *self.address => "",
            // One of its own account, not of the room.
            _ => return Ok(None),
        };
        match presence.attribute("type") {
            None => Ok(self.available(presence, nick)),
            Some("unavailable") => self.unavailable(presence, nick),
            Some("error") if self.change.is_some() => Ok(Some(self.change_refused(presence))),
            Some("error") => self.refused(presence).map(Some),
            Some(_) => Ok(None),
        }
    }

    fn available(&mut self, presence: &Element<'_>, nick: &str) -> Option<RoomEvent> {
        // Nearly all are of others, whose status need not be looked for.
        if nick == self.own.nick {
            return statuses(presence).any(|code| code == "110").then_some(RoomEvent::Joined);
        }
        self.others.insert(nick.into()).then(|| RoomEvent::Entered(nick.to_owned()))
    }

    fn unavailable(
        &mut self,
        presence: &Element<'_>,
        nick: &str,
    ) -> Result<Option<RoomEvent>, Failure> {
        if nick != self.own.nick {
            self.others.remove(nick);
            return Ok(None);
        }
        let codes: Vec<&str> = statuses(presence).collect();
        let has = |code: &str| codes.contains(&code);
        if has("303") {
            // It has another nickname (XEP-0045 section 7.6); its presence by that name follows.
            let item = presence.child_of("x", ns::MUC_USER).and_then(|x| x.child("item"));
            let Some(nick) = item.and_then(|item| item.attribute("nick")) else { return Ok(None) };
            self.own = Wish::new(&unescaped(nick));
            self.change = None;
            return Ok(Some(RoomEvent::Renamed(self.own.nick.clone())));
        }
        let is_ended =
            presence.child_of("x", ns::MUC_USER).is_some_and(|x| x.child("destroy").is_some());
        let (reason, what) = match () {
            () if is_ended => (FailureReason::RoomEnded, "the room was destroyed"),
            () if has("301") => (FailureReason::Kicked, "banned from the room (status 301)"),
            () if has("307") => (FailureReason::Kicked, "kicked from the room (status 307)"),
            () if has("332") => (FailureReason::RoomEnded, "the service shuts down (status 332)"),
            () => (FailureReason::Kicked, "removed from the room"),
        };
        Err(Failure::new(reason, what))
    }

    /// It does not get the nickname that it asked for.
    fn change_refused(&mut self, presence: &Element<'_>) -> RoomEvent {
        let condition = condition(presence);
        if condition == "conflict" && self.change.as_mut().is_some_and(Wish::next) {
            return RoomEvent::ChangeTaken;
        }
        self.change = None;
        RoomEvent::ChangeRefused(excerpt(condition))
    }

    /// XEP-0045 section 7.2.
    fn refused(&mut self, presence: &Element<'_>) -> Result<RoomEvent, Failure> {
        let (error, condition) = (presence.child("error"), condition(presence));
        if condition == "conflict" && self.own.next() {
            return Ok(RoomEvent::NickTaken);
        }
        let text = error.and_then(|error| error.child("text")).map(|text| text.text().into_owned());
        let (reason, what) = match condition {
            "not-authorized" => (FailureReason::Unauthorized, "the room needs a password"),
            "forbidden" => (FailureReason::Unauthorized, "banned from the room"),
            "registration-required" => (FailureReason::Unauthorized, "the room is for members"),
            "item-not-found" => {
                (FailureReason::NoSuchRoom, "the room does not exist, or is locked")
            }
            "not-allowed" => {
                (FailureReason::NoSuchRoom, "the room does not exist, and may not be made")
            }
            "service-unavailable" => (FailureReason::RoomFull, "the room is full"),
            "conflict" => (FailureReason::Refused, "all nicknames that were tried are taken"),
            _ => (FailureReason::Refused, "the room refuses"),
        };
        let said = text.map(|text| format!(": {}", excerpt(&text))).unwrap_or_default();
        Err(Failure::new(reason, format!("{what} ({}){said}", excerpt(condition))))
    }
}

/// The condition of an error (RFC 6120 section 8.3).
fn condition<'a>(presence: &Element<'a>) -> &'a str {
    let error = presence.child("error");
    let condition = error.and_then(|error| error.children().find(|child| child.name != "text"));
    condition.map_or("unknown", |condition| condition.name)
}

/// Codes of a presence (XEP-0045 section 15.6).
fn statuses<'a>(presence: &Element<'a>) -> impl Iterator<Item = &'a str> {
    let x = presence.child_of("x", ns::MUC_USER);
    let children = x.into_iter().flat_map(|x| x.children());
    children.filter(|child| child.name == "status").filter_map(|status| status.attribute("code"))
}
