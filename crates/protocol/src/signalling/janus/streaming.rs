//! A viewer of a Janus Streaming mountpoint: `watch`, the server's offer, `start` with the answer.

use std::collections::VecDeque;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use throng_observation::{Failure, FailureReason, Url};
use throng_scenario::{JanusId, Secret};

use super::super::response_deadline::{GOODBYE_WITHIN, ResponseDeadline};
use super::super::server_message;
use super::super::{SignalInput, SignalOutput, Signalling};
use super::session::{Handle, Jsep, SERVER, SUBPROTOCOL, Session, SessionConfig, SessionEvent};
use crate::factory::TargetFactory;
use crate::participant::{Message, Why};

/// A mountpoint's id; a string on servers with `string_ids`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountpointId {
    /// The default.
    Number(u64),
    /// With `string_ids = true`.
    Text(String),
}

/// The mountpoint to watch, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The WebSocket URL, `ws://HOST:8188/`.
    pub url: Url,
    /// The mountpoint.
    pub mountpoint: MountpointId,
    /// Its PIN, if it has one.
    pub pin: Option<String>,
    /// Credentials and timeouts.
    pub session: SessionConfig,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JanusRequest {
    Attach,
    Watch,
    Start,
    Stop,
    Detach,
    Destroy,
}

#[derive(Debug)]
enum State {
    Idle,
    Opening(ResponseDeadline),
    Creating,
    Attaching,
    /// `watch` was sent; its answer carries the offer.
    Watching(Handle),
    /// The participant is answering an offer; `mid` is that of its first media section.
    Answering {
        handle: Handle,
        mid: Option<String>,
        playing: bool,
    },
    /// `start` was sent with the answer.
    Playing {
        handle: Handle,
        mid: Option<String>,
        connected: bool,
    },
    Leaving(ResponseDeadline),
    Over,
}

/// The signalling adapter.
#[derive(Debug)]
pub struct Streaming {
    config: Config,
    session: Session<JanusRequest>,
    state: State,
    outputs: VecDeque<SignalOutput>,
}

impl Streaming {
    /// That of a viewer of a mountpoint: the server's URL, the id, and its PIN.
    pub(crate) fn of(
        factory: &TargetFactory,
        (url, mountpoint, pin): (&Url, &JanusId, Option<&Secret>),
    ) -> Self {
        Self::new(Config {
            url: url.clone(),
            mountpoint: match mountpoint {
                JanusId::Number(id) => MountpointId::Number(*id),
                JanusId::Text(id) => MountpointId::Text(id.clone()),
            },
            pin: pin.map(|pin| pin.expose().to_owned()),
            session: SessionConfig::of(factory),
        })
    }

