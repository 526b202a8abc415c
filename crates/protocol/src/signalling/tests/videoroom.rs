//! Message exchanges of a participant with a Janus VideoRoom, as of Janus 1.1.2.

use std::time::Instant;

use serde_json::{Value, json};
use throng_observation::{FailureReason, Layer, MediaKind};
use throng_scenario::JanusId;

use super::SDP;
use crate::participant::{Message, Opening};
use crate::signalling::RunMark;
use crate::signalling::janus::{
    NewRoom, SessionConfig, SubscriberMode, VideoRoom, VideoRoomConfig,
};
use crate::signalling::room::{
    PeerId, RoomInput, RoomOutput, RoomSignalling, RoomStream, Subscription, Subscriptions,
};

/// The server's side: it numbers handles from 100 and sends the answers that a test chooses.
struct Fixture {
    room: VideoRoom,
    now: Instant,
    handles: u64,
    /// Unanswered requests to the plugin: transaction, handle, body.
    asked: Vec<(String, u64, Value)>,
    outputs: Vec<RoomOutput>,
}

fn config() -> VideoRoomConfig {
    VideoRoomConfig {
        url: "ws://10.0.0.1:8188/".parse().unwrap(),
        room: JanusId::Number(1234),
        pin: None,
        display: "throng-0".into(),
        mark: RunMark::default(),
        publishes: true,
        subscribes: Some(SubscriberMode::Multistream),
        subscriptions: Subscriptions::default(),
        new_room: None,
        session: SessionConfig::default(),
    }
}

impl Fixture {
    fn new(config: VideoRoomConfig) -> Self {
        let room = VideoRoom::new(config);
        let mut fixture = Self {
            room,
            now: Instant::now(),
            handles: 100,
            asked: Vec::new(),
            outputs: Vec::new(),
        };
        fixture.tell(RoomInput::Start);
        fixture.tell(RoomInput::Opened(&Opening::default()));
        fixture
    }

    fn tell(&mut self, input: RoomInput<'_>) {
        self.room.handle(self.now, input);
        while let Some(output) = self.room.poll_output() {
            match output {
                RoomOutput::Signal(Message::Text(text)) => self.core(&text),
                other => self.outputs.push(other),
            }
        }
    }

    /// Answers for the core: sessions, handles, ends of both.
    fn core(&mut self, text: &str) {
        let said: Value = serde_json::from_str(text).unwrap();
        let transaction = said["transaction"].as_str().unwrap().to_owned();
        let answer = match said["janus"].as_str().unwrap() {
            "create" => json!({"janus":"success","transaction":transaction,"data":{"id":7}}),
            "attach" => {
                self.handles += 1;
                json!({"janus":"success","transaction":transaction,"data":{"id":self.handles - 1}})
            }
            "detach" | "destroy" => json!({"janus":"success","transaction":transaction}),
            "message" => {
                let handle = said["handle_id"].as_u64().unwrap();
                let mut body = said["body"].clone();
                body["has_jsep"] = json!(said.get("jsep").is_some());
                return self.asked.push((transaction, handle, body));
            }
            other => panic!("{other}"),
        };
        self.receives(&answer);
    }

    fn receives(&mut self, message: &Value) {
        self.tell(RoomInput::Message(&Message::Text(message.to_string())));
    }

    /// Answers the oldest request, which must be this one, by `data` and optionally a description;
    /// returns its body.
    fn answers(&mut self, request: &str, data: &Value, jsep: Option<&str>) -> Value {
        let (transaction, handle, body) = self.asked.remove(0);
        assert_eq!(body["request"], request, "{body}");
        let mut event = json!({"janus":"event","sender":handle,"transaction":transaction,
            "plugindata":{"plugin":"janus.plugin.videoroom","data":data}});
        if let Some(kind) = jsep {
            event["jsep"] = json!({"type":kind,"sdp":SDP});
        }
        self.receives(&event);
        body
    }

    fn sends(&mut self, handle: u64, data: &Value, jsep: Option<&str>) {
        let mut event = json!({"janus":"event","sender":handle,
            "plugindata":{"plugin":"janus.plugin.videoroom","data":data}});
        if let Some(kind) = jsep {
            event["jsep"] = json!({"type":kind,"sdp":SDP});
        }
        self.receives(&event);
    }

