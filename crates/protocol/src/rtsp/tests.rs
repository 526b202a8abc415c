//! The viewer against scripted servers: the dialogue, and what real and hostile servers do
//! otherwise.

use std::time::Duration;

use throng_observation::{FailureReason, MediaPath, Observation, Outcome, Phase};
use throng_scenario::{RtspTransport, Secret};

use self::stand::{RECORDING, SDP, Stand, frame};
use super::Credentials;
use super::framing::{Framing, Piece};
use crate::participant::{Channel, ChannelError, Input, Open, StreamPeer};
use crate::signalling::SIGNALLING;

mod playback;
mod publisher;
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
    // Without credentials the hint says where they go.
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.answers("OPTIONS", "200 OK", "", "");
    stand.answers("DESCRIBE", "401 Unauthorized", basic, "");
    assert!(stand.failed().1.contains("rtsp://USER:PASSWORD@HOST"), "{:?}", stand.ended);
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
        let mut stand = Stand::new(RtspTransport::Tcp);
        stand.described(SDP);
        stand.answers("SETUP", status, headers, "");
        if stand.ended.is_none() {
            // It had a session, which is torn down.
            stand.answers("TEARDOWN", "200 OK", "", "");
        }
        let failed = stand.failed();
        assert!(failed.0 == reason && failed.1.contains(detail), "{failed:?}");
    }
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.described("v=0\r\nm=application 0 RTP/AVP 107\r\nm=video 0 RTP/AVP 96\r\n");
    assert!(stand.failed().1.contains("m=application"), "{:?}", stand.ended);
}

#[test]
fn another_cseq_answers_nothing_and_a_missing_one_is_forgiven() {
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.request();
    stand.receives(b"RTSP/1.0 200 OK\r\nCSeq: 99\r\n\r\n");
    assert!(stand.requests.is_empty());
    stand.receives(b"RTSP/1.0 200 OK\r\n\r\n");
    assert!(stand.requests[0].starts_with("DESCRIBE"));
    assert_eq!(stand.anomalies().len(), 2);
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.receives(b"RTSP/1.0 200 OK\r\nCSeq: 99\r\n\r\n");
    stand.wait(Duration::from_secs(11));
    let (reason, detail) = stand.failed();
    assert_eq!(reason, FailureReason::SignallingTimeout);
    assert!(detail.contains("OPTIONS was not answered within 10.0 s"), "{detail}");
}

#[test]
fn an_absurd_length_and_a_text_that_is_not_rtsp_end_the_session() {
    for (bytes, detail) in [
        (
            &b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 4000000000\r\n\r\n"[..],
            "a message of more than 256 kB",
        ),
        (b"RTSP/9.9 what\r\n\r\n", "a message that is not RTSP"),
    ] {
        let mut stand = Stand::new(RtspTransport::Tcp);
        stand.receives(bytes);
        assert_eq!(stand.failed(), (FailureReason::Protocol, detail));
    }
}

#[test]
fn frames_are_found_again_after_noise() {
    let mut stand = Stand::playing(SDP);
    stand.receives(&frame(0, 1));
    stand.receives(&[&[0xff, 0x00, 0x12][..], &frame(0, 2)].concat());
    stand.receives(&frame(0, 3));
    assert_eq!(stand.anomalies(), ["3 bytes that are neither a message nor an interleaved frame"]);
    stand.now += Duration::from_secs(1);
    stand.input(Input::Timeout);
    let packets = stand.observed.iter().find_map(|it| match it {
        Observation::Interval(interval) => Some(interval.counters.packets_received),
        _ => None,
    });
    assert_eq!(packets, Some(3));
}

#[test]
fn the_stream_is_cut_the_same_wherever_reads_end() {
    let stream = [
        frame(0, 1),
        b"RTSP/1.0 200 OK\r\nCSeq: 4\r\nContent-Length: 3\r\n\r\nabc".to_vec(),
        frame(1, 2),
        b"\r\n".to_vec(),
        frame(0, 3),
    ]
    .concat();
    let cut = |size: usize| {
        let (mut framing, mut pieces) = (Framing::default(), Vec::new());
        for bytes in stream.chunks(size) {
            let piece = |piece: Piece<'_>| {
                pieces.push(match piece {
                    Piece::Message(message) => format!("{message:?}"),
                    Piece::Frame { channel, packet } => format!("{channel} {packet:?}"),
                    Piece::Skipped(count) => format!("skipped {count}"),
                });
            };
            framing.feed(bytes, piece).unwrap();
        }
        assert!(!framing.is_in_piece());
        pieces
    };
    let whole = cut(stream.len());
    assert_eq!(whole.len(), 4);
    for size in 1..stream.len() {
        assert_eq!(cut(size), whole, "reads of {size} bytes");
    }
}

