//! A member against a server in memory: its outcome when its media ends, with or without a reason
//! from signalling.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_media::card::{self, Rung};
use throng_media::rtp::{PacketKind, classify};
use throng_observation::{Codec, Failure, FailureReason, MediaKind, Outcome};
use throng_scenario::{Action, ScriptStep, StunServer, SubscribePolicy};

use super::behaviour::Behaviour;
use super::connection::Outgoing;
use super::member::{Member, MemberOptions};
use super::options::ParticipantOptions;
use super::reflexive::tests::{OUTSIDE, STUN, answer};
use super::session::{MediaToSend, RemoteCandidate, Session, SessionOutput};
use crate::participant::{Channel, Input, Message, Opening, Output, Participant, Why};
use crate::signalling::room::{PeerId, RoomInput, RoomOutput, RoomSignalling};

const SERVER: &str = "10.0.0.1:5000";
const MEMBER: &str = "10.0.0.2:6000";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A room that admits every participant, outputs what the test sets, and accepts every goodbye.
#[derive(Clone, Default)]
struct Room(Arc<Mutex<RoomState>>);

#[derive(Default)]
struct RoomState {
    to_member: VecDeque<RoomOutput>,
    offer: Option<String>,
    muted: Vec<(MediaKind, bool)>,
}

impl RoomSignalling for Room {
    fn handle(&mut self, _: Instant, input: RoomInput<'_>) {
        let mut room = self.0.lock().unwrap();
        match input {
            RoomInput::Start => {
                room.to_member
                    .extend([RoomOutput::Joined, RoomOutput::WantOffer(PeerId::PUBLISHER)]);
            }
            RoomInput::Offer(_, sdp) => room.offer = Some(sdp),
            RoomInput::Mute(kind, is_muted) => room.muted.push((kind, is_muted)),
            RoomInput::Leave { .. } => room.to_member.push_back(RoomOutput::Goodbye),
            _ => {}
        }
    }

    fn poll_output(&mut self) -> Option<RoomOutput> {
        self.0.lock().unwrap().to_member.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        None
    }
}

struct World {
    now: Instant,
    member: Member,
    room: Room,
    server: Session,
    waits_for: Why,
    ended: Option<(Instant, Outcome)>,
    /// The member's offer.
    offer: String,
}

impl World {
    /// A member that sends, with its connection up.
    fn connected() -> Self {
        Self::connected_with(Vec::new())
    }

    fn connected_with(script: Vec<ScriptStep>) -> Self {
        Self::connected_by(script, None)
    }

    /// A member that asks a STUN server before it offers.
    fn connected_by(script: Vec<ScriptStep>, stun: Option<StunServer>) -> Self {
        let now = Instant::now() + Duration::from_secs(1);
        let options = MemberOptions {
            participant: ParticipantOptions {
                may_reach: Arc::new(|_, to| to.ip().to_string().starts_with("10.")),
                toward: Some(address(SERVER)),
                seed: 3,
                stun,
                ..ParticipantOptions::for_tests(now)
            },
            outgoing: vec![Outgoing {
                media: MediaToSend { kind: MediaKind::Video, rids: Vec::new() },
                ladders: vec![card::picture(Rung::P144, Codec::Vp8).unwrap().into()],
                offset: Duration::ZERO,
                adapts: true,
            }],
            behaviour: Behaviour {
                name: "throng-0".into(),
                joins_at: Duration::ZERO,
                conversation: None,
                weights: Arc::new(|_| 1),
                has_voice: false,
                video: SubscribePolicy::None,
                audio: SubscribePolicy::None,
                script,
                pictures: Vec::new(),
            },
            layers: Vec::new(),
        };
        let room = Room::default();
        let member = Member::new(Box::new(room.clone()), options);
        let mut server = Session::server(now).unwrap();
        server.add_local_candidate(address(SERVER)).unwrap();
        let mut world =
            Self { now, member, room, server, waits_for: "", ended: None, offer: String::new() };
        world.member.handle(now, Input::Start { intended_at: now });
        world.run(Duration::from_millis(20));
        let offer = world.room.0.lock().unwrap().offer.take().expect("an offer");
        let (answer, negotiated) = world.server.accept_offer(&offer).unwrap();
        for candidate in &negotiated.remote.candidates {
            world.server.add_remote_candidate(RemoteCandidate::parse(candidate).unwrap());
        }
        world.says(RoomOutput::RemoteAnswer(PeerId::PUBLISHER, answer));
        world.offer = offer;
        world.run(Duration::from_secs(2));
        assert!(world.ended.is_none(), "{:?}", world.ended);
        world
    }

    /// The room passes an output to the member.
    fn says(&mut self, output: RoomOutput) {
        self.room.0.lock().unwrap().to_member.push_back(output);
        let message = Message::Text(String::new());
        self.member.handle(self.now, Input::Message { channel: Channel(0), message });
    }

    fn run(&mut self, duration: Duration) {
        for _ in 0..duration.as_millis() {
            self.now += Duration::from_millis(1);
            self.drain_member();
            self.drain_server();
        }
    }

