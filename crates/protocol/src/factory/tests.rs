//! Each endpoint has its participant.

use super::*;
use crate::chat::RoomLogs;
use crate::participant::{Input, Open, Output};
use std::time::Instant;

/// A factory for `endpoint`, of a run with this seed.
fn factory(endpoint: Endpoint, seed: u64) -> TargetFactory {
    TargetFactory {
        endpoint,
        token: Some("t".into()),
        api_key: None,
        may_reach: Arc::new(|_| true),
        clock: WallClock { at: Instant::now(), unix_ns: 0 },
        server: None,
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
    let url = |text: &str| Url::parse(text).unwrap();
    for (endpoint, opens) in [
        (Endpoint::OvenMediaEngine { url: url("ws://10.0.0.1:3333/app/stream") }, true),
        (
            Endpoint::Janus {
                url: url("ws://10.0.0.1:8188/"),
                mountpoint: JanusId::Number(1),
                pin: None,
            },
            true,
        ),
        (Endpoint::Whep { url: url("http://10.0.0.1/whep") }, false),
    ] {
        let factory = factory(endpoint, 1);
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
    let url = Url::parse("http://127.0.0.1/w/abc").unwrap();
    let endpoint = Endpoint::PeerTube { url: url.clone() };
    let [one, again, other] = [1, 1, 2].map(|seed| factory(endpoint.clone(), seed));
    let seeds = |of: &TargetFactory| [3, 4].map(|number| of.options(number).seed);
    assert_eq!(seeds(&one), seeds(&again));
    assert!(seeds(&one).iter().all(|seed| !seeds(&other).contains(seed)));
    let player = PlayerConfig::default();
    let of = |factory: &TargetFactory| factory.player_config(3, &url, &player);
    assert_ne!(of(&one).identity_seed, of(&other).identity_seed);
    assert_eq!(of(&one).player, of(&other).player);
}
