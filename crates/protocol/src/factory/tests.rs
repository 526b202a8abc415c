//! Each endpoint has its participant.

use std::collections::HashSet;
use std::time::Instant;

use throng_scenario::{JanusId, PeerConfig, PeerPreset, PlayerConfig};

use super::*;
use crate::chat::RoomLogs;
use crate::participant::{Input, Open, Output};

pub(super) fn endpoint(url: &str, place: Place) -> Endpoint {
    Endpoint { url: Url::parse(url).unwrap(), place }
}

/// A factory for `endpoint`, of a run with this seed.
pub(super) fn factory(endpoint: Endpoint, seed: u64) -> TargetFactory {
    TargetFactory {
        endpoint,
        token: Some("t".into()),
        api_key: None,
        may_reach: Arc::new(|_, _| true),
        clock: WallClock { at: Instant::now(), unix_ns: 0 },
        servers: Servers::default(),
        seed,
        timeouts: StepTimeouts { signalling: Duration::from_secs(3), ..StepTimeouts::default() },
        tapped: TapSelection::default(),
        conference: ConferenceConfig::default(),
        mark: RunMark::default(),
        ice_transport_policy: IceTransportPolicy::default(),
        stun: None,
        turn: None,
        rtsp_transport: RtspTransport::default(),
        indexes: IndexCache::default(),
        playlists: PlaylistCache::default(),
        swarms: Swarms::default(),
        pages: Pages::default(),
        rooms: RoomLogs::default(),
    }
}

#[test]
fn each_endpoint_gets_a_viewer_that_opens_its_signalling() {
    let now = Instant::now();
    let streaming = Place::Janus { id: JanusId::Number(1), pin: None };
    for (url, place, opens) in [
        ("ws://10.0.0.1:3333/app/stream", Place::OvenMediaEngine, true),
        ("ws://10.0.0.1:8188/", streaming, true),
        ("http://10.0.0.1/whep", Place::Whep, false),
    ] {
        let factory = factory(endpoint(url, place), 1);
        let mut viewer = factory.participant(4, Duration::ZERO, &Role::default());
        viewer.handle(now, Input::Start { intended_at: now });
        let mut opened = Vec::new();
        loop {
            match viewer.poll_output(now) {
                Output::Open(_, open) => opened.push(open),
                Output::Timeout(at, _) => break assert!(at <= now + Duration::from_secs(3)),
                Output::Observed(_) => {}
                other => panic!("{other:?}"),
            }
        }
        let expect = if opens { "WebSocket" } else { "Datagrams" };
        let [open] = opened.as_slice() else { panic!("{opened:?}") };
        assert!(format!("{open:?}").starts_with(expect), "{open:?}");
        if let Open::Datagrams { toward, .. } = open {
            let ips: Vec<_> = toward.iter().map(SocketAddr::ip).collect();
            assert_eq!(ips, [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))]);
        }
    }
}

#[test]
fn urls_name_addresses_without_a_resolver() {
    for (url, expect) in [
        ("http://127.0.0.1:80/x", Some("127.0.0.1:80")),
        ("wss://[::1]:8989/", Some("[::1]:8989")),
        ("ws://localhost:8188/", Some("127.0.0.1:8188")),
        ("https://example.invalid/whep", None),
    ] {
        assert_eq!(
            named_address(&Url::parse(url).unwrap()),
            expect.map(|text| text.parse().unwrap()),
            "{url}"
        );
    }
}

#[test]
fn who_a_participant_is_differs_by_run_and_what_it_does_by_the_scenario() {
    let page = endpoint("http://127.0.0.1/w/abc", Place::PeerTube);
    let [one, again, other] = [1, 1, 2].map(|seed| factory(page.clone(), seed));
    let seeds = |of: &TargetFactory| [3, 4].map(|number| of.options(number).seed);
    assert_eq!(seeds(&one), seeds(&again));
    assert!(seeds(&one).iter().all(|seed| !seeds(&other).contains(seed)));
    let player = PlayerConfig::default();
    let of = |factory: &TargetFactory| factory.player_config(3, &page.url, &player);
    assert_ne!(of(&one).identity_seed, of(&other).identity_seed);
    assert_eq!(of(&one).player, of(&other).player);
}

#[test]
fn no_two_connections_of_a_run_have_the_same_seed() {
    let factory = factory(endpoint("ws://127.0.0.1/", Place::OvenMediaEngine), 1);
    let mut seeds = HashSet::new();
    for number in 0..100 {
        let own = factory.options(number).seed;
        seeds.extend((0..100).map(|connection| seed::of(own, connection)));
    }
    assert_eq!(seeds.len(), 10_000);
}

#[test]
fn publishers_by_a_process_take_the_addresses_of_the_server_in_turns() {
    let now = Instant::now();
    let peer = |factory: &TargetFactory, number: u32| {
        let publish = throng_scenario::PublishConfig {
            video: None,
            simulcast: Vec::new(),
            codec: throng_observation::Codec::H264,
            audio: true,
            video_file: None,
            audio_file: None,
            adapts: false,
            burns_clock: false,
        };
        let role = Role { publish: Some(publish), ..Role::default() };
        let mut publisher = factory.participant(number, Duration::ZERO, &role);
        publisher.handle(now, Input::Start { intended_at: now });
        loop {
            match publisher.poll_output(now) {
                Output::Open(_, Open::Process { arguments, chosen, .. }) => {
                    break (arguments.last().cloned().unwrap_or_default(), chosen);
                }
                Output::Observed(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let server = endpoint("http://media.example:9000/", Place::Srt);
    let [one, other] = [1, 2].map(|last| SocketAddr::from(([192, 0, 2, last], 9000)));
    let at = |address: SocketAddr| (format!("srt://{address}"), Some(address.ip()));
    let of_worker = |worker| TargetFactory {
        servers: Servers::of_worker(worker, vec![one, other]),
        ..factory(server.clone(), 1)
    };
    let local = of_worker(0);
    // Every second one of the crowd, as where a cohort of viewers joins alternately.
    assert_eq!([0, 2, 4].map(|number| peer(&local, number)), [at(one), at(other), at(one)]);
    assert_eq!(peer(&of_worker(1), 0), at(other));
    let one_of = |addresses| TargetFactory {
        servers: Servers::of_worker(1, vec![one]).of(addresses),
        ..factory(server.clone(), 1)
    };
    assert_eq!(peer(&one_of(1), 0), (format!("srt://{one}"), None), "there is nothing to choose");
    assert_eq!(peer(&one_of(2), 0), at(one), "the other one may get no load");
}

#[test]
fn each_viewer_of_a_run_has_a_name_of_its_own_among_peers() {
    let page = endpoint("http://127.0.0.1/a.m3u8", Place::PeerTube);
    let player = PlayerConfig::default();
    let mut names = HashSet::new();
    for seed in [1, 2] {
        let factory = factory(page.clone(), seed);
        let peers = PeerConfig { seed, ..PeerConfig::preset(PeerPreset::Lan) };
        let of = |number| factory.player_config(number, &page.url, &player).name_seed(&peers);
        names.extend((0..1_000).map(of));
    }
    assert!(names.len() >= 1_990, "{}", names.len());
}
