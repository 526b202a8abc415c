//! The publisher against a server that is played by the test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::card::{self, Rung};
use throng_media::mark::Mark;
use throng_media::quality::WallClock;
use throng_observation::{Codec, FailureReason, Observation, Outcome, Phase, Url};
use throng_scenario::Secret;

use super::amf::Amf;
use super::chunk::{ChunkReader, ChunkWriter, Message, kind};
use super::{Config, IngestProtocol, Publisher};
use crate::PublishedMedia;
use crate::participant::{ChannelError, Input, Open, Opening, Output, Participant, StreamPeer};
use crate::signalling::SIGNALLING;
use crate::webrtc::{ParticipantOptions, StepTimeouts};

const BEGAN_UNIX_NS: u64 = 1_700_000_000_000_000_000;

/// A publisher, and what it has sent and reported.
struct Fixture {
    publisher: Publisher,
    began: Instant,
    now: Instant,
    open: Option<Open>,
    sent: Vec<u8>,
    observed: Vec<Observation>,
    is_closed: bool,
    ended: Option<Outcome>,
    writer: ChunkWriter,
}

impl Fixture {
    fn new(url: &str, protocol: IngestProtocol, burns_clock: bool) -> Self {
        let now = Instant::now();
        let options = ParticipantOptions {
            may_reach: Arc::new(|_, to| to.ip().is_loopback()),
            clock: WallClock { at: now, unix_ns: BEGAN_UNIX_NS },
            ..ParticipantOptions::for_tests(now)
        };
        let config = Config { url: Url::parse(url).unwrap(), protocol, burns_clock, chosen: None };
        let clips = [card::picture(Rung::P144, Codec::H264).unwrap(), card::tone_aac().unwrap()];
        let media = clips.map(|clip| PublishedMedia { clip, offset: Duration::ZERO });
        let mut fixture = Self {
            publisher: Publisher::new(config, media.into(), options),
            began: now,
            now,
            open: None,
            sent: Vec::new(),
            observed: Vec::new(),
            is_closed: false,
            ended: None,
            writer: ChunkWriter::new(),
        };
        fixture.input(Input::Start { intended_at: now });
        fixture
    }

