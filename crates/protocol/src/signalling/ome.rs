//! OvenMediaEngine's WebSocket signalling: the server offers, the viewer answers. Implemented from
//! its public protocol.
//!
//! ```text
//! viewer                                server
//!   {"command":"request_offer"}  ─────▶
//!                                ◀─────  {"command":"offer","id":1,"peer_id":0,"code":200,
//!                                         "sdp":{…},"candidates":[…],"iceServers":[…]}
//!   {"command":"answer","id":1,"peer_id":0,"sdp":{…}}  ─────▶
//!   {"command":"candidate","id":1,"peer_id":0,"candidates":[…]}  ─────▶      (optional)
//!   {"command":"stop","id":1}  ─────▶
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use throng_observation::{Failure, FailureReason, Url};
use throng_scenario::{IceTransportPolicy, Secret};

use super::response_deadline::{ANSWER_WITHIN, ResponseDeadline};
use super::server_message::{self, LIST_MAX};
use super::{RelayServer, SignalInput, SignalOutput, Signalling};
use crate::factory::TargetFactory;
use crate::participant::{ChannelError, Message, Open, Why};

/// The name of this server in failures and anomalies.
const SERVER: &str = "OvenMediaEngine";

/// The stream, and how to request it.
#[derive(Clone, Debug)]
pub struct Config {
    /// `ws://HOST:3333/APP/STREAM[/PLAYLIST]`, query included (`?transport=tcp` asks for the TCP
    /// relay; signed policies add theirs).
    pub url: Url,
    /// Further headers of the upgrade request, such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// The time limit for each answer.
    pub answer_within: Duration,
}

impl Config {
    /// The defaults for `url`.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self { url, headers: Vec::new(), answer_within: ANSWER_WITHIN }
    }
}

/// The ids that the server assigned to this viewer; every message about the session repeats them.
#[derive(Clone, Copy, Debug)]
struct Session {
    id: i64,
    peer_id: i64,
}

#[derive(Debug)]
enum State {
    Idle,
    Opening(ResponseDeadline),
    AwaitingOffer(ResponseDeadline),
    /// The participant has the offer and is making the answer.
    Answering(Session),
    Playing(Session),
    Over,
}

/// The signalling adapter.
#[derive(Debug)]
pub struct Ome {
    config: Config,
    state: State,
    outputs: VecDeque<SignalOutput>,
}

impl Ome {
    /// That of a viewer of the stream at `url`.
    pub(crate) fn of(factory: &TargetFactory, url: &Url) -> Self {
        let mut url = url.clone();
        if factory.ice_transport_policy == IceTransportPolicy::Relay
            && factory.turn.is_none()
            && !url.in_clear().query_pairs().any(|(key, _)| key == "transport")
        {
            // Without this parameter the server does not announce its relay.
            url.add_parameter("transport", "tcp");
        }
        let mut config = Config::new(url);
        config.answer_within = factory.timeouts.signalling;
        let bearer = |token: &String| ("Authorization".to_owned(), format!("Bearer {token}"));
        config.headers.extend(factory.token.as_ref().map(bearer));
        Self::new(config)
    }

