//! Janus's core API over a WebSocket (`janus-protocol`): one session with its transactions, handles
//! and keepalive. The plugin modules decide what a handle is used for; one session may have many
//! handles.
//!
//! Source: the Janus RESTful/WebSocket API documentation. A request is answered by `success`,
//! `error` or `ack`; after an `ack`, the plugin's answer follows as an `event` with the same
//! transaction.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use throng_observation::{Failure, Url};

use super::super::response_deadline::{ANSWER_WITHIN, ResponseDeadline};
use super::super::server_message;
use crate::factory::TargetFactory;
use crate::participant::{Message, Open, Why};

/// The WebSocket subprotocol; Janus closes connections that do not request it.
pub(super) const SUBPROTOCOL: &str = "janus-protocol";

/// The name of this server in failures and anomalies.
pub(super) const SERVER: &str = "Janus";

/// Janus drops a session after 60 s without a message (`session_timeout`); at this interval one
/// keepalive may be lost.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(25);

/// How many requests may be unanswered at once; above it the server does not answer at all.
const PENDING_MAX: usize = 1024;

/// Credentials and timeouts.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// `token` of every request, for servers with token authentication.
    pub token: Option<String>,
    /// `apisecret` of every request, for servers with an API secret.
    pub api_secret: Option<String>,
    /// The time limit for each answer.
    pub answer_within: Duration,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self { token: None, api_secret: None, answer_within: ANSWER_WITHIN }
    }
}

impl SessionConfig {
    /// Those of a run's participants.
    pub(super) fn of(factory: &TargetFactory) -> Self {
        Self {
            token: factory.token.clone(),
            answer_within: factory.timeouts.signalling,
            ..Self::default()
        }
    }
}

/// A handle: the attachment to one plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// A session description as Janus wraps it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Jsep {
    /// `offer` or `answer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The SDP.
    pub sdp: String,
}

/// The meaning of a message of the server. `T` is the tag that the caller gave its request.
#[derive(Debug, PartialEq)]
pub enum SessionEvent<T> {
    /// The session was created.
    Created,
    /// A handle was created.
    Attached(T, Handle),
    /// A detach or destroy was completed.
    Done(T),
    /// A message of a plugin, with the tag of the request that it answers, if any.
    Plugin {
        /// The handle that sent it.
        handle: Handle,
        /// The tag of the request that it answers.
        answers: Option<T>,
        /// `plugindata.data`.
        data: Value,
        /// Offer or answer, if present.
        jsep: Option<Jsep>,
    },
    /// The core refused a request: Janus's error code and reason.
    Refused(Option<T>, i64, String),
    /// A candidate of the server, or `None` for end-of-candidates.
    Trickle(Handle, Option<String>),
    /// The peer connection of a handle is up (ICE and DTLS).
    WebRtcUp(Handle),
    /// The server reports lost packets: of those that it sends (`uplink` false) or of those that it
    /// receives.
    SlowLink(Handle, bool, u64),
    /// The server receives media from this side, or no longer does; meaningless for a viewer.
    Media(Handle),
    /// The peer connection of a handle was closed, with the reason.
    HungUp(Handle, String),
    /// A handle was removed.
    Detached(Handle),
    /// The session was removed: Janus received nothing from it for its `session_timeout`.
    SessionTimedOut,
    /// Nothing to act on.
    Nothing,
    /// A protocol anomaly.
    Anomaly(String),
}

#[derive(Clone, Copy, Debug)]
enum Purpose<T> {
    Create,
    Attach(T),
    /// `ack` is the whole answer.
    Acknowledged,
    /// The plugin's event, after an `ack`, or the `success` of a synchronous request.
    Plugin(T),
    End(T),
}

#[derive(Debug)]
struct Pending<T> {
    purpose: Purpose<T>,
    waiting: ResponseDeadline,
}

/// One Janus session. It builds messages and parses received ones; the caller sends them.
#[derive(Debug)]
pub struct Session<T> {
    config: SessionConfig,
    id: Option<u64>,
    transactions: u64,
    pending: BTreeMap<u64, Pending<T>>,
    keepalive_at: Option<Instant>,
}