    fn input(&mut self, input: Input<'_>) {
        self.publisher.handle(self.now, input);
        loop {
            match self.publisher.poll_output(self.now) {
                Output::Open(SIGNALLING, open) => self.open = Some(open),
                Output::Send(_, transmit) => self.sent.extend(transmit.bytes),
                Output::Close(_) => self.is_closed = true,
                Output::Observed(observation) => self.observed.push(observation),
                Output::Ended(outcome) => {
                    self.ended = Some(outcome);
                    return;
                }
                Output::Timeout(..) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    fn pass(&mut self, duration: Duration) {
        for _ in 0..duration.as_millis() / 5 {
            self.now += Duration::from_millis(5);
            self.input(Input::Timeout);
        }
    }

    fn opens(&mut self) {
        let remote: SocketAddr = "127.0.0.1:1935".parse().unwrap();
        let opening =
            Opening { remote: Some(remote), connected_at: Some(self.now), ..Opening::default() };
        self.input(Input::Opened { channel: SIGNALLING, opening });
    }

    fn server_sends(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(100) {
            self.input(Input::Bytes { channel: SIGNALLING, bytes });
        }
    }

    fn server_commands(&mut self, values: &[Amf]) {
        let mut body = Vec::new();
        values.iter().for_each(|value| value.write(&mut body));
        let mut bytes = Vec::new();
        self.writer.write(
            3,
            &Message { kind: kind::COMMAND, stream: 0, timestamp_ms: 0, body },
            &mut bytes,
        );
        self.server_sends(&bytes);
    }

    fn server_results(&mut self, transaction: f64, value: Amf) {
        self.server_commands(&[Amf::text("_result"), Amf::Number(transaction), Amf::Null, value]);
    }

    fn server_status(&mut self, level: &str, code: &str, description: &str) {
        let of = [("level", level), ("code", code), ("description", description)];
        let of = of.map(|(name, value)| (name.to_owned(), Amf::text(value)));
        self.server_commands(&[
            Amf::text("onStatus"),
            Amf::Number(0.0),
            Amf::Null,
            Amf::Object(of.into()),
        ]);
    }

    /// As far as `publish`.
    fn connected() -> Self {
        let mut fixture =
            Self::new("http://127.0.0.1:1935/live/key?a=1", IngestProtocol::Rtmp, false);
        fixture.opens();
        fixture.server_sends(&[&[3][..], &[9; 2 * 1536]].concat());
        fixture.server_results(1.0, Amf::Null);
        fixture.server_results(4.0, Amf::Number(1.0));
        fixture
    }

    fn publishing() -> Self {
        let mut fixture = Self::connected();
        fixture.server_status("status", "NetStream.Publish.Start", "");
        fixture
    }

    /// The messages after the handshake.
    fn messages(&self) -> Vec<Message> {
        let mut reader = ChunkReader::new();
        reader.feed(&self.sent[1 + 2 * 1536..]);
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    fn commands(&self) -> Vec<Vec<Amf>> {
        let messages = self.messages();
        let commands = messages.iter().filter(|message| message.kind == kind::COMMAND);
        commands.map(|message| Amf::read_all(&message.body).unwrap()).collect()
    }

    fn reached(&self) -> Vec<Phase> {
        let phase = |observation: &Observation| match observation {
            Observation::Reached(phase, _) => Some(*phase),
            _ => None,
        };
        self.observed.iter().filter_map(phase).collect()
    }

    fn failure(&self) -> (FailureReason, String) {
        let Some(Outcome::Failed(failure)) = &self.ended else { panic!("{:?}", self.ended) };
        (failure.reason.clone(), failure.detail.to_string())
    }
}

#[test]
fn a_publisher_asks_and_then_sends_its_headers_and_media_in_real_time() {
    let mut fixture = Fixture::publishing();
    let open =
        Open::Stream { to: StreamPeer::Host { host: "127.0.0.1".into(), port: 1935 }, tls: None };
    assert_eq!(fixture.open, Some(open));
    // C0, C1 and the echo of S1.
    assert_eq!((fixture.sent[0], &fixture.sent[1537..3073]), (3, &[9; 1536][..]));
    let names: Vec<_> =
        fixture.commands().iter().map(|values| values[0].as_text().unwrap().to_owned()).collect();
    assert_eq!(names, ["connect", "releaseStream", "FCPublish", "createStream", "publish"]);
    let connect = &fixture.commands()[0][2];
    assert_eq!(connect.get("app").and_then(Amf::as_text), Some("live"));
    assert_eq!(connect.get("tcUrl").and_then(Amf::as_text), Some("rtmp://127.0.0.1:1935/live"));
    assert_eq!(fixture.commands()[4][3].as_text(), Some("key?a=1"));
    assert_eq!(
        fixture.reached(),
        [Phase::Started, Phase::Connected, Phase::Described, Phase::Playing]
    );

    fixture.pass(Duration::from_secs(2));
    let messages = fixture.messages();
    let media: Vec<_> = messages
        .iter()
        .filter(|m| matches!(m.kind, kind::AUDIO | kind::VIDEO | kind::DATA))
        .collect();
    let metadata = Amf::read_all(&media[0].body).unwrap();
    assert_eq!(
        (metadata[0].as_text(), metadata[1].as_text()),
        (Some("@setDataFrame"), Some("onMetaData"))
    );
    assert_eq!(metadata[2].get("width").and_then(Amf::as_number), Some(256.0));
    assert_eq!(&media[1].body[..6], [0x17, 0, 0, 0, 0, 1]);
    assert_eq!(media[2].body, [0xaf, 0, 0x11, 0x88]);
    let of = |kind| media.iter().filter(move |m| m.kind == kind).skip(1).map(|m| m.timestamp_ms);
    // 15 pictures and 46.9 frames of sound a second.
    assert_eq!(of(kind::VIDEO).collect::<Vec<_>>()[..4], [0, 66, 133, 200]);
    assert_eq!((of(kind::VIDEO).count(), of(kind::AUDIO).count()), (31, 94));
    let times: Vec<_> = media.iter().map(|m| m.timestamp_ms).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn each_picture_carries_the_time_at_which_it_was_due() {
    let mut fixture = Fixture::publishing();
    let since_began = fixture.now.duration_since(fixture.began);
    fixture.pass(Duration::from_secs(1));
    let pictures: Vec<_> =
        fixture.messages().into_iter().filter(|m| m.kind == kind::VIDEO).skip(1).collect();
    for (at, picture) in pictures.iter().enumerate() {
        let (mut nals, mut mark) = (&picture.body[5..], None);
        let mut kinds = Vec::new();
        while let Some((length, rest)) = nals.split_first_chunk::<4>() {
            let (nal, after) = rest.split_at(u32::from_be_bytes(*length) as usize);
            kinds.push(nal[0] & 0x1f);
            mark = mark.or(Mark::find_h264(nal));
            nals = after;
        }
        assert_eq!(kinds, if at % 15 == 0 { [6, 5] } else { [6, 1] }, "picture {at}");
        let due_ns = since_began.as_nanos() as u64 + at as u64 * 1_000_000_000 / 15;
        let captured_ns = mark.unwrap().captured_unix_ns - BEGAN_UNIX_NS;
        assert!(captured_ns.abs_diff(due_ns) < 1_000_000, "{captured_ns} {due_ns}");
    }
}

#[test]
fn it_counts_what_it_sent_and_what_the_connection_did_not_take_and_signs_off() {
    let mut fixture = Fixture::publishing();
    fixture.pass(Duration::from_millis(1_500));
    fixture.input(Input::Blocked { channel: SIGNALLING, duration: Duration::from_millis(300) });
    fixture.input(Input::Leave { others_follow: false });
    let (mut pictures, mut blocked_us) = (0, 0);
    for observation in &fixture.observed {
        if let Observation::Sent(interval) = observation {
            blocked_us += interval.counters.blocked_us;
            pictures +=
                if interval.codec == Codec::H264 { interval.counters.frames_sent } else { 0 };
        }
    }
    assert_eq!((pictures, blocked_us), (23, 300_000));
    let names: Vec<_> =
        fixture.commands().iter().map(|values| values[0].as_text().unwrap().to_owned()).collect();
    assert_eq!(names[5..], ["FCUnpublish", "deleteStream"]);
    assert_eq!((fixture.is_closed, fixture.ended), (true, Some(Outcome::Completed)));
}

#[test]
fn refusals_keep_the_servers_words() {
    for (code, description, reason, detail) in [
        ("NetStream.Publish.BadName", "", FailureReason::Unauthorized, "NetStream.Publish.BadName"),
        (
            "NetStream.Publish.Rejected",
            "busy\u{1b}[m",
            FailureReason::Refused,
            "NetStream.Publish.Rejected: busy [m",
        ),
        ("", "no", FailureReason::Refused, "no code: no"),
    ] {
        let mut fixture = Fixture::connected();
        fixture.server_status("error", code, description);
        assert_eq!(fixture.failure(), (reason, detail.to_owned()));
    }
    let mut fixture = Fixture::new("http://127.0.0.1:1935/live/key", IngestProtocol::Rtmp, false);
    fixture.opens();
    fixture.server_sends(b"HTTP/1.1 400 Bad Request\r\n");
    let (reason, detail) = fixture.failure();
    assert_eq!(reason, FailureReason::Protocol);
    assert_eq!(detail, "the handshake begins with 72, not with version 3 of RTMP");
}

#[test]
fn silence_of_the_server_ends_the_attempt_and_names_what_was_awaited() {
    let mut fixture = Fixture::connected();
    fixture.pass(StepTimeouts::default().signalling);
    let (reason, detail) = fixture.failure();
    assert_eq!(reason, FailureReason::SignallingTimeout);
    assert!(detail.starts_with("the server did not answer publish within "), "{detail}");
    let mut fixture = Fixture::publishing();
    fixture.input(Input::Closed { channel: SIGNALLING, why: ChannelError::ClosedByPeer(None) });
    assert_eq!(fixture.failure().0, FailureReason::SignallingClosed);
}

#[test]
fn an_address_without_consent_is_not_contacted() {
    for (url, protocol) in [
        ("http://10.0.0.1:1935/live/key", IngestProtocol::Rtmp),
        ("http://10.0.0.1:9000/", IngestProtocol::Srt),
    ] {
        let fixture = Fixture::new(url, protocol, false);
        assert_eq!(
            (fixture.open.is_none(), fixture.failure().0),
            (true, FailureReason::NotAllowed)
        );
    }
}

#[test]
fn ffmpeg_gets_a_file_in_real_time_and_plays_once_it_has_sent() {
    let mut fixture = Fixture::new("http://127.0.0.1:9000/?streamid=x", IngestProtocol::Srt, true);
    let Some(Open::Process { program, arguments, told, .. }) = fixture.open.clone() else {
        panic!("{:?}", fixture.open)
    };
    assert_eq!(told.as_ref().map(Secret::expose), Some("srt_streamid=x\n"));
    assert_eq!(program, "ffmpeg");
    assert!(arguments.join(" ").ends_with("-fpre {told} srt://127.0.0.1:9000"), "{arguments:?}");
    let midnight_ms = BEGAN_UNIX_NS / 1_000_000 % 86_400_000;
    assert!(
        arguments.iter().any(|argument| argument.contains(&format!("({midnight_ms}+t*1000+0.5)")))
    );
    fixture.opens();
    assert!(fixture.sent.starts_with(b"FLV\x01\x05\0\0\0\x09\0\0\0\0\x12"));
    fixture.pass(Duration::from_secs(1));
    assert!(fixture.reached().iter().all(|phase| *phase != Phase::Playing));
    fixture.server_sends(b"frame=3\ntotal_size=1000\nprogress=continue\n");
    assert_eq!(fixture.reached().last(), Some(&Phase::Playing));
    let rate = fixture.sent.len() as f64 * 8.0 / 1e3;
    assert!((100.0..220.0).contains(&rate), "{rate} kbit/s");
    let words = "ffmpeg ended (exit status: 1): rtmp://127.0.0.1: Connection refused";
    let ends = |mut fixture: Fixture| {
        let why = ChannelError::Process(words.into());
        fixture.input(Input::Closed { channel: SIGNALLING, why });
        fixture.failure()
    };
    // The server was there: it is lost.
    assert_eq!(ends(fixture), (FailureReason::SignallingClosed, words.to_owned()));
    let mut nobody = Fixture::new("http://127.0.0.1:1935/live/k", IngestProtocol::Rtmp, true);
    nobody.opens();
    assert_eq!(ends(nobody), (FailureReason::Tcp, words.to_owned()));
}
