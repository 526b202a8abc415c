//! A conformance server of OvenMediaEngine's WebSocket signalling, written from its public
//! protocol: it offers, checks strictly what the viewer sends, and records every violation, which
//! the real server ([`crate::real::oven_media_engine`]) does not say.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::{self, Message};

/// The media side of one viewer's session. The stage plugs a real WebRTC session in.
pub trait MediaPeer: Send {
    /// The SDP to offer.
    fn offer(&mut self) -> String;
    /// The viewer's answer.
    fn answer(&mut self, sdp: &str);
    /// A candidate of the viewer, `candidate:…`.
    fn candidate(&mut self, candidate: &str);
    /// Candidates to send with the offer, `candidate:…`; those in the SDP need not be repeated.
    fn candidates(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Makes the media side of each viewer that joins.
pub type MakePeer = Arc<dyn Fn() -> Box<dyn MediaPeer> + Send + Sync>;

/// How the server treats viewers.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// The path of the one stream, such as `/app/stream`; others get code 404.
    pub stream: String,
    /// Refuse the upgrade with this HTTP status (admission webhooks: 401, 403).
    pub refuse_upgrade: Option<u16>,
    /// `iceServers` and, in the older spelling, `ice_servers` of the offer: URL, user, password.
    pub relay: Option<(String, String, String)>,
    /// Accept and say nothing.
    pub silent: bool,
    /// Say this in place of an offer.
    pub garbage: Option<String>,
    /// Send a playlist notification and a peer-to-peer command after the offer, which a viewer
    /// passes over.
    pub chatter: bool,
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    violations: Arc<Mutex<Vec<String>>>,
    done: Arc<AtomicBool>,
    sessions: Arc<AtomicI64>,
    stopped: Arc<AtomicI64>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts on a free port of `ip`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When no port can be bound.
    pub fn start(ip: Ipv4Addr, behaviour: Behaviour, peers: MakePeer) -> std::io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        let address = listener.local_addr()?;
        let mut server = Self {
            address,
            violations: Arc::default(),
            done: Arc::default(),
            sessions: Arc::default(),
            stopped: Arc::default(),
            accepting: None,
        };
        let shared = Dialogue {
            behaviour,
            peers,
            violations: server.violations.clone(),
            done: server.done.clone(),
            sessions: server.sessions.clone(),
            stopped: server.stopped.clone(),
        };
        server.accepting = Some(std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if shared.done.load(Ordering::Relaxed) {
                    return;
                }
                let dialogue = shared.clone();
                std::thread::spawn(move || dialogue.serve(stream));
            }
        }));
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What viewers did that the protocol does not allow, in the order seen.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many viewers were offered a session, and how many of them said `stop`.
    #[must_use]
    pub fn sessions(&self) -> (i64, i64) {
        (self.sessions.load(Ordering::SeqCst), self.stopped.load(Ordering::SeqCst))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

/// State of a viewer's dialogue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    BeforeOffer,
    Offered,
    Answered,
    Stopped,
}

#[derive(Clone)]
struct Dialogue {
    behaviour: Behaviour,
    peers: MakePeer,
    violations: Arc<Mutex<Vec<String>>>,
    done: Arc<AtomicBool>,
    sessions: Arc<AtomicI64>,
    stopped: Arc<AtomicI64>,
}

impl Dialogue {
    #[expect(clippy::result_large_err, reason = "the type is the WebSocket library's")]
    fn serve(&self, stream: TcpStream) {
        let mut path = String::new();
        let upgrade = |request: &Request, response: Response| {
            request.uri().path().clone_into(&mut path);
            match self.behaviour.refuse_upgrade {
                None => Ok(response),
                Some(status) => {
                    let mut refused = ErrorResponse::new(None);
                    *refused.status_mut() = status.try_into().unwrap_or_default();
                    Err(refused)
                }
            }
        };
        // Short, so that an idle dialogue sees the end of the server.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let Ok(mut socket) = tungstenite::accept_hdr(stream, upgrade) else { return };
        let mut viewer = Viewer { id: 0, peer: (self.peers)(), stage: Stage::BeforeOffer };
        while !self.done.load(Ordering::Relaxed) {
            let text = match socket.read() {
                Ok(Message::Text(text)) => text.to_string(),
                Ok(Message::Close(_)) => break,
                Ok(Message::Binary(_)) => {
                    self.violation("a binary message".into());
                    continue;
                }
                Ok(_) => continue,
                Err(tungstenite::Error::Io(e))
                    if matches!(
                        e.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    continue;
                }
                Err(_) => break,
            };
            if self.behaviour.silent {
                continue;
            }
            let (replies, close) = self.hear(&mut viewer, &path, &text);
            let said = replies.into_iter().try_for_each(|reply| socket.send(Message::text(reply)));
            if close || said.is_err() {
                let _ = socket.close(None);
                let _ = socket.flush();
                break;
            }
        }
        if matches!(viewer.stage, Stage::Offered | Stage::Answered)
            && !self.done.load(Ordering::Relaxed)
        {
            self.violation("the viewer left without stop".into());
        }
    }

