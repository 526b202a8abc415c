//! Packets from other addresses than the peer's candidates are not the peer's, as in browsers.

use super::super::session::RemoteCandidate;
use super::*;

const ELSEWHERE: &str = "10.0.0.3:5000";

fn detail(world: &World) -> &str {
    match &world.ended {
        Some(Outcome::Failed(failure)) => &failure.detail,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_answers_checks_from_another_address_fails_ice() {
    for (sends_from, words) in [
        (ELSEWHERE, "10.0.0.1:5000 answered from another address, 10.0.0.3:5000"),
        ("10.0.0.1:5001", "10.0.0.1:5000 answered from another port, 5001"),
    ] {
        let mut world = World::new();
        world.sends_from = sends_from;
        world.start();
        world.run(Duration::from_secs(11));
        assert_eq!(world.failure(), FailureReason::Ice);
        assert_eq!(detail(&world), format!("no candidate pair worked in time: {words}"));
    }
}

#[test]
fn media_from_another_address_is_dropped_and_named() {
    let mut world = World::new();
    world.plays = false;
    world.start();
    while world.sealer.is_none() {
        world.run(Duration::from_millis(1));
    }
    (world.plays, world.sends_from) = (true, ELSEWHERE);
    world.run(Duration::from_secs(11));
    assert_eq!(world.failure(), FailureReason::NoMedia);
    let words = "came from another address, 10.0.0.3:5000, which is no candidate of the server";
    assert!(detail(&world).contains(words), "{}", detail(&world));

    // Media that moves to an unknown address is lost; when it returns to the right one, it counts
    // again.
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    world.sends_from = ELSEWHERE;
    world.run(Duration::from_secs(3));
    world.sends_from = SERVER;
    world.run(Duration::from_secs(2));
    assert_eq!(world.ended, None);
    let reported = world
        .observed
        .iter()
        .filter(|o| matches!(o, Observation::ProtocolAnomaly { place: "source", .. }));
    assert_eq!(reported.count(), 1);
    world.sends_from = ELSEWHERE;
    world.run(Duration::from_secs(16));
    assert_eq!(world.failure(), FailureReason::MediaLost);
}

/// Two full agents. The first does not get the second's address and learns it from the second's
/// checks.
#[test]
fn a_peer_is_accepted_from_an_address_it_checks_from() {
    let mut now = Instant::now() + Duration::from_secs(1);
    let (mut here, mut there) = (Session::viewer(now).unwrap(), Session::viewer(now).unwrap());
    let candidate = here.add_local_candidate(address(VIEWER)).unwrap();
    there.add_local_candidate(address(SERVER)).unwrap();
    let offer = here.create_offer().unwrap();
    let (answer, _) = there.accept_offer(&offer).unwrap();
    here.accept_answer(&answer).unwrap();
    there.add_remote_candidate(RemoteCandidate::parse(&candidate).unwrap());
    assert!(!here.is_from_peer(address(SERVER)));
    let mut connected = [false; 2];
    for _ in 0..2_000 {
        now += Duration::from_millis(1);
        for (number, from, to) in [(0, VIEWER, SERVER), (1, SERVER, VIEWER)] {
            let (own, other) =
                if number == 0 { (&mut here, &mut there) } else { (&mut there, &mut here) };
            own.timeout(now).unwrap();
            loop {
                match own.poll_output().unwrap() {
                    SessionOutput::Transmit { bytes, .. } => {
                        other.datagram(now, address(from), address(to), &bytes).unwrap();
                    }
                    SessionOutput::Connected(_) => connected[number] = true,
                    SessionOutput::Timeout(_) => break,
                    _ => {}
                }
            }
        }
    }
    assert_eq!(connected, [true; 2]);
    assert!(here.is_from_peer(address(SERVER)) && !here.is_from_peer(address(ELSEWHERE)));
}

#[test]
fn a_server_that_is_deaf_at_first_is_asked_again_every_50_ms() {
    let mut world = World::new();
    world.answers_media = false;
    world.start();
    world.run(Duration::from_millis(130));
    world.answers_media = true;
    world.run(Duration::from_millis(55));
    assert!(world.phases().contains(&Phase::IceConnected), "{:?}", world.phases());
}

/// A viewer's unused addresses cost checks for three seconds only.
#[test]
fn addresses_that_are_not_used_are_given_up() {
    let mut now = Instant::now() + Duration::from_secs(1);
    let (mut here, mut there) = (Session::viewer(now).unwrap(), Session::server(now).unwrap());
    let locals = ["10.0.0.2:6000", "10.0.0.4:6000", "10.0.0.5:6000"];
    locals.iter().for_each(|local| drop(here.add_local_candidate(address(local)).unwrap()));
    let served = there.add_local_candidate(address(SERVER)).unwrap();
    let (answer, _) = there.accept_offer(&here.create_offer().unwrap()).unwrap();
    here.accept_answer(&answer).unwrap();
    here.add_remote_candidate(RemoteCandidate::parse(&served).unwrap());
    let mut asked_from: BTreeMap<SocketAddr, Vec<u64>> = BTreeMap::new();
    for ms in 0..20_000 {
        now += Duration::from_millis(1);
        here.timeout(now).unwrap();
        let mut from_here = Vec::new();
        while let Ok(output) = here.poll_output() {
            match output {
                SessionOutput::Timeout(_) => break,
                SessionOutput::Transmit { source, bytes, .. } => from_here.push((source, bytes)),
                _ => {}
            }
        }
        for (source, bytes) in from_here {
            if bytes.starts_with(&[0x00, 0x01]) {
                asked_from.entry(source).or_default().push(ms);
            }
            let _ = there.datagram(now, source, address(SERVER), &bytes);
            while let Ok(SessionOutput::Transmit { to, bytes, .. }) = there.poll_output() {
                here.datagram(now, address(SERVER), to, &bytes).unwrap();
            }
        }
        let _ = there.timeout(now);
        while let Ok(output) = there.poll_output() {
            match output {
                SessionOutput::Timeout(_) => break,
                SessionOutput::Transmit { to, bytes, .. } => {
                    here.datagram(now, address(SERVER), to, &bytes).unwrap();
                }
                _ => {}
            }
        }
    }
    let after = |local: &str| {
        let asked = asked_from.get(&address(local)).map(Vec::as_slice).unwrap_or_default();
        assert!(!asked.is_empty(), "{local} is a way of its own at first");
        asked.iter().filter(|ms| **ms > 4_000).count()
    };
    let counts = locals.map(after);
    let used = counts.iter().filter(|count| **count > 0).count();
    assert_eq!(used, 1, "{counts:?}");
    assert!(counts.iter().sum::<usize>() <= 8, "one check each 2.5 s: {counts:?}");
}