    /// An adapter in its initial state.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, state: State::Idle, outputs: VecDeque::new() }
    }

    fn fail(&mut self, failure: Failure) {
        self.state = State::Over;
        self.outputs.push_back(SignalOutput::Failed(failure));
    }

    fn say(&mut self, command: &Command<'_>) {
        // Serialising strings and integers does not fail.
        let text = serde_json::to_string(command).unwrap_or_default();
        self.outputs.push_back(SignalOutput::Signal(Message::Text(text)));
    }

    fn anomaly(&mut self, what: String) {
        self.outputs.push_back(SignalOutput::Anomaly(what));
    }

    fn heard(&mut self, message: &Message) -> Result<(), Failure> {
        let said: ServerMessage = server_message::json(SERVER, message)?;
        if let Some(code) = said.code.filter(|code| *code != 200) {
            let error = said
                .error
                .as_deref()
                .map_or_else(|| "no reason given".into(), server_message::excerpt);
            // "Cannot create offer": the stream is not there, or not yet.
            let reason =
                if code == 404 { FailureReason::NoSuchRoom } else { FailureReason::Refused };
            return Err(Failure::new(reason, format!("{SERVER} refused: code {code}, {error}")));
        }
        match said.command.as_deref() {
            Some("offer") => self.offered(said),
            Some("candidate") => {
                self.candidates(said.candidates);
                Ok(())
            }
            Some("stop") => Err(Failure::new(
                FailureReason::SignallingClosed,
                format!("{SERVER} stopped the session"),
            )),
            // Playlists and renditions: the viewer keeps the rendition that it receives.
            Some("notification") => Ok(()),
            Some(p2p) if p2p.ends_with("_p2p") => {
                self.anomaly(format!(
                    "{SERVER}: declined {}: viewers do not relay",
                    server_message::excerpt(p2p)
                ));
                Ok(())
            }
            Some(other) => {
                self.anomaly(format!(
                    "{SERVER}: unknown command {}",
                    server_message::excerpt(other)
                ));
                Ok(())
            }
            None if said.error.is_some() => {
                let error = said.error.as_deref().map(server_message::excerpt).unwrap_or_default();
                Err(Failure::new(FailureReason::Refused, format!("{SERVER} refused: {error}")))
            }
            None => Err(server_message::broken(SERVER, "a message without command, code or error")),
        }
    }

    fn offered(&mut self, said: ServerMessage) -> Result<(), Failure> {
        if !matches!(self.state, State::AwaitingOffer(_) | State::Playing(_)) {
            self.anomaly(format!("{SERVER}: an offer that was not requested"));
            return Ok(());
        }
        let id = said.id.ok_or_else(|| server_message::broken(SERVER, "an offer without id"))?;
        let sdp = said.sdp.ok_or_else(|| server_message::broken(SERVER, "an offer without sdp"))?;
        if sdp.kind != "offer" {
            return Err(server_message::broken(
                SERVER,
                format!("sdp of type {} in an offer", server_message::excerpt(&sdp.kind)),
            ));
        }
        let sdp = server_message::session_description(SERVER, "the offer", sdp.sdp)?;
        self.state = State::Answering(Session { id, peer_id: said.peer_id.unwrap_or(0) });
        self.relays(said.ice_servers.into_iter().chain(said.ice_servers_older));
        self.outputs.push_back(SignalOutput::RemoteOffer(sdp));
        self.candidates(said.candidates);
        Ok(())
    }

    /// Both spellings of the server list carry the same servers; each server is reported once.
    fn relays(&mut self, servers: impl Iterator<Item = IceServer>) {
        let mut announced: Vec<RelayServer> = Vec::new();
        for server in servers.take(LIST_MAX) {
            let username = server.username.or(server.user_name).unwrap_or_default();
            let credential = Secret::new(server.credential.unwrap_or_default());
            for url in server.urls.into_vec().into_iter().take(LIST_MAX) {
                // STUN servers are ignored: the viewer's own checks suffice.
                if !url.starts_with("turn:") && !url.starts_with("turns:") {
                    continue;
                }
                let (username, credential) = (username.clone(), credential.clone());
                let relay = RelayServer { url, username, credential, is_signalling_host: false }
                    .with_signalling_host(self.config.url.host_str());
                if announced.len() < LIST_MAX && !announced.contains(&relay) {
                    announced.push(relay);
                }
            }
        }
        self.outputs.extend(announced.into_iter().map(SignalOutput::Relay));
    }

    fn candidates(&mut self, candidates: Vec<Candidate>) {
        if candidates.len() > LIST_MAX {
            self.anomaly(format!("{SERVER}: {} candidates; took {LIST_MAX}", candidates.len()));
        }
        let taken = candidates
            .into_iter()
            .take(LIST_MAX)
            .filter_map(|c| server_message::candidate(&c.candidate));
        self.outputs.extend(taken.map(SignalOutput::RemoteCandidate));
    }

    fn closed(&mut self, error: ChannelError) {
        match self.state {
            State::Over => {}
            State::Idle | State::Opening(_) => self.fail(error.into()),
            _ => self.fail(error.after_opening()),
        }
    }

    fn leave(&mut self) {
        if let State::Answering(session) | State::Playing(session) = self.state {
            self.say(&Command::Stop { id: session.id });
        }
        if !matches!(self.state, State::Idle | State::Over) {
            self.outputs.push_back(SignalOutput::Close);
        }
        self.state = State::Over;
        self.outputs.push_back(SignalOutput::Goodbye);
    }
}

