//! The conformance and misbehaving servers, tested with hand-written messages.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_sim::ome::{self, MediaPeer};
use throng_sim::whep;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// Keeps what it receives.
struct Kept(Arc<Mutex<Vec<String>>>);

impl MediaPeer for Kept {
    fn offer(&mut self) -> String {
        "v=0\r\nm=video 9 X 96\r\n".into()
    }
    fn answer(&mut self, sdp: &str) {
        self.0.lock().unwrap().push(sdp.into());
    }
    fn candidate(&mut self, candidate: &str) {
        self.0.lock().unwrap().push(candidate.into());
    }
    fn candidates(&self) -> Vec<String> {
        vec!["candidate:0 1 UDP 50 127.0.0.1 10000 typ host".into()]
    }
}

fn server(behaviour: ome::Behaviour) -> (ome::Server, Arc<Mutex<Vec<String>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let peers = kept.clone();
    let behaviour = ome::Behaviour { stream: "/app/stream".into(), ..behaviour };
    let make = Arc::new(move || Box::new(Kept(peers.clone())) as Box<dyn MediaPeer>);
    (ome::Server::start(Ipv4Addr::LOCALHOST, behaviour, make).unwrap(), kept)
}

fn viewer(server: &ome::Server, path: &str) -> Result<WebSocket<TcpStream>, String> {
    let stream = TcpStream::connect(server.address()).unwrap();
    let url = format!("ws://{}{path}", server.address());
    tungstenite::client(url, stream).map(|(socket, _)| socket).map_err(|error| error.to_string())
}

fn ask(socket: &mut WebSocket<TcpStream>, message: &Value) -> Value {
    say(socket, message);
    serde_json::from_slice(&socket.read().unwrap().into_data()).unwrap()
}

fn say(socket: &mut WebSocket<TcpStream>, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

/// Waits until the server's thread has reached the state.
fn until(what: &str, reached: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !reached() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn ome_takes_a_conforming_viewer_without_complaint() {
    let relay = Some(("turn:127.0.0.1:3478?transport=tcp".into(), "u".into(), "p".into()));
    let (server, kept) = server(ome::Behaviour { relay, ..ome::Behaviour::default() });
    let mut socket = viewer(&server, "/app/stream").unwrap();
    let offer = ask(&mut socket, &json!({"command": "request_offer"}));
    assert_eq!((&offer["command"], &offer["code"]), (&json!("offer"), &json!(200)));
    assert_eq!(offer["iceServers"][0]["username"], offer["ice_servers"][0]["user_name"]);
    let (id, peer) = (&offer["id"], &offer["peer_id"]);
    let sdp = json!({"type": "answer", "sdp": "v=0"});
    say(&mut socket, &json!({"command": "answer", "id": id, "peer_id": peer, "sdp": sdp}));
    let candidates = json!([{"candidate": "candidate:1", "sdpMLineIndex": 0}]);
    say(
        &mut socket,
        &json!({"command": "candidate", "id": id, "peer_id": peer, "candidates": candidates}),
    );
    say(&mut socket, &json!({"command": "stop", "id": id}));
    until("stopped", || server.sessions() == (1, 1));
    drop(socket);
    assert_eq!(server.violations(), Vec::<String>::new());
    assert_eq!(server.sessions(), (1, 1));
    assert_eq!(*kept.lock().unwrap(), ["v=0", "candidate:1"]);
}

#[test]
fn ome_records_what_the_protocol_does_not_allow() {
    let (server, _) = server(ome::Behaviour::default());
    let mut early = viewer(&server, "/app/stream").unwrap();
    assert_eq!(ask(&mut early, &json!({"command": "answer", "id": 9}))["error"], "Invalid ID");
    let mut rude = viewer(&server, "/app/stream").unwrap();
    let offer = ask(&mut rude, &json!({"command": "request_offer", "id": 3}));
    let id = &offer["id"];
    say(&mut rude, &json!({"command": "candidate", "id": id, "candidates": []}));
    say(&mut rude, &json!({"command": "answer", "id": id, "sdp": {"type": "offer", "sdp": "v=0"}}));
    rude.close(None).unwrap();
    let gone =
        || server.violations().iter().any(|violation| violation.contains("left without stop"));
    until("the viewer's leaving is seen", gone);
    let violations = server.violations().join("\n");
    for expect in [
        "wrong or no id",
        "unknown field id",
        "out of order (Offered)",
        "without its SDP",
        "left without stop",
    ] {
        assert!(violations.contains(expect), "{expect} is not in:\n{violations}");
    }
    let mut lost = viewer(&server, "/app/other").unwrap();
    assert_eq!(ask(&mut lost, &json!({"command": "request_offer"}))["code"], 404);
}

#[test]
fn ome_refuses_upgrades_as_configured() {
    let (server, _) =
        server(ome::Behaviour { refuse_upgrade: Some(403), ..ome::Behaviour::default() });
    assert!(viewer(&server, "/app/stream").unwrap_err().contains("403"));
}

#[test]
fn whep_misbehaves_as_configured_and_keeps_the_requests() {
    use whep::Behaviour::{Close, CloseMidBody, CounterOffer, Redirect, Status};
    let busy = Status(503, vec![("Retry-After".into(), "7".into())], "busy".into());
    for (behaviour, expect) in [
        (busy, "HTTP/1.1 503 -\r\nContent-Length: 4\r\nRetry-After: 7\r\n\r\nbusy"),
        (
            Redirect("http://192.0.2.1/".into()),
            "HTTP/1.1 307 -\r\nContent-Length: 0\r\nLocation: http://192.0.2.1/\r\n\r\n",
        ),
        (CounterOffer("v=0".into()), "HTTP/1.1 406 -\r\n"),
        (
            CloseMidBody,
            "HTTP/1.1 201 Created\r\nContent-Type: application/sdp\r\nContent-Length: 900\r\n\r\nv=0\r\n",
        ),
        (Close, ""),
    ] {
        let server = whep::Server::start(Ipv4Addr::LOCALHOST, behaviour).unwrap();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream
            .write_all(b"POST /whep HTTP/1.1\r\nContent-Length: 5\r\nX-Y: z\r\n\r\nv=0\r\n")
            .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with(expect) && said.is_empty() == expect.is_empty(), "{said}");
        let seen = &server.requests()[0];
        assert_eq!(
            (seen.method.as_str(), seen.target.as_str(), seen.body.as_str()),
            ("POST", "/whep", "v=0\r\n")
        );
        assert_eq!(seen.header("x-y"), Some("z"));
    }
}
