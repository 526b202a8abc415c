//! Challenges, redirects, and who gets the credentials.

use throng_observation::{FailureReason, Observation};
use throng_scenario::{RtspTransport, Secret};

use super::fixture::{Fixture, SDP};
use crate::participant::{Open, StreamPeer};
use crate::rtsp::Credentials;

#[test]
fn challenges_are_answered_once_and_a_second_refusal_is_unauthorized() {
    let credentials = || Some(Credentials { username: "ann".into(), password: Secret::new("pw") });
    let basic = "WWW-Authenticate: Basic realm=\"r\"\r\n";
    let mut fixture = Fixture::of(RtspTransport::Tcp, credentials());
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("DESCRIBE", "401 Unauthorized", basic, "");
    let again = fixture.answers("DESCRIBE", "401 Unauthorized", basic, "");
    assert!(again.contains("Authorization: Basic YW5uOnB3\r\n"), "{again}");
    assert_eq!(fixture.failed().0, FailureReason::Unauthorized);
    // A nonce that expired is replaced, for ever if need be.
    let digest = |nonce: u32, stale: &str| {
        format!(
            "WWW-Authenticate: Digest realm=\"r\", nonce=\"{nonce}\", algorithm=SHA-256{stale}\r\n"
        )
    };
    let mut fixture = Fixture::of(RtspTransport::Tcp, credentials());
    fixture.answers("OPTIONS", "401 Unauthorized", &digest(1, ""), "");
    fixture.answers("OPTIONS", "200 OK", "", "");
    for nonce in 2..5 {
        let asked =
            fixture.answers("DESCRIBE", "401 Unauthorized", &digest(nonce, ", stale=true"), "");
        assert!(asked.contains(&format!("nonce=\"{}\"", nonce - 1)), "{asked}");
    }
    let asked = fixture.answers("DESCRIBE", "200 OK", "", SDP);
    assert!(
        asked.contains("uri=\"rtsp://127.0.0.1:8554/cam\"") && !asked.contains("pw"),
        "{asked}"
    );
    assert!(fixture.requests[0].starts_with("SETUP"), "{:?}", fixture.requests);
    // Without qop the algorithm has to be named all the same, unless it is MD5.
    for (algorithm, named) in [("MD5", false), ("SHA-256", true), ("SHA-512-256", true)] {
        let challenge =
            format!("WWW-Authenticate: Digest realm=\"r\", nonce=\"1\", algorithm={algorithm}\r\n");
        let mut fixture = Fixture::of(RtspTransport::Tcp, credentials());
        fixture.answers("OPTIONS", "401 Unauthorized", &challenge, "");
        let asked = fixture.answers("OPTIONS", "200 OK", "", "");
        assert_eq!(asked.contains(&format!(", algorithm={algorithm}\r\n")), named, "{asked}");
    }
    // Without credentials the hint says where they go.
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("DESCRIBE", "401 Unauthorized", basic, "");
    assert!(
        fixture.failed().1.contains("USER:PASSWORD and an @ before the host"),
        "{:?}",
        fixture.ended
    );
}

#[test]
fn redirects_are_followed_to_allowed_hosts_only() {
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("DESCRIBE", "302 Found", "Location: rtsp://127.0.0.1:9000/other\r\n", "");
    let Some((_, Open::Stream { to: StreamPeer::Host { port: 9000, .. }, .. })) =
        fixture.opened.last()
    else {
        panic!("{:?}", fixture.opened)
    };
    fixture.connected();
    let asked = fixture.answers("OPTIONS", "200 OK", "", "");
    assert!(asked.starts_with("OPTIONS rtsp://127.0.0.1:9000/other "), "{asked}");
    fixture.answers("DESCRIBE", "301 Moved", "Location: rtsp://192.0.2.1/x\r\n", "");
    assert_eq!(fixture.failed().0, FailureReason::NotAllowed);
    assert!(fixture.observed.iter().any(|it| matches!(it, Observation::Refused(..))));
    // A loop ends.
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    for _ in 0..6 {
        fixture.answers("OPTIONS", "200 OK", "", "");
        fixture.answers("DESCRIBE", "302 Found", "Location: rtsp://127.0.0.1:9000/other\r\n", "");
        if fixture.ended.is_none() {
            fixture.connected();
        }
    }
    assert_eq!(fixture.failed(), (FailureReason::Protocol, "more than 5 redirects"));
}

#[test]
fn credentials_go_to_no_other_origin_and_do_not_come_back_from_one() {
    const OWN: &str = "rtsp://127.0.0.1:8554/other";
    let basic = "WWW-Authenticate: Basic realm=\"r\"\r\n";
    for (hops, is_own) in [
        (&[OWN][..], true),
        (&["rtsp://127.0.0.1:9000/other"], false),
        (&["rtsp://127.0.0.2:8554/other"], false),
        (&["rtsps://127.0.0.1:8554/other"], false),
        (&["rtsp://127.0.0.2:8554/other", "rtsp://127.0.0.2:8554/more"], false),
        (&["rtsp://127.0.0.2:8554/other", OWN], false),
    ] {
        let credentials = Credentials { username: "ann".into(), password: Secret::new("pw") };
        let mut fixture = Fixture::of(RtspTransport::Tcp, Some(credentials));
        for hop in hops {
            fixture.answers("OPTIONS", "200 OK", "", "");
            fixture.answers("DESCRIBE", "302 Found", &format!("Location: {hop}\r\n"), "");
            fixture.connected();
        }
        fixture.answers("OPTIONS", "200 OK", "", "");
        fixture.answers("DESCRIBE", "401 Unauthorized", basic, "");
        if is_own {
            let again = fixture.answers("DESCRIBE", "200 OK", "", "");
            assert!(again.contains("Authorization: Basic YW5uOnB3\r\n"), "{again}");
        } else {
            assert_eq!(fixture.failed().0, FailureReason::Unauthorized, "{hops:?}");
        }
    }
}

#[test]
fn a_session_over_tls_does_not_go_on_in_clear_text() {
    let mut fixture = Fixture::over_tls(RtspTransport::Tcp);
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("DESCRIBE", "302 Found", "Location: rtsp://127.0.0.1:8554/x?key=pw\r\n", "");
    assert!(fixture.opened.is_empty(), "{:?}", fixture.opened);
    let (reason, detail) = fixture.failed();
    assert_eq!(reason, FailureReason::MixedContent);
    assert!(detail.contains("rtsp://127.0.0.1:8554/x?key=…"), "{detail}");
}