impl Signalling for Ome {
    fn handle(&mut self, now: Instant, input: SignalInput<'_>) {
        match input {
            SignalInput::Start => {
                self.state = State::Opening(ResponseDeadline::new(
                    now,
                    self.config.answer_within,
                    "OME: the WebSocket to open",
                ));
                self.outputs.push_back(SignalOutput::Open(Open::WebSocket {
                    url: self.config.url.clone(),
                    protocols: Vec::new(),
                    headers: self.config.headers.clone(),
                }));
            }
            SignalInput::Opened(_) => {
                if matches!(self.state, State::Opening(_)) {
                    self.say(&Command::RequestOffer);
                    self.state = State::AwaitingOffer(ResponseDeadline::new(
                        now,
                        self.config.answer_within,
                        "OME: an offer after request_offer",
                    ));
                }
            }
            SignalInput::Message(message) => {
                if matches!(self.state, State::Over) {
                    return;
                }
                if let Err(failure) = self.heard(message) {
                    self.fail(failure);
                }
            }
            SignalInput::Answer(sdp) => {
                if let State::Answering(session) = self.state {
                    let sdp = Description { kind: "answer".into(), sdp };
                    self.say(&Command::Answer { id: session.id, peer_id: session.peer_id, sdp });
                    self.state = State::Playing(session);
                }
            }
            SignalInput::Candidate(candidate) => {
                if let State::Answering(session) | State::Playing(session) = self.state {
                    let candidates =
                        [Candidate { candidate: candidate.to_owned(), sdp_m_line_index: Some(0) }];
                    self.say(&Command::Candidate {
                        id: session.id,
                        peer_id: session.peer_id,
                        candidates: &candidates,
                    });
                }
            }
            SignalInput::Timeout => {
                if let State::Opening(waiting) | State::AwaitingOffer(waiting) = self.state
                    && let Some(failure) = waiting.overdue(now)
                {
                    self.fail(failure);
                }
            }
            SignalInput::Closed(error) => self.closed(error),
            SignalInput::Leave => self.leave(),
            // The protocol has no end-of-candidates and no fetches, and does not depend on the
            // transport.
            SignalInput::CandidatesDone
            | SignalInput::Connected
            | SignalInput::Fetched(..)
            | SignalInput::Offer(_) => {}
        }
    }

    fn poll_output(&mut self) -> Option<SignalOutput> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        match &self.state {
            State::Opening(waiting) | State::AwaitingOffer(waiting) => Some(waiting.deadline()),
            _ => None,
        }
    }
}

/// A message of the viewer.
#[derive(Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
enum Command<'a> {
    RequestOffer,
    Answer { id: i64, peer_id: i64, sdp: Description },
    Candidate { id: i64, peer_id: i64, candidates: &'a [Candidate] },
    Stop { id: i64 },
}

/// A message of the server; one type for all commands, because errors come with or without a
/// command.
#[derive(Deserialize)]
struct ServerMessage {
    command: Option<String>,
    id: Option<i64>,
    peer_id: Option<i64>,
    code: Option<i64>,
    /// A string; other JSON values are shown as they are.
    #[serde(default, deserialize_with = "words")]
    error: Option<String>,
    sdp: Option<Description>,
    #[serde(default)]
    candidates: Vec<Candidate>,
    #[serde(default, rename = "iceServers")]
    ice_servers: Vec<IceServer>,
    #[serde(default, rename = "ice_servers")]
    ice_servers_older: Vec<IceServer>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    #[serde(rename = "type")]
    kind: String,
    sdp: String,
}

#[derive(Serialize, Deserialize)]
struct Candidate {
    candidate: String,
    #[serde(rename = "sdpMLineIndex", skip_serializing_if = "Option::is_none")]
    sdp_m_line_index: Option<u32>,
}

#[derive(Deserialize)]
struct IceServer {
    #[serde(default)]
    urls: Urls,
    username: Option<String>,
    /// The older spelling of `username`.
    user_name: Option<String>,
    credential: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Urls {
    One(String),
    Many(Vec<String>),
}

impl Default for Urls {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Urls {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(url) => vec![url],
            Self::Many(urls) => urls,
        }
    }
}

fn words<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}
