//! A viewer that asks a STUN server for its server-reflexive address.

use throng_scenario::StunServer;

use super::super::reflexive::tests::{OUTSIDE, answer};
use super::*;

/// A world whose viewer has a media socket and asks `stun` over it.
fn asking(stun: &str) -> World {
    let stun = StunServer::parse(stun);
    let mut world = World::with(|options| options.stun = stun);
    world.start();
    world.drain_viewer();
    world
}

fn offer(world: &World) -> Option<String> {
    world.signalling.0.lock().unwrap().offer.clone()
}

#[test]
fn the_offer_waits_for_the_stun_server_and_has_the_address_that_it_sees() {
    let mut world = asking("stun:10.0.0.3");
    assert_eq!((world.asked.len(), offer(&world)), (1, None));
    assert!(matches!(
        world.viewer.poll_output(world.now),
        Output::Timeout(_, "STUN server's answer")
    ));
    let right = answer(&world.asked[0], OUTSIDE);
    for (source, is_taken) in [("10.0.0.4:3478", false), (STUN, true)] {
        let (source, arrived_at, mut bytes) = (address(source), world.now, right.clone());
        let input = Input::Datagram {
            channel: Channel(1),
            source,
            local: None,
            arrived_at,
            bytes: &mut bytes,
        };
        world.viewer.handle(world.now, input);
        world.drain_viewer();
        assert_eq!(offer(&world).is_some(), is_taken, "{source}");
    }
    let offer = offer(&world).unwrap();
    assert!(offer.contains(" 10.0.0.2 6000 typ host"), "{offer}");
    assert!(offer.contains(" 10.99.0.1 40000 typ srflx raddr "), "{offer}");
    assert_eq!(world.signalling.0.lock().unwrap().candidates_done, 1);
    world.run(Duration::from_secs(3));
    assert_eq!(world.ended, None);
    assert!(world.total(MediaKind::Video).frames_decodable > 50);
    assert_eq!(world.asked.len(), 1);
}

#[test]
fn a_silent_stun_server_costs_half_a_second_and_no_more() {
    let mut world = asking("stun:10.0.0.3");
    world.run(Duration::from_millis(495));
    assert_eq!((world.asked.len(), world.asked[0] == world.asked[1]), (2, true));
    assert!(!world.phases().contains(&Phase::Negotiated));
    world.run(Duration::from_millis(10));
    assert!(world.phases().contains(&Phase::Negotiated), "{:?}", world.phases());
    world.run(Duration::from_secs(3));
    assert!(world.total(MediaKind::Video).frames_decodable > 50);
    assert_eq!(world.asked.len(), 2);
}

#[test]
fn nothing_is_sent_to_a_stun_server_that_is_not_allowed() {
    let world = asking("stun:172.16.0.1");
    let place = address("172.16.0.1:3478");
    let is_told = |o: &Observation| matches!(o, Observation::Refused(RefusedDestination::IceServer, to) if *to == place);
    assert!(world.observed.iter().any(is_told), "{:?}", world.observed);
    let offer = offer(&world).expect("at once");
    assert!(offer.contains("typ host") && !offer.contains("typ srflx"), "{offer}");
}
