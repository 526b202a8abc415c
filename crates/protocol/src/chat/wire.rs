//! What carries the messages of a member: a WebSocket, or an event stream and requests.

use std::time::Duration;

use throng_observation::{Failure, Observation};

use super::event_stream::EventLink;
use super::session::Outgoing;
use super::{Config, Protocol};
use crate::participant::{Open, Output};
use crate::signalling::SIGNALLING;

/// How long after a broken WebSocket the next one is made (`debounce` of ConverseJS's `reconnect`).
const RECONNECT_AFTER: Duration = Duration::from_secs(3);

/// The connection of a member.
pub(super) enum Wire {
    WebSocket,
    Events(Box<EventLink>),
}

impl Wire {
    pub(super) fn new(config: &Config) -> Self {
        match &config.protocol {
            Protocol::Template(template) if template.has_event_stream => {
                let origin = config.chat.origin.clone();
                Self::Events(Box::new(EventLink::new(template.clone(), config.url.clone(), origin)))
            }
            Protocol::Xmpp(_) | Protocol::Template(_) => Self::WebSocket,
        }
    }

    /// Opens it.
    pub(super) fn connect(&mut self, config: &Config) -> Result<Vec<Output>, Failure> {
        match self {
            Self::WebSocket => Ok(vec![Output::Open(SIGNALLING, web_socket(config))]),
            Self::Events(link) => link.connect(),
        }
    }

    pub(super) fn send(&mut self, outgoing: Outgoing) -> Vec<Output> {
        match (self, outgoing) {
            (Self::WebSocket, Outgoing::Frame(message)) => {
                vec![Output::Signal(SIGNALLING, message)]
            }
            (Self::Events(link), Outgoing::Post(post)) => {
                link.post(post).unwrap_or_else(|failure| {
                    let detail = failure.to_string().into();
                    vec![Output::Observed(Observation::ProtocolAnomaly { place: "chat", detail })]
                })
            }
            // Sessions send what their wire carries.
            (Self::WebSocket, Outgoing::Post(_)) | (Self::Events(_), Outgoing::Frame(_)) => {
                Vec::new()
            }
        }
    }

    /// Closes what is open of it; `is_open`: the WebSocket.
    pub(super) fn close(&mut self, is_open: bool) -> Vec<Output> {
        match self {
            Self::WebSocket => is_open.then_some(Output::Close(SIGNALLING)).into_iter().collect(),
            Self::Events(link) => link.close(false),
        }
    }

    /// Closes what is left of it after it broke. A browser's requests are no part of its event
    /// stream, and go on.
    pub(super) fn broken(&mut self, is_open: bool) -> Vec<Output> {
        match self {
            Self::WebSocket => self.close(is_open),
            Self::Events(link) => link.close(true),
        }
    }

    /// Closes it once all that was sent has arrived.
    pub(super) fn finish(&mut self) -> Vec<Output> {
        match self {
            Self::WebSocket => self.close(true),
            Self::Events(link) => link.close(true),
        }
    }

    /// Whether all that was sent has arrived, as far as it is told.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::WebSocket) || matches!(self, Self::Events(link) if link.is_idle())
    }

    /// How long after a broken connection the next one is made.
    pub(super) fn reconnect_after(&self) -> Duration {
        match self {
            Self::WebSocket => RECONNECT_AFTER,
            Self::Events(link) => link.reconnect_after(),
        }
    }

    /// Whether the next connection gets what this one has missed.
    pub(super) fn replays(&self) -> bool {
        matches!(self, Self::Events(link) if link.replays())
    }

    /// Takes the bytes that came since the last time, where the session does not count them.
    pub(super) fn take_bytes(&mut self) -> u64 {
        match self {
            Self::WebSocket => 0,
            Self::Events(link) => link.take_bytes(),
        }
    }
}

/// The origin of the page: browsers send it with each WebSocket.
pub(super) fn origin(config: &Config) -> String {
    let of_server = || config.url.origin().ascii_serialization().replacen("ws", "http", 1);
    config.chat.origin.clone().unwrap_or_else(of_server)
}

fn web_socket(config: &Config) -> Open {
    let headers = vec![("Origin".to_owned(), origin(config))];
    Open::WebSocket { url: config.url.clone(), protocols: config.protocol.subprotocols(), headers }
}