    fn violation(&self, what: String) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// The replies to one message, and whether the server closes after them.
    fn hear(&self, viewer: &mut Viewer, path: &str, text: &str) -> (Vec<String>, bool) {
        let Ok(said) = serde_json::from_str::<Value>(text) else {
            self.violation(format!("not JSON: {text}"));
            return (vec![json!({"code": 400, "error": "Invalid JSON"}).to_string()], true);
        };
        let command = said.get("command").and_then(Value::as_str).unwrap_or("");
        if command != "request_offer" && said.get("id").and_then(Value::as_i64) != Some(viewer.id) {
            self.violation(format!("{command} with a wrong or no id: {text}"));
            return (vec![json!({"code": 400, "error": "Invalid ID"}).to_string()], true);
        }
        let allowed: &[&str] = match command {
            "request_offer" => &["command"],
            "answer" => &["command", "id", "peer_id", "sdp"],
            "candidate" => &["command", "id", "peer_id", "candidates"],
            "stop" => &["command", "id"],
            _ => &[],
        };
        for field in said.as_object().into_iter().flat_map(|o| o.keys()) {
            if !allowed.contains(&field.as_str()) {
                self.violation(format!("{command} with the unknown field {field}"));
            }
        }
        match (command, viewer.stage) {
            ("request_offer", Stage::BeforeOffer) => return self.offer(viewer, path),
            ("answer", Stage::Offered) => match said.pointer("/sdp/sdp").and_then(Value::as_str) {
                Some(sdp)
                    if said.pointer("/sdp/type") == Some(&json!("answer"))
                        && sdp.starts_with("v=0") =>
                {
                    self.peer_id(&said, command);
                    viewer.peer.answer(sdp);
                    viewer.stage = Stage::Answered;
                }
                _ => self.violation(format!("an answer without its SDP: {text}")),
            },
            ("candidate", Stage::Answered) => {
                self.peer_id(&said, command);
                let candidates = said.get("candidates").and_then(Value::as_array);
                for candidate in candidates.into_iter().flatten() {
                    match candidate.get("candidate").and_then(Value::as_str) {
                        Some(text) if text.starts_with("candidate:") => viewer.peer.candidate(text),
                        _ => self.violation(format!("a candidate that is none: {candidate}")),
                    }
                }
                if candidates.is_none_or(Vec::is_empty) {
                    self.violation("candidate without candidates".into());
                }
            }
            ("stop", Stage::Offered | Stage::Answered) => {
                viewer.stage = Stage::Stopped;
                self.stopped.fetch_add(1, Ordering::SeqCst);
            }
            (command, stage) => self.violation(format!("{command:?} out of order ({stage:?})")),
        }
        (Vec::new(), false)
    }

    fn peer_id(&self, said: &Value, command: &str) {
        if said.get("peer_id").and_then(Value::as_i64) != Some(0) {
            self.violation(format!("{command} with a wrong or no peer_id"));
        }
    }

    fn offer(&self, viewer: &mut Viewer, path: &str) -> (Vec<String>, bool) {
        if path != self.behaviour.stream {
            return (vec![json!({"code": 404, "error": "Cannot find stream"}).to_string()], true);
        }
        if let Some(garbage) = &self.behaviour.garbage {
            return (vec![garbage.clone()], false);
        }
        viewer.id = 1000 + self.sessions.fetch_add(1, Ordering::SeqCst);
        viewer.stage = Stage::Offered;
        let candidates: Vec<Value> = viewer
            .peer
            .candidates()
            .iter()
            .map(|candidate| json!({"candidate": candidate, "sdpMLineIndex": 0}))
            .collect();
        let mut offer = json!({
            "command": "offer", "id": viewer.id, "peer_id": 0, "code": 200,
            "sdp": {"type": "offer", "sdp": viewer.peer.offer()}, "candidates": candidates,
        });
        if let Some((url, user, password)) = &self.behaviour.relay {
            offer["iceServers"] =
                json!([{"urls": [url], "username": user, "credential": password}]);
            offer["ice_servers"] =
                json!([{"urls": [url], "user_name": user, "credential": password}]);
        }
        let mut replies = vec![offer.to_string()];
        if self.behaviour.chatter {
            let playlist = json!({
                "command": "notification",
                "type": "playlist",
                "message": {"renditions": []},
            });
            let p2p = json!({"command": "request_offer_p2p", "id": viewer.id, "peer_id": 7});
            replies.extend([playlist.to_string(), p2p.to_string()]);
        }
        (replies, false)
    }
}

struct Viewer {
    id: i64,
    peer: Box<dyn MediaPeer>,
    stage: Stage,
}
