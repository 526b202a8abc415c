//! The publisher against scripted servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use throng_media::card::{Rung, picture, speech};
use throng_media::rtcp::{Compound, Report, ReportBlock, Rtcp, RtcpWriter};
use throng_media::rtp::RtpHeader;
use throng_observation::{
    Codec, FailureReason, MediaKind, MediaPath, Observation, Outcome, Phase, RefusedDestination,
    SentCounters, SentInterval,
};
use throng_scenario::{IpProtocol, RtspTransport, Secret};

use super::fixture::{Fixture, config, options};
use crate::PublishedMedia;
use crate::participant::{Channel, ChannelError, Input};
use crate::rtsp::{Credentials, Publisher};
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

fn publisher(transport: RtspTransport, credentials: Option<Credentials>) -> Fixture {
    let clips = [picture(Rung::P144, Codec::H264).unwrap(), speech().unwrap()];
    let media = clips.map(|clip| PublishedMedia { clip, offset: Duration::ZERO });
    Fixture::with(|now| {
        Box::new(Publisher::new(config(transport, credentials), media.into(), options(now)))
    })
}

/// A publisher that sends over the RTSP connection.
fn sending() -> Fixture {
    let mut fixture = publisher(RtspTransport::Tcp, None);
    fixture.answers("OPTIONS", "200 OK", "Public: ANNOUNCE, RECORD, GET_PARAMETER\r\n", "");
    fixture.answers("ANNOUNCE", "200 OK", "", "");
    for channels in ["0-1", "2-3"] {
        let transport = format!(
            "Session: 9;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;interleaved={channels}\r\n"
        );
        fixture.answers("SETUP", "200 OK", &transport, "");
    }
    fixture.answers("RECORD", "200 OK", "Session: 9\r\n", "");
    fixture
}

fn sent(fixture: &Fixture) -> Vec<&SentInterval> {
    let sent = fixture.observed.iter().filter_map(|observation| match observation {
        Observation::Sent(interval) => Some(&**interval),
        _ => None,
    });
    sent.collect()
}

fn total(fixture: &Fixture, kind: MediaKind) -> SentCounters {
    let mut sum = SentCounters::default();
    sent(fixture)
        .iter()
        .filter(|interval| interval.kind == kind)
        .for_each(|interval| sum += interval.counters);
    sum
}

/// The interleaved packets in what was written: channel and packet.
fn packets(fixture: &Fixture) -> Vec<(u8, Vec<u8>)> {
    let mut packets = Vec::new();
    for written in &fixture.frames {
        let mut rest = &written[..];
        while let [b'$', channel, high, low, after @ ..] = rest {
            let (packet, next) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            packets.push((*channel, packet.to_vec()));
            rest = next;
        }
        assert!(rest.is_empty());
    }
    packets
}

