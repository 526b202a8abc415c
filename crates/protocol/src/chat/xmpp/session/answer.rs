//! What a server says on a stream, and what follows from it.

use std::time::Instant;

use throng_observation::{Failure, FailureReason};
use throng_scenario::VcardPolicy;

use super::iq::PendingIq;
use super::{PING_AFTER, Step, Stream};
use crate::chat::session::Event;
use crate::chat::xmpp::management::{Management, Resumption};
use crate::chat::xmpp::room::RoomEvent;
use crate::chat::xmpp::sasl::{Sasl, SaslError};
use crate::chat::xmpp::stanzas::{self, ns};
use crate::chat::xmpp::xml::{Element, unescaped};
use crate::excerpt::excerpt;

impl Stream {
    /// Takes a frame of the server.
    pub(super) fn frame(&mut self, now: Instant, frame: &str) -> Result<Vec<Event>, Failure> {
        self.traffic.frames_received += 1;
        self.traffic.bytes_received += frame.len() as u64;
        let element = Element::read(frame).map_err(|error| {
            protocol(format!("a frame is not an XMPP stanza: {error}: {}", excerpt(frame)))
        })?;
        if self.step == Step::Joined {
            self.ping_at = Some(now + PING_AFTER);
            self.overdue_at = None;
        }
        if let (Some(management), "presence" | "message" | "iq") =
            (&mut self.management, element.name)
        {
            management.received();
        }
        if element.name == "close"
            && let Some(uri) = element.attribute("see-other-uri")
        {
            return Ok(vec![Event::Moved(unescaped(uri).into_owned())]);
        }
        match element.name {
            "presence" => self.presence(now, &element),
            "message" => Ok(self.message(&element)),
            "iq" => self.iq(now, &element),
            _ if element.namespace() == Some(ns::SM) => Ok(self.managed(now, &element)),
            _ => self.stream(now, &element).map(|()| Vec::new()),
        }
    }

    /// What is about stream management.
    fn managed(&mut self, now: Instant, element: &Element<'_>) -> Vec<Event> {
        let handled = || element.attribute("h").unwrap_or_default();
        match (element.name, self.step, &mut self.management) {
            ("r", _, Some(management)) => {
                let answer = management.answer();
                self.send(answer);
            }
            ("a", _, Some(management)) => {
                return management
                    .acknowledged(handled())
                    .err()
                    .map(Event::Anomaly)
                    .into_iter()
                    .collect();
            }
            ("enabled", Step::Enables, _) => {
                let may_resume = matches!(element.attribute("resume"), Some("true" | "1"));
                // An anonymous stream is not resumed: nothing is kept for that.
                let may_resume = may_resume && self.config.credentials.is_some();
                let id = element
                    .attribute("id")
                    .filter(|_| may_resume)
                    .map(|id| unescaped(id).into_owned());
                self.management = Some(Management::enabled(id));
                self.online(now);
            }
            ("failed", Step::Enables, _) => self.online(now),
            ("resumed", Step::Resumes, _) => {
                let Some(Resumption { mut management, jid }) = self.before.take() else {
                    return Vec::new();
                };
                let anomaly = management.acknowledged(handled()).err().map(Event::Anomaly);
                (self.jid, self.management) = (jid, Some(management));
                self.resumed(now);
                return std::iter::once(Event::Resumed).chain(anomaly).collect();
            }
            ("failed", Step::Resumes, _) => {
                // The server does not know it any more, or does not want to; either way it is a new
                // stream.
                self.before = None;
                self.bind(now);
            }
            _ => {}
        }
        Vec::new()
    }