    /// A participant in the room, with its offer answered, and with these others present.
    fn present(config: VideoRoomConfig, others: &[Value]) -> Self {
        let mut fixture = Self::new(config);
        let joined = json!({"videoroom":"joined","id":1,"private_id":99,"publishers":others});
        let join = fixture.answers("join", &joined, None);
        assert_eq!((&join["ptype"], &join["room"]), (&json!("publisher"), &json!(1234)));
        fixture
    }

    fn names(&mut self) -> Vec<String> {
        let outputs = std::mem::take(&mut self.outputs);
        outputs
            .iter()
            .filter(|output| !matches!(output, RoomOutput::Publishers(_)))
            .map(|output| format!("{output:?}").split(['(', ' ', '{']).next().unwrap().to_owned())
            .collect()
    }
}

fn publisher(id: u64, name: &str) -> Value {
    json!({"id":id,"display":name,"streams":[
        {"type":"audio","mindex":0,"mid":"0","codec":"opus"},{"type":"video","mindex":1,"mid":"1","codec":"vp8"}]})
}

fn stream(mid: &str, kind: &str, name: &str) -> Value {
    json!({"type":kind,"mindex":0,"mid":mid,"feed_id":2,"feed_display":name,"active":true})
}

#[test]
fn a_participant_publishes_and_receives_all_on_one_more_handle() {
    let mut fixture = Fixture::present(config(), &[publisher(2, "throng-1")]);
    assert_eq!(fixture.names(), ["Open", "Joined", "WantOffer"]);
    // The subscriber joins with every stream of every publisher.
    let streams = json!([stream("0", "audio", "throng-1"), stream("1", "video", "throng-1")]);
    let join =
        fixture.answers("join", &json!({"videoroom":"attached","streams":streams}), Some("offer"));
    assert_eq!(join["ptype"], "subscriber");
    assert_eq!(join["streams"], json!([{"feed":2,"mid":"0"},{"feed":2,"mid":"1"}]));
    assert_eq!(join["private_id"], 99);
    let [RoomOutput::Streams(peer, streams), RoomOutput::RemoteOffer(..)] =
        fixture.outputs.as_slice()
    else {
        panic!("{:?}", fixture.outputs)
    };
    assert_eq!(*peer, PeerId(1));
    let video = RoomStream {
        mid: "1".into(),
        from: Some("throng-1".into()),
        is_muted: false,
        kind: throng_observation::MediaKind::Video,
        layers: Vec::new(),
        tells_layers: false,
    };
    assert_eq!(streams[1], video);
    fixture.outputs.clear();

    fixture.tell(RoomInput::Offer(PeerId::PUBLISHER, SDP.into()));
    fixture.tell(RoomInput::Answer(PeerId(1), SDP.into()));
    let publish =
        fixture.answers("publish", &json!({"videoroom":"event","configured":"ok"}), Some("answer"));
    assert_eq!(publish["has_jsep"], true);
    assert_eq!(fixture.names(), ["RemoteAnswer"]);
    fixture.answers("start", &json!({"videoroom":"event","started":"ok"}), None);

    // Two more publish while a change is being negotiated: the next change includes both.
    fixture.sends(100, &json!({"videoroom":"event","publishers":[publisher(3, "throng-2")]}), None);
    fixture.sends(100, &json!({"videoroom":"event","publishers":[publisher(4, "throng-3")]}), None);
    assert_eq!(fixture.asked.len(), 1, "one request at a time");
    let update =
        fixture.answers("update", &json!({"videoroom":"updated","streams":[]}), Some("offer"));
    assert_eq!(update["subscribe"], json!([{"feed":3,"mid":"0"},{"feed":3,"mid":"1"}]));
    fixture.tell(RoomInput::Answer(PeerId(1), SDP.into()));
    fixture.answers("start", &json!({"videoroom":"event","started":"ok"}), None);
    let update = fixture.answers("update", &json!({"videoroom":"updated","streams":[]}), None);
    assert_eq!(update["subscribe"], json!([{"feed":4,"mid":"0"},{"feed":4,"mid":"1"}]));
    assert!(fixture.asked.is_empty());
}