    fn drain_member(&mut self) {
        self.member.handle(self.now, Input::Timeout);
        loop {
            match self.member.poll_output(self.now) {
                Output::Timeout(_, why) => return self.waits_for = why,
                Output::Open(channel, _) => {
                    let opening = Opening { local: Some(address(MEMBER)), ..Opening::default() };
                    self.member.handle(self.now, Input::Opened { channel, opening });
                }
                Output::Send(channel, sent) if sent.to == address(STUN) => {
                    let (source, arrived_at) = (address(STUN), self.now);
                    let bytes = &mut answer(&sent.bytes, OUTSIDE);
                    let input = Input::Datagram { channel, source, local: None, arrived_at, bytes };
                    self.member.handle(self.now, input);
                }
                Output::Send(_, sent)
                    if matches!(classify(&sent.bytes), PacketKind::Stun | PacketKind::Dtls) =>
                {
                    let _ = self.server.datagram(
                        self.now,
                        address(MEMBER),
                        address(SERVER),
                        &sent.bytes,
                    );
                }
                Output::Ended(outcome) => self.ended = Some((self.now, outcome)),
                _ => {}
            }
        }
    }

    fn drain_server(&mut self) {
        let _ = self.server.timeout(self.now);
        loop {
            match self.server.poll_output() {
                Ok(SessionOutput::Timeout(_)) | Err(_) => return,
                Ok(SessionOutput::Transmit { mut bytes, .. }) => {
                    let (source, arrived_at) = (address(SERVER), self.now);
                    let input = Input::Datagram {
                        channel: Channel(1),
                        source,
                        local: None,
                        arrived_at,
                        bytes: &mut bytes,
                    };
                    self.member.handle(self.now, input);
                }
                Ok(_) => {}
            }
        }
    }

    /// The server closes DTLS; returns the time.
    fn closes_media(&mut self) -> Instant {
        self.server.close();
        self.run(Duration::from_millis(5));
        self.now
    }

    fn failure(&self) -> (Instant, FailureReason) {
        match &self.ended {
            Some((at, Outcome::Failed(failure))) => (*at, failure.reason.clone()),
            other => panic!("{other:?}, waiting for {}", self.waits_for),
        }
    }
}

#[test]
fn what_is_mute_is_said_to_the_room_when_it_begins_and_when_it_ends() {
    let mute =
        |after, action| ScriptStep { at: after, lasts: Some(Duration::from_secs(5)), action };
    let script = vec![mute(Duration::from_secs(3), Action::Mute(MediaKind::Video))];
    let mut world = World::connected_with(script);
    let said = |world: &World| world.room.0.lock().unwrap().muted.clone();
    assert_eq!(said(&world), []);
    world.run(Duration::from_secs(2));
    assert_eq!(said(&world), [(MediaKind::Video, true)]);
    world.run(Duration::from_secs(5));
    assert_eq!(said(&world), [(MediaKind::Video, true), (MediaKind::Video, false)]);
    // A member that is mute before it is connected signals that once it is.
    let world = World::connected_with(vec![mute(Duration::ZERO, Action::Mute(MediaKind::Video))]);
    assert_eq!(said(&world).last(), Some(&(MediaKind::Video, true)));
}

#[test]
fn with_a_stun_server_the_reflexive_address_is_offered() {
    let world = World::connected_by(Vec::new(), StunServer::parse("stun:10.0.0.3"));
    let offer = &world.offer;
    assert!(offer.contains(" 10.0.0.2 6000 typ host"), "{offer}");
    assert!(offer.contains(" 10.99.0.1 40000 typ srflx raddr "), "{offer}");
    assert!(!World::connected().offer.contains("srflx"));
}

#[test]
fn a_removal_is_reported_although_media_ends_first() {
    for word in [FailureReason::Kicked, FailureReason::RoomEnded, FailureReason::SignallingClosed] {
        let mut world = World::connected();
        world.closes_media();
        assert!(world.ended.is_none());
        assert_eq!(world.waits_for, "signalling's reason for the lost media");
        world.run(Duration::from_millis(300));
        world.says(RoomOutput::Failed(Failure::new(word.clone(), "refused by the room")));
        world.run(Duration::from_millis(2));
        assert_eq!(world.failure().1, word);
    }
}

#[test]
fn media_that_ends_without_a_word_is_lost_after_a_second() {
    let mut world = World::connected();
    let closed_at = world.closes_media();
    world.run(Duration::from_secs(2));
    let (ended_at, reason) = world.failure();
    assert_eq!(reason, FailureReason::MediaLost);
    let waited = ended_at - closed_at;
    assert!((900..1_100).contains(&waited.as_millis()), "{waited:?}");
}

#[test]
fn a_leave_while_the_reason_is_awaited_has_still_failed() {
    let mut world = World::connected();
    world.closes_media();
    world.member.handle(world.now, Input::Leave { others_follow: false });
    world.run(Duration::from_millis(2));
    assert_eq!(world.failure().1, FailureReason::MediaLost);
}