    /// What is about the stream itself.
    fn stream(&mut self, now: Instant, element: &Element<'_>) -> Result<(), Failure> {
        match (element.name, self.step) {
            ("open", _) => Ok(()),
            ("stream:features" | "features", Step::Offers) => self.authenticate(now, element),
            ("stream:features" | "features", Step::Features) => {
                self.offers_management = element.child_of("sm", ns::SM).is_some();
                match &self.before {
                    Some(before) if self.offers_management => {
                        let resume = before.management.resume();
                        self.send(resume);
                        self.go(now, Step::Resumes);
                    }
                    _ => self.bind(now),
                }
                Ok(())
            }
            ("challenge", Step::Authenticates) => {
                let sasl = self
                    .sasl
                    .as_mut()
                    .ok_or_else(|| protocol("a challenge before a mechanism".to_owned()))?;
                let answer = sasl.answer(&element.text()).map_err(not_authenticated)?;
                self.send(stanzas::response(&answer));
                Ok(())
            }
            ("success", Step::Authenticates) => {
                if let Some(sasl) = &self.sasl {
                    sasl.check(&element.text()).map_err(not_authenticated)?;
                }
                self.send(stanzas::open(&self.config.domain));
                self.go(now, Step::Features);
                Ok(())
            }
            ("failure", Step::Authenticates) => {
                let why = element.children().next().map_or("", |child| child.name);
                Err(Failure::new(
                    FailureReason::Unauthorized,
                    format!("authentication: {}", excerpt(why)),
                ))
            }
            ("stream:error" | "error", _) => {
                let why = element.children().next().map_or("", |child| child.name);
                Err(Failure::new(FailureReason::Refused, format!("stream error: {}", excerpt(why))))
            }
            ("close", _) => {
                Err(Failure::new(FailureReason::SignallingClosed, "the server closes the stream"))
            }
            // What a later version of XMPP adds.
            _ => Ok(()),
        }
    }

    fn authenticate(&mut self, now: Instant, features: &Element<'_>) -> Result<(), Failure> {
        let mechanisms = features.child("mechanisms");
        let offered: Vec<String> = mechanisms
            .iter()
            .flat_map(Element::children)
            .filter(|child| child.name == "mechanism")
            .map(|child| child.text().into_owned())
            .collect();
        let names: Vec<&str> = offered.iter().map(String::as_str).collect();
        let sasl = Sasl::choose(&names, self.config.credentials.as_ref(), self.nonce.clone())
            .ok_or_else(|| {
                let who = if self.config.credentials.is_some() {
                    "an account"
                } else {
                    "anonymous participants"
                };
                let offers = if names.is_empty() {
                    "nothing".to_owned()
                } else {
                    excerpt(&names.join(", "))
                };
                Failure::new(
                    FailureReason::Unauthorized,
                    format!("{} offers {offers}, and nothing for {who}", self.config.domain),
                )
            })?;
        self.send(stanzas::auth(sasl.mechanism, &sasl.first));
        self.sasl = Some(sasl);
        self.go(now, Step::Authenticates);
        Ok(())
    }

    fn iq(&mut self, now: Instant, iq: &Element<'_>) -> Result<Vec<Event>, Failure> {
        let id = iq.attribute("id").unwrap_or_default();
        let kind = iq.attribute("type").unwrap_or_default();
        if matches!(kind, "get" | "set") {
            let to = iq.attribute("from").map(unescaped);
            self.send(stanzas::nothing(&unescaped(id), to.as_deref()));
            return Ok(Vec::new());
        }
        let number = if id.starts_with('_') { Some(0) } else { self.ids.number(id) };
        let Some(asked) = number.and_then(|number| self.asked.remove(&number)) else {
            return Ok(Vec::new());
        };
        self.answered(now, asked, iq, kind == "result")
    }

