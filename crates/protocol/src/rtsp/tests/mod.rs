//! The viewer against scripted servers: the dialogue, and what real and hostile servers do
//! otherwise.

use std::time::Duration;

use throng_observation::{FailureReason, MediaPath, Observation, Outcome, Phase, TrackCounters};
use throng_scenario::{RtspTransport, Secret};

use self::stand::{AUDIO, RECORDING, SDP, SECURE, Stand, audio, frame};
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
fn what_throng_does_not_do_is_no_violation_of_the_protocol() {
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.described("v=0\r\nm=application 0 RTP/AVP 107\r\n");
    assert_eq!(stand.failed().0, FailureReason::Unsupported);
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.described("v=0\r\n");
    assert_eq!(stand.failed().0, FailureReason::Protocol);
    // Encrypted media, as MediaMTX describes it with rtspEncryption.
    for (transport, way) in
        [(RtspTransport::Tcp, "rtsps://"), (RtspTransport::Auto, "a URL with rtsps://")]
    {
        let mut stand = Stand::new(transport);
        stand.described(SECURE);
        let (reason, detail) = stand.failed();
        assert_eq!(reason, FailureReason::Unsupported);
        assert!(detail.contains("RTP/SAVP") && detail.contains(way), "{detail}");
    }
    let mut stand = Stand::over_tls(RtspTransport::Udp);
    stand.described(SECURE);
    let (reason, detail) = stand.failed();
    assert!(reason == FailureReason::Unsupported && detail.contains("\"tcp\""), "{detail}");
}

