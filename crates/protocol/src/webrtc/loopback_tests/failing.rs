//! Each step of a connection that fails or times out has its own failure.

use super::*;

#[test]
fn silence_after_connecting_is_no_media() {
    let mut world = World::new();
    world.plays = false;
    world.start();
    world.run(Duration::from_secs(12));
    assert_eq!(world.failure(), FailureReason::NoMedia);
}

#[test]
fn packets_of_a_payload_type_that_was_never_agreed_are_no_media() {
    let mut world = World::new();
    world.plays = false;
    world.start();
    while world.sealer.is_none() {
        world.run(Duration::from_millis(1));
    }
    world.plays = true;
    let agreed = [world.video.payload_type, world.audio.payload_type];
    (world.video.payload_type, world.audio.payload_type) = (20, 20);
    world.run(Duration::from_secs(9));
    assert_eq!(world.ended, None, "it is waited for");
    world.run(Duration::from_secs(3));
    let Some(Outcome::Failed(failure)) = &world.ended else { panic!("{:?}", world.ended) };
    assert_eq!(failure.reason, FailureReason::NoMedia);
    assert_eq!(failure.detail, "connected, but no media arrived: payload type 20 was not agreed");

    // A peer that switches to a format that was not negotiated counts as lost media.
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    assert_eq!([world.video.payload_type, world.audio.payload_type], agreed);
    (world.video.payload_type, world.audio.payload_type) = (20, 20);
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::MediaLost);
}

#[test]
fn media_that_stops_is_lost() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    world.plays = false;
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::MediaLost);
}

#[test]
fn a_server_without_ears_fails_ice() {
    let mut world = World::new();
    world.answers_media = false;
    world.start();
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::Ice);
}

#[test]
fn no_answer_is_a_signalling_timeout_and_rubbish_is_a_protocol_error() {
    let mut world = World::new();
    world.edit_answer = |_| "v=0\r\nrubbish".to_owned();
    world.start();
    world.run(Duration::from_millis(20));
    assert_eq!(world.failure(), FailureReason::Protocol);

    let mut world = World::new();
    world.viewer.handle(world.now, Input::Start { intended_at: world.now });
    world.drain_viewer();
    world.now += Duration::from_secs(11);
    world.drain_viewer();
    assert_eq!(world.failure(), FailureReason::SignallingTimeout);
}

#[test]
fn candidates_beyond_reach_are_refused_and_never_sent_to() {
    let mut world = World::new();
    world.edit_answer = |answer| answer.replace("10.0.0.1", "172.16.0.1");
    world.start();
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::Ice);
    let refused = |observation: &&Observation| {
        matches!(observation, Observation::Refused(RefusedDestination::IceCandidate, _))
    };
    assert_eq!(world.observed.iter().filter(refused).count(), 1);
}

#[test]
fn garbage_and_bent_packets_do_not_end_a_session() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(1));
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..5_000 {
        let len = random.usize(0..200);
        let mut bytes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
        if let Some(first) = bytes.first_mut() {
            *first = match round % 4 {
                0 => 0x80 | (*first & 0x3f),
                1 => *first & 3,
                _ => *first,
            };
        }
        // DTLS itself handles unencrypted alerts.
        let (source, arrived_at) = (address(SERVER), world.now);
        world.viewer.handle(
            world.now,
            Input::Datagram {
                channel: Channel(1),
                source,
                local: None,
                arrived_at,
                bytes: &mut bytes,
            },
        );
        if round % 100 == 0 {
            world.run(Duration::from_millis(10));
        }
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.ended, None);
    let anomalies = world
        .observed
        .iter()
        .filter(|observation| matches!(observation, Observation::ProtocolAnomaly { .. }))
        .count();
    assert!((1..10).contains(&anomalies), "{anomalies} anomalies: each is reported once");
}