#[test]
fn with_a_handle_a_feed_each_has_its_own_peer_connection_and_loses_it() {
    let config = VideoRoomConfig { subscribes: Some(SubscriberMode::HandlePerFeed), ..config() };
    let mut fixture = Fixture::present(config, &[publisher(2, "a"), publisher(3, "b")]);
    for (feed, peer) in [(2, 1), (3, 2)] {
        let join = fixture.answers(
            "join",
            &json!({"videoroom":"attached","streams":[{"type":"video","mid":"v"}]}),
            Some("offer"),
        );
        assert_eq!(join["streams"][0]["feed"], feed);
        fixture.tell(RoomInput::Answer(PeerId(peer), SDP.into()));
    }
    fixture.outputs.clear();
    fixture.sends(100, &json!({"videoroom":"event","leaving":3}), None);
    assert!(
        matches!(
            fixture.outputs[..],
            [RoomOutput::ClosePeer(PeerId(2)), RoomOutput::Publishers(_)]
        ),
        "{:?}",
        fixture.outputs
    );
}

#[test]
fn attention_is_turned_by_unsubscribing_and_subscribing() {
    let mut fixture = Fixture::present(config(), &[publisher(2, "a"), publisher(3, "b")]);
    fixture.answers("join", &json!({"videoroom":"attached","streams":[]}), Some("offer"));
    fixture.tell(RoomInput::Answer(PeerId(1), SDP.into()));
    fixture.answers("start", &json!({"videoroom":"event","started":"ok"}), None);
    let only_b = Subscriptions {
        audio: Subscription::All,
        video: Subscription::Named(["b".to_owned()].into()),
    };
    fixture.tell(RoomInput::Subscribe(&only_b));
    let update = fixture.answers("update", &json!({"videoroom":"updated"}), None);
    assert_eq!(
        (update["unsubscribe"].clone(), update.get("subscribe")),
        (json!([{"feed":2,"mid":"1"}]), None)
    );
    fixture.tell(RoomInput::Subscribe(&Subscriptions::default()));
    let update = fixture.answers("update", &json!({"videoroom":"updated"}), None);
    assert_eq!(update["subscribe"], json!([{"feed":2,"mid":"1"}]));
}

#[test]
fn a_room_is_made_or_found_and_destroyed_by_the_last_to_leave() {
    let new_room = NewRoom {
        secret: "s".into(),
        admin_key: Some("k".into()),
        publishers: 6,
        bitrate_bps: 256_000,
        video_codecs: "vp8".into(),
    };
    let created = json!({"videoroom":"created","room":1234});
    let exists = json!({"videoroom":"event","error_code":427,"error":"Room 1234 already exists"});
    let nobody = json!({"videoroom":"participants","participants":[]});
    let somebody = json!({"videoroom":"participants","participants":[{"id":2,"display":"b"}]});
    let refused = json!({"videoroom":"event","error_code":426,"error":"No such room (1234)"});
    for (answer, left, is_ended) in [
        (&created, &nobody, true),
        (&created, &somebody, false),
        (&exists, &nobody, true),
        (&exists, &refused, false),
    ] {
        let mut fixture =
            Fixture::new(VideoRoomConfig { new_room: Some(new_room.clone()), ..config() });
        let create = fixture.answers("create", answer, None);
        let said = (&create["admin_key"], &create["bitrate"], &create["secret"]);
        assert_eq!(said, (&json!("k"), &json!(256_000), &json!("s")));
        fixture.answers("join", &json!({"videoroom":"joined","id":1,"publishers":[]}), None);
        fixture.tell(RoomInput::Leave { others_follow: false });
        fixture.answers("leave", &json!({"videoroom":"event","leaving":"ok"}), None);
        fixture.answers("listparticipants", left, None);
        // A room of another run rejects the secret, and remains.
        let requests: Vec<_> = fixture.asked.iter().map(|(_, _, body)| body.clone()).collect();
        match requests.as_slice() {
            [end] if is_ended => {
                assert_eq!((&end["request"], &end["secret"]), (&json!("destroy"), &json!("s")));
                // The session lasts until the room is destroyed, because only a session can request
                // that.
                assert!(
                    !matches!(fixture.outputs.last(), Some(RoomOutput::Goodbye)),
                    "{:?}",
                    fixture.outputs
                );
                fixture.answers("destroy", &json!({"videoroom":"destroyed","room":1234}), None);
            }
            requests => assert!(requests.is_empty() && !is_ended, "{requests:?}"),
        }
        assert!(
            matches!(fixture.outputs.last(), Some(RoomOutput::Goodbye)),
            "{:?}",
            fixture.outputs
        );
    }
}

