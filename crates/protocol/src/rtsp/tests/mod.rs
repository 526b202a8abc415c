//! The viewer against scripted servers: the dialogue, and what real and hostile servers do
//! otherwise.

use std::time::Duration;

use throng_observation::{FailureReason, MediaPath, Observation, Outcome, Phase};
use throng_scenario::RtspTransport;

use self::stand::{SDP, Stand, frame};
use crate::participant::{Channel, ChannelError, Input};

mod access;
mod answers;
mod bytes;
mod missing;
mod packets;
mod playback;
mod publisher;
mod recordings;
mod stand;

#[test]
fn a_viewer_plays_over_udp_keeps_the_session_alive_and_tears_it_down() {
    let mut stand = Stand::new(RtspTransport::Auto);
    stand.described(SDP);
    stand.ports(50_000);
    let set_up = stand.answers(
        "SETUP",
        "200 OK",
        "Session: 77;timeout=20\r\nTransport: RTP/AVP;unicast;client_port=50000-50001;server_port=6000-6001\r\n",
        "",
    );
    assert!(set_up.starts_with("SETUP rtsp://127.0.0.1:8554/cam/stream=0 RTSP/1.0"), "{set_up}");
    assert!(set_up.contains("Transport: RTP/AVP;unicast;client_port=50000-50001\r\n"), "{set_up}");
    // The path is opened from both ports before PLAY.
    let opened: Vec<_> =
        stand.datagrams.iter().map(|(channel, to, _)| (channel.0, to.port())).collect();
    assert_eq!(opened, [(1, 6000), (2, 6001)]);
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(
        play.starts_with("PLAY rtsp://127.0.0.1:8554/cam/ ") && play.contains("Session: 77\r\n"),
        "{play}"
    );
    assert!(stand.has_reached(Phase::Described) && stand.has_reached(Phase::Negotiated));
    assert!(stand.has_reached(Phase::Playing) && !stand.has_reached(Phase::FirstPacket));
    for sequence in 0..200 {
        stand.now += Duration::from_millis(33);
        let mut packet = frame(0, sequence).split_off(4);
        let input = Input::Datagram {
            channel: Channel(1),
            source: "127.0.0.1:6000".parse().unwrap(),
            local: None,
            arrived_at: stand.now,
            bytes: &mut packet,
        };
        stand.input(input);
    }
    assert!(stand.has_reached(Phase::FirstFrame));
    let reports = stand
        .datagrams
        .iter()
        .filter(|(channel, _, bytes)| channel.0 == 2 && bytes.get(1) == Some(&201));
    assert!(reports.count() >= 2, "an empty report, then one with a block");
    // A keepalive at half of the session's timeout.
    stand.wait(Duration::from_secs(4));
    let keepalive = stand.answers("GET_PARAMETER", "200 OK", "Session: 77\r\n", "");
    assert!(keepalive.contains("Session: 77"), "{keepalive}");
    stand.input(Input::Leave { others_follow: false });
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.ended, Some(Outcome::Completed));
    let byes =
        stand.datagrams.iter().filter(|(_, _, bytes)| bytes.windows(2).any(|w| w == [0x81, 203]));
    assert_eq!(byes.count(), 1);
    assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
}

#[test]
fn a_server_without_udp_is_played_over_tcp_and_that_is_reported() {
    let mut stand = Stand::new(RtspTransport::Auto);
    stand.described(SDP);
    stand.ports(50_000);
    stand.answers("SETUP", "461 Unsupported Transport", "", "");
    let transport = "Session: 5\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    let again = stand.answers("SETUP", "200 OK", transport, "");
    assert!(again.contains("RTP/AVP/TCP;unicast;interleaved=0-1"), "{again}");
    stand.answers("PLAY", "200 OK", "Session: 5\r\n", "");
    stand.receives(&frame(0, 1));
    assert!(stand.has_reached(Phase::FirstFrame));
    let path = |it: &Observation| matches!(it, Observation::Path(MediaPath::RtpTcp));
    assert!(stand.observed.iter().any(path));
    assert_eq!(stand.anomalies(), ["the server refuses RTP over UDP (461); TCP is used"]);
}

#[test]
fn ports_that_this_host_or_the_server_refuses_are_told_apart() {
    let mut stand = Stand::new(RtspTransport::Auto);
    stand.described(SDP);
    let why = ChannelError::Generator("RTP sockets toward 127.0.0.1:8554: no port is left".into());
    stand.input(Input::Closed { channel: Channel(1), why });
    let (reason, detail) = stand.failed();
    assert!(reason == FailureReason::Generator && detail.contains("no port is left"), "{detail}");
    let mut stand = Stand::new(RtspTransport::Auto);
    stand.described(SDP);
    stand.ports(50_000);
    stand.answers("SETUP", "403 Forbidden", "", "");
    assert_eq!(stand.failed().0, FailureReason::RtspStatus(403));
    // A server without ports of its own, as some cameras: media comes, reports have nowhere to go.
    let mut stand = Stand::new(RtspTransport::Udp);
    stand.described(SDP);
    stand.ports(50_000);
    let transport = "Session: 7\r\nTransport: RTP/AVP;unicast;client_port=50000-50001\r\n";
    stand.answers("SETUP", "200 OK", transport, "");
    stand.answers("PLAY", "200 OK", "Session: 7\r\n", "");
    let mut packet = frame(0, 1).split_off(4);
    let source = "127.0.0.1:6000".parse().unwrap();
    let (channel, arrived_at) = (Channel(1), stand.now);
    stand.input(Input::Datagram { channel, source, local: None, arrived_at, bytes: &mut packet });
    assert!(stand.has_reached(Phase::FirstFrame));
    stand.wait(Duration::from_secs(8));
    assert!(stand.datagrams.is_empty() && stand.ended.is_none(), "{:?}", stand.datagrams);
}

#[test]
fn media_that_arrives_after_the_goodbye_is_not_reported() {
    let mut stand = Stand::playing(SDP);
    stand.receives(&frame(0, 1));
    stand.input(Input::Leave { others_follow: false });
    let reported = stand.observed.len();
    // Another SSRC, another payload type, and the first frame of a picture: each would be worth a
    // report.
    let mut other = frame(0, 2);
    other[15] = 77;
    stand.receives(&other);
    other[5] = 0x80 | 33;
    stand.receives(&other);
    // TEARDOWN is not answered in time.
    stand.wait(Duration::from_secs(3));
    assert_eq!(stand.ended, Some(Outcome::Completed));
    let after: Vec<_> = stand.observed.iter().skip(reported).collect();
    assert!(matches!(after.as_slice(), [Observation::LeaveUnanswered]), "{after:?}");
}

#[test]
fn teardown_does_not_wait_for_another_answer_nor_take_it_for_its_own() {
    let mut stand = Stand::playing(SDP);
    for sequence in 0..101 {
        stand.wait(Duration::from_millis(100));
        stand.receives(&frame(0, sequence));
    }
    let (keepalive, cseq) = stand.request();
    assert!(keepalive.starts_with("GET_PARAMETER"), "{keepalive}");
    stand.input(Input::Leave { others_follow: false });
    stand.receives(format!("RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\n\r\n").as_bytes());
    assert_eq!(stand.ended, None);
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.ended, Some(Outcome::Completed));
    assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
}

#[test]
fn a_transport_that_the_scenario_demands_is_not_replaced() {
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.described(SDP);
    stand.answers("SETUP", "461 Unsupported Transport", "", "");
    let (reason, detail) = stand.failed();
    assert_eq!(reason, FailureReason::RtspStatus(461));
    assert!(detail.contains("RTP over TCP"), "{detail}");
}
