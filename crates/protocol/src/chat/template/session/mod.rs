//! One connection of such a chat: the messages of the join one after the other, then what is said
//! and heard.

use std::collections::VecDeque;
use std::time::Instant;

use throng_observation::{ChatCounters, Failure, FailureReason};
use throng_scenario::{ChatText, ChatVariable, chat_pattern_is_in, masked_text};

mod answer;

use super::TemplateConfig;
use crate::chat::event_stream::StreamEvent;
use crate::chat::session::{Event, Incoming, Outgoing, Post, PostId, Session, is_final};
use crate::excerpt::excerpt;
use crate::participant::{Message, Why};

/// Longest text of an event with its type before each line, bytes: four times the longest data.
const TEXT_LEN_MAX: usize = 4 << 20;

/// Other nicknames that are tried where one is taken.
const NICKS_MAX: u32 = 5;

/// The connection.
pub(in crate::chat) struct Template {
    config: TemplateConfig,
    state: State,
    /// The nickname that it wants, and the one that it tries.
    wanted: String,
    nick: String,
    tried: u32,
    /// The number of the next request.
    next_post: u32,
    keep_alive_at: Option<Instant>,
    /// When the answer to a sign of life is late.
    overdue_at: Option<Instant>,
    traffic: ChatCounters,
    sent: VecDeque<Outgoing>,
}

enum State {
    Closed,
    /// It waits for the answer to this message of the join.
    Joins {
        step: usize,
        /// Until a line of the server has it in it; `None`: it did, or nothing is expected.
        expect: Option<String>,
        /// Until this request is answered; `None`: it was, or is none.
        post: Option<PostId>,
        overdue_at: Instant,
    },
    Joined,
}

impl Template {
    pub(in crate::chat) fn new(config: TemplateConfig) -> Self {
        Self {
            state: State::Closed,
            wanted: config.nick.clone(),
            nick: config.nick.clone(),
            tried: 1,
            next_post: 0,
            keep_alive_at: None,
            overdue_at: None,
            traffic: ChatCounters::default(),
            sent: VecDeque::new(),
            config,
        }
    }

    /// A text with its values; `with`: what is said, or the rest of a line.
    fn filled(&self, text: &ChatText, with: &str) -> String {
        self.config.filled(text, &self.nick, with)
    }

    fn is_in(&self, pattern: &ChatText, line: &str) -> bool {
        chat_pattern_is_in(&self.filled(pattern, ""), line)
    }

    /// The beginning of what the server said.
    fn excerpt(&self, line: &str) -> String {
        excerpt(&self.config.without_token(line))
    }

    /// Sends a text; over an event stream to `path`, as the request that is returned.
    fn send(&mut self, text: &ChatText, with: &str, path: Option<&ChatText>) -> Option<PostId> {
        let text = self.filled(text, with);
        self.traffic.frames_sent += 1;
        self.traffic.bytes_sent += text.len() as u64;
        if !self.config.has_event_stream {
            self.sent.push_back(Outgoing::Frame(match self.config.template.binary {
                true => Message::Binary(text.into_bytes()),
                false => Message::Text(text),
            }));
            return None;
        }
        let id = PostId(self.next_post);
        self.next_post = self.next_post.wrapping_add(1);
        let path = path.or(self.config.template.http.post.as_ref());
        let path = path.map(|path| self.config.path(path, &self.nick));
        self.sent.push_back(Outgoing::Post(Post { id, path, body: text }));
        Some(id)
    }

    /// Sends the messages of the join from `step` on, up to one that is answered; each request is.
    fn join(&mut self, now: Instant, step: usize) -> Vec<Event> {
        let template = std::sync::Arc::clone(&self.config.template);
        for (index, item) in template.join.iter().enumerate().skip(step) {
            let post = self.send(&item.send, "", item.path.as_ref());
            let expect = item.expect.as_ref().map(|expect| self.filled(expect, ""));
            if expect.is_some() || post.is_some() {
                let overdue_at = now + self.config.answer_within;
                self.state = State::Joins { step: index, expect, post, overdue_at };
                return Vec::new();
            }
        }
        self.state = State::Joined;
        self.keep_alive_at = template.keep_alive.as_ref().map(|keep_alive| now + keep_alive.every);
        vec![Event::Joined]
    }