#[test]
fn media_is_announced_set_up_and_sent_in_real_time_over_the_connection() {
    let mut fixture = publisher(RtspTransport::Tcp, None);
    fixture.answers("OPTIONS", "200 OK", "Public: ANNOUNCE, RECORD\r\n", "");
    let announce = fixture.answers("ANNOUNCE", "200 OK", "", "");
    assert!(announce.starts_with("ANNOUNCE rtsp://127.0.0.1:8554/cam RTSP/1.0\r\n"), "{announce}");
    let (head, sdp) = announce.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Content-Type: application/sdp"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", sdp.len())), "{head}");
    assert!(
        sdp.contains("m=video")
            && sdp.contains("sprop-parameter-sets=")
            && sdp.contains("opus/48000/2")
    );
    for (at, channels) in ["0-1", "2-3"].into_iter().enumerate() {
        let transport =
            format!("Session: 9\r\nTransport: RTP/AVP/TCP;unicast;interleaved={channels}\r\n");
        let set_up = fixture.answers("SETUP", "200 OK", &transport, "");
        assert!(
            set_up.starts_with(&format!("SETUP rtsp://127.0.0.1:8554/cam/streamid={at} ")),
            "{set_up}"
        );
        assert!(set_up.contains(&format!("interleaved={channels};mode=record\r\n")), "{set_up}");
    }
    assert!(fixture.frames.is_empty(), "media before RECORD");
    let record = fixture.answers("RECORD", "200 OK", "Session: 9\r\n", "");
    assert!(
        record.contains("Session: 9\r\n") && record.contains("Range: npt=0.000-\r\n"),
        "{record}"
    );
    for phase in [Phase::Described, Phase::Negotiated, Phase::Playing] {
        assert!(fixture.has_reached(phase), "{phase:?}");
    }
    assert!(fixture.observed.iter().any(|it| matches!(it, Observation::Path(MediaPath::RtpTcp))));
    fixture.wait(Duration::from_millis(2_950));
    fixture.input(Input::Leave { others_follow: false });
    let teardown = fixture.answers("TEARDOWN", "200 OK", "", "");
    assert!(teardown.contains("Session: 9"), "{teardown}");
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    // What is counted is what was written: 15 frames a second, 50 packets of sound.
    let all = packets(&fixture);
    for (kind, channel, payload_type, frames) in
        [(MediaKind::Video, 0, 96, 44..46), (MediaKind::Audio, 2, 97, 146..149)]
    {
        let of: Vec<_> = all.iter().filter(|(on, _)| *on == channel).collect();
        let counted = total(&fixture, kind);
        assert_eq!(counted.packets_sent, of.len() as u64, "{kind:?}");
        assert!(frames.contains(&counted.frames_sent), "{kind:?} {counted:?}");
        let written: usize = of.iter().map(|(_, packet)| packet.len() + 4).sum();
        assert_eq!(counted.wire_bytes, written as u64);
        let headers: Vec<_> =
            of.iter().map(|(_, packet)| RtpHeader::parse(packet).unwrap()).collect();
        assert!(headers.iter().all(|header| header.payload_type == payload_type));
        assert!(
            headers.windows(2).all(|pair| pair[1].sequence == pair[0].sequence.wrapping_add(1))
        );
        let markers = headers.iter().filter(|header| header.marker).count() as u64;
        assert_eq!(markers, if kind == MediaKind::Video { counted.frames_sent } else { 1 });
        // A sender report goes with the first packet, and BYE with the last.
        let control: Vec<_> =
            all.iter().filter(|(on, _)| *on == channel + 1).map(|(_, packet)| packet).collect();
        let first = Compound::new(control[0]).next().unwrap().unwrap();
        let Rtcp::SenderReport(report) = first else { panic!("{first:?}") };
        assert_eq!(report.sender.ssrc, headers[0].ssrc);
        let last = Compound::new(control.last().unwrap()).last().unwrap().unwrap();
        assert!(matches!(last, Rtcp::Bye(_)), "{last:?}");
    }
    assert_eq!(total(&fixture, MediaKind::Video).key_frames_sent, 3);
    assert!(fixture.anomalies().is_empty(), "{:?}", fixture.anomalies());
}

#[test]
fn a_port_for_media_that_may_not_be_sent_to_is_counted_and_said() {
    for (refused, address) in [(6_000, "127.0.0.1"), (6_001, "127.0.0.1"), (6_001, "127.0.0.9")] {
        let media = vec![PublishedMedia { clip: speech().unwrap(), offset: Duration::ZERO }];
        let mut fixture = Fixture::with(|now| {
            let may_reach =
                move |protocol, to: SocketAddr| protocol == IpProtocol::Tcp || to.port() != refused;
            let options = ParticipantOptions { may_reach: Arc::new(may_reach), ..options(now) };
            Box::new(Publisher::new(config(RtspTransport::Udp, None), media, options))
        });
        fixture.answers("OPTIONS", "200 OK", "", "");
        fixture.answers("ANNOUNCE", "200 OK", "", "");
        fixture.ports(50_000);
        let source = if address == "127.0.0.1" { "" } else { ";source=127.0.0.9" };
        let transport =
            format!("Session: 9\r\nTransport: RTP/AVP;unicast;server_port=6000-6001{source}\r\n");
        fixture.answers("SETUP", "200 OK", &transport, "");
        fixture.answers("TEARDOWN", "200 OK", "", "");
        let place = SocketAddr::new(address.parse().unwrap(), refused);
        let counted = fixture.observed.iter().filter(|it| {
            matches!(it, Observation::Refused(RefusedDestination::IceServer, to) if *to == place)
        });
        assert_eq!(counted.count(), 1, "{place}");
        let (reason, detail) = fixture.failed();
        assert_eq!(reason, FailureReason::NotAllowed, "{detail}");
        let words = [place.to_string(), format!("--allow-load {refused}/udp")];
        assert!(words.iter().all(|word| detail.contains(word)), "{detail}");
        assert!(fixture.datagrams.is_empty());
    }
}

