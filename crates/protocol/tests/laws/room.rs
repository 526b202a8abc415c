//! Conferences: the properties of a viewer's signalling also hold for a participant with several
//! peer connections and its own requests.

use std::time::{Duration, Instant};

use throng_observation::{Layer, MediaKind};
use throng_protocol::participant::{FetchId, Message, Opening};
use throng_protocol::signalling::janus::{
    NewRoom, SessionConfig, SubscriberMode, VideoRoom, VideoRoomConfig,
};
use throng_protocol::signalling::livekit::{Access, Config as LiveKitConfig, LiveKit};
use throng_protocol::signalling::room::{
    PeerId, RoomInput, RoomOutput, RoomSignalling, Subscription, Subscriptions,
};
use throng_protocol::signalling::{RunMark, whep, whip::Whip};
use throng_scenario::JanusId;

use super::dialogue::{SDP, check_reported, response_of};

/// A VideoRoom: one message per line; the lines `wait`, `nobody`, `all`, `mute`, `speak`, `off`,
/// `high` and `lost` are actions of the participant. Runs once with one subscription to all, once
/// with one per publisher.
pub(crate) fn videoroom(bytes: &[u8]) {
    for subscribing in [SubscriberMode::Multistream, SubscriberMode::HandlePerFeed] {
        let new_room = (subscribing == SubscriberMode::HandlePerFeed).then(|| NewRoom {
            secret: "s".into(),
            admin_key: None,
            publishers: 3,
            bitrate_bps: 0,
            video_codecs: "vp8".into(),
        });
        let mut fixture = Fixture::new(VideoRoom::new(VideoRoomConfig {
            url: "ws://10.0.0.1:8188/".parse().expect("a URL"),
            room: JanusId::Number(1234),
            pin: Some("p".into()),
            display: "throng-0".into(),
            mark: RunMark::new("3f9c2"),
            publishes: true,
            subscribes: Some(subscribing),
            subscriptions: Subscriptions::default(),
            new_room,
            session: SessionConfig::default(),
        }));
        let opening = Opening { subprotocol: Some("janus-protocol".into()), ..Opening::default() };
        fixture.tell(RoomInput::Opened(&opening));
        for line in bytes.split(|byte| *byte == b'\n').take(60) {
            fixture.line(line);
        }
        fixture.leave();
    }
}

/// WHIP: responses separated by zero bytes, as for WHEP.
pub(crate) fn whip(bytes: &[u8]) {
    let config = whep::Config::new("http://10.0.0.1/whip".parse().expect("a URL"));
    let mut fixture = Fixture::new(Whip::new(config, None));
    fixture.tell(RoomInput::Offer(PeerId::PUBLISHER, SDP.into()));
    for (fetch, response) in bytes.split(|byte| *byte == 0).take(20).enumerate() {
        let response = response_of(response);
        fixture.tell(RoomInput::Fetched(FetchId(fetch as u32), Ok(&response)));
        fixture.tell(RoomInput::Connected(PeerId::PUBLISHER));
    }
    fixture.leave();
}

/// LiveKit: messages, each behind its length in two bytes. A length from 0xff00 on is none, but an
/// action of the participant. Runs once with a participant that publishes, once with one that only
/// subscribes.
pub(crate) fn livekit(bytes: &[u8]) {
    const ACTIONS: [&[u8]; 8] =
        [b"wait", b"nobody", b"all", b"mute", b"speak", b"off", b"high", b"wait"];
    for publishes in [true, false] {
        let mut fixture = Fixture::new(LiveKit::new(LiveKitConfig {
            url: "ws://10.0.0.1:7880/rtc".parse().expect("a URL"),
            access: Access::Token("token".to_owned()),
            mark: RunMark::new("3f9c2"),
            publishes,
            subscriptions: Subscriptions::default(),
            layers: Vec::new(),
            answer_within: Duration::from_secs(5),
        }));
        fixture.tell(RoomInput::Opened(&Opening::default()));
        let mut rest = bytes;
        for _ in 0..60 {
            let Some(([high, low], after)) = rest.split_first_chunk::<2>() else { break };
            if *high == 0xff {
                fixture.line(ACTIONS[usize::from(*low) % ACTIONS.len()]);
                rest = after;
                continue;
            }
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let (message, after) = after.split_at(length.min(after.len()));
            fixture.tell(RoomInput::Message(&Message::Binary(message.to_vec())));
            rest = after;
        }
        fixture.leave();
    }
}

