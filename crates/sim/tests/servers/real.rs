//! Tests of namespaces, links and the guards of real servers. They need root, for network
//! namespaces.

use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use throng_sim::chromium::Chromium;
use throng_sim::janus::{self, Janus};
use throng_sim::link::{Conditions, Link};
use throng_sim::namespace::Namespace;
use throng_sim::{requires_root, whep};

const A: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 2);
const ECHO_PORT: u16 = 9000;

/// Answers each datagram until none came for two seconds.
fn echo(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut buffer = [0; 2048];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        socket.send_to(&buffer[..length], from).unwrap();
    }
}

/// Round trips of `count` datagrams from one namespace to the other, milliseconds, in order of
/// size; lost ones absent.
fn round_trips(from: &Namespace, to: &Namespace, count: usize, within: Duration) -> Vec<f64> {
    let far = to.enter(|| UdpSocket::bind((B, ECHO_PORT)).unwrap()).unwrap();
    let near = from.enter(|| UdpSocket::bind((A, 0)).unwrap()).unwrap();
    near.set_read_timeout(Some(within)).unwrap();
    near.connect((B, ECHO_PORT)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&far));
        let mut trips: Vec<f64> = (0..count as u32)
            .filter_map(|number| {
                let sent_at = Instant::now();
                near.send(&number.to_be_bytes()).unwrap();
                let mut buffer = [0; 16];
                loop {
                    let length = near.recv(&mut buffer).ok()?;
                    // A late answer to an earlier one is not this one's.
                    if buffer[..length] == number.to_be_bytes() {
                        return Some(sent_at.elapsed().as_secs_f64() * 1e3);
                    }
                }
            })
            .collect();
        trips.sort_by(f64::total_cmp);
        trips
    })
}

#[test]
fn a_link_delays_by_its_setting() {
    if !requires_root() {
        return;
    }
    let (a, b) = (Namespace::new("la").unwrap(), Namespace::new("lb").unwrap());
    let throng_link = Path::new(env!("CARGO_BIN_EXE_throng-link"));
    let _link = Link::start(throng_link, (&a, A), (&b, B), Conditions::delay(20.0)).unwrap();
    let trips = round_trips(&a, &b, 50, Duration::from_secs(1));
    assert_eq!(trips.len(), 50, "nothing is lost");
    // The machine's load can only make a trip longer: the fastest shows what the link adds, and the
    // median that it adds it to most. A virtual machine's timer is late by 0.3 ms, each way, at the
    // best of times.
    let (fastest, median) = (trips[0], trips[25]);
    assert!((39.8..41.5).contains(&fastest), "fastest {fastest} ms of {trips:?}");
    assert!(median < 45.0, "median {median} ms of {trips:?}");
}

#[test]
fn a_namespace_loses_its_configured_share() {
    if !requires_root() {
        return;
    }
    let (a, b) = Namespace::pair("loss", A, B).unwrap();
    assert_eq!(
        round_trips(&a, &b, 100, Duration::from_secs(1)).len(),
        100,
        "an untouched pair loses nothing"
    );
    b.lose(200, Some(ECHO_PORT)).unwrap();
    let answered = round_trips(&a, &b, 400, Duration::from_millis(20)).len() as u64;
    let lost = b.lost().unwrap();
    // 400 × 20 %: 80, and five standard deviations (8 each) around it.
    assert!((40..=120).contains(&lost), "{lost} dropped");
    assert!(answered + lost <= 400 && answered + lost > 390, "{answered} answered, {lost} dropped");
    b.lose_nothing().unwrap();
    assert_eq!(round_trips(&a, &b, 50, Duration::from_secs(1)).len(), 50);
}

#[test]
fn a_namespace_is_gone_when_its_guard_is() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("gone", A).unwrap();
    let path = format!("/run/netns/{}", namespace.name());
    assert!(Path::new(&path).exists());
    drop(namespace);
    assert!(!Path::new(&path).exists());
}

#[test]
fn janus_starts_is_fed_and_lists_its_mountpoints() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("janus", A).unwrap();
    let janus = Janus::start(&namespace, A).unwrap();
    let _feed = janus.feed().unwrap();
    assert_eq!(janus.admin("list_sessions", &json!({})).unwrap()["sessions"], json!([]));
    assert_eq!(janus.bytes_sent().unwrap(), 0, "there is no viewer");
    let age_ms = feed_age_ms(&namespace);
    assert!(age_ms.is_some_and(|age| age < 5_000), "the H.264 mountpoint is not fed: {age_ms:?}");
    let refused = janus.admin("handle_info", &json!({ "session_id": 1, "handle_id": 1 }));
    assert!(refused.unwrap_err().to_string().contains("458"), "errors of the admin API are errors");
}

/// `age_ms` of the H.264 mountpoint's video, once it is known (the Streaming plugin's `info`
/// request).
fn feed_age_ms(namespace: &Namespace) -> Option<u64> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    use tokio_tungstenite::tungstenite::{Message, client, http::HeaderValue};
    namespace
        .enter(|| {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, janus::PORT)).unwrap();
            let mut upgrade = format!("ws://127.0.0.1:{}/", janus::PORT).into_client_request().unwrap();
            let subprotocol = HeaderValue::from_static("janus-protocol");
            upgrade.headers_mut().insert("Sec-WebSocket-Protocol", subprotocol);
            let (mut socket, _) = client(upgrade, stream).unwrap();
            let mut ask = |message: serde_json::Value| -> serde_json::Value {
                socket.send(Message::text(message.to_string())).unwrap();
                serde_json::from_slice(&socket.read().unwrap().into_data()).unwrap()
            };
            let session = ask(json!({ "janus": "create", "transaction": "1" }))["data"]["id"].clone();
            let plugin = "janus.plugin.streaming";
            let attach =
                json!({ "janus": "attach", "plugin": plugin, "session_id": session, "transaction": "2" });
            let handle = ask(attach)["data"]["id"].clone();
            let until = Instant::now() + Duration::from_secs(15);
            while Instant::now() < until {
                let info = ask(json!({
                    "janus": "message", "session_id": session, "handle_id": handle, "transaction": "3",
                    "body": { "request": "info", "id": janus::H264 },
                }));
                let media =
                    info["plugindata"]["data"]["info"]["media"].as_array().cloned().unwrap_or_default();
                let video = media.iter().find(|media| media["type"] == "video");
                if let Some(age) = video.and_then(|video| video["age_ms"].as_u64()) {
                    return Some(age);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            None
        })
        .unwrap()
}

#[test]
fn chromium_loads_a_page_and_evaluates_script() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("chrome", A).unwrap();
    let page = "<title>a page</title><script>var answer = 42</script>".to_owned();
    let html = vec![("Content-Type".to_owned(), "text/html".to_owned())];
    let server = namespace
        .enter(|| {
            whep::Server::start(Ipv4Addr::LOCALHOST, whep::Behaviour::Status(200, html, page))
                .unwrap()
        })
        .unwrap();
    let mut chromium = Chromium::start(&namespace).unwrap();
    chromium.load(&format!("http://{}/page", server.address())).unwrap();
    assert_eq!(server.requests()[0].target, "/page");
    assert_eq!(chromium.evaluate("[document.title, answer]").unwrap(), json!(["a page", 42]));
    let stats =
        "new RTCPeerConnection().getStats().then(stats => [...stats.values()].map(s => s.type))";
    assert!(chromium.evaluate(stats).unwrap().to_string().contains("peer-connection"));
    assert!(chromium.evaluate("nonsense(").is_err());
    assert!(chromium.screenshot_base64().unwrap().starts_with("iVBOR"), "a PNG");
}
