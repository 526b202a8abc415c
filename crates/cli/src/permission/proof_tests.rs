use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use throng_scenario::ExpectedLoad;

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 77));

fn secret() -> ConsentSecret {
    ConsentSecret::new([0x5a; 32])
}

/// A server that answers every request with `body` once `there` is set, and with 404 before;
/// returns its port.
fn answers(body: String, there: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 1024]);
            let length = stream.read(&mut request).unwrap();
            let asked = String::from_utf8_lossy(&request[..length]).into_owned();
            let is_there = there.load(Ordering::SeqCst)
                && asked.starts_with(&format!("GET {WELL_KNOWN_PATH} "));
            let (status, body) =
                if is_there { ("200 OK", body.as_str()) } else { ("404 Not Found", "") };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    port
}

/// A signalling server that supports only WebSocket, like libwebsockets: other requests close
/// the connection.
fn websocket_only() -> u16 {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        listener.incoming().for_each(|stream| drop(stream.unwrap().read(&mut [0; 64])));
    });
    port
}

fn request() -> ProofRequest {
    let expected = ExpectedLoad {
        users: 1,
        joins_per_s: 1,
        server_in_mbit_per_s: 0.0,
        server_out_mbit_per_s: 1.0,
        assumed: false,
    };
    ProofRequest {
        host: "media.invalid".into(),
        port: 8188,
        is_secure: false,
        secret: secret(),
        tls: TlsOptions::default(),
        demand: Demand { expected, duration: Duration::from_secs(1) },
    }
}

fn asked(address: IpAddr, ports: &[u16]) -> ProvenAddress {
    ProvenAddress {
        request: request(),
        address,
        places: ports.iter().map(|port| file(*port)).collect(),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The terms of a proof until the end of the year.
fn terms_of(target: &str) -> String {
    const YEAR_S: u64 = 31_556_952;
    let year = 1970 + now() / YEAR_S;
    format!(
        "tester = lab\ntarget = {target}\nexpires = {year}-12-31\nmax_users = 7\nmax_bit_rate = 9Mbit/s\n"
    )
}

/// A proof of these terms, for the holder of `secret`.
fn proof_of(target: &str, secret: &ConsentSecret) -> String {
    ConsentProof::sealed(&terms_of(target), secret, now()).unwrap()
}

fn proof(target: &str) -> String {
    proof_of(target, &secret())
}

fn file(port: u16) -> ProofLocation {
    ProofLocation { secure: false, authority: format!("media.invalid:{port}") }
}

fn always() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(true))
}

#[test]
fn a_proof_is_looked_for_at_the_signalling_port_then_at_the_web_server() {
    let check = |host: &str, port: u16, is_secure: bool, expect: &[&str]| {
        let places: Vec<String> = ProofLocation::all(host, port, is_secure)
            .iter()
            .map(ProofLocation::to_string)
            .collect();
        let expect: Vec<String> =
            expect.iter().map(|place| place.replace('~', "/.well-known/throng-consent")).collect();
        assert_eq!(places, expect);
    };
    check(
        "h.example",
        8188,
        false,
        &["http://h.example:8188~", "https://h.example~", "http://h.example~"],
    );
    check(
        "h.example",
        8989,
        true,
        &["https://h.example:8989~", "https://h.example~", "http://h.example~"],
    );
    check("h.example", 443, true, &["https://h.example:443~", "http://h.example~"]);
    check("h.example", 80, false, &["http://h.example:80~", "https://h.example~"]);
    let places = ["http://[2001:db8::1]:8188~", "https://[2001:db8::1]~", "http://[2001:db8::1]~"];
    check("[2001:db8::1]", 8188, false, &places);
}

#[test]
fn a_proof_next_to_a_websocket_server_is_found_and_asked_for_again_where_it_was() {
    let there = always();
    let other = answers(proof("media.invalid:3333"), always());
    let web = answers(proof("media.invalid:8188"), Arc::clone(&there));
    let second = answers(proof("media.invalid:8188"), always());
    let (asked, proof) =
        asked(HERE, &[websocket_only(), other, web, second]).fetch_proof().unwrap();
    assert_eq!((proof.caps.users, asked.places.as_slice()), (Some(7), &[file(web)][..]));
    assert_eq!(asked.clone().fetch_proof().unwrap().1, proof);
    there.store(false, Ordering::SeqCst);
    let why = asked.fetch_proof().err().unwrap();
    let (web, second) = (format!(":{web}/"), format!(":{second}/"));
    assert!(why.contains(&web) && why.contains("404") && !why.contains(&second), "{why}");
}