    /// A message of the join was perhaps answered: the next one.
    fn join_on(&mut self, now: Instant) -> Vec<Event> {
        match self.state {
            State::Joins { step, expect: None, post: None, .. } => self.join(now, step + 1),
            _ => Vec::new(),
        }
    }

    /// Takes a line of a message: what it means for the join, and whether it has to be answered.
    fn line(&mut self, now: Instant, line: &str) -> Result<Vec<Event>, Failure> {
        let template = std::sync::Arc::clone(&self.config.template);
        if let Some(pong) = &template.pong
            && let Some(rest) = line.strip_prefix(pong.on.written())
        {
            self.send(&pong.send, rest, template.http.pong.as_ref());
            return Ok(Vec::new());
        }
        let awaited =
            template.keep_alive.as_ref().and_then(|keep_alive| keep_alive.expect.as_ref());
        if self.overdue_at.is_some() && awaited.is_some_and(|expect| self.is_in(expect, line)) {
            self.overdue_at = None;
        }
        if template.kicked.iter().any(|pattern| self.is_in(pattern, line)) {
            return Err(Failure::new(
                FailureReason::Kicked,
                format!("removed from the room: {}", self.excerpt(line)),
            ));
        }
        if !matches!(self.state, State::Joins { .. }) {
            return Ok(Vec::new());
        }
        if template.nick_taken.as_ref().is_some_and(|pattern| self.is_in(pattern, line)) {
            return self.next_nick(now, line);
        }
        if template.refused.iter().any(|pattern| self.is_in(pattern, line)) {
            return Err(Failure::new(
                FailureReason::Refused,
                format!("refused: {}", self.excerpt(line)),
            ));
        }
        if let State::Joins { expect, .. } = &mut self.state {
            expect.take_if(|expect| chat_pattern_is_in(expect, line));
        }
        Ok(self.join_on(now))
    }

    /// The text of a message of the WebSocket.
    fn text(&mut self, message: Message) -> Result<String, Failure> {
        self.traffic.frames_received += 1;
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(bytes) if self.config.template.binary => String::from_utf8(bytes)
                .map_err(|error| {
                    self.traffic.bytes_received += error.as_bytes().len() as u64;
                    protocol("a binary message that is not text in UTF-8")
                })?,
            Message::Binary(bytes) => {
                self.traffic.bytes_received += bytes.len() as u64;
                return Err(protocol(
                    "a binary message, where the template says that messages are text (binary = \
                     true)",
                ));
            }
        };
        self.traffic.bytes_received += text.len() as u64;
        Ok(text)
    }

    /// Its nickname is taken: the join begins again where it was named.
    fn next_nick(&mut self, now: Instant, line: &str) -> Result<Vec<Event>, Failure> {
        if self.tried >= NICKS_MAX {
            let detail = format!("all nicknames that were tried are taken: {}", self.excerpt(line));
            return Err(Failure::new(FailureReason::Refused, detail));
        }
        self.tried += 1;
        self.nick = format!("{}-{}", self.wanted, self.tried);
        let named =
            self.config.template.join.iter().position(|step| step.send.has(ChatVariable::Nick));
        Ok(self.join(now, named.unwrap_or(0)))
    }
}

impl Session for Template {
    fn opened(&mut self, now: Instant) -> Vec<Event> {
        self.join(now, 0)
    }

    fn receive(&mut self, now: Instant, incoming: Incoming) -> Result<Vec<Event>, Failure> {
        let text = match incoming {
            Incoming::Frame(message) => self.text(message)?,
            Incoming::Event(event) => {
                self.traffic.frames_received += 1;
                typed(&event)?
            }
            Incoming::Answer(post, result) => return self.answered(now, post, result),
        };
        let mut events = Vec::new();
        for line in text.lines() {
            events.extend(self.line(now, line)?);
        }
        events.push(Event::Heard(text));
        Ok(events)
    }