impl<T: Copy> Session<T> {
    /// A session that is not created yet.
    #[must_use]
    pub fn new(config: SessionConfig) -> Self {
        Self { config, id: None, transactions: 0, pending: BTreeMap::new(), keepalive_at: None }
    }

    /// What to open at `url`, and until when.
    pub(super) fn open(&self, now: Instant, url: &Url) -> (Open, ResponseDeadline) {
        let (url, protocols) = (url.clone(), vec![SUBPROTOCOL.into()]);
        let open = Open::WebSocket { url, protocols, headers: Vec::new() };
        let within = self.config.answer_within;
        (open, ResponseDeadline::new(now, within, "Janus: the WebSocket to open"))
    }

    /// Creates the session: `create`.
    pub fn create(&mut self, now: Instant) -> Message {
        let why = "Janus: the session after create";
        self.request(now, "create", None, Map::new(), Purpose::Create, why)
    }

    /// Attaches to `plugin`; answered by [`SessionEvent::Attached`].
    pub fn attach(&mut self, now: Instant, plugin: &str, tag: T) -> Message {
        let fields = fields([("plugin", json!(plugin))]);
        let why = "Janus: the handle after attach";
        self.request(now, "attach", None, fields, Purpose::Attach(tag), why)
    }

    /// Sends `body` to the plugin of `handle`; answered by [`SessionEvent::Plugin`] with this tag.
    /// `why` names the expected answer.
    pub fn message(
        &mut self,
        now: Instant,
        handle: Handle,
        body: Value,
        jsep: Option<&Jsep>,
        (tag, why): (T, Why),
    ) -> Message {
        let mut fields = fields([("body", body)]);
        if let Some(jsep) = jsep {
            fields.insert("jsep".into(), json!({ "type": jsep.kind, "sdp": jsep.sdp }));
        }
        self.request(now, "message", Some(handle), fields, Purpose::Plugin(tag), why)
    }

    /// Sends a local candidate, or end-of-candidates. `mid` is that of the first media section.
    pub fn trickle(
        &mut self,
        now: Instant,
        handle: Handle,
        mid: Option<&str>,
        candidate: Option<&str>,
    ) -> Message {
        let candidate = match candidate {
            None => json!({ "completed": true }),
            Some(candidate) => {
                let mut candidate_fields =
                    fields([("sdpMLineIndex", json!(0)), ("candidate", json!(candidate))]);
                if let Some(mid) = mid {
                    candidate_fields.insert("sdpMid".into(), json!(mid));
                }
                Value::Object(candidate_fields)
            }
        };
        let fields = fields([("candidate", candidate)]);
        let why = "Janus: an ack of trickle";
        self.request(now, "trickle", Some(handle), fields, Purpose::Acknowledged, why)
    }

    /// Detaches a handle; answered by [`SessionEvent::Done`].
    pub fn detach(&mut self, now: Instant, handle: Handle, tag: T) -> Message {
        let why = "Janus: the end of the handle";
        self.request(now, "detach", Some(handle), Map::new(), Purpose::End(tag), why)
    }

    /// Ends the session; answered by [`SessionEvent::Done`].
    pub fn destroy(&mut self, now: Instant, tag: T) -> Message {
        self.keepalive_at = None;
        let why = "Janus: the end of the session";
        self.request(now, "destroy", None, Map::new(), Purpose::End(tag), why)
    }