#[test]
fn media_goes_to_the_ports_of_the_server_over_udp() {
    let mut fixture = publisher(RtspTransport::Auto, None);
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("ANNOUNCE", "200 OK", "", "");
    for (at, port) in [6_000, 6_100].into_iter().enumerate() {
        fixture.ports(50_000 + 2 * at as u16);
        let transport = format!(
            "Session: 9\r\nTransport: RTP/AVP;unicast;client_port=1-2;server_port={port}-{}\r\n",
            port + 1
        );
        let set_up = fixture.answers("SETUP", "200 OK", &transport, "");
        assert!(set_up.contains(";mode=record"), "{set_up}");
    }
    fixture.answers("RECORD", "200 OK", "Session: 9\r\n", "");
    fixture.wait(Duration::from_secs(1));
    let to: std::collections::BTreeSet<_> =
        fixture.datagrams.iter().map(|(channel, to, _)| (channel.0, to.port())).collect();
    assert_eq!(
        to.into_iter().collect::<Vec<_>>(),
        [(1, 6_000), (2, 6_001), (3, 6_100), (4, 6_101)]
    );
    // A server that names no ports cannot be sent to.
    let mut fixture = publisher(RtspTransport::Udp, None);
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("ANNOUNCE", "200 OK", "", "");
    for _ in 0..2 {
        fixture.ports(50_000);
        fixture.answers(
            "SETUP",
            "200 OK",
            "Session: 9\r\nTransport: RTP/AVP;unicast;client_port=1-2\r\n",
            "",
        );
    }
    fixture.answers("TEARDOWN", "200 OK", "", "");
    let (reason, detail) = fixture.failed();
    assert_eq!(reason, FailureReason::Protocol);
    assert!(detail.contains("ports"), "{detail}");
}

#[test]
fn what_the_server_reports_back_is_loss_and_round_trip() {
    let mut fixture = sending();
    fixture.wait(Duration::from_millis(500));
    let control = packets(&fixture).into_iter().find(|(channel, _)| *channel == 1).unwrap().1;
    let Rtcp::SenderReport(report) = Compound::new(&control).next().unwrap().unwrap() else {
        panic!()
    };
    let block = ReportBlock {
        ssrc: report.sender.ssrc,
        fraction_lost: 64,
        last_sr: report.sender.ntp.compact(),
        delay_since_last_sr: 0,
        ..ReportBlock::default()
    };
    let mut packet = Vec::new();
    let _ = RtcpWriter::compound(&mut packet, Report::Receiver(5), &[block], "server");
    let mut frame = vec![b'$', 1, 0, packet.len() as u8];
    frame.extend_from_slice(&packet);
    fixture.receives(&frame);
    // Half of a packet, and noise on the channel of RTP, which a server has no use for.
    fixture.receives(&[b'$', 1, 0, 3, 0x80, 201, 0, b'$', 0, 0, 1, 9]);
    fixture.wait(Duration::from_secs(1));
    let intervals = sent(&fixture);
    let video = intervals.iter().rfind(|interval| interval.kind == MediaKind::Video).unwrap();
    assert_eq!(video.remote_loss_ratio, Some(0.25));
    assert!(
        video.round_trip_s.is_some_and(|s| (0.3..0.7).contains(&s)),
        "{:?}",
        video.round_trip_s
    );
    let sound = intervals.iter().rfind(|interval| interval.kind == MediaKind::Audio).unwrap();
    assert_eq!(sound.remote_loss_ratio, None);
    assert_eq!(fixture.anomalies(), ["a control packet is malformed"]);
}