#[test]
fn a_connection_that_closes_while_media_plays_is_a_failure() {
    let mut stand = Stand::playing(SDP);
    stand.receives(&frame(0, 1)[..9]);
    stand.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
    let (reason, detail) = stand.failed();
    assert_eq!(reason, FailureReason::SignallingClosed);
    assert!(detail.ends_with("in the middle of a message or frame"), "{detail}");
}

#[test]
fn a_session_that_the_server_has_forgotten_is_a_failure() {
    let mut stand = Stand::playing(SDP);
    for sequence in 0..120 {
        stand.wait(Duration::from_millis(100));
        stand.receives(&frame(0, sequence));
    }
    stand.answers("GET_PARAMETER", "454 Session Not Found", "", "");
    stand.answers("TEARDOWN", "454 Session Not Found", "", "");
    assert_eq!(stand.failed().0, FailureReason::RtspStatus(454));
}

#[test]
fn media_that_never_comes_or_stops_is_missed() {
    let mut stand = Stand::playing(SDP);
    stand.wait(Duration::from_secs(11));
    stand.answers("GET_PARAMETER", "200 OK", "", "");
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.failed().0, FailureReason::NoMedia);
    let mut stand = Stand::playing(SDP);
    stand.receives(&frame(0, 1));
    stand.wait(Duration::from_secs(11));
    stand.answers("GET_PARAMETER", "200 OK", "", "");
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.failed().0, FailureReason::MediaLost);
}

#[test]
fn a_presentation_with_an_end_is_a_recording() {
    for (sdp, expect) in [(SDP, false), (RECORDING, true)] {
        let stand = Stand::playing(sdp);
        let opened = stand.observed.iter().filter_map(|observation| match observation {
            Observation::TrackOpened { is_recording, .. } => Some(*is_recording),
            _ => None,
        });
        assert_eq!(opened.collect::<Vec<_>>(), [expect], "{sdp}");
    }
}

#[test]
fn a_recording_is_played_again_from_its_beginning() {
    let mut stand = Stand::playing(RECORDING);
    for sequence in 0..201 {
        stand.wait(Duration::from_millis(100));
        stand.receives(&frame(0, sequence));
        if stand.requests.first().is_some_and(|request| request.starts_with("GET_PARAMETER")) {
            stand.answers("GET_PARAMETER", "200 OK", "", "");
        }
    }
    stand.wait(Duration::from_millis(1_500));
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    stand.receives(&frame(0, 1));
    stand.wait(Duration::from_secs(3));
    assert_eq!(stand.ended, None);
    // A server that cannot play it again is set up anew.
    let mut stand = Stand::playing(RECORDING);
    stand.receives(&frame(0, 1));
    let bye = [0x80, 201, 0, 1, 0, 0, 0, 9, 0x81, 203, 0, 1, 0, 0, 0, 9];
    stand.receives(&[&[b'$', 1, 0, 16][..], &bye].concat());
    stand.wait(Duration::from_millis(300));
    stand.answers("PLAY", "457 Invalid Range", "", "");
    stand.answers("TEARDOWN", "200 OK", "", "");
    stand.answers(
        "SETUP",
        "200 OK",
        "Session: 78\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n",
        "",
    );
    stand.answers("PLAY", "200 OK", "Session: 78\r\n", "");
    assert_eq!(stand.ended, None);
}

#[test]
fn requests_of_the_server_are_answered() {
    let mut stand = Stand::playing(SDP);
    stand.receives(
        b"OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\nPLAY rtsp://x/ RTSP/1.0\r\nCSeq: 10\r\n\r\n",
    );
    assert!(stand.requests[0].starts_with("RTSP/1.0 200") && stand.requests[0].contains("CSeq: 9"));
    assert!(stand.requests[1].starts_with("RTSP/1.0 501"), "{:?}", stand.requests);
}