#[test]
fn a_proof_that_names_fewer_ports_than_before_the_run_withdraws_the_consent() {
    let with = |ports: &str| {
        let terms = format!("{}{ports}", terms_of("media.invalid:8188"));
        ConsentProof::sealed(&terms, &secret(), now()).unwrap()
    };
    let (wide, narrow) = (with("ports = 443\n"), with(""));
    let given = ConsentProof::parse(&wide).unwrap();
    let check = |text: &str| {
        asked(HERE, &[answers(text.to_owned(), always())]).still_gives(&given, &Caps::NONE)
    };
    assert_eq!(check(&wide), Ok(()));
    let lost = check(&narrow).unwrap_err();
    assert_eq!(lost.how, ConsentEnd::Changed);
    assert!(lost.detail.contains("127.0.0.1 has withdrawn ports"), "{lost}");
    let less = Caps { users: Some(0), ..Caps::NONE };
    let lost = asked(HERE, &[answers(wide, always())]).still_gives(&given, &less).unwrap_err();
    assert_eq!(lost.how, ConsentEnd::Changed);
    assert!(lost.detail.contains("does not cover 1 users"), "{lost}");
}

#[test]
fn a_check_in_the_run_says_whether_consent_was_withdrawn_changed_or_not_answered() {
    let target = "media.invalid:8188";
    let given = ConsentProof::parse(&proof(target)).unwrap();
    let removed = answers(String::new(), Arc::new(AtomicBool::new(false)));
    let of_others = answers(proof_of(target, &ConsentSecret::new([1; 32])), always());
    for (port, how, begins, said) in [
        (removed, ConsentEnd::Withdrawn, "consent withdrawn: 127.0.0.1: ", "404"),
        (websocket_only(), ConsentEnd::Unanswered, "no answer about the consent: ", "http://"),
        (
            of_others,
            ConsentEnd::Changed,
            "the consent does not cover this run any more: ",
            "another tester",
        ),
    ] {
        let lost = asked(HERE, &[port]).still_gives(&given, &Caps::NONE).unwrap_err();
        let shown = lost.to_string();
        assert_eq!(lost.how, how, "{shown}");
        assert!(shown.starts_with(begins) && shown.contains(said), "{shown}");
    }
}

#[test]
fn a_proof_at_one_address_of_a_name_opens_no_other() {
    let web = answers(proof("media.invalid:8188"), always());
    assert!(asked(HERE, &[web]).fetch_proof().is_ok());
    let why = asked(ELSEWHERE, &[web]).fetch_proof().err().unwrap();
    assert!(why.contains("127.0.0.77 publishes no consent proof"), "{why}");
}

#[test]
fn a_fetched_proof_cannot_be_reused_and_one_with_a_token_is_invalid() {
    let theirs = answers(proof_of("media.invalid:8188", &ConsentSecret::new([1; 32])), always());
    let why = asked(HERE, &[theirs]).fetch_proof().err().unwrap();
    assert!(why.contains("is for `lab`") && why.contains("another tester"), "{why}");
    let old = "token = 0123456789abcdef\ntarget = media.invalid:8188\nexpires = 2026-12-31\n";
    let why = asked(HERE, &[answers(old.into(), always())]).fetch_proof().err().unwrap();
    assert!(why.contains("throng consent HOST:PORT") && !why.contains("0123456789abcdef"), "{why}");
}

#[test]
fn where_no_proof_is_found_each_place_that_was_tried_is_named_with_what_it_said() {
    let (deaf, missing) =
        (websocket_only(), answers(String::new(), Arc::new(AtomicBool::new(false))));
    let other = answers(proof("elsewhere.example.org:8188"), always());
    let why = asked(HERE, &[deaf, missing, other]).fetch_proof().err().unwrap();
    for (port, said) in [(deaf, "http://"), (missing, "404"), (other, "elsewhere.example.org:8188")]
    {
        let place = format!("media.invalid:{port}/");
        let reported = why.split("; ").any(|one| one.contains(&place) && one.contains(said));
        assert!(reported, "{place} {said}: {why}");
    }
}

#[test]
fn records_of_a_name_can_only_take_away() {
    let valid =
        |texts: &[String]| request().valid("TXT", texts.to_vec()).map(|proof| proof.caps.users);
    let (ours, theirs) =
        (proof("media.invalid:8188"), proof_of("media.invalid:8188", &ConsentSecret::new([1; 32])));
    assert_eq!(valid(&[theirs.clone(), ours.replace('\n', ";")]), Ok(Some(7)));
    assert!(valid(&[theirs]).is_err());
    let address = ProofRequest { host: "192.0.2.7".into(), ..request() };
    assert_eq!(address.ask_name(), Ok(Caps::NONE), "an address has no name to ask for");
}
