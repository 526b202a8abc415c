//! Without consent nothing is sent: packets that leave the crowd's host, when a name or a server
//! points elsewhere.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_sim::capture::{Capture, Packet, TCP, UDP};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::throng::{Ran, Running, Stage, figure, plain, valid};

/// Public addresses (RFC 5737), only inside the test's namespaces.
const CROWD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const AGREED: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 8);
const VICTIM: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const PORT: u16 = 7080;
const NAME: &str = "media.example";
const ASKING: &str = "GET /.well-known/throng-consent HTTP/1.1";

/// The crowd's machine, and another one with the server that agreed and one that did not.
struct Fixture {
    crowd: Namespace,
    servers: Namespace,
    folder: tempfile::TempDir,
}

/// A server that records the first line of every request. A request without an answer stays open.
struct Web {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Serves `file` if there is one, and nothing else.
    fn start(inside: &Namespace, address: Ipv4Addr, port: u16, file: Option<String>) -> Self {
        Self::answering(inside, address, port, move |_| {
            let (status, body) =
                file.as_ref().map_or(("404 Not Found", ""), |file| ("200 OK", file));
            Some(response(status, "", body))
        })
    }

    /// Answers by the head of the request. Each connection has a thread: browsers open some that
    /// they use later, or never.
    fn answering(
        inside: &Namespace,
        address: Ipv4Addr,
        port: u16,
        answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (notes, answer) = (Arc::clone(&asked), Arc::new(answer));
        let listener = inside.enter(|| TcpListener::bind((address, port)).unwrap()).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (notes, answer) = (Arc::clone(&notes), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let request = request(&mut stream);
                    let Some(line) = request.lines().next() else { return };
                    notes.lock().unwrap().push(line.to_owned());
                    match answer(&request) {
                        Some(response) => drop(stream.write_all(response.as_bytes())),
                        // It stays open until the client gives up.
                        None => drop(stream.read(&mut [0])),
                    }
                });
            }
        });
        Self { asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A request, with as much of it as comes before the client closes.
fn request(stream: &mut TcpStream) -> String {
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    let is_whole = |text: &str| {
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let head = head.to_ascii_lowercase();
        let length = head.split_once("content-length:").and_then(|(_, rest)| rest.lines().next());
        let length = length.map_or(0, |length| length.trim().parse().unwrap());
        body.len() >= length
    };
    while !is_whole(&text) {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(length) => text.push_str(&String::from_utf8_lossy(&chunk[..length])),
        }
    }
    text
}

fn response(status: &str, header: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{header}\r\n{body}"
    )
}

impl Fixture {
    fn new() -> Self {
        let (crowd, servers) = Namespace::pair("consent", CROWD, AGREED).unwrap();
        servers.add_address(VICTIM).unwrap();
        // A browser breaks off what it fetches when its network comes up.
        crowd.when_running().unwrap();
        Self { crowd, servers, folder: tempfile::tempdir().unwrap() }
    }

    /// Makes secret and file for `target`; returns the secret's path and the published text.
    fn agree(&self, target: &str, secret: &str) -> (PathBuf, String) {
        let (path, end) = (self.folder.path().join(secret), in_a_month());
        let args = [
            "consent",
            target,
            "--tester",
            "lab",
            "--expires",
            &end,
            "--max-users",
            "9",
            "--secret",
        ];
        let made = plain(&[&args[..], &[path.to_str().unwrap()]].concat());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        (path, String::from_utf8(made.stdout).unwrap())
    }

    /// A short run against `url` with that secret; returns it with the packets that left the
    /// crowd's machine.
    fn run(&self, url: &str, secret: &Path, more: &[&str]) -> (Ran, Vec<Packet>) {
        let secret = format!("file:{}", secret.display());
        let view = ["view", url, "--every", "50ms", "--consent-secret", &secret];
        valid(|| {
            let capture = Capture::start(&self.crowd).unwrap();
            let ran = Running::start(Some(&self.crowd), &[&view[..], more].concat()).wait();
            (ran, capture.stop())
        })
    }
}