/// An adapter, its clock, and whether it has failed or said goodbye.
struct Fixture {
    room: Box<dyn RoomSignalling>,
    now: Instant,
    failed: bool,
}

impl Fixture {
    fn new(room: impl RoomSignalling + 'static) -> Self {
        let mut fixture = Self { room: Box::new(room), now: Instant::now(), failed: false };
        fixture.tell(RoomInput::Start);
        fixture
    }

    /// A message of the server or an action of the participant, on one line.
    fn line(&mut self, line: &[u8]) {
        let subscriptions = |subscription: Subscription| Subscriptions {
            audio: Subscription::All,
            video: subscription,
        };
        match line {
            b"wait" => self.wait(),
            b"nobody" => self.tell(RoomInput::Subscribe(&subscriptions(Subscription::None))),
            b"all" => self.tell(RoomInput::Subscribe(&subscriptions(Subscription::All))),
            b"mute" => self.tell(RoomInput::Mute(MediaKind::Video, true)),
            b"speak" => self.tell(RoomInput::Mute(MediaKind::Video, false)),
            b"off" => self.tell(RoomInput::Layer(Layer::Off)),
            b"high" => self.tell(RoomInput::Layer(Layer::High)),
            b"lost" => self.tell(RoomInput::Lost(PeerId(1))),
            _ => {
                let message = Message::Text(String::from_utf8_lossy(line).into_owned());
                self.tell(RoomInput::Message(&message));
            }
        }
    }

    /// Passes an input, checks the outputs, and answers descriptions that need it.
    fn tell(&mut self, input: RoomInput<'_>) {
        self.room.handle(self.now, input);
        let mut wanted = Vec::new();
        for count in 0.. {
            let Some(output) = self.room.poll_output() else { break };
            assert!(count < 20_000, "no end of outputs");
            assert!(!self.failed, "after a failure: {output:?}");
            match output {
                RoomOutput::Failed(failure) => {
                    check_reported(&failure.detail);
                    self.failed = true;
                }
                RoomOutput::Anomaly(what) => check_reported(&what),
                RoomOutput::WantOffer(peer) => wanted.push(RoomInput::Offer(peer, SDP.into())),
                RoomOutput::RemoteOffer(peer, _) => {
                    wanted.push(RoomInput::Answer(peer, SDP.into()));
                }
                RoomOutput::RemoteCandidate(_, candidate) => {
                    assert!(candidate.starts_with("candidate:"));
                }
                RoomOutput::Publishers(names) => assert!(names.len() <= 4_096),
                _ => {}
            }
        }
        if let Some((at, why)) = self.room.next_timeout() {
            assert!(!self.failed, "waits for {why} after a failure");
            assert!(at <= self.now + Duration::from_secs(3_600), "{why}");
        }
        wanted.into_iter().for_each(|answer| self.tell(answer));
    }

    fn wait(&mut self) {
        if let Some((at, _)) = self.room.next_timeout() {
            self.now = self.now.max(at);
            self.tell(RoomInput::Timeout);
        }
    }

    /// Leaves: the goodbye is complete at the latest when the server no longer answers.
    fn leave(mut self) {
        if self.failed {
            return;
        }
        self.tell(RoomInput::Leave { others_follow: false });
        for _ in 0..10 {
            self.wait();
        }
        assert!(self.room.next_timeout().is_none(), "waits after its goodbye");
    }
}
