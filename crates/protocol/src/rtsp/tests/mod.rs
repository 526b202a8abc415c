//! The viewer against scripted servers: the dialogue, and what real and hostile servers do
//! otherwise.

use std::time::Duration;

use throng_observation::{FailureReason, MediaPath, Observation, Outcome, Phase};
use throng_scenario::RtspTransport;

use self::fixture::{Fixture, SDP, frame};
use crate::participant::{Channel, ChannelError, Input};

mod access;
mod answers;
mod bytes;
mod ends;
mod fixture;
mod missing;
mod outages;
mod packets;
mod playback;
mod positions;
mod publisher;
mod recordings;

#[test]
fn a_viewer_plays_over_udp_keeps_the_session_alive_and_tears_it_down() {
    let mut fixture = Fixture::new(RtspTransport::Auto);
    fixture.described(SDP);
    fixture.ports(50_000);
    let set_up = fixture.answers(
        "SETUP",
        "200 OK",
        "Session: 77;timeout=20\r\nTransport: RTP/AVP;unicast;client_port=50000-50001;server_port=6000-6001\r\n",
        "",
    );
    assert!(set_up.starts_with("SETUP rtsp://127.0.0.1:8554/cam/stream=0 RTSP/1.0"), "{set_up}");
    assert!(set_up.contains("Transport: RTP/AVP;unicast;client_port=50000-50001\r\n"), "{set_up}");
    // The path is opened from both ports before PLAY.
    let opened: Vec<_> =
        fixture.datagrams.iter().map(|(channel, to, _)| (channel.0, to.port())).collect();
    assert_eq!(opened, [(1, 6000), (2, 6001)]);
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(
        play.starts_with("PLAY rtsp://127.0.0.1:8554/cam/ ") && play.contains("Session: 77\r\n"),
        "{play}"
    );
    assert!(fixture.has_reached(Phase::Described) && fixture.has_reached(Phase::Negotiated));
    assert!(fixture.has_reached(Phase::Playing) && !fixture.has_reached(Phase::FirstPacket));
    for sequence in 0..200 {
        fixture.now += Duration::from_millis(33);
        let mut packet = frame(0, sequence).split_off(4);
        let input = Input::Datagram {
            channel: Channel(1),
            source: "127.0.0.1:6000".parse().unwrap(),
            local: None,
            arrived_at: fixture.now,
            bytes: &mut packet,
        };
        fixture.input(input);
    }
    assert!(fixture.has_reached(Phase::FirstFrame));
    let reports = fixture
        .datagrams
        .iter()
        .filter(|(channel, _, bytes)| channel.0 == 2 && bytes.get(1) == Some(&201));
    assert!(reports.count() >= 2, "an empty report, then one with a block");
    // A keepalive at half of the session's timeout.
    fixture.wait(Duration::from_secs(4));
    let keepalive = fixture.answers("GET_PARAMETER", "200 OK", "Session: 77\r\n", "");
    assert!(keepalive.contains("Session: 77"), "{keepalive}");
    fixture.input(Input::Leave { others_follow: false });
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    let byes =
        fixture.datagrams.iter().filter(|(_, _, bytes)| bytes.windows(2).any(|w| w == [0x81, 203]));
    assert_eq!(byes.count(), 1);
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
}

#[test]
fn a_server_without_udp_is_played_over_tcp_and_that_is_reported() {
    let mut fixture = Fixture::new(RtspTransport::Auto);
    fixture.described(SDP);
    fixture.ports(50_000);
    fixture.answers("SETUP", "461 Unsupported Transport", "", "");
    let transport = "Session: 5\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    let again = fixture.answers("SETUP", "200 OK", transport, "");
    assert!(again.contains("RTP/AVP/TCP;unicast;interleaved=0-1"), "{again}");
    fixture.answers("PLAY", "200 OK", "Session: 5\r\n", "");
    fixture.receives(&frame(0, 1));
    assert!(fixture.has_reached(Phase::FirstFrame));
    let path = |it: &Observation| matches!(it, Observation::Path(MediaPath::RtpTcp));
    assert!(fixture.observed.iter().any(path));
    assert_eq!(fixture.anomalies(), ["the server refuses RTP over UDP (461); TCP is used"]);
}