#[test]
fn a_leave_during_joins_keeps_the_room() {
    let new_room = NewRoom {
        secret: "s".into(),
        admin_key: None,
        publishers: 6,
        bitrate_bps: 256_000,
        video_codecs: "vp8".into(),
    };
    let mut fixture = Fixture::new(VideoRoomConfig { new_room: Some(new_room), ..config() });
    fixture.answers("create", &json!({"videoroom":"created","room":1234}), None);
    fixture.answers("join", &json!({"videoroom":"joined","id":1,"publishers":[]}), None);
    fixture.tell(RoomInput::Leave { others_follow: true });
    let requests: Vec<_> =
        fixture.asked.iter().map(|(_, _, body)| body["request"].clone()).collect();
    assert_eq!(requests, ["leave"]);
    assert!(matches!(fixture.outputs.last(), Some(RoomOutput::Goodbye)), "{:?}", fixture.outputs);
}

#[test]
fn refusals_are_failures_that_carry_the_rooms_words() {
    for (code, words, reason) in [
        (426, "No such room (1234)", FailureReason::NoSuchRoom),
        (432, "Maximum number of publishers (6) already reached", FailureReason::RoomFull),
        (433, "Unauthorized (wrong pin)", FailureReason::Unauthorized),
        (429, "Missing mandatory element (pin)", FailureReason::Unauthorized),
        (429, "Missing mandatory element (room)", FailureReason::Refused),
        (436, "User ID 1 already exists", FailureReason::Refused),
    ] {
        let mut fixture = Fixture::new(config());
        fixture.answers(
            "join",
            &json!({"videoroom":"event","error_code":code,"error":words}),
            None,
        );
        let Some(RoomOutput::Failed(failure)) = fixture.outputs.last() else {
            panic!("{:?}", fixture.outputs)
        };
        assert_eq!(failure.reason, reason);
        assert!(failure.detail.contains(words), "{failure}");
    }
    // A publisher that leaves before it could be received does not affect the others.
    let mut fixture = Fixture::present(config(), &[publisher(2, "a"), publisher(3, "b")]);
    fixture.sends(100, &json!({"videoroom":"event","leaving":2}), None);
    fixture.answers(
        "join",
        &json!({"videoroom":"event","error_code":428,"error":"No such feed (2)"}),
        None,
    );
    let join =
        fixture.answers("join", &json!({"videoroom":"attached","streams":[]}), Some("offer"));
    assert_eq!(join["streams"], json!([{"feed":3,"mid":"0"},{"feed":3,"mid":"1"}]));
    for (said, reason) in [
        (json!({"videoroom":"event","kicked":1}), FailureReason::Kicked),
        (json!({"videoroom":"event","leaving":"ok","reason":"kicked"}), FailureReason::Kicked),
        (json!({"videoroom":"destroyed","room":1234}), FailureReason::RoomEnded),
    ] {
        let mut fixture = Fixture::present(config(), &[]);
        fixture.sends(100, &said, None);
        let Some(RoomOutput::Failed(failure)) = fixture.outputs.last() else {
            panic!("{:?}", fixture.outputs)
        };
        assert_eq!(failure.reason, reason);
    }
}

#[test]
fn members_of_the_room_are_reported_and_removed_ones_are_not() {
    let mut fixture = Fixture::present(config(), &[publisher(2, "a"), publisher(3, "b")]);
    fixture.sends(100, &json!({"videoroom":"event","publishers":[publisher(4, "c")]}), None);
    fixture.sends(100, &json!({"videoroom":"event","kicked":2}), None);
    fixture.sends(100, &json!({"videoroom":"event","leaving":3}), None);
    let reported = fixture.outputs.iter().filter_map(|output| match output {
        RoomOutput::Publishers(names) => Some(names.iter().cloned().collect::<String>()),
        _ => None,
    });
    assert_eq!(reported.collect::<Vec<_>>(), ["ab", "abc", "bc", "c"]);
}

