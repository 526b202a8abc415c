//! Message exchanges of a participant with a LiveKit server, as of version 1.13.

use super::wire::{
    DISCONNECTED, DisconnectReason, IceServer, Leave, MuteTrack, ParticipantInfo,
    ParticipantUpdate, Pong, StreamStateInfo, SubscriptionResponse, TrackInfo, TrackPublished,
    VideoLayer, VideoQuality,
};
use super::*;
use crate::participant::Opening;
use crate::signalling::RunMark;
use crate::signalling::room::{RoomStream, Subscription, Subscriptions};
use throng_observation::Layer;

const OFFER: &str = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=sendonly\r\na=msid:s aud\r\n\
    m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=sendonly\r\na=msid:s vid\r\n";

struct Fixture {
    room: LiveKit,
    now: Instant,
    said: Vec<Request>,
    outputs: Vec<RoomOutput>,
    /// The publishers that were reported last.
    people: Vec<String>,
}

fn config() -> Config {
    let layer = |layer, rid: &str, width, height| SentLayer {
        layer,
        rid: rid.into(),
        width,
        height,
        bitrate_bps: 64_000,
    };
    Config {
        url: "ws://10.0.0.1:7880/rtc?region=x&auto_subscribe=5".parse().unwrap(),
        mark: RunMark::default(),
        access: Access::Token("tok".into()),
        publishes: true,
        subscriptions: Subscriptions::default(),
        layers: vec![layer(Layer::Low, "q", 256, 144), layer(Layer::Medium, "h", 640, 360)],
        answer_within: Duration::from_secs(5),
    }
}

fn person(number: u32) -> ParticipantInfo {
    let track = |sid: String, kind| {
        let mut track = TrackInfo { sid, ..TrackInfo::default() };
        track.set_kind(kind);
        track
    };
    let mut video = track(format!("TR_v{number}"), TrackType::Video);
    let mut layer = VideoLayer { width: 256, height: 144, ..VideoLayer::default() };
    layer.set_quality(VideoQuality::Low);
    video.layers = vec![layer];
    ParticipantInfo {
        sid: format!("PA_{number}"),
        identity: format!("throng-{number}"),
        state: 2,
        tracks: vec![track(format!("TR_a{number}"), TrackType::Audio), video],
    }
}

impl Fixture {
    fn new(config: Config) -> Self {
        let (said, outputs, people) = (Vec::new(), Vec::new(), Vec::new());
        let mut fixture =
            Self { room: LiveKit::new(config), now: Instant::now(), said, outputs, people };
        fixture.tell(RoomInput::Start);
        fixture.tell(RoomInput::Opened(&Opening::default()));
        fixture
    }

    fn present(config: Config, others: Vec<ParticipantInfo>) -> Self {
        let mut fixture = Self::new(config);
        fixture.outputs.clear();
        let participant = Some(ParticipantInfo { tracks: vec![], ..person(0) });
        let (ping_interval, ping_timeout) = (5, 15);
        let join = Join {
            participant,
            other_participants: others,
            ping_interval,
            ping_timeout,
            ..Join::default()
        };
        fixture.receives(Response::Join(Box::new(join)));
        fixture
    }

    fn tell(&mut self, input: RoomInput<'_>) {
        self.room.handle(self.now, input);
        while let Some(output) = self.room.poll_output() {
            match output {
                RoomOutput::Signal(Message::Binary(bytes)) => {
                    self.said
                        .push(SignalRequest::decode(bytes.as_slice()).unwrap().message.unwrap());
                }
                RoomOutput::Publishers(people) => self.people = people.into_iter().collect(),
                other => self.outputs.push(other),
            }
        }
    }

    fn receives(&mut self, response: Response) {
        let bytes = SignalResponse { message: Some(response) }.encode_to_vec();
        self.tell(RoomInput::Message(&Message::Binary(bytes)));
    }