/// A date a month ahead.
pub(crate) fn in_a_month() -> String {
    let said = std::process::Command::new("date")
        .args(["-u", "-d", "+31 days", "+%Y-%m-%d"])
        .output()
        .unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

fn to(packets: &[Packet], address: Ipv4Addr) -> Vec<Packet> {
    packets.iter().filter(|packet| packet.from == CROWD && packet.to == address).copied().collect()
}

/// The victim received requests for a consent proof at its possible locations, and nothing else.
fn was_only_asked(victims: &[Web], packets: &[Packet], ran: &Ran) {
    for victim in victims {
        assert!(victim.asked().iter().all(|line| line == ASKING), "{:?}\n{ran}", victim.asked());
    }
    let sent = to(packets, VICTIM);
    let is_asking =
        |p: &&Packet| p.protocol == TCP && [80, 443, PORT].contains(&p.port.unwrap_or(0));
    assert_eq!(sent.iter().filter(is_asking).count(), sent.len(), "{sent:?}\n{ran}");
    assert!(sent.len() < 30, "{} packets\n{ran}", sent.len());
}

#[test]
fn a_name_that_also_resolves_to_another_host_sends_no_load_there() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new();
    let (secret, file) = fixture.agree(&format!("{NAME}:{PORT}"), "secret");
    let agreed = Web::start(&fixture.servers, AGREED, 80, Some(file));
    let victims = [80, PORT].map(|port| Web::start(&fixture.servers, VICTIM, port, None));
    let url = format!("whep+http://{NAME}:{PORT}/whep");

    // The attacker publishes the proof but has no server, so that all would go to the other
    // address.
    fixture.crowd.resolve(NAME, &[AGREED, VICTIM]).unwrap();
    let (ran, packets) = fixture.run(&url, &secret, &["-n", "4", "--for", "3s"]);
    let ran = ran.expect_code(3);
    let left_out = format!("{VICTIM} gets no load");
    assert!(ran.stderr.contains(&left_out), "{ran}");
    assert_eq!(agreed.asked(), [ASKING], "{ran}");
    was_only_asked(&victims, &packets, &ran);

    // Once there is a server, it serves all, whatever its place in the DNS answer.
    fixture.crowd.resolve(NAME, &[VICTIM, AGREED]).unwrap();
    let _stage =
        Stage::start(Some(&fixture.servers), &format!("{AGREED}:{PORT}"), &["--listen-any"]);
    let (ran, packets) = fixture.run(&url, &secret, &["-n", "2", "--for", "4s"]);
    let ran = ran.expect_code(0);
    assert_eq!(figure(&ran.summary(), "participants.playing"), 2.0, "{ran}");
    assert!(ran.summary()["warnings"].to_string().contains(&left_out), "{ran}");
    assert_eq!(ran.summary()["addresses"][AGREED.to_string()], 2, "{ran}");
    let media = to(&packets, AGREED).iter().filter(|packet| packet.protocol == UDP).count();
    assert!(media > 20, "{media} datagrams\n{ran}");
    was_only_asked(&victims, &packets, &ran);
}

#[test]
fn a_proof_is_useless_to_another_reader() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new();
    let target = format!("{AGREED}:{PORT}");
    let _stage = Stage::start(Some(&fixture.servers), &target, &["--listen-any"]);
    let (secret, file) = fixture.agree(&target, "secret");
    let (stranger, _) = fixture.agree(&target, "stranger");
    let seal =
        file.lines().find_map(|line| line.strip_prefix("proof = hmac-sha256:")).unwrap().to_owned();
    let web = Web::start(&fixture.servers, AGREED, 80, Some(file));
    // The content of the published file, used as the secret.
    let captured = fixture.folder.path().join("captured");
    std::fs::write(&captured, seal).unwrap();

    let url = format!("whep+http://{target}/whep");
    for other in [&stranger, &captured] {
        let (ran, packets) = fixture.run(&url, other, &["-n", "2", "--for", "3s"]);
        let ran = ran.expect_code(3);
        assert!(
            ran.stderr.contains("belongs to another tester") && !ran.folder().exists(),
            "{ran}"
        );
        assert!(to(&packets, AGREED).iter().all(|p| p.protocol == TCP), "{ran}");
    }
    assert_eq!(web.asked().len(), 2, "it was asked, and nothing came of it");
    drop(fixture.run(&url, &secret, &["-n", "2", "--for", "3s"]).0.expect_code(0));
    // A load above the agreed one is refused too.
    let (ran, _) = fixture.run(&url, &secret, &["-n", "10", "--for", "3s"]);
    assert!(ran.expect_code(3).stderr.contains("does not cover 10 users"));
}

