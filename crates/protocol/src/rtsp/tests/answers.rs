//! What servers describe and answer otherwise, and what they ask.

use std::time::Duration;

use throng_observation::{FailureReason, MediaPath, Observation, Phase};
use throng_scenario::RtspTransport;

use super::fixture::{AUDIO, Fixture, SDP, SECURE, audio, frame};

#[test]
fn answers_that_break_the_protocol_are_named() {
    let transport = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    let multicast = "Session: 1\r\nTransport: RTP/AVP;multicast;port=5000-5001\r\n";
    let other = "Session: 1\r\nTransport: RTP/AVP;unicast;client_port=1-2\r\n";
    for (status, headers, reason, detail) in [
        ("200 OK", transport, FailureReason::Protocol, "SETUP was answered without Session"),
        (
            "200 OK",
            "Session: 1\r\n",
            FailureReason::Protocol,
            "SETUP was answered without Transport",
        ),
        ("200 OK", multicast, FailureReason::Protocol, "multicast"),
        ("200 OK", other, FailureReason::Protocol, "UDP where TCP was asked for"),
        (
            "453 Not Enough Bandwidth",
            "",
            FailureReason::RtspStatus(453),
            "SETUP: 453: Not Enough Bandwidth",
        ),
    ] {
        let mut fixture = Fixture::new(RtspTransport::Tcp);
        fixture.described(SDP);
        fixture.answers("SETUP", status, headers, "");
        if fixture.ended.is_none() {
            // It had a session, which is torn down.
            fixture.answers("TEARDOWN", "200 OK", "", "");
        }
        let failed = fixture.failed();
        assert!(failed.0 == reason && failed.1.contains(detail), "{failed:?}");
    }
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.described("v=0\r\nm=application 0 RTP/AVP 107\r\nm=video 0 RTP/AVP 96\r\n");
    assert!(fixture.failed().1.contains("m=application"), "{:?}", fixture.ended);
}

#[test]
fn what_throng_does_not_do_is_no_violation_of_the_protocol() {
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.described("v=0\r\nm=application 0 RTP/AVP 107\r\n");
    assert_eq!(fixture.failed().0, FailureReason::Unsupported);
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.described("v=0\r\n");
    assert_eq!(fixture.failed().0, FailureReason::Protocol);
    // Encrypted media, as MediaMTX describes it with rtspEncryption.
    for (transport, way) in
        [(RtspTransport::Tcp, "rtsps://"), (RtspTransport::Auto, "a URL with rtsps://")]
    {
        let mut fixture = Fixture::new(transport);
        fixture.described(SECURE);
        let (reason, detail) = fixture.failed();
        assert_eq!(reason, FailureReason::Unsupported);
        assert!(detail.contains("RTP/SAVP") && detail.contains(way), "{detail}");
    }
    let mut fixture = Fixture::over_tls(RtspTransport::Udp);
    fixture.described(SECURE);
    let (reason, detail) = fixture.failed();
    assert!(reason == FailureReason::Unsupported && detail.contains("\"tcp\""), "{detail}");
}

#[test]
fn encrypted_media_comes_in_the_clear_inside_tls() {
    for transport in [RtspTransport::Auto, RtspTransport::Tcp] {
        let mut fixture = Fixture::over_tls(transport);
        fixture.described(SECURE);
        let answer = "Session: 5\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
        let asked = fixture.answers("SETUP", "200 OK", answer, "");
        assert!(asked.contains("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), "{asked}");
        fixture.answers("PLAY", "200 OK", "Session: 5\r\n", "");
        fixture.receives(&frame(0, 1));
        assert!(fixture.has_reached(Phase::FirstFrame));
        let path = |it: &Observation| matches!(it, Observation::Path(MediaPath::RtpTls));
        assert!(fixture.observed.iter().any(path));
        assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
    }
}

#[test]
fn a_server_that_does_not_repeat_the_channels_sends_on_those_asked_for() {
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.described(&format!("{SDP}{AUDIO}"));
    let transport = "Session: 7\r\nTransport: RTP/AVP/TCP;unicast\r\n";
    fixture.answers("SETUP", "200 OK", transport, "");
    let second = fixture.answers("SETUP", "200 OK", transport, "");
    assert!(second.contains("interleaved=2-3"), "{second}");
    fixture.answers("PLAY", "200 OK", "Session: 7\r\n", "");
    fixture.receives(&frame(0, 1));
    fixture.receives(&audio(2, 0, 1));
    fixture.wait(Duration::from_secs(1));
    let received: Vec<_> =
        fixture.intervals().iter().map(|it| it.counters.packets_original).collect();
    assert_eq!(received, [1, 1]);
}

#[test]
fn requests_of_the_server_are_answered() {
    let mut fixture = Fixture::playing(SDP);
    fixture.receives(
        b"OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\nPLAY rtsp://x/ RTSP/1.0\r\nCSeq: 10\r\n\r\n",
    );
    assert!(
        fixture.requests[0].starts_with("RTSP/1.0 200") && fixture.requests[0].contains("CSeq: 9")
    );
    assert!(fixture.requests[1].starts_with("RTSP/1.0 501"), "{:?}", fixture.requests);
}