    /// The server offers these (mid, track) sections.
    fn offers(&mut self, tracks: &[(&str, &str)]) {
        let sections = tracks.iter().map(|(mid, track)| {
            let kind = if track.starts_with("TR_a") { "audio" } else { "video" };
            format!("m={kind} 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:{mid}\r\na=sendonly\r\na=msid:PA|x {track}\r\n")
        });
        let sdp = format!("v=0\r\n{}", sections.collect::<String>());
        self.receives(Response::Offer(SessionDescription { kind: "offer".into(), sdp, id: 7 }));
    }

    fn failure(&self) -> &Failure {
        match self.outputs.last() {
            Some(RoomOutput::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self) -> (Vec<Request>, Vec<RoomOutput>) {
        (std::mem::take(&mut self.said), std::mem::take(&mut self.outputs))
    }
}

#[test]
fn the_token_travels_in_a_header_and_our_own_choices_are_not_the_urls() {
    let mut fixture = Fixture::new(config());
    let (_, outputs) = fixture.take();
    let [RoomOutput::Open(Open::WebSocket { url, headers, .. })] = outputs.as_slice() else {
        panic!("{outputs:?}")
    };
    let query = url.in_clear().query().unwrap();
    assert_eq!(query, "region=x&protocol=16&auto_subscribe=1&adaptive_stream=0");
    assert_eq!(headers, &[("Authorization".to_owned(), "Bearer tok".to_owned())]);
    assert_eq!(fixture.room.next_timeout().unwrap().1, "LiveKit: join");
}

#[test]
fn turn_servers_of_the_join_are_announced_and_our_candidates_are_trickled() {
    let mut fixture = Fixture::new(config());
    fixture.take();
    let ice_servers = vec![IceServer {
        urls: vec!["stun:10.0.0.9".into(), "turn:media.example:3478?transport=udp".into()],
        username: "u".into(),
        credential: "sesame".into(),
    }];
    fixture.receives(Response::Join(Box::new(Join { ice_servers, ..Join::default() })));
    let (_, outputs) = fixture.take();
    let [RoomOutput::Joined, RoomOutput::Relay(relay), RoomOutput::WantOffer(_)] =
        outputs.as_slice()
    else {
        panic!("{outputs:?}")
    };
    assert_eq!(
        (relay.url.as_str(), relay.username.as_str()),
        ("turn:media.example:3478?transport=udp", "u")
    );
    assert_eq!((relay.credential.expose(), relay.is_signalling_host), ("sesame", false));
    assert!(!format!("{relay:?}").contains("sesame"));
    fixture.tell(RoomInput::Candidate(SUBSCRIBER, "candidate:1 1 udp 1 10.0.0.9 40000 typ relay"));
    let (said, _) = fixture.take();
    let [Request::Trickle(trickle)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(trickle.target(), SignalTarget::Subscriber);
    let init = r#"{"candidate":"candidate:1 1 udp 1 10.0.0.9 40000 typ relay","sdpMLineIndex":0}"#;
    assert_eq!(trickle.candidate_init, init);
}

#[test]
fn a_publisher_announces_its_tracks_then_offers() {
    let mut fixture = Fixture::present(config(), vec![]);
    let (said, outputs) = fixture.take();
    assert!(matches!(
        outputs.as_slice(),
        [RoomOutput::Joined, RoomOutput::WantOffer(PeerId::PUBLISHER)]
    ));
    assert!(said.is_empty());
    fixture.tell(RoomInput::Offer(PeerId::PUBLISHER, OFFER.into()));
    let (said, _) = fixture.take();
    let [Request::AddTrack(audio), Request::AddTrack(video), Request::Offer(offer)] =
        said.as_slice()
    else {
        panic!("{said:?}")
    };
    assert_eq!(
        (audio.cid.as_str(), audio.kind(), audio.source()),
        ("aud", TrackType::Audio, TrackSource::Microphone)
    );
    assert_eq!(
        (video.cid.as_str(), video.kind(), video.source()),
        ("vid", TrackType::Video, TrackSource::Camera)
    );
    let layers: Vec<_> =
        video.layers.iter().map(|l| (l.quality(), l.rid.as_str(), l.height)).collect();
    assert_eq!(layers, [(VideoQuality::Low, "q", 144), (VideoQuality::Medium, "h", 360)]);
    assert_eq!((video.width, video.height), (640, 360));
    assert_eq!((offer.kind.as_str(), offer.sdp.as_str()), ("offer", OFFER));
    let answer = SessionDescription { kind: "answer".into(), sdp: OFFER.into(), id: 0 };
    fixture.receives(Response::Answer(answer));
    let candidate = |target, init: &str| Trickle { candidate_init: init.into(), target };
    fixture.receives(Response::Trickle(candidate(
        0,
        r#"{"candidate":"candidate:1 1 udp 1 10.0.0.1 7882 typ host","sdpMid":""}"#,
    )));
    fixture.receives(Response::Trickle(candidate(1, r#"{"candidate":""}"#)));
    fixture.receives(Response::Trickle(candidate(1, "nonsense")));
    let (_, outputs) = fixture.take();
    assert!(
        matches!(
            outputs.as_slice(),
            [
                RoomOutput::RemoteAnswer(PeerId::PUBLISHER, _),
                RoomOutput::RemoteCandidate(PeerId::PUBLISHER, _),
                RoomOutput::Anomaly(_)
            ]
        ),
        "{outputs:?}"
    );
}

#[test]
fn the_servers_offer_names_senders_and_is_answered_by_its_id() {
    let mut fixture = Fixture::present(config(), vec![person(1)]);
    fixture.take();
    fixture.offers(&[("0", "TR_a1"), ("1", "TR_v1"), ("2", "TR_nobody")]);
    let (_, outputs) = fixture.take();
    let [RoomOutput::Streams(SUBSCRIBER, streams), RoomOutput::RemoteOffer(SUBSCRIBER, _)] =
        outputs.as_slice()
    else {
        panic!("{outputs:?}")
    };
    let stream = |mid: &str, kind, layers| RoomStream {
        mid: mid.into(),
        from: (mid != "2").then(|| "throng-1".into()),
        is_muted: false,
        kind,
        layers,
        tells_layers: false,
    };
    let expect = [
        stream("0", MediaKind::Audio, vec![]),
        stream("1", MediaKind::Video, vec![(Layer::Low, 256, 144)]),
        stream("2", MediaKind::Video, vec![]),
    ];
    assert_eq!(streams.as_slice(), expect);
    fixture.tell(RoomInput::Answer(SUBSCRIBER, "v=0\r\nm=audio".into()));
    let (said, _) = fixture.take();
    assert!(matches!(said.as_slice(), [Request::Answer(answer)] if answer.id == 7), "{said:?}");
}

#[test]
fn mute_is_reported_when_the_server_signals_it() {
    let mut fixture = Fixture::present(config(), vec![person(1)]);
    fixture.offers(&[("0", "TR_a1"), ("1", "TR_v1")]);
    fixture.take();
    for is_muted in [true, false] {
        let mut person = person(1);
        person.tracks[1].muted = is_muted;
        fixture
            .receives(Response::Update(ParticipantUpdate { participants: vec![person.clone()] }));
        let (_, outputs) = fixture.take();
        let [RoomOutput::Streams(SUBSCRIBER, streams)] = outputs.as_slice() else {
            panic!("{outputs:?}")
        };
        let reported: Vec<_> =
            streams.iter().map(|stream| (stream.kind, stream.is_muted)).collect();
        assert_eq!(reported, [(MediaKind::Audio, false), (MediaKind::Video, is_muted)]);
        fixture.receives(Response::Update(ParticipantUpdate { participants: vec![person] }));
        assert!(fixture.take().1.is_empty(), "nothing is new");
    }
}

#[test]
fn attention_becomes_subscriptions_and_only_what_changes_is_said() {
    let chosen = Subscriptions {
        audio: Subscription::All,
        video: Subscription::Named(["throng-2".into()].into()),
    };
    let mut fixture =
        Fixture::present(Config { subscriptions: chosen, ..config() }, vec![person(1), person(2)]);
    let (said, _) = fixture.take();
    let [Request::Subscription(first)] = said.as_slice() else { panic!("{said:?}") };
    assert!(first.subscribe);
    assert_eq!(first.track_sids, ["TR_a1", "TR_a2", "TR_v2"]);
    // A participant joins, and another one leaves.
    let gone = ParticipantInfo { state: DISCONNECTED, ..person(2) };
    fixture.receives(Response::Update(ParticipantUpdate { participants: vec![person(3), gone] }));
    let (said, _) = fixture.take();
    assert!(
        matches!(said.as_slice(), [Request::Subscription(more)] if more.track_sids == ["TR_a3"])
    );
    let turned = Subscriptions {
        audio: Subscription::All,
        video: Subscription::Named(["throng-1".into()].into()),
    };
    fixture.tell(RoomInput::Subscribe(&turned));
    fixture.tell(RoomInput::Subscribe(&turned));
    let (said, _) = fixture.take();
    assert!(
        matches!(said.as_slice(), [Request::Subscription(more)] if more.track_sids == ["TR_v1"]),
        "{said:?}"
    );
    fixture.tell(RoomInput::Subscribe(&Subscriptions {
        audio: Subscription::All,
        video: Subscription::None,
    }));
    let (said, _) = fixture.take();
    assert!(
        matches!(said.as_slice(), [Request::Subscription(fewer)] if !fewer.subscribe && fewer.track_sids == ["TR_v1"])
    );
}

#[test]
fn everybody_is_subscribed_to_by_the_server_itself() {
    let mut fixture = Fixture::present(config(), vec![person(1)]);
    fixture.receives(Response::Update(ParticipantUpdate { participants: vec![person(2)] }));
    assert_eq!(fixture.take().0, []);
}

#[test]
fn layers_are_asked_for_of_what_is_offered_and_of_what_comes_later() {
    let mut fixture = Fixture::present(config(), vec![person(1), person(2)]);
    fixture.tell(RoomInput::Layer(Layer::Low));
    assert_eq!(fixture.take().0, [], "nothing is offered yet");
    fixture.offers(&[("0", "TR_a1"), ("1", "TR_v1")]);
    fixture.tell(RoomInput::Answer(SUBSCRIBER, "v=0".into()));
    let settings = |said: Vec<Request>| {
        said.into_iter()
            .filter_map(|request| match request {
                Request::TrackSetting(s) => Some((s.track_sids.join(","), s.quality(), s.disabled)),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(settings(fixture.take().0), [("TR_v1".into(), VideoQuality::Low, false)]);
    fixture.offers(&[("0", "TR_a1"), ("1", "TR_v1"), ("2", "TR_v2")]);
    fixture.tell(RoomInput::Answer(SUBSCRIBER, "v=0".into()));
    assert_eq!(settings(fixture.take().0), [("TR_v2".into(), VideoQuality::Low, false)]);
    fixture.tell(RoomInput::Layer(Layer::High));
    assert_eq!(settings(fixture.take().0), [("TR_v1,TR_v2".into(), VideoQuality::High, false)]);
    fixture.tell(RoomInput::Layer(Layer::Off));
    assert_eq!(settings(fixture.take().0), [("TR_v1,TR_v2".into(), VideoQuality::Low, true)]);
}

#[test]
fn pings_keep_the_session_and_a_silent_server_is_named() {
    let mut fixture = Fixture::present(config(), vec![]);
    fixture.take();
    for second in [5, 10] {
        let (at, why) = fixture.room.next_timeout().unwrap();
        assert_eq!((why, at - fixture.now), ("LiveKit: ping", Duration::from_secs(5)));
        fixture.now = at;
        fixture.tell(RoomInput::Timeout);
        let (said, _) = fixture.take();
        assert!(
            matches!(said.as_slice(), [Request::Ping(ping)] if ping.timestamp == second * 1_000),
            "{said:?}"
        );
    }
    fixture.receives(Response::Pong(Pong { last_ping_timestamp: 9_950 }));
    for _ in 0..3 {
        fixture.now = fixture.room.next_timeout().unwrap().0;
        fixture.tell(RoomInput::Timeout);
    }
    assert!(
        matches!(fixture.said.first(), Some(Request::Ping(ping)) if ping.rtt == 50),
        "{:?}",
        fixture.said
    );
    assert_eq!(fixture.failure().reason, FailureReason::SignallingTimeout);
}

#[test]
fn a_refusal_of_the_upgrade_says_what_to_look_at() {
    for (status, words) in
        [(401, "refused the token"), (403, "does not permit"), (404, "no such room"), (500, "500")]
    {
        let mut fixture = Fixture::new(config());
        fixture.room.state =
            State::Opening(ResponseDeadline::new(fixture.now, Duration::from_secs(1), "x"));
        fixture.tell(RoomInput::Closed(ChannelError::Status(status, "the server said so".into())));
        let failure = fixture.failure();
        assert_eq!(failure.reason, FailureReason::HttpStatus(status));
        assert!(failure.detail.contains(words), "{failure}");
        assert!(failure.detail.contains(": the server said so"), "{failure}");
    }
    // No limit of an address: the node or the room takes no more.
    let full = disconnect::not_opened(ChannelError::Status(429, String::new()));
    assert_eq!(full.reason, FailureReason::RoomFull);
}

#[test]
fn the_servers_reasons_to_end_a_session_are_named() {
    for (reason, action, expect) in [
        (
            DisconnectReason::DuplicateIdentity,
            0,
            "refused: LiveKit ended the session: a participant with the same identity",
        ),
        (DisconnectReason::ParticipantRemoved, 0, "kicked"),
        (DisconnectReason::RoomDeleted, 0, "room_ended"),
        (
            DisconnectReason::ServerShutdown,
            2,
            "signalling_closed: LiveKit ended the session: the server shuts down; it asks to join",
        ),
        (DisconnectReason::StateMismatch, 1, "signalling_closed"),
        (DisconnectReason::JoinFailure, 0, "refused"),
        (DisconnectReason::Unknown, 0, "signalling_closed"),
    ] {
        let mut fixture = Fixture::present(config(), vec![]);
        let mut leave = Leave { action, ..Leave::default() };
        leave.set_reason(reason);
        fixture.receives(Response::Leave(leave));
        assert!(fixture.failure().to_string().starts_with(expect), "{}", fixture.failure());
        assert!(fixture.room.next_timeout().is_none());
    }
}

#[test]
fn leaving_is_said_and_a_server_that_is_silent_is_not_waited_for_long() {
    let goodbye = |fixture: &mut Fixture| {
        fixture.take();
        fixture.tell(RoomInput::Leave { others_follow: false });
        let (said, _) = fixture.take();
        assert!(
            matches!(said.as_slice(), [Request::Leave(leave)] if leave.reason() == DisconnectReason::ClientInitiated)
        );
    };
    let mut fixture = Fixture::present(config(), vec![]);
    goodbye(&mut fixture);
    fixture.receives(Response::Update(ParticipantUpdate { participants: vec![person(1)] }));
    fixture.tell(RoomInput::Closed(ChannelError::ClosedByPeer(Some(1000.into()))));
    assert!(matches!(fixture.outputs.as_slice(), [RoomOutput::Goodbye]), "{:?}", fixture.outputs);
    let mut fixture = Fixture::present(config(), vec![]);
    goodbye(&mut fixture);
    fixture.now = fixture.room.next_timeout().unwrap().0;
    fixture.tell(RoomInput::Timeout);
    assert!(matches!(fixture.outputs.as_slice(), [RoomOutput::Close, RoomOutput::Goodbye]));
}

#[test]
fn the_publishers_are_reported_whenever_they_change() {
    let mut fixture = Fixture::present(config(), vec![person(1)]);
    assert_eq!(fixture.people, ["throng-1"]);
    fixture.receives(Response::Update(ParticipantUpdate { participants: vec![person(2)] }));
    assert_eq!(fixture.people, ["throng-1", "throng-2"]);
    fixture.people.clear();
    fixture.receives(Response::Update(ParticipantUpdate { participants: vec![person(2)] }));
    assert!(fixture.people.is_empty(), "nothing is new");
    let gone = ParticipantInfo { state: DISCONNECTED, ..person(1) };
    fixture.receives(Response::Update(ParticipantUpdate { participants: vec![gone] }));
    assert_eq!(fixture.people, ["throng-2"]);
}

#[test]
fn the_servers_events_about_ourselves_add_no_remote_participant() {
    let none = Subscriptions { audio: Subscription::Named([].into()), video: Subscription::None };
    let mut fixture = Fixture::present(Config { subscriptions: none, ..config() }, vec![person(1)]);
    fixture.take();
    fixture
        .receives(Response::Update(ParticipantUpdate { participants: vec![person(0), person(2)] }));
    assert_eq!(fixture.people, ["throng-1", "throng-2"]);
    fixture.tell(RoomInput::Subscribe(&Subscriptions::default()));
    let (said, _) = fixture.take();
    let [Request::Subscription(more)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(more.track_sids, ["TR_a1", "TR_a2", "TR_v1", "TR_v2"]);
}

#[test]
fn a_track_that_the_server_mutes_is_sent_no_more_until_it_lets_it() {
    let mut fixture = Fixture::present(config(), vec![]);
    let mut track = TrackInfo { sid: "TR_own".into(), ..TrackInfo::default() };
    track.set_kind(TrackType::Video);
    fixture.receives(Response::TrackPublished(TrackPublished {
        cid: "vid".into(),
        track: Some(track),
    }));
    for is_muted in [true, false] {
        fixture.receives(Response::Mute(MuteTrack { sid: "TR_own".into(), muted: is_muted }));
        let Some(RoomOutput::Muted(kind, reported)) = fixture.outputs.last() else {
            panic!("{:?}", fixture.outputs)
        };
        assert_eq!((*kind, *reported), (MediaKind::Video, is_muted));
    }
}

#[test]
fn what_is_mute_is_said_of_each_track_and_only_when_the_server_does_not_know_it() {
    let mut fixture = Fixture::present(config(), vec![]);
    fixture.take();
    let publishes = |fixture: &mut Fixture, sid: &str, kind| {
        let mut track = TrackInfo { sid: sid.into(), ..TrackInfo::default() };
        track.set_kind(kind);
        fixture.receives(Response::TrackPublished(TrackPublished {
            cid: sid.into(),
            track: Some(track),
        }));
    };
    let said = |fixture: &mut Fixture| -> Vec<(String, bool)> {
        let mutes = fixture.take().0.into_iter().map(|request| match request {
            Request::Mute(mute) => (mute.sid, mute.muted),
            other => panic!("{other:?}"),
        });
        mutes.collect()
    };
    fixture.tell(RoomInput::Mute(MediaKind::Audio, true));
    assert_eq!(said(&mut fixture), [], "there is no track yet");
    publishes(&mut fixture, "TR_sound", TrackType::Audio);
    publishes(&mut fixture, "TR_picture", TrackType::Video);
    assert_eq!(said(&mut fixture), [("TR_sound".to_owned(), true)]);
    fixture.tell(RoomInput::Mute(MediaKind::Video, true));
    fixture.tell(RoomInput::Mute(MediaKind::Video, true));
    assert_eq!(said(&mut fixture), [("TR_picture".to_owned(), true)]);
    fixture.tell(RoomInput::Mute(MediaKind::Audio, false));
    fixture.tell(RoomInput::Mute(MediaKind::Video, false));
    assert_eq!(
        said(&mut fixture),
        [("TR_sound".to_owned(), false), ("TR_picture".to_owned(), false)]
    );
    // A mute by the server needs no message back to it.
    fixture.receives(Response::Mute(MuteTrack { sid: "TR_picture".into(), muted: true }));
    fixture.tell(RoomInput::Mute(MediaKind::Video, true));
    assert_eq!(said(&mut fixture), []);
}

#[test]
fn a_failure_next_to_the_session_is_an_anomaly_and_a_denied_track_ends_it() {
    let mut fixture = Fixture::present(config(), vec![person(1)]);
    fixture.take();
    fixture.receives(Response::Subscription(SubscriptionResponse {
        track_sid: "TR_v1".into(),
        error: 1,
    }));
    fixture.receives(Response::StreamState(StreamStateUpdate {
        stream_states: vec![StreamStateInfo { track_sid: "TR_v1".into(), state: 1 }],
    }));
    fixture.receives(Response::Mute(MuteTrack { sid: "TR_x".into(), muted: true }));
    let odd: Vec<_> = fixture.outputs.iter().map(|output| format!("{output:?}")).collect();
    assert_eq!(odd.len(), 3, "{odd:?}");
    assert!(odd[0].contains("throng-1") && odd[0].contains("no codec in common"), "{odd:?}");
    fixture.receives(Response::Request(RequestResponse { reason: 2, message: "no".into() }));
    assert_eq!(fixture.failure().reason, FailureReason::Refused);
}

#[test]
fn what_is_no_message_is_a_named_failure_and_unknown_ones_are_passed_over() {
    let mut fixture = Fixture::present(config(), vec![]);
    fixture.take();
    // Field 26, of a later protocol version.
    fixture.tell(RoomInput::Message(&Message::Binary(vec![0xd2, 1, 0])));
    assert!(fixture.outputs.is_empty());
    for message in [
        Message::Text("{}".into()),
        Message::Binary(vec![0x0a, 0xff]),
        Message::Binary(vec![0; MESSAGE_BYTES_MAX + 1]),
    ] {
        let mut fixture = Fixture::present(config(), vec![]);
        fixture.tell(RoomInput::Message(&message));
        assert_eq!(fixture.failure().reason, FailureReason::Protocol);
    }
    let mut early = Fixture::new(config());
    early.receives(Response::Answer(SessionDescription::default()));
    assert_eq!(early.failure().reason, FailureReason::Protocol);
}

#[test]
fn any_bytes_are_survived() {
    let mut rng = fastrand::Rng::with_seed(7);
    let join = Join { other_participants: vec![person(1)], ping_interval: 1, ..Join::default() };
    let seeds = [
        Response::Join(Box::new(join)),
        Response::Offer(SessionDescription { kind: "offer".into(), sdp: OFFER.into(), id: 1 }),
        Response::Update(ParticipantUpdate { participants: vec![person(2)] }),
        Response::Leave(Leave::default()),
    ]
    .map(|response| SignalResponse { message: Some(response) }.encode_to_vec());
    for round in 0..4_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..rng.usize(1..6) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..3) {
                0 => bytes[at] = rng.u8(..),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, rng.u8(..)),
            }
        }
        let mut fixture = Fixture::present(config(), vec![]);
        fixture.tell(RoomInput::Message(&Message::Binary(bytes)));
    }
}

#[test]
fn a_message_that_names_very_many_people_is_one_pass_over_the_tracks() {
    let mut fixture = Fixture::present(config(), (1..=4_000).map(person).collect());
    // Two bytes each: a pass for each of them would take minutes.
    let participants = vec![ParticipantInfo::default(); 400_000];
    fixture.receives(Response::Update(ParticipantUpdate { participants }));
    assert_eq!(fixture.people.len(), 4_000);
    // The last word on each counts.
    let gone = ParticipantInfo { state: DISCONNECTED, ..person(2) };
    fixture.receives(Response::Update(ParticipantUpdate {
        participants: vec![gone.clone(), person(1), person(2), gone],
    }));
    assert_eq!(fixture.people.len(), 3_999);
}

#[test]
fn a_server_cannot_ask_for_pings_that_never_come() {
    let mut fixture = Fixture::new(config());
    let join = Join { ping_interval: i32::MAX, ping_timeout: i32::MAX, ..Join::default() };
    fixture.receives(Response::Join(Box::new(join)));
    let (at, _) = fixture.room.next_timeout().unwrap();
    assert!(at <= fixture.now + Duration::from_secs(3_600));
}

#[test]
fn what_is_no_candidate_is_shown_in_part() {
    let mut fixture = Fixture::present(config(), Vec::new());
    let index = "9".repeat(100_000);
    let candidate_init = format!(r#"{{"candidate":"c","sdpMLineIndex":"{index}"}}"#);
    fixture.take();
    fixture.receives(Response::Trickle(Trickle { candidate_init, target: 0 }));
    let [RoomOutput::Anomaly(what)] = &fixture.outputs[..] else {
        panic!("{}", fixture.outputs.len())
    };
    assert!(what.len() < 1_000, "{} bytes", what.len());
}