#[test]
fn a_proof_with_a_token_is_refused_with_what_to_do() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new();
    let target = format!("{AGREED}:{PORT}");
    let (secret, _) = fixture.agree(&target, "secret");
    let old = format!(
        "token = 3f0c4f6f1c9b4a5e8d2a7b6c5d4e3f2a\ntarget = {target}\nexpires = {}\n",
        in_a_month()
    );
    let web = Web::start(&fixture.servers, AGREED, 80, Some(old));
    let (ran, _) =
        fixture.run(&format!("whep+http://{target}/whep"), &secret, &["-n", "2", "--for", "3s"]);
    let ran = ran.expect_code(3);
    assert!(ran.stderr.contains("publish the file that `throng consent HOST:PORT` makes"), "{ran}");
    assert_eq!(web.asked().len(), 1);
    let token = plain(&[
        "view",
        "whep+http://192.0.2.1/whep",
        "--consent-token",
        "3f0c4f6f1c9b4a5e8d2a7b6c5d4e3f2a",
    ]);
    let said = String::from_utf8_lossy(&token.stderr).into_owned();
    assert!(
        token.status.code() == Some(2) && said.contains("`throng consent HOST:PORT`"),
        "{said}"
    );
}

/// An SDP answer for a browser that wants video and audio, with a candidate at each address.
fn answer(addresses: &[Ipv4Addr]) -> String {
    let candidates: String = addresses
        .iter()
        .map(|address| format!("a=candidate:1 1 udp 2130706431 {address} 5000 typ host\r\n"))
        .collect();
    let fingerprint = ["AB"; 32].join(":");
    let section = |kind: &str, mid: u8, payload: u8, codec: &str| {
        format!(
            "m={kind} 9 UDP/TLS/RTP/SAVPF {payload}\r\nc=IN IP4 0.0.0.0\r\na=sendonly\r\na=mid:{mid}\r\na=rtcp-mux\r\n\
             a=rtpmap:{payload} {codec}\r\na=setup:passive\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n\
             a=fingerprint:sha-256 {fingerprint}\r\n{candidates}"
        )
    };
    let (video, audio) =
        (section("video", 0, 96, "VP8/90000"), section("audio", 1, 111, "opus/48000/2"));
    format!("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n{video}{audio}")
}

/// A run with one browser that gets this answer, while the crowd's one viewer waits. Returns the
/// run, the packets, and the refusals that the run reports for the browser.
fn browser_against(fixture: &Fixture, answer: &str) -> (Ran, Vec<Packet>, Vec<String>) {
    let target = format!("{AGREED}:{PORT}");
    let (secret, file) = fixture.agree(&target, "secret");
    let answer = answer.to_owned();
    let server = Web::answering(&fixture.servers, AGREED, PORT, move |request| {
        if request.contains(".well-known") {
            return Some(response("200 OK", "", &file));
        }
        request.contains("Mozilla").then(|| answer.clone())
    });
    let victim = Web::start(&fixture.servers, VICTIM, PORT, None);
    let url = format!("whep+http://{target}/whep");
    let secret = format!("file:{}", secret.display());
    let view = [
        "view",
        &url,
        "-n",
        "1",
        "--for",
        "40s",
        "--consent-secret",
        &secret,
        "--set",
        "canary.browsers=1",
    ];
    // Whether the generator was fast enough does not matter here.
    let capture = Capture::start(&fixture.crowd).unwrap();
    let run = Running::start(Some(&fixture.crowd), &view);
    let posts = || server.asked().iter().filter(|line| line.starts_with("POST /whep")).count();
    // A browser takes from a second to many until it has started, and 3 s are ample for what it
    // does with the answer.
    let given_up_at = Instant::now() + Duration::from_secs(35);
    while posts() < 2 && Instant::now() < given_up_at {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(3));
    run.signal("INT");
    let ran = run.wait();
    let packets = capture.stop();
    assert_eq!(posts(), 2, "the viewer and the browser: {:?}\n{ran}", server.asked());
    assert_eq!(victim.asked(), [""; 0], "{ran}");
    let run = throng_store::RunFolder::read(ran.folder()).unwrap();
    let refused = run.events.into_iter().filter(|event| event.kind == "canary_refused");
    (ran, packets, refused.map(|event| String::from(event.detail)).collect())
}

#[test]
fn a_browser_that_is_sent_elsewhere_does_not_go_there() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new();
    let redirect =
        response("307 Elsewhere", &format!("Location: http://{VICTIM}:{PORT}/whep\r\n"), "");
    let (ran, packets, refused) = browser_against(&fixture, &redirect);
    assert_eq!(to(&packets, VICTIM), [], "{ran}");
    let place = format!("{VICTIM}:{PORT}");
    assert!(refused.iter().any(|detail| detail.contains(&place)), "{refused:?}\n{ran}");
    assert!(ran.stderr.contains(&format!("a browser was refused {place}")), "{ran}");
    assert_eq!(refused.len(), 1, "nothing else was asked for: {refused:?}");
}