#[test]
fn what_is_mute_is_relayed_no_more_and_begins_again_with_a_key_frame() {
    let mut fixture = Fixture::present(config(), &[]);
    fixture.tell(RoomInput::Mute(MediaKind::Video, true));
    let offer = format!("{SDP}m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:a\r\n");
    fixture.tell(RoomInput::Offer(PeerId::PUBLISHER, offer));
    assert_eq!(
        fixture.asked.len(),
        1,
        "nothing can be said of what is not published yet: {:?}",
        fixture.asked
    );
    let configured = json!({"videoroom":"event","configured":"ok"});
    fixture.answers("publish", &configured, Some("answer"));
    let asked = fixture.answers("configure", &configured, None);
    assert_eq!(asked, json!({"request":"configure","mid":"v","send":false,"has_jsep":false}));
    fixture.tell(RoomInput::Mute(MediaKind::Video, true));
    assert!(fixture.asked.is_empty(), "it is said already: {:?}", fixture.asked);
    fixture.tell(RoomInput::Mute(MediaKind::Audio, true));
    let asked = fixture.answers("configure", &configured, None);
    assert_eq!((&asked["mid"], &asked["send"]), (&json!("a"), &json!(false)));
    fixture.tell(RoomInput::Mute(MediaKind::Video, false));
    fixture.tell(RoomInput::Mute(MediaKind::Audio, false));
    let asked = fixture.answers("configure", &configured, None);
    assert_eq!(
        asked,
        json!({"request":"configure","mid":"v","send":true,"keyframe":true,"has_jsep":false})
    );
    // A refusal is only an anomaly: muted media is not sent in any case.
    let refused = json!({"videoroom":"event","error_code":430,"error":"Invalid element (mid)"});
    let asked = fixture.answers("configure", &refused, None);
    assert_eq!(asked, json!({"request":"configure","mid":"a","send":true,"has_jsep":false}));
    assert!(
        matches!(fixture.outputs.last(), Some(RoomOutput::Anomaly(_))),
        "{:?}",
        fixture.outputs
    );
}

#[test]
fn layers_are_requested_when_nothing_else_is_open_and_again_after_a_replacement() {
    let mut simulcast = publisher(2, "throng-1");
    simulcast["streams"][1]["simulcast"] = json!(true);
    let mut fixture = Fixture::present(config(), &[simulcast]);
    fixture.tell(RoomInput::Layer(Layer::Low));
    let mut video = stream("1", "video", "throng-1");
    video["feed_mid"] = json!("1");
    let attached =
        json!({"videoroom":"attached","streams":[stream("0", "audio", "throng-1"), video]});
    fixture.answers("join", &attached, Some("offer"));
    let streams = fixture.outputs.iter().find_map(|output| match output {
        RoomOutput::Streams(_, streams) => Some(streams.clone()),
        _ => None,
    });
    let reported: Vec<bool> = streams.unwrap().iter().map(|stream| stream.tells_layers).collect();
    assert_eq!(reported, [false, true]);
    fixture.tell(RoomInput::Answer(PeerId(1), SDP.into()));
    assert_eq!(fixture.asked.len(), 1, "the answer is on its way: {:?}", fixture.asked);
    fixture.answers("start", &json!({"videoroom":"event","started":"ok"}), None);
    let asked = fixture.answers("configure", &json!({"videoroom":"event","configured":"ok"}), None);
    assert_eq!(asked["streams"], json!([{"mid":"1","send":true,"substream":0}]));
    // The forwarded layer is reported; other fields of the event are ignored.
    fixture.outputs.clear();
    fixture.sends(101, &json!({"videoroom":"event","room":1234,"mid":"1","substream":0}), None);
    fixture.sends(101, &json!({"videoroom":"event","room":1234,"mid":"1","substream":7}), None);
    fixture.sends(101, &json!({"videoroom":"event","room":1234,"mid":"1","temporal":1}), None);
    assert!(
        matches!(fixture.outputs.as_slice(), [RoomOutput::LayerSent(PeerId(1), mid, Layer::Low)] if mid == "1"),
        "{:?}",
        fixture.outputs
    );
    fixture.tell(RoomInput::Layer(Layer::Off));
    let asked = fixture.answers("configure", &json!({"videoroom":"event","configured":"ok"}), None);
    assert_eq!(asked["streams"], json!([{"mid":"1","send":false}]));
    // A refusal is only an anomaly.
    fixture.tell(RoomInput::Layer(Layer::High));
    fixture.answers(
        "configure",
        &json!({"videoroom":"event","error_code":428,"error":"No such feed"}),
        None,
    );
    assert!(
        fixture.outputs.iter().any(|output| matches!(output, RoomOutput::Anomaly(_))),
        "{:?}",
        fixture.outputs
    );
    // Another sender in the same section begins with the layer that Janus prefers.
    let other = json!({"videoroom":"updated","streams":[stream("1", "video", "throng-2")]});
    fixture.sends(101, &other, None);
    let asked = fixture.answers("configure", &json!({"videoroom":"event","configured":"ok"}), None);
    assert_eq!(asked["streams"], json!([{"mid":"1","send":true,"substream":2}]));
    assert!(fixture.asked.is_empty(), "{:?}", fixture.asked);
}