    fn answered(
        &mut self,
        now: Instant,
        asked: PendingIq,
        iq: &Element<'_>,
        is_result: bool,
    ) -> Result<Vec<Event>, Failure> {
        match asked {
            PendingIq::Bind => {
                let jid = iq.child("bind").and_then(|bind| bind.child("jid"));
                let jid = jid.ok_or_else(|| protocol("a bind without an address".to_owned()))?;
                self.jid = jid.text().into_owned();
                self.asked.insert(0, PendingIq::Session);
                self.send(stanzas::session("_session_auth_2"));
            }
            PendingIq::Session => self.bound(now),
            PendingIq::HostInfo => {
                self.ask(PendingIq::Other, |own, id| {
                    stanzas::disco(id, &own.jid, &own.config.domain, ns::DISCO_ITEMS)
                });
                self.send(stanzas::available());
            }
            PendingIq::RoomInfo => {
                self.ask(PendingIq::RegisteredNick, |own, id| {
                    stanzas::registered_nick(id, &own.jid, &own.config.room)
                });
                self.ask(PendingIq::Other, |own, id| stanzas::enable_carbons(id, &own.jid));
            }
            PendingIq::RegisteredNick | PendingIq::RoomInfoAgain => self.join(now),
            PendingIq::Vcard => self.traffic.vcards_received += u64::from(is_result),
            PendingIq::History => {
                self.reads_history = false;
                self.ask_authors();
            }
            PendingIq::Ping | PendingIq::Other => {}
        }
        Ok(Vec::new())
    }

    fn presence(&mut self, now: Instant, presence: &Element<'_>) -> Result<Vec<Event>, Failure> {
        self.traffic.presences_received += 1;
        match self.room.presence(presence)? {
            Some(RoomEvent::Joined) if self.step == Step::Joins => {
                self.go(now, Step::Joined);
                self.ping_at = Some(now + PING_AFTER);
                if self.config.history_max > 0 {
                    let (query, _) = self.ids.uuid();
                    let max = self.config.history_max;
                    self.reads_history = true;
                    self.ask(PendingIq::History, |own, id| {
                        stanzas::history(id, &own.config.room, &query, max)
                    });
                }
                if self.config.vcards == VcardPolicy::All {
                    let others: Vec<String> = self.room.others().map(str::to_owned).collect();
                    others.iter().for_each(|nick| self.ask_vcard(nick));
                }
                Ok(vec![Event::Joined])
            }
            Some(RoomEvent::NickTaken) if self.step == Step::Joins => {
                self.join(now);
                Ok(Vec::new())
            }
            Some(RoomEvent::Renamed(_)) => Ok(vec![Event::Renamed]),
            Some(RoomEvent::ChangeTaken) => {
                self.ask_nick();
                Ok(Vec::new())
            }
            Some(RoomEvent::ChangeRefused(why)) => {
                Ok(vec![Event::Anomaly(format!("the nickname was not changed: {why}"))])
            }
            Some(RoomEvent::Entered(nick))
                if self.step == Step::Joined && self.config.vcards == VcardPolicy::All =>
            {
                self.ask_vcard(&nick);
                Ok(Vec::new())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn message(&mut self, message: &Element<'_>) -> Vec<Event> {
        // From the archive, in another one (XEP-0297).
        let forwarded =
            message.child_of("result", ns::MAM).and_then(|result| result.child("forwarded"));
        let (said, is_old) = match forwarded.and_then(|forwarded| forwarded.child("message")) {
            Some(inner) => (inner, true),
            // What the server has kept for a resumed stream has a date, and is delivered late.
            None => (*message, !self.is_resumed && message.child("delay").is_some()),
        };
        let from = said.attribute("from").map(unescaped).unwrap_or_default();
        let Some((_, nick)) = from.split_once('/') else { return Vec::new() };
        let Some(body) = said.child("body") else { return Vec::new() };
        let is_groupchat = said.attribute("type") == Some("groupchat");
        if !is_groupchat {
            return Vec::new();
        }
        if is_old {
            // What a server calls old later on leads to nothing, and is not kept.
            if self.reads_history {
                self.authors.push(nick.to_owned());
            }
        } else if self.config.vcards != VcardPolicy::None {
            self.ask_vcard(nick);
        }
        vec![Event::Said { nick: nick.to_owned(), body: body.text().into_owned(), is_old }]
    }
}

/// A server that does not know the password is not the server of the account. All else is an error
/// in its protocol.
fn not_authenticated(error: SaslError) -> Failure {
    match error {
        SaslError::Malformed(detail) => protocol(detail),
        SaslError::Unproven => Failure::new(FailureReason::Unauthorized, error.to_string()),
    }
}

fn protocol(detail: String) -> Failure {
    Failure::new(FailureReason::Protocol, detail)
}