#[test]
fn ports_that_this_host_or_the_server_refuses_are_told_apart() {
    let mut fixture = Fixture::new(RtspTransport::Auto);
    fixture.described(SDP);
    let why = ChannelError::Generator("RTP sockets toward 127.0.0.1:8554: no port is left".into());
    fixture.input(Input::Closed { channel: Channel(1), why });
    let (reason, detail) = fixture.failed();
    assert!(reason == FailureReason::Generator && detail.contains("no port is left"), "{detail}");
    let mut fixture = Fixture::new(RtspTransport::Auto);
    fixture.described(SDP);
    fixture.ports(50_000);
    fixture.answers("SETUP", "403 Forbidden", "", "");
    assert_eq!(fixture.failed().0, FailureReason::RtspStatus(403));
    // A server without ports of its own, as some cameras: media comes, reports have nowhere to go.
    let mut fixture = Fixture::new(RtspTransport::Udp);
    fixture.described(SDP);
    fixture.ports(50_000);
    let transport = "Session: 7\r\nTransport: RTP/AVP;unicast;client_port=50000-50001\r\n";
    fixture.answers("SETUP", "200 OK", transport, "");
    fixture.answers("PLAY", "200 OK", "Session: 7\r\n", "");
    let mut packet = frame(0, 1).split_off(4);
    let source = "127.0.0.1:6000".parse().unwrap();
    let (channel, arrived_at) = (Channel(1), fixture.now);
    fixture.input(Input::Datagram { channel, source, local: None, arrived_at, bytes: &mut packet });
    assert!(fixture.has_reached(Phase::FirstFrame));
    fixture.wait(Duration::from_secs(8));
    assert!(fixture.datagrams.is_empty() && fixture.ended.is_none(), "{:?}", fixture.datagrams);
}

#[test]
fn media_that_arrives_after_the_goodbye_is_not_reported() {
    let mut fixture = Fixture::playing(SDP);
    fixture.receives(&frame(0, 1));
    fixture.input(Input::Leave { others_follow: false });
    let reported = fixture.observed.len();
    // Another SSRC, another payload type, and the first frame of a picture: each would be worth a
    // report.
    let mut other = frame(0, 2);
    other[15] = 77;
    fixture.receives(&other);
    other[5] = 0x80 | 33;
    fixture.receives(&other);
    // TEARDOWN is not answered in time.
    fixture.wait(Duration::from_secs(3));
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    let after: Vec<_> = fixture.observed.iter().skip(reported).collect();
    assert!(matches!(after.as_slice(), [Observation::LeaveUnanswered]), "{after:?}");
}

#[test]
fn teardown_does_not_wait_for_another_answer_nor_take_it_for_its_own() {
    let mut fixture = Fixture::playing(SDP);
    for sequence in 0..101 {
        fixture.wait(Duration::from_millis(100));
        fixture.receives(&frame(0, sequence));
    }
    let (keepalive, cseq) = fixture.request();
    assert!(keepalive.starts_with("GET_PARAMETER"), "{keepalive}");
    fixture.input(Input::Leave { others_follow: false });
    fixture.receives(format!("RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\n\r\n").as_bytes());
    assert_eq!(fixture.ended, None);
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
}

#[test]
fn a_transport_that_the_scenario_demands_is_not_replaced() {
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.described(SDP);
    fixture.answers("SETUP", "461 Unsupported Transport", "", "");
    let (reason, detail) = fixture.failed();
    assert_eq!(reason, FailureReason::RtspStatus(461));
    assert!(detail.contains("RTP over TCP"), "{detail}");
}