#[test]
fn encrypted_media_comes_in_the_clear_inside_tls() {
    for transport in [RtspTransport::Auto, RtspTransport::Tcp] {
        let mut stand = Stand::over_tls(transport);
        stand.described(SECURE);
        let answer = "Session: 5\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
        let asked = stand.answers("SETUP", "200 OK", answer, "");
        assert!(asked.contains("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), "{asked}");
        stand.answers("PLAY", "200 OK", "Session: 5\r\n", "");
        stand.receives(&frame(0, 1));
        assert!(stand.has_reached(Phase::FirstFrame));
        let path = |it: &Observation| matches!(it, Observation::Path(MediaPath::RtpTls));
        assert!(stand.observed.iter().any(path));
        assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
    }
}

#[test]
fn a_server_that_does_not_repeat_the_channels_sends_on_those_asked_for() {
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.described(&format!("{SDP}{AUDIO}"));
    let transport = "Session: 7\r\nTransport: RTP/AVP/TCP;unicast\r\n";
    stand.answers("SETUP", "200 OK", transport, "");
    let second = stand.answers("SETUP", "200 OK", transport, "");
    assert!(second.contains("interleaved=2-3"), "{second}");
    stand.answers("PLAY", "200 OK", "Session: 7\r\n", "");
    stand.receives(&frame(0, 1));
    stand.receives(&audio(2, 0, 1));
    stand.wait(Duration::from_secs(1));
    let received: Vec<_> =
        stand.intervals().iter().map(|it| it.counters.packets_received).collect();
    assert_eq!(received, [1, 1]);
}

#[test]
fn a_server_that_ends_lines_with_lf_alone_is_understood() {
    let mut stand = Stand::new(RtspTransport::Tcp);
    let answers = |stand: &mut Stand, headers: &str, body: &str| {
        let (_, cseq) = stand.request();
        let length = body.len();
        let head = format!("RTSP/1.0 200 OK\nCSeq: {cseq}\n{headers}Content-Length: {length}\n\n");
        stand.receives(format!("{head}{body}").as_bytes());
    };
    answers(&mut stand, "Public: DESCRIBE\n", "");
    answers(&mut stand, "Content-Type: application/sdp\n", SDP);
    answers(&mut stand, "Session: 7\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\n", "");
    answers(&mut stand, "Session: 7\n", "");
    stand.receives(&frame(0, 1));
    assert!(stand.has_reached(Phase::FirstFrame), "{:?}", stand.ended);
    assert!(stand.anomalies().is_empty(), "{:?}", stand.anomalies());
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
        b"RTSP/1.0 200 OK\nCSeq: 5\nContent-Length: 5\n\n\nv=0\n".to_vec(),
        b"OPTIONS * RTSP/1.0\nCSeq: 9\r\n\n".to_vec(),
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
    assert_eq!(whole.len(), 6);
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
fn a_firewall_is_suspected_only_where_nothing_came() {
    for is_reported in [true, false] {
        let mut stand = Stand::new(RtspTransport::Auto);
        stand.described(SDP);
        stand.ports(50_000);
        let transport = "RTP/AVP;unicast;client_port=50000-50001;server_port=6000-6001";
        let headers = format!("Session: 77;timeout=20\r\nTransport: {transport}\r\n");
        stand.answers("SETUP", "200 OK", &headers, "");
        stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
        if is_reported {
            stand.input(Input::Datagram {
                channel: Channel(2),
                source: "127.0.0.1:6001".parse().unwrap(),
                local: None,
                arrived_at: stand.now,
                bytes: &mut [0x80, 201, 0, 1, 0, 0, 0, 1],
            });
        }
        stand.wait(Duration::from_secs(11));
        stand.answers("GET_PARAMETER", "200 OK", "Session: 77\r\n", "");
        stand.answers("TEARDOWN", "200 OK", "", "");
        let (reason, detail) = stand.failed();
        assert_eq!(reason, FailureReason::NoMedia);
        assert_eq!(detail.contains("a firewall may drop UDP"), !is_reported, "{detail}");
    }
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

/// Plays video and audio for fourteen seconds; audio until `audio_s`. How many seconds each missed,
/// and since when as of PLAY.
fn missed(audio_s: u64) -> [Vec<Duration>; 2] {
    let mut stand = Stand::new(RtspTransport::Tcp);
    stand.described(&format!("{SDP}{AUDIO}"));
    for channels in ["0-1", "2-3"] {
        let transport = format!(
            "Session: 77;timeout=200\r\nTransport: RTP/AVP/TCP;unicast;interleaved={channels}\r\n"
        );
        stand.answers("SETUP", "200 OK", &transport, "");
    }
    stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    let plays_since = stand.now;
    for at in 0..350 {
        stand.now += Duration::from_millis(40);
        stand.receives(&frame(0, at));
        if u64::from(at) < audio_s * 25 {
            stand.receives(&audio(2, 0, at));
        }
    }
    let of = |track: u16| {
        let mine = stand.intervals().into_iter().filter(|it| it.track.0 == track);
        mine.filter_map(|it| Some(it.missing_since? - plays_since)).collect()
    };
    [of(0), of(1)]
}

#[test]
fn a_track_that_was_set_up_and_never_comes_or_stops_is_missing() {
    let [video, audio] = missed(14);
    assert!(video.is_empty() && audio.is_empty(), "{audio:?}");
    let [video, audio] = missed(0);
    assert!(video.is_empty(), "{video:?}");
    assert_eq!(audio, vec![Duration::ZERO; audio.len()]);
    assert!((13..=14).contains(&audio.len()), "{audio:?}");
    let [video, audio] = missed(5);
    assert!(video.is_empty() && (8..=9).contains(&audio.len()), "{audio:?}");
}

#[test]
fn comfort_noise_and_events_between_audio_are_received_and_no_audio() {
    let sdp = "v=0\r\nm=audio 0 RTP/AVP 0 13 101\r\na=rtpmap:101 telephone-event/8000\r\n";
    let mut stand = Stand::playing(sdp);
    for at in 0..100 {
        stand.now += Duration::from_millis(20);
        let payload_type = match at % 16 {
            7 => 13,
            9 => 101,
            _ => 0,
        };
        stand.receives(&audio(0, payload_type, at));
    }
    // One that was not described is of the same source, too.
    stand.receives(&audio(0, 97, 100));
    stand.input(Input::Leave { others_follow: false });
    let sum = |of: fn(&TrackCounters) -> u64| {
        stand.intervals().iter().map(|it| of(&it.counters)).sum::<u64>()
    };
    assert_eq!(sum(|it| it.packets_received), 101);
    assert_eq!(stand.intervals().iter().map(|it| it.counters.packets_lost).sum::<i64>(), 0);
    assert_eq!(sum(|it| it.frames_complete), 88);
    assert_eq!(stand.anomalies(), ["payload type 97 where 0 was described"]);
}

#[test]
fn redundant_audio_is_audio() {
    let sdp = "v=0\r\nm=audio 0 RTP/AVP 0 96\r\na=rtpmap:96 red/8000\r\n";
    let mut stand = Stand::playing(sdp);
    (0..50).for_each(|at| stand.receives(&audio(0, 96, at)));
    assert!(stand.has_reached(Phase::FirstFrame) && stand.anomalies().is_empty());
}

#[test]
fn markers_inside_pictures_are_told_once() {
    let mut stand = Stand::playing(SDP);
    for at in 0..40_u16 {
        stand.now += Duration::from_millis(20);
        // Two packets with the marker a picture.
        let mut packet = frame(0, at);
        packet[8..12].copy_from_slice(&(u32::from(at / 2) * 3_600).to_be_bytes());
        // The second is another slice: its first macroblock is not number 0.
        packet[17] = if at % 2 == 0 { 0x88 } else { 0x48 };
        stand.receives(&packet);
    }
    let told = stand.anomalies();
    assert!(told.len() == 1 && told[0].contains("marker"), "{told:?}");
    stand.input(Input::Leave { others_follow: false });
    let frames: u64 = stand.intervals().iter().map(|it| it.counters.frames_complete).sum();
    assert_eq!(frames, 19, "the last has no sure end");
}

#[test]
fn a_stream_without_an_end_that_stops_may_have_been_a_recording() {
    for (sdp, expect) in [(SDP, true), (RECORDING, false)] {
        let mut stand = Stand::playing(sdp);
        stand.receives(&frame(0, 1));
        stand.wait(Duration::from_secs(11));
        stand.answers("GET_PARAMETER", "200 OK", "", "");
        stand.answers("TEARDOWN", "200 OK", "", "");
        let (reason, detail) = stand.failed();
        assert_eq!(reason, FailureReason::MediaLost);
        assert_eq!(detail.contains("names no end"), expect, "{detail}");
    }
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
    ends(&mut stand);
    stand.answers("PLAY", "457 Invalid Range", "", "");
    is_set_up_anew(&mut stand);
    assert_eq!(stand.ended, None);
}

/// The server says that the recording has ended.
fn ends(stand: &mut Stand) {
    let bye = [0x80, 201, 0, 1, 0, 0, 0, 9, 0x81, 203, 0, 1, 0, 0, 0, 9];
    stand.receives(&[&[b'$', 1, 0, 16][..], &bye].concat());
    stand.wait(Duration::from_millis(300));
}

fn is_set_up_anew(stand: &mut Stand) {
    stand.answers("TEARDOWN", "200 OK", "", "");
    let transport = "Session: 78\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    stand.answers("SETUP", "200 OK", transport, "");
    let play = stand.answers("PLAY", "200 OK", "Session: 78\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
}

/// As Live555 does: PLAY after the end is answered with 200, and nothing follows.
#[test]
fn a_recording_that_stays_silent_when_played_again_is_set_up_anew() {
    let mut stand = Stand::playing(RECORDING);
    stand.receives(&frame(0, 1));
    ends(&mut stand);
    stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    stand.wait(Duration::from_millis(1_900));
    assert!(stand.requests.is_empty(), "{:?}", stand.requests);
    stand.wait(Duration::from_millis(200));
    is_set_up_anew(&mut stand);
    stand.receives(&frame(0, 2));
    stand.wait(Duration::from_secs(3));
    assert!(stand.requests.is_empty() && stand.ended.is_none(), "{:?}", stand.requests);
    // That is how this server is: the next end needs no other try.
    ends(&mut stand);
    is_set_up_anew(&mut stand);
    assert_eq!(stand.anomalies().len(), 1, "{:?}", stand.anomalies());
    // A session that cannot be played at all ends as before.
    stand.wait(Duration::from_secs(11));
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.failed().0, FailureReason::MediaLost);
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