#[test]
fn a_server_without_udp_or_record_says_so() {
    let mut fixture = publisher(RtspTransport::Auto, None);
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("ANNOUNCE", "200 OK", "", "");
    fixture.ports(50_000);
    fixture.answers("SETUP", "461 Unsupported Transport", "", "");
    let again = fixture.answers(
        "SETUP",
        "200 OK",
        "Session: 9\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n",
        "",
    );
    assert!(again.contains("interleaved=0-1;mode=record"), "{again}");
    for (method, status, reason) in [
        ("ANNOUNCE", "405 Method Not Allowed", FailureReason::RtspStatus(405)),
        ("ANNOUNCE", "404 Not Found", FailureReason::RtspStatus(404)),
        ("RECORD", "501 Not Implemented", FailureReason::RtspStatus(501)),
    ] {
        let mut fixture = publisher(RtspTransport::Tcp, None);
        fixture.answers("OPTIONS", "200 OK", "", "");
        if method == "RECORD" {
            fixture.answers("ANNOUNCE", "200 OK", "", "");
            for _ in 0..2 {
                let transport = "Session: 9\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n";
                fixture.answers("SETUP", "200 OK", transport, "");
            }
        }
        fixture.answers(method, status, "", "");
        if fixture.ended.is_none() {
            fixture.answers("TEARDOWN", "200 OK", "", "");
        }
        let failed = fixture.failed();
        assert!(failed.0 == reason && failed.1.starts_with(method), "{failed:?}");
    }
}

#[test]
fn a_challenge_to_announce_is_answered_with_the_whole_description() {
    let credentials = Credentials { username: "ann".into(), password: Secret::new("pw") };
    let mut fixture = publisher(RtspTransport::Tcp, Some(credentials));
    fixture.answers("OPTIONS", "200 OK", "", "");
    let challenge = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n";
    let first = fixture.answers("ANNOUNCE", "401 Unauthorized", challenge, "");
    let second = fixture.answers("ANNOUNCE", "200 OK", "Session: 31\r\n", "");
    let sdp = |request: &str| request.split_once("\r\n\r\n").unwrap().1.to_owned();
    assert!(!sdp(&first).is_empty() && sdp(&first) == sdp(&second));
    assert!(second.contains("Authorization: Digest ") && !second.contains("pw"), "{second}");
    // As with Darwin Streaming Server, the session began with ANNOUNCE.
    let (set_up, _) = fixture.request();
    assert!(set_up.contains("Session: 31\r\n"), "{set_up}");
}

#[test]
fn a_session_is_kept_alive_and_its_loss_is_a_failure() {
    let mut fixture = sending();
    fixture.wait(Duration::from_secs(31));
    fixture.answers("GET_PARAMETER", "200 OK", "Session: 9\r\n", "");
    fixture.wait(Duration::from_secs(31));
    fixture.answers("GET_PARAMETER", "454 Session Not Found", "", "");
    fixture.answers("TEARDOWN", "454 Session Not Found", "", "");
    assert_eq!(fixture.failed().0, FailureReason::RtspStatus(454));
    let mut fixture = sending();
    fixture.wait(Duration::from_millis(1_500));
    let why = ChannelError::Tcp("the server left more than 8 MiB unread".into());
    fixture.input(Input::Closed { channel: SIGNALLING, why });
    let (reason, detail) = fixture.failed();
    assert_eq!(reason, FailureReason::SignallingClosed);
    assert!(detail.contains("unread"), "{detail}");
    // What was sent until then counts.
    assert!(total(&fixture, MediaKind::Video).frames_sent >= 20);
}

#[test]
fn datagrams_of_strangers_are_ignored() {
    let mut fixture = publisher(RtspTransport::Udp, None);
    fixture.answers("OPTIONS", "200 OK", "", "");
    fixture.answers("ANNOUNCE", "200 OK", "", "");
    for _ in 0..2 {
        fixture.ports(50_000);
        let transport = "Session: 9\r\nTransport: RTP/AVP;unicast;server_port=6000-6001\r\n";
        fixture.answers("SETUP", "200 OK", transport, "");
    }
    fixture.answers("RECORD", "200 OK", "Session: 9\r\n", "");
    for source in ["127.0.0.2:6001", "127.0.0.1:6001"] {
        let input = Input::Datagram {
            channel: Channel(2),
            source: source.parse().unwrap(),
            local: None,
            arrived_at: fixture.now,
            bytes: &mut [0x80, 201, 0],
        };
        fixture.input(input);
        assert_eq!(
            fixture.anomalies().len(),
            usize::from(source.starts_with("127.0.0.1")),
            "{source}"
        );
    }
}