    /// An adapter in its initial state.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let session = Session::new(config.session.clone());
        Self { config, session, state: State::Idle, outputs: VecDeque::new() }
    }

    fn fail(&mut self, failure: Failure) {
        self.state = State::Over;
        self.outputs.push_back(SignalOutput::Failed(failure));
    }

    fn say(&mut self, message: Message) {
        self.outputs.push_back(SignalOutput::Signal(message));
    }

    fn anomaly(&mut self, what: String) {
        self.outputs.push_back(SignalOutput::Anomaly(what));
    }

    fn handle_id(&self) -> Option<Handle> {
        match self.state {
            State::Watching(handle)
            | State::Answering { handle, .. }
            | State::Playing { handle, .. } => Some(handle),
            _ => None,
        }
    }

    fn handle_message(&mut self, now: Instant, message: &Message) -> Result<(), Failure> {
        match self.session.handle_message(now, message)? {
            SessionEvent::Created if matches!(self.state, State::Creating) => {
                let attach =
                    self.session.attach(now, "janus.plugin.streaming", JanusRequest::Attach);
                self.say(attach);
                self.state = State::Attaching;
            }
            SessionEvent::Attached(_, handle) if matches!(self.state, State::Attaching) => {
                self.watch(now, handle);
            }
            SessionEvent::Done(JanusRequest::Destroy) => self.goodbye(),
            SessionEvent::Refused(tag, code, reason) => return self.refused(tag, code, &reason),
            SessionEvent::Plugin { handle, data, jsep, .. } if self.handle_id() == Some(handle) => {
                return self.plugin(data, jsep);
            }
            SessionEvent::Trickle(handle, Some(candidate)) if self.handle_id() == Some(handle) => {
                self.outputs.push_back(SignalOutput::RemoteCandidate(candidate));
            }
            SessionEvent::HungUp(handle, reason) if self.handle_id() == Some(handle) => {
                return Err(self.hung_up(&reason));
            }
            SessionEvent::Detached(handle) if self.handle_id() == Some(handle) => {
                return Err(Failure::new(
                    FailureReason::SignallingClosed,
                    "Janus detached the handle",
                ));
            }
            SessionEvent::SessionTimedOut if !matches!(self.state, State::Leaving(_)) => {
                return Err(Failure::new(
                    FailureReason::SignallingClosed,
                    "Janus timed the session out",
                ));
            }
            SessionEvent::SlowLink(_, uplink, lost) => {
                let way = if uplink { "to the server" } else { "to the viewer" };
                self.anomaly(format!("{SERVER}: slowlink, {lost} packets lost {way}"));
            }
            SessionEvent::Anomaly(what) => self.anomaly(what),
            // Events of a peer connection or handle that was removed, and events that do not
            // concern a viewer.
            _ => {}
        }
        Ok(())
    }

    fn watch(&mut self, now: Instant, handle: Handle) {
        let id = match &self.config.mountpoint {
            MountpointId::Number(id) => json!(id),
            MountpointId::Text(id) => json!(id),
        };
        let mut body = json!({ "request": "watch", "id": id });
        if let (Some(pin), Some(body)) = (&self.config.pin, body.as_object_mut()) {
            body.insert("pin".into(), json!(pin));
        }
        let why = "Janus: the offer after watch";
        let watch = self.session.message(now, handle, body, None, (JanusRequest::Watch, why));
        self.say(watch);
        self.state = State::Watching(handle);
    }

    fn refused(
        &mut self,
        tag: Option<JanusRequest>,
        code: i64,
        reason: &str,
    ) -> Result<(), Failure> {
        match tag {
            // Nothing is left to end.
            Some(JanusRequest::Destroy) => self.goodbye(),
            Some(JanusRequest::Stop | JanusRequest::Detach) => {}
            _ if matches!(self.state, State::Leaving(_)) => {}
            _ => {
                let detail = format!("{SERVER} refused: error {code}, {reason}");
                return Err(Failure::new(FailureReason::Refused, detail));
            }
        }
        Ok(())
    }

    fn plugin(&mut self, data: Value, jsep: Option<Jsep>) -> Result<(), Failure> {
        let said: StreamingData = serde_json::from_value(data).map_err(|e| {
            let why = server_message::excerpt(&e.to_string());
            server_message::broken(
                SERVER,
                format!("an event of the Streaming plugin is malformed: {why}"),
            )
        })?;
        if let Some(code) = said.error_code {
            let reason = server_message::excerpt(&said.error.unwrap_or_default());
            let detail = format!("{SERVER} Streaming refused: error {code}, {reason}");
            return Err(Failure::new(FailureReason::Refused, detail));
        }
        if let Some(jsep) = jsep {
            return self.offered(jsep);
        }
        match said.result.and_then(|result| result.status).as_deref() {
            Some("stopped") => Err(Failure::new(
                FailureReason::MediaLost,
                "Janus stopped the mountpoint in mid-session",
            )),
            _ if matches!(self.state, State::Watching(_)) => {
                Err(server_message::broken(SERVER, "the answer to watch carries no offer"))
            }
            // `starting`, `started`, `preparing`, `updated` and events of the mountpoint.
            _ => Ok(()),
        }
    }

    fn offered(&mut self, jsep: Jsep) -> Result<(), Failure> {
        if jsep.kind != "offer" {
            return Err(server_message::broken(
                SERVER,
                format!("jsep of type {} to watch", server_message::excerpt(&jsep.kind)),
            ));
        }
        let playing = matches!(self.state, State::Playing { .. });
        let (State::Watching(handle) | State::Playing { handle, .. }) = self.state else {
            self.anomaly(format!("{SERVER}: an offer before the last one was answered"));
            return Ok(());
        };
        let sdp = server_message::session_description(SERVER, "the offer", jsep.sdp)?;
        let mid =
            sdp.lines().find_map(|line| line.trim_end().strip_prefix("a=mid:").map(str::to_owned));
        self.state = State::Answering { handle, mid, playing };
        self.outputs.push_back(SignalOutput::RemoteOffer(sdp));
        Ok(())
    }

    fn answer(&mut self, now: Instant, sdp: String) {
        let State::Answering { handle, mid, playing } = &mut self.state else { return };
        let (handle, mid, connected) = (*handle, mid.take(), *playing);
        let jsep = Jsep { kind: "answer".into(), sdp };
        let why = "Janus: the event after start";
        let body = json!({ "request": "start" });
        let start =
            self.session.message(now, handle, body, Some(&jsep), (JanusRequest::Start, why));
        self.say(start);
        self.state = State::Playing { handle, mid, connected };
    }

    fn trickle(&mut self, now: Instant, candidate: Option<&str>) {
        let (State::Answering { handle, mid, .. } | State::Playing { handle, mid, .. }) =
            &self.state
        else {
            return;
        };
        let trickle = self.session.trickle(now, *handle, mid.as_deref(), candidate);
        self.say(trickle);
    }

    /// Before media flowed, the reason distinguishes which transport failed.
    fn hung_up(&self, reason: &str) -> Failure {
        let connected = matches!(self.state, State::Playing { connected: true, .. });
        let kind = match reason {
            _ if connected => FailureReason::MediaLost,
            r if r.contains("ICE") => FailureReason::Ice,
            r if r.contains("DTLS") => FailureReason::Dtls,
            _ => FailureReason::Refused,
        };
        Failure::new(kind, format!("Janus hung up: {reason}"))
    }

    fn leave(&mut self, now: Instant) {
        let handle = self.handle_id();
        if let Some(handle) = handle {
            let why = "Janus: the event after stop";
            let stop = self.session.message(
                now,
                handle,
                json!({ "request": "stop" }),
                None,
                (JanusRequest::Stop, why),
            );
            let detach = self.session.detach(now, handle, JanusRequest::Detach);
            self.say(stop);
            self.say(detach);
        }
        match self.state {
            State::Idle | State::Over => {
                self.state = State::Over;
                self.outputs.push_back(SignalOutput::Goodbye);
            }
            // Without a session id only the connection can be closed; Janus then drops the session.
            State::Opening(_) | State::Creating => self.goodbye(),
            _ => {
                let destroy = self.session.destroy(now, JanusRequest::Destroy);
                self.say(destroy);
                self.state = State::Leaving(ResponseDeadline::new(
                    now,
                    GOODBYE_WITHIN,
                    "Janus: the goodbye",
                ));
            }
        }
    }

    fn goodbye(&mut self) {
        self.state = State::Over;
        self.outputs.push_back(SignalOutput::Close);
        self.outputs.push_back(SignalOutput::Goodbye);
    }

    fn timeout(&mut self, now: Instant) {
        match &self.state {
            State::Opening(waiting) => {
                if let Some(failure) = waiting.overdue(now) {
                    self.fail(failure);
                }
            }
            State::Leaving(waiting) => {
                if waiting.overdue(now).is_some() {
                    self.anomaly(format!("{SERVER}: the goodbye was not answered"));
                    self.goodbye();
                }
            }
            State::Idle | State::Over => {}
            _ => match self.session.timeout(now) {
                Ok(Some(keepalive)) => self.say(keepalive),
                Ok(None) => {}
                Err(failure) => self.fail(failure),
            },
        }
    }
}

