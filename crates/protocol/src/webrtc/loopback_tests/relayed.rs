//! A viewer whose server announces a relay.

use super::*;
use crate::participant::ChannelError;
use crate::signalling::RelayServer;
use throng_observation::MediaPath;
use throng_scenario::Secret;

fn announced(url: &str) -> SignalOutput {
    SignalOutput::Relay(RelayServer {
        url: url.into(),
        username: "user".into(),
        credential: Secret::new("secret"),
        is_signalling_host: false,
    })
}

/// A world in which only the relay forwards datagrams.
fn behind_a_relay() -> World {
    let mut world = World::new();
    world.relay = Some(Fixture::new(world.now, address(TO_RELAY), true));
    let relay = announced("turn:10.0.0.9:3478?transport=tcp");
    world.signalling.0.lock().unwrap().to_viewer.extend([relay, SignalOutput::WantOffer]);
    world.start();
    world
}

#[test]
fn media_and_reports_pass_the_relay_and_it_is_released() {
    let mut world = behind_a_relay();
    world.run(Duration::from_secs(6));
    assert!(world.relay.as_ref().unwrap().is_allocated);
    {
        let signalling = world.signalling.0.lock().unwrap();
        let has_candidate = |candidate: &String| candidate.contains(" 10.0.0.9 40000 typ relay");
        assert!(signalling.candidates.iter().any(has_candidate), "{:?}", signalling.candidates);
        assert_eq!(signalling.candidates_done, 1);
    }
    world.plays = false;
    world.viewer.handle(world.now, Input::Leave { others_follow: false });
    world.run(Duration::from_millis(5));
    assert_eq!(world.ended, Some(Outcome::Completed));
    assert!(!world.relay.as_ref().unwrap().is_allocated);
    assert_eq!(world.closed, [Channel(2)]);
    assert_eq!((world.received.byes, world.received.bad), (1, 0));
    let (video, audio) = (world.total(MediaKind::Video), world.total(MediaKind::Audio));
    assert_eq!(video.packets_original, u64::from(world.video.packets), "{video:?}");
    assert_eq!(audio.packets_original, u64::from(world.audio.packets));
    assert_eq!((video.packets_lost, video.packets_unreadable), (0, 0));
    assert!(world.received.fractions_lost.len() >= 4, "reports pass the relay");
    // The overhead of TURN does not count as the server's traffic.
    assert_eq!(
        video.wire_bytes - video.payload_bytes - video.header_bytes,
        video.packets_original * (28 + 16)
    );
}

#[test]
fn with_policy_relay_no_other_path_is_opened() {
    let mut world = World::with(|options| options.relay_only = true);
    world.relay = Some(Fixture::new(world.now, address(TO_RELAY), true));
    let relay = announced("turn:10.0.0.9:3478?transport=tcp");
    world.signalling.0.lock().unwrap().to_viewer.extend([relay, SignalOutput::WantOffer]);
    world.start();
    world.run(Duration::from_secs(3));
    assert_eq!(world.opened, [Channel(2)]);
    let named = world.signalling.0.lock().unwrap().candidates.clone();
    assert!(
        named.iter().all(|candidate| candidate.contains("typ relay")) && named.len() == 1,
        "{named:?}"
    );
    assert!(
        world.observed.iter().any(|seen| matches!(seen, Observation::Path(MediaPath::RelayTcp)))
    );
    assert!(world.total(MediaKind::Video).frames_decodable > 50);

    // A relay that fails before it is used ends the session, and so does a missing one, even if a
    // direct path would work.
    for (relay, words) in [
        (
            Some("turn:10.0.0.9:3478?transport=tcp"),
            "the relay, the only path allowed: TCP: refused",
        ),
        (
            None,
            "only a relay is allowed (target.ice_transport_policy), and the server announced none",
        ),
    ] {
        let mut world = World::with(|options| options.relay_only = true);
        let asked = relay.map(announced).into_iter().chain([SignalOutput::WantOffer]);
        world.signalling.0.lock().unwrap().to_viewer.extend(asked);
        world.start();
        world.run(Duration::from_millis(50));
        if relay.is_some() {
            let why = ChannelError::Tcp("refused".into());
            world.viewer.handle(world.now, Input::Closed { channel: Channel(2), why });
        }
        world.run(Duration::from_secs(11));
        assert_eq!(world.failure(), FailureReason::Ice);
        let Some(Outcome::Failed(failure)) = &world.ended else { panic!() };
        assert!(failure.detail.contains(words), "{}", failure.detail);
    }
}

#[test]
fn a_relay_that_dies_ends_only_the_session_that_it_carries() {
    let mut world = behind_a_relay();
    world.run(Duration::from_secs(2));
    let why = ChannelError::ClosedByPeer(None);
    world.viewer.handle(world.now, Input::Closed { channel: Channel(2), why });
    world.run(Duration::from_millis(5));
    assert_eq!(world.failure(), FailureReason::MediaLost);

    // Here a relay is announced, but media uses the direct path.
    for ending in [&b""[..], b"\x80 not TURN", b"HTTP/1.1 400"] {
        let mut world = World::new();
        let relay = announced("turn:10.0.0.9:3478?transport=tcp");
        world.signalling.0.lock().unwrap().to_viewer.extend([relay, SignalOutput::WantOffer]);
        world.start();
        world.run(Duration::from_millis(50));
        if ending.is_empty() {
            let why = ChannelError::Tcp("refused".into());
            world.viewer.handle(world.now, Input::Closed { channel: Channel(2), why });
        } else {
            world.viewer.handle(world.now, Input::Bytes { channel: Channel(2), bytes: ending });
        }
        world.run(Duration::from_secs(12));
        assert_eq!(world.ended, None);
        assert!(world.total(MediaKind::Video).frames_decodable > 100);
        assert_eq!(world.signalling.0.lock().unwrap().candidates_done, 1, "{ending:?}");
        let odd =
            |o: &&Observation| matches!(o, Observation::ProtocolAnomaly { place: "relay", .. });
        assert_eq!(world.observed.iter().filter(odd).count(), 1, "{ending:?}");
    }
}

#[test]
fn only_relays_within_reach_are_spoken_to() {
    for (url, refused) in [
        ("turn:172.16.0.1:3478?transport=tcp", true),
        ("turn:relay.example:3478?transport=tcp", false),
        ("turns:10.0.0.9?transport=udp", false),
        ("turn:", false),
    ] {
        let mut world = World::new();
        world
            .signalling
            .0
            .lock()
            .unwrap()
            .to_viewer
            .extend([announced(url), SignalOutput::WantOffer]);
        world.start();
        for _ in 0..50 {
            match world.viewer.poll_output(world.now) {
                Output::Open(channel, _) => assert_ne!(channel, Channel(2), "{url}"),
                Output::Observed(observation) => world.observed.push(observation),
                _ => {}
            }
        }
        let reported = world.observed.iter().any(|observation| match observation {
            Observation::Refused(RefusedDestination::IceServer, to) => {
                refused && *to == address("172.16.0.1:3478")
            }
            Observation::ProtocolAnomaly { place: "relay", .. } => !refused,
            _ => false,
        });
        assert!(reported, "{url}: {:?}", world.observed);
    }
}