    /// When the next keepalive or the oldest pending answer is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Why)> {
        let overdue =
            self.pending.values().map(|p| p.waiting.deadline()).min_by_key(|(until, _)| *until);
        let keepalive = self.keepalive_at.map(|at| (at, "Janus: keepalive"));
        [overdue, keepalive].into_iter().flatten().min_by_key(|(until, _)| *until)
    }

    /// The keepalive to send now, if any.
    ///
    /// # Errors
    /// `SignallingTimeout` when an answer is overdue; it names the request.
    pub fn timeout(&mut self, now: Instant) -> Result<Option<Message>, Failure> {
        if let Some(failure) = self.pending.values().find_map(|p| p.waiting.overdue(now)) {
            return Err(failure);
        }
        if self.keepalive_at.is_none_or(|at| now < at) {
            return Ok(None);
        }
        self.keepalive_at = Some(now + KEEPALIVE_EVERY);
        let why = "Janus: an ack of keepalive";
        Ok(Some(self.request(now, "keepalive", None, Map::new(), Purpose::Acknowledged, why)))
    }

    /// Parses a message of the server.
    ///
    /// # Errors
    /// `Protocol` when it does not follow Janus's protocol; the failure shows its beginning.
    pub fn handle_message(
        &mut self,
        now: Instant,
        message: &Message,
    ) -> Result<SessionEvent<T>, Failure> {
        let said: ServerMessage = server_message::json(SERVER, message)?;
        let handle = said.sender.map(Handle);
        let about = |what: fn(Handle) -> SessionEvent<T>| {
            handle.map(what).unwrap_or_else(|| {
                SessionEvent::Anomaly(format!("{SERVER}: {} without sender", said.janus))
            })
        };
        Ok(match said.janus.as_str() {
            "ack" => self.acknowledged(&said),
            "success" => return self.succeeded(now, said),
            "error" => self.refused(said),
            "event" => return self.event(said),
            "trickle" => match (handle, said.candidate) {
                (Some(handle), Some(trickled)) => {
                    let candidate =
                        trickled.candidate.as_deref().and_then(server_message::candidate);
                    SessionEvent::Trickle(handle, candidate.filter(|_| !trickled.completed))
                }
                _ => {
                    SessionEvent::Anomaly(format!("{SERVER}: trickle without sender or candidate"))
                }
            },
            "webrtcup" => about(SessionEvent::WebRtcUp),
            "media" => about(SessionEvent::Media),
            "detached" => about(SessionEvent::Detached),
            "hangup" => match handle {
                Some(handle) => SessionEvent::HungUp(
                    handle,
                    server_message::excerpt(&said.reason.unwrap_or_default()),
                ),
                None => SessionEvent::Anomaly(format!("{SERVER}: hangup without sender")),
            },
            "slowlink" => match handle {
                Some(handle) => SessionEvent::SlowLink(
                    handle,
                    said.uplink.unwrap_or(false),
                    said.lost.or(said.nacks).unwrap_or(0),
                ),
                None => SessionEvent::Anomaly(format!("{SERVER}: slowlink without sender")),
            },
            "timeout" => SessionEvent::SessionTimedOut,
            // `server_info`, `keepalive` echoes of older versions, and messages of future versions.
            other => SessionEvent::Anomaly(format!(
                "{SERVER}: unknown message {}",
                server_message::excerpt(other)
            )),
        })
    }

    fn request(
        &mut self,
        now: Instant,
        verb: &str,
        handle: Option<Handle>,
        mut fields: Map<String, Value>,
        purpose: Purpose<T>,
        why: Why,
    ) -> Message {
        self.transactions += 1;
        fields.insert("janus".into(), json!(verb));
        fields.insert("transaction".into(), json!(format!("t{}", self.transactions)));
        if let Some(id) = self.id {
            fields.insert("session_id".into(), json!(id));
        }
        if let Some(Handle(id)) = handle {
            fields.insert("handle_id".into(), json!(id));
        }
        if let Some(token) = &self.config.token {
            fields.insert("token".into(), json!(token));
        }
        if let Some(secret) = &self.config.api_secret {
            fields.insert("apisecret".into(), json!(secret));
        }
        if self.pending.len() >= PENDING_MAX {
            // The oldest request times out long before so many are pending; this only bounds
            // memory.
            self.pending.pop_first();
        }
        let waiting = ResponseDeadline::new(now, self.config.answer_within, why);
        self.pending.insert(self.transactions, Pending { purpose, waiting });
        Message::Text(Value::Object(fields).to_string())
    }

    /// The number of a transaction that is still open.
    fn open_transaction(&self, said: &ServerMessage) -> Option<u64> {
        let number = said.transaction.as_deref().and_then(number_of)?;
        self.pending.contains_key(&number).then_some(number)
    }

    fn stray(said: &ServerMessage) -> SessionEvent<T> {
        let transaction = server_message::excerpt(said.transaction.as_deref().unwrap_or("(none)"));
        SessionEvent::Anomaly(format!(
            "{SERVER}: {} for unknown transaction {transaction}",
            server_message::excerpt(&said.janus)
        ))
    }

    fn acknowledged(&mut self, said: &ServerMessage) -> SessionEvent<T> {
        let Some(number) = self.open_transaction(said) else {
            // Janus 1.1.2 sends a plugin's event before the ack when the plugin answers fast (a
            // wrong PIN): the ack of a request that is already answered is ignored.
            let ours = said
                .transaction
                .as_deref()
                .and_then(number_of)
                .is_some_and(|n| n <= self.transactions);
            return if ours { SessionEvent::Nothing } else { Self::stray(said) };
        };
        if matches!(self.pending.get(&number), Some(Pending { purpose: Purpose::Acknowledged, .. }))
        {
            self.pending.remove(&number);
        }
        SessionEvent::Nothing
    }

    fn succeeded(&mut self, now: Instant, said: ServerMessage) -> Result<SessionEvent<T>, Failure> {
        let pending = self.open_transaction(&said).and_then(|number| self.pending.remove(&number));
        let Some(pending) = pending else { return Ok(Self::stray(&said)) };
        let id = said.data.as_ref().and_then(|data| data.get("id")).and_then(Value::as_u64);
        match pending.purpose {
            Purpose::Create => {
                self.id =
                    Some(id.ok_or_else(|| server_message::broken(SERVER, "a session without id"))?);
                self.keepalive_at = Some(now + KEEPALIVE_EVERY);
                Ok(SessionEvent::Created)
            }
            Purpose::Attach(tag) => {
                let id = id.ok_or_else(|| server_message::broken(SERVER, "a handle without id"))?;
                Ok(SessionEvent::Attached(tag, Handle(id)))
            }
            Purpose::Acknowledged => Ok(SessionEvent::Nothing),
            Purpose::End(tag) => Ok(SessionEvent::Done(tag)),
            Purpose::Plugin(tag) => plugin(said, Some(tag)),
        }
    }

    fn refused(&mut self, said: ServerMessage) -> SessionEvent<T> {
        let pending = self.open_transaction(&said).and_then(|number| self.pending.remove(&number));
        let (code, reason) =
            said.error.map_or((0, String::new()), |e| (e.code, server_message::excerpt(&e.reason)));
        match pending.map(|p| p.purpose) {
            Some(Purpose::Attach(tag) | Purpose::Plugin(tag) | Purpose::End(tag)) => {
                SessionEvent::Refused(Some(tag), code, reason)
            }
            Some(Purpose::Create | Purpose::Acknowledged) => {
                SessionEvent::Refused(None, code, reason)
            }
            None => SessionEvent::Anomaly(format!(
                "{SERVER}: error {code} ({reason}) for an unknown transaction"
            )),
        }
    }

    fn event(&mut self, said: ServerMessage) -> Result<SessionEvent<T>, Failure> {
        if said.transaction.is_none() {
            return plugin(said, None);
        }
        match self.open_transaction(&said).and_then(|number| self.pending.remove(&number)) {
            Some(Pending { purpose: Purpose::Plugin(tag), .. }) => plugin(said, Some(tag)),
            // Plugins repeat the transaction of a request in later events that it caused; those
            // events count too.
            _ => plugin(said, None),
        }
    }
}

/// The number in a transaction `t17`.
fn number_of(transaction: &str) -> Option<u64> {
    transaction.strip_prefix('t')?.parse().ok()
}

fn plugin<T>(said: ServerMessage, answers: Option<T>) -> Result<SessionEvent<T>, Failure> {
    let Some(sender) = said.sender else {
        return Err(server_message::broken(SERVER, "an event without sender"));
    };
    let data = said.plugindata.map(|p| p.data).unwrap_or_default();
    Ok(SessionEvent::Plugin { handle: Handle(sender), answers, data, jsep: said.jsep })
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Any message of the server.
#[derive(Deserialize)]
struct ServerMessage {
    janus: String,
    transaction: Option<String>,
    sender: Option<u64>,
    data: Option<Value>,
    plugindata: Option<PluginData>,
    jsep: Option<Jsep>,
    error: Option<JanusError>,
    candidate: Option<Trickled>,
    reason: Option<String>,
    uplink: Option<bool>,
    lost: Option<u64>,
    /// The name of `lost` before Janus 0.10.
    nacks: Option<u64>,
}

#[derive(Deserialize)]
struct PluginData {
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
struct JanusError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Trickled {
    candidate: Option<String>,
    #[serde(default)]
    completed: bool,
}