impl Signalling for Streaming {
    fn handle(&mut self, now: Instant, input: SignalInput<'_>) {
        match input {
            SignalInput::Start => {
                let (open, waiting) = self.session.open(now, &self.config.url);
                self.state = State::Opening(waiting);
                self.outputs.push_back(SignalOutput::Open(open));
            }
            SignalInput::Opened(opening) => {
                if !matches!(self.state, State::Opening(_)) {
                    return;
                }
                if opening.subprotocol.as_deref() != Some(SUBPROTOCOL) {
                    self.anomaly(format!(
                        "{SERVER}: the server did not choose the subprotocol {SUBPROTOCOL}"
                    ));
                }
                let create = self.session.create(now);
                self.say(create);
                self.state = State::Creating;
            }
            SignalInput::Message(message) => {
                if matches!(self.state, State::Over) {
                    return;
                }
                if let Err(failure) = self.handle_message(now, message) {
                    match self.state {
                        State::Leaving(_) => self.goodbye(),
                        _ => self.fail(failure),
                    }
                }
            }
            SignalInput::Answer(sdp) => self.answer(now, sdp),
            SignalInput::Candidate(candidate) => self.trickle(now, Some(candidate)),
            SignalInput::CandidatesDone => self.trickle(now, None),
            SignalInput::Connected => {
                if let State::Playing { connected, .. } = &mut self.state {
                    *connected = true;
                }
            }
            SignalInput::Timeout => self.timeout(now),
            SignalInput::Closed(error) => match self.state {
                State::Over => {}
                State::Leaving(_) => {
                    self.state = State::Over;
                    self.outputs.push_back(SignalOutput::Goodbye);
                }
                State::Idle | State::Opening(_) => self.fail(error.into()),
                _ => self.fail(error.after_opening()),
            },
            SignalInput::Leave => self.leave(now),
            SignalInput::Fetched(..) | SignalInput::Offer(_) => {}
        }
    }

    fn poll_output(&mut self) -> Option<SignalOutput> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        match &self.state {
            State::Opening(waiting) | State::Leaving(waiting) => Some(waiting.deadline()),
            State::Idle | State::Over => None,
            _ => self.session.next_timeout(),
        }
    }
}

/// `plugindata.data` of the Streaming plugin.
#[derive(Deserialize, Default)]
#[serde(default)]
struct StreamingData {
    error_code: Option<i64>,
    error: Option<String>,
    result: Option<StreamingResult>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StreamingResult {
    status: Option<String>,
}
