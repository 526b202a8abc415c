//! The bytes of a connection: messages and frames among each other, and noise.

use std::time::Duration;

use throng_observation::{FailureReason, Observation, Phase};
use throng_scenario::RtspTransport;

use super::fixture::{Fixture, SDP, frame};
use crate::participant::{ChannelError, Input};
use crate::rtsp::framing::{Framing, Piece};
use crate::signalling::SIGNALLING;

#[test]
fn a_server_that_ends_lines_with_lf_alone_is_understood() {
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    let answers = |fixture: &mut Fixture, headers: &str, body: &str| {
        let (_, cseq) = fixture.request();
        let length = body.len();
        let head = format!("RTSP/1.0 200 OK\nCSeq: {cseq}\n{headers}Content-Length: {length}\n\n");
        fixture.receives(format!("{head}{body}").as_bytes());
    };
    answers(&mut fixture, "Public: DESCRIBE\n", "");
    answers(&mut fixture, "Content-Type: application/sdp\n", SDP);
    answers(&mut fixture, "Session: 7\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\n", "");
    answers(&mut fixture, "Session: 7\n", "");
    fixture.receives(&frame(0, 1));
    assert!(fixture.has_reached(Phase::FirstFrame), "{:?}", fixture.ended);
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
}

#[test]
fn another_cseq_answers_nothing_and_a_missing_one_is_forgiven() {
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.request();
    fixture.receives(b"RTSP/1.0 200 OK\r\nCSeq: 99\r\n\r\n");
    assert!(fixture.requests.is_empty());
    fixture.receives(b"RTSP/1.0 200 OK\r\n\r\n");
    assert!(fixture.requests[0].starts_with("DESCRIBE"));
    assert_eq!(fixture.anomalies().len(), 2);
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.receives(b"RTSP/1.0 200 OK\r\nCSeq: 99\r\n\r\n");
    fixture.wait(Duration::from_secs(11));
    let (reason, detail) = fixture.failed();
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
        let mut fixture = Fixture::new(RtspTransport::Tcp);
        fixture.receives(bytes);
        assert_eq!(fixture.failed(), (FailureReason::Protocol, detail));
    }
}

#[test]
fn frames_are_found_again_after_noise() {
    let mut fixture = Fixture::playing(SDP);
    fixture.receives(&frame(0, 1));
    fixture.receives(&[&[0xff, 0x00, 0x12][..], &frame(0, 2)].concat());
    fixture.receives(&frame(0, 3));
    assert_eq!(
        fixture.anomalies(),
        ["3 bytes that are neither a message nor an interleaved frame"]
    );
    fixture.now += Duration::from_secs(1);
    fixture.input(Input::Timeout);
    let packets = fixture.observed.iter().find_map(|it| match it {
        Observation::Interval(interval) => Some(interval.counters.packets_original),
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
    let mut fixture = Fixture::playing(SDP);
    fixture.receives(&frame(0, 1)[..9]);
    fixture.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
    let (reason, detail) = fixture.failed();
    assert_eq!(reason, FailureReason::SignallingClosed);
    assert!(detail.ends_with("in the middle of a message or frame"), "{detail}");
}