    fn say(&mut self, text: &str) {
        let template = std::sync::Arc::clone(&self.config.template);
        self.send(&template.say, text, None);
    }

    /// A template has no words for it.
    fn change_nick(&mut self, _nick: &str) {}

    fn leave(&mut self) {
        let template = std::sync::Arc::clone(&self.config.template);
        if let (State::Joins { .. } | State::Joined, Some(leave)) = (&self.state, &template.leave) {
            self.send(leave, "", template.http.leave.as_ref());
        }
        (self.state, self.keep_alive_at, self.overdue_at) = (State::Closed, None, None);
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.sent.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        let join = match &self.state {
            State::Joins { overdue_at, .. } => Some((*overdue_at, "answer overdue")),
            State::Closed | State::Joined => None,
        };
        let answer = self.overdue_at.map(|at| (at, "answer to a keep-alive message overdue"));
        let sign = self.keep_alive_at.map(|at| (at, "keep-alive message"));
        join.into_iter().chain(answer).chain(sign).min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        let within = self.config.answer_within.as_secs_f64();
        let late = |detail| Err(Failure::new(FailureReason::SignallingTimeout, detail));
        match &self.state {
            State::Joins { expect, overdue_at, step, .. } if now >= *overdue_at => {
                let what = match expect {
                    Some(expect) => format!("`{}`", excerpt(&masked_text(expect))),
                    None => "answer".to_owned(),
                };
                return late(format!(
                    "no {what} within {within} s after message {} of the join",
                    step + 1
                ));
            }
            _ => {}
        }
        if self.overdue_at.is_some_and(|at| now >= at) {
            return late(format!("no answer to a keep-alive message within {within} s"));
        }
        let template = std::sync::Arc::clone(&self.config.template);
        if let Some(keep_alive) = &template.keep_alive
            && self.keep_alive_at.is_some_and(|at| now >= at)
        {
            self.send(&keep_alive.send, "", template.http.keep_alive.as_ref());
            self.keep_alive_at = Some(now + keep_alive.every);
            if keep_alive.expect.is_some() {
                self.overdue_at.get_or_insert(now + self.config.answer_within);
            }
        }
        Ok(())
    }

    fn is_joined(&self) -> bool {
        matches!(self.state, State::Joined)
    }

    /// A template does not say who is there.
    fn occupants(&self) -> usize {
        0
    }

    fn nick(&self) -> &str {
        &self.nick
    }

    fn take_traffic(&mut self) -> ChatCounters {
        std::mem::take(&mut self.traffic)
    }

    /// What the template calls refused is said by the server in its own words.
    fn is_final(&self, failure: &Failure) -> bool {
        is_final(failure) || failure.reason == FailureReason::Refused
    }
}

/// The text of an event. Its type is a part of each line, so that texts can tell events from each
/// other.
fn typed(event: &StreamEvent) -> Result<String, Failure> {
    // A server that sends a million empty lines does not get its type written out a million times.
    let lines = event.data.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let len =
        lines.saturating_mul(event.name.len() + ": \n".len()).saturating_add(event.data.len());
    if len > TEXT_LEN_MAX {
        return Err(protocol("an event of too many lines"));
    }
    Ok(event.data.split('\n').map(|line| format!("{}: {line}\n", event.name)).collect())
}

fn protocol(detail: &str) -> Failure {
    Failure::new(FailureReason::Protocol, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_an_event_is_before_each_of_its_lines_and_does_not_fill_the_memory() {
        let event =
            |name: &str, data: &str| StreamEvent { name: name.to_owned(), data: data.to_owned() };
        assert_eq!(typed(&event("say", "a\nb")).unwrap(), "say: a\nsay: b\n");
        assert_eq!(typed(&event("say", "")).unwrap(), "say: \n");
        let (name, data) = ("e".repeat(256), "\n".repeat(1_000_000));
        assert!(typed(&event(&name, &data)).is_err(), "256 MB");
        let text = typed(&event("message", &"x".repeat(1 << 20))).unwrap();
        assert!(text.len() > 1 << 20);
    }
}
