//! Challenges, redirects, and who gets the credentials.

use throng_observation::{FailureReason, Observation};
use throng_scenario::{RtspTransport, Secret};

use super::stand::{SDP, Stand};
use crate::participant::{Open, StreamPeer};
use crate::rtsp::Credentials;

#[test]
fn challenges_are_answered_once_and_a_second_refusal_is_unauthorized() {
    let credentials = || Some(Credentials { username: "ann".into(), password: Secret::new("pw") });
    let basic = "WWW-Authenticate: Basic realm=\"r\"\r\n";
    let mut stand = Stand::of(RtspTransport::Tcp, credentials());
    stand.answers("OPTIONS", "200 OK", "", "");
    stand.answers("DESCRIBE", "401 Unauthorized", basic, "");
    let again = stand.answers("DESCRIBE", "401 Unauthorized", basic, "");
    assert!(again.contains("Authorization: Basic YW5uOnB3\r\n"), "{again}");
    assert_eq!(stand.failed().0, FailureReason::Unauthorized);
    // A nonce that expired is replaced, for ever if need be.
    let digest = |nonce: u32, stale: &str| {
        format!(
            "WWW-Authenticate: Digest realm=\"r\", nonce=\"{nonce}\", algorithm=SHA-256{stale}\r\n"
        )
    };
    let mut stand = Stand::of(RtspTransport::Tcp, credentials());
    stand.answers("OPTIONS", "401 Unauthorized", &digest(1, ""), "");
    stand.answers("OPTIONS", "200 OK", "", "");
    for nonce in 2..5 {
        let asked =
            stand.answers("DESCRIBE", "401 Unauthorized", &digest(nonce, ", stale=true"), "");
        assert!(asked.contains(&format!("nonce=\"{}\"", nonce - 1)), "{asked}");
    }
    let asked = stand.answers("DESCRIBE", "200 OK", "", SDP);
    assert!(
        asked.contains("uri=\"rtsp://127.0.0.1:8554/cam\"") && !asked.contains("pw"),
        "{asked}"
    );
    assert!(stand.requests[0].starts_with("SETUP"), "{:?}", stand.requests);
    // Without qop the algorithm has to be named all the same, unless it is MD5.
    for (algorithm, named) in [("MD5", false), ("SHA-256", true), ("SHA-512-256", true)] {
        let challenge =
            format!("WWW-Authenticate: Digest realm=\"r\", nonce=\"1\", algorithm={algorithm}\r\n");
        let mut stand = Stand::of(RtspTransport::Tcp, credentials());
        stand.answers("OPTIONS", "401 Unauthorized", &challenge, "");
        let asked = stand.answers("OPTIONS", "200 OK", "", "");
        assert_eq!(asked.contains(&format!(", algorithm={algorithm}\r\n")), named, "{asked}");
    }
    // Without credentials the hint says where they go.
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.answers("OPTIONS", "200 OK", "", "");
    stand.answers("DESCRIBE", "401 Unauthorized", basic, "");
    assert!(
        stand.failed().1.contains("USER:PASSWORD and an @ before the host"),
        "{:?}",
        stand.ended
    );
}

#[test]
fn redirects_are_followed_to_allowed_hosts_only() {
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.answers("OPTIONS", "200 OK", "", "");
    stand.answers("DESCRIBE", "302 Found", "Location: rtsp://127.0.0.1:9000/other\r\n", "");
    let Some((_, Open::Stream { to: StreamPeer::Host { port: 9000, .. }, .. })) =
        stand.opened.last()
    else {
        panic!("{:?}", stand.opened)
    };
    stand.connected();
    let asked = stand.answers("OPTIONS", "200 OK", "", "");
    assert!(asked.starts_with("OPTIONS rtsp://127.0.0.1:9000/other "), "{asked}");
    stand.answers("DESCRIBE", "301 Moved", "Location: rtsp://192.0.2.1/x\r\n", "");
    assert_eq!(stand.failed().0, FailureReason::NotAllowed);
    assert!(stand.observed.iter().any(|it| matches!(it, Observation::Refused(..))));
    // A loop ends.
    let mut stand = Stand::new(RtspTransport::Tcp);
    for _ in 0..6 {
        stand.answers("OPTIONS", "200 OK", "", "");
        stand.answers("DESCRIBE", "302 Found", "Location: rtsp://127.0.0.1:9000/other\r\n", "");
        if stand.ended.is_none() {
            stand.connected();
        }
    }
    assert_eq!(stand.failed(), (FailureReason::Protocol, "more than 5 redirects"));
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
        let mut stand = Stand::of(RtspTransport::Tcp, Some(credentials));
        for hop in hops {
            stand.answers("OPTIONS", "200 OK", "", "");
            stand.answers("DESCRIBE", "302 Found", &format!("Location: {hop}\r\n"), "");
            stand.connected();
        }
        stand.answers("OPTIONS", "200 OK", "", "");
        stand.answers("DESCRIBE", "401 Unauthorized", basic, "");
        if is_own {
            let again = stand.answers("DESCRIBE", "200 OK", "", "");
            assert!(again.contains("Authorization: Basic YW5uOnB3\r\n"), "{again}");
        } else {
            assert_eq!(stand.failed().0, FailureReason::Unauthorized, "{hops:?}");
        }
    }
}

#[test]
fn a_session_over_tls_does_not_go_on_in_clear_text() {
    let mut stand = Stand::over_tls(RtspTransport::Tcp);
    stand.answers("OPTIONS", "200 OK", "", "");
    stand.answers("DESCRIBE", "302 Found", "Location: rtsp://127.0.0.1:8554/x?key=pw\r\n", "");
    assert!(stand.opened.is_empty(), "{:?}", stand.opened);
    let (reason, detail) = stand.failed();
    assert_eq!(reason, FailureReason::MixedContent);
    assert!(detail.contains("rtsp://127.0.0.1:8554/x?key=…"), "{detail}");
}