#[test]
fn a_browser_is_not_sent_to_what_else_listens_on_its_own_machine() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new();
    let own = Web::start(&fixture.crowd, Ipv4Addr::LOCALHOST, 9999, None);
    let redirect = response("307 Elsewhere", "Location: http://127.0.0.1:9999/whep\r\n", "");
    let (ran, _, refused) = browser_against(&fixture, &redirect);
    assert_eq!(own.asked(), [""; 0], "{ran}");
    assert!(refused.iter().any(|detail| detail.contains("127.0.0.1:9999")), "{refused:?}\n{ran}");
}

/// What a server answers to send a viewer to port 9200 of the viewer's own machine: of loopback, or
/// of its address in the network.
fn sends_to_own_machine(request: &str) -> Option<String> {
    let path = request.split_whitespace().nth(1)?;
    let (address, path) = match path.strip_prefix("/network") {
        Some(path) => (CROWD, path),
        None => (Ipv4Addr::LOCALHOST, path),
    };
    let place = format!("http://{address}:9200/index");
    let located = format!("Location: {place}\r\n");
    Some(match path {
        "/moved" => response("307 Elsewhere", &located, ""),
        "/session" => {
            let header = format!("Content-Type: application/sdp\r\n{located}");
            response("201 Created", &header, &answer(&[address]))
        }
        "/file.mp4" => response("302 Found", &located, ""),
        "/list.m3u8" => response(
            "200 OK",
            "Content-Type: application/vnd.apple.mpegurl\r\n",
            &format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{place}\n#EXT-X-ENDLIST\n"),
        ),
        _ => return None,
    })
}

#[test]
fn a_server_elsewhere_sends_no_viewer_to_what_listens_on_its_own_machine() {
    if !requires_root() {
        return;
    }
    let fixture = Fixture::new();
    let target = format!("{AGREED}:{PORT}");
    let (secret, file) = fixture.agree(&target, "secret");
    let own = [Ipv4Addr::LOCALHOST, CROWD].map(|own| Web::start(&fixture.crowd, own, 9200, None));
    let paths = [
        ("whep+", "/moved"),
        ("whep+", "/network/moved"),
        ("whep+", "/session"),
        ("", "/file.mp4"),
        ("", "/network/file.mp4"),
        ("", "/list.m3u8"),
    ];
    let server = Web::answering(&fixture.servers, AGREED, PORT, move |request| {
        if request.contains(".well-known") {
            return Some(response("200 OK", "", &file));
        }
        sends_to_own_machine(request)
    });
    for (scheme, path) in paths {
        let url = format!("{scheme}http://{target}{path}");
        let (ran, _) = fixture.run(&url, &secret, &["-n", "2", "--for", "4s"]);
        assert!(server.asked().iter().any(|line| line.contains(path)), "{path}\n{ran}");
        for web in &own {
            assert_eq!(web.asked(), [""; 0], "{path}\n{ran}");
        }
    }
    // A target on that machine may do so: the listener hears who is sent to it.
    let local = Web::answering(&fixture.crowd, Ipv4Addr::LOCALHOST, PORT, sends_to_own_machine);
    let url = format!("whep+http://127.0.0.1:{PORT}/moved");
    let (ran, _) = fixture.run(&url, &secret, &["-n", "2", "--for", "4s"]);
    assert!(!local.asked().is_empty() && !own[0].asked().is_empty(), "{ran}");
}

#[test]
fn a_browser_sends_no_check_to_a_candidate_without_consent() {
    if !requires_root() {
        return;
    }
    let header = "Content-Type: application/sdp\r\nLocation: /session/1\r\n";
    let created = response("201 Created", header, &answer(&[VICTIM, AGREED]));
    let (ran, packets, refused) = browser_against(&Fixture::new(), &created);
    let checks =
        |address| to(&packets, address).iter().filter(|packet| packet.protocol == UDP).count();
    assert!(checks(AGREED) > 0, "the candidate that is allowed is checked\n{ran}");
    assert_eq!(to(&packets, VICTIM), [], "{ran}");
    assert!(
        refused.iter().any(|detail| detail.contains(&VICTIM.to_string())),
        "{refused:?}\n{ran}"
    );
}
