//! Two viewers, each with a socket of its own, whose datagrams the test carries.

use std::sync::Arc;

use aws_lc_rs::digest;
use throng_media::timing::WholeSegment;
use throng_observation::Url;
use throng_scenario::{PeerConfig, PeerPreset};

use super::super::hashes::Hashes;
use super::super::loader::{Loader, Queued};
use super::super::neighbours::{Arrived, Neighbours};
use super::super::policy::Policy;
use super::super::swarm::{Sent, Swarms};
use super::*;
use crate::player::manifest::presentation::Resource;

const SEGMENT_LEN: usize = 300_000;
const SEGMENT_BYTES: u64 = SEGMENT_LEN as u64;

/// A viewer, and its address.
struct Side {
    channels: Channels,
    membership: Membership,
    address: SocketAddr,
    holdings: Holdings,
}

impl Side {
    /// Each has a swarm of its own, as in processes of their own.
    fn new(n: u8, engine: PeerEngine) -> Self {
        let address = SocketAddr::from(([10, 0, 0, n], 4_000));
        let options = ChannelOptions {
            engine,
            swarm: "https://a.example/master.m3u8+V0".into(),
            may_reach: Arc::new(|_, to| to.ip().to_string().starts_with("10.")),
            shares: true,
            degree_max: 8,
        };
        let membership = Swarms::default().swarm("a").enter(n.into(), true, None);
        let channels = Channels::new(options, vec![address], n.into());
        Self { channels, membership, address, holdings: Holdings::default() }
    }

    fn has(&mut self, number: u64, bytes: Vec<u8>) {
        self.membership.keep(Instant::now(), number, WholeSegment::opaque(bytes.len() as u64));
        self.membership.swarm().keep_bytes(number, bytes.into());
        self.holdings.loaded.insert(number);
        self.channels.holdings_changed();
    }

    fn tick(&mut self, now: Instant) {
        self.channels.tick(now, &self.membership, &self.holdings, &self.holdings);
    }
}

/// Whether a peer of `side` has said that it has this segment.
fn said(side: &Side, number: u64) -> bool {
    let mut overview = Holdings::default();
    side.channels.add_to(&mut overview, &(number..=number));
    overview.loaded.contains(number)
}

fn segment() -> Vec<u8> {
    (0..SEGMENT_LEN).map(|at| (at % 251) as u8).collect()
}

/// Carries datagrams for this long.
fn run(now: &mut Instant, sides: &mut [Side; 2], lasts: Duration) {
    let until = *now + lasts;
    while *now < until {
        *now += Duration::from_millis(5);
        for at in 0..2 {
            sides[at].tick(*now);
            for transmit in sides[at].channels.take_transmits() {
                let from = sides[at].address;
                let other = &mut sides[1 - at];
                if transmit.to == other.address {
                    other.channels.datagram(*now, &other.membership, (from, None), &transmit.bytes);
                }
            }
        }
    }
}

/// Connects two viewers as a tracker would.
fn connected(engine: PeerEngine) -> (Instant, [Side; 2]) {
    let mut now = Instant::now();
    let mut sides = [Side::new(1, engine), Side::new(2, engine)];
    let offer = sides[0].channels.offer(now, [7; 20]).unwrap();
    let id = sides[1].membership.swarm().name_stranger();
    let answer = sides[1].channels.answer(now, id, [1; 20], &offer).unwrap();
    let id = sides[0].membership.swarm().name_stranger();
    sides[0].channels.answered(now, id, &[7; 20], [2; 20], &answer);
    run(&mut now, &mut sides, Duration::from_secs(2));
    assert_eq!(sides.each_ref().map(|side| side.channels.degree()), [1, 1]);
    (now, sides)
}

#[test]
fn a_segment_is_announced_asked_for_and_sent() {
    for engine in [PeerEngine::V22, PeerEngine::V06] {
        let (mut now, mut sides) = connected(engine);
        sides[0].has(104, segment());
        run(&mut now, &mut sides, Duration::from_millis(200));
        let [_, wants] = &mut sides;
        assert!(wants.channels.take_news());
        assert!(said(wants, 104) && !said(wants, 105));
        let from = wants.channels.sources(104)[0];
        wants.channels.request(now, &wants.membership, from, 104);
        assert!(wants.channels.sources(104).is_empty(), "one segment at a time");
        run(&mut now, &mut sides, Duration::from_secs(2));
        let [has, wants] = &mut sides;
        let complete = wants.channels.take_complete();
        assert_eq!(complete.len(), 1, "{engine:?}: {:?}", wants.channels.received(from, 104));
        assert!(complete[0].1 == 104 && complete[0].2 == segment());
        assert_eq!(wants.channels.take_counters().received_bytes, SEGMENT_LEN as u64);
        assert_eq!(has.channels.take_counters().sent_bytes, SEGMENT_LEN as u64);
        assert_eq!(
            [has, wants].map(|side| side.channels.take_problems()),
            [const { Vec::<String>::new() }; 2]
        );
    }
}

#[test]
fn what_a_peer_does_not_have_is_absent_and_who_leaves_is_gone() {
    let (mut now, mut sides) = connected(PeerEngine::V22);
    sides[0].has(104, segment());
    run(&mut now, &mut sides, Duration::from_millis(200));
    let [has, wants] = &mut sides;
    let from = wants.channels.sources(104)[0];
    // It was played a while ago.
    has.membership.forget_before(105);
    wants.channels.request(now, &wants.membership, from, 104);
    run(&mut now, &mut sides, Duration::from_millis(200));
    let [has, wants] = &mut sides;
    assert_eq!(wants.channels.received(from, 104), None);
    assert!(!said(wants, 104));
    has.channels.close(now, &has.membership);
    run(&mut now, &mut sides, Duration::from_secs(2));
    assert_eq!(sides.each_ref().map(|side| side.channels.degree()), [0, 0]);
}

#[test]
fn who_sends_too_much_or_is_late_again_and_again_is_left() {
    let (mut now, mut sides) = connected(PeerEngine::V22);
    sides[0].has(104, segment());
    run(&mut now, &mut sides, Duration::from_millis(200));
    let [_, wants] = &mut sides;
    let from = wants.channels.sources(104)[0];
    for _ in 0..LATE_MAX {
        assert_eq!(wants.channels.degree(), 1);
        wants.channels.request(now, &wants.membership, from, 104);
        wants.channels.cancel(now, &wants.membership, from, true);
    }
    assert_eq!(wants.channels.degree(), 0);
    assert_eq!(wants.channels.take_problems(), ["disconnected from a peer: late three times"]);

    let (mut now, mut sides) = connected(PeerEngine::V22);
    // It announces one byte, and sends two.
    let [liar, _] = &mut sides;
    liar.channels.connections[0]
        .say(&PeerCommand::Announcement { loaded: vec![9], loading: vec![] })
        .unwrap();
    liar.channels.advance(now, &liar.membership, 0);
    run(&mut now, &mut sides, Duration::from_millis(100));
    let [liar, wants] = &mut sides;
    let from = wants.channels.sources(9)[0];
    wants.channels.request(now, &wants.membership, from, 9);
    let request = wants.channels.connections[0].request_name().unwrap();
    liar.channels.connections[0]
        .say(&PeerCommand::Segment { segment: 9, request, bytes: 1 })
        .unwrap();
    liar.channels.connections[0].link.send(b"xy").unwrap();
    liar.channels.advance(now, &liar.membership, 0);
    run(&mut now, &mut sides, Duration::from_millis(100));
    let problems = sides[1].channels.take_problems();
    assert_eq!(problems, ["disconnected from a peer: sent 2 bytes of a segment of 1"]);
}

#[test]
fn a_peer_outside_the_allowed_targets_gets_nothing() {
    let now = Instant::now();
    let mut inside = Side::new(1, PeerEngine::V22);
    let mut outside = Side::new(2, PeerEngine::V22);
    outside.channels.locals = vec![SocketAddr::from(([192, 0, 2, 1], 4_000))];
    let offer = outside.channels.offer(now, [7; 20]).unwrap();
    let id = inside.membership.swarm().name_stranger();
    assert!(inside.channels.answer(now, id, [2; 20], &offer).is_some());
    let mut later = now;
    while later < now + CONNECT_TIMEOUT + Duration::from_secs(1) {
        later += Duration::from_millis(50);
        inside.tick(later);
        assert!(inside.channels.take_transmits().is_empty());
    }
    assert_eq!(
        inside.channels.take_problems(),
        ["disconnected from a peer: 192.0.2.1:4000 is not an allowed target"]
    );
}

#[test]
fn offers_that_never_become_connections_are_bounded() {
    let now = Instant::now();
    let mut side = Side::new(1, PeerEngine::V22);
    let (_, offer) =
        DataLink::offer(now, &[side.address], side.channels.options.may_reach.clone()).unwrap();
    let answered = |side: &mut Side, peer: u8| {
        let id = side.membership.swarm().name_stranger();
        side.channels.answer(now, id, [peer; 20], &offer).is_some()
    };
    let of_one = (0..20).filter(|_| answered(&mut side, 200)).count();
    assert_eq!(of_one, PENDING_OF_PEER_MAX);
    let of_all = (0..100).filter(|peer| answered(&mut side, *peer)).count();
    assert_eq!(of_one + of_all, PENDING_MAX);
    side.tick(now + CONNECT_TIMEOUT);
    assert!(answered(&mut side, 201), "they time out");
}

#[test]
fn what_the_uplink_would_have_sent_is_not_uploaded_when_the_peer_wants_it_no_more() {
    let (mut now, mut sides) = connected(PeerEngine::V22);
    sides[0].membership = Swarms::default().swarm("slow").enter(1, true, Some(1_200_000));
    sides[0].has(104, segment());
    run(&mut now, &mut sides, Duration::from_millis(200));
    let [has, wants] = &mut sides;
    let from = wants.channels.sources(104)[0];
    wants.channels.request(now, &wants.membership, from, 104);
    // It is asked, and its datagrams are lost from then on.
    for transmit in wants.channels.take_transmits() {
        has.channels.datagram(now, &has.membership, (wants.address, None), &transmit.bytes);
    }
    for _ in 0..400 {
        now += Duration::from_millis(5);
        has.tick(now);
        has.channels.take_transmits();
    }
    let modelled = has.membership.take_shared(now).uploaded_bytes;
    assert_eq!(modelled, 0, "what goes over channels is counted as it is sent");
    let sent = has.channels.take_counters().sent_bytes;
    assert!(sent > 0 && sent <= SEGMENT_BYTES, "{sent}");
}

#[test]
fn pieces_leave_room_for_what_is_said_and_nothing_that_is_said_is_lost() {
    let (mut now, mut sides) = connected(PeerEngine::V22);
    let long: Vec<u8> = (0..2_000_000).map(|at| (at % 251) as u8).collect();
    sides[0].has(104, long.clone());
    run(&mut now, &mut sides, Duration::from_millis(200));
    let [has, wants] = &mut sides;
    let from = wants.channels.sources(104)[0];
    wants.channels.request(now, &wants.membership, from, 104);
    for transmit in wants.channels.take_transmits() {
        has.channels.datagram(now, &has.membership, (wants.address, None), &transmit.bytes);
    }
    has.tick(now);
    let sent = has.channels.take_counters().sent_bytes;
    assert!((1..200_000).contains(&sent), "a segment fills no buffer: {sent}");
    // More than the channel takes at once, though the peer reads nothing at the moment.
    let announcement = PeerCommand::Announcement {
        loaded: (0..2_000).map(|n| n * 1_000).collect(),
        loading: vec![],
    };
    for _ in 0..200 {
        has.channels.connections[0].say(&announcement).unwrap();
    }
    has.holdings.loaded.insert(105);
    has.channels.holdings_changed();
    run(&mut now, &mut sides, Duration::from_secs(20));
    let wants = &mut sides[1];
    assert!(said(wants, 105), "the last word has come");
    assert_eq!(wants.channels.take_complete().len(), 1);
}

#[test]
fn the_uplink_limits_what_is_sent() {
    let (mut now, mut sides) = connected(PeerEngine::V22);
    sides[0].membership = Swarms::default().swarm("slow").enter(1, true, Some(1_200_000));
    sides[0].has(104, segment());
    run(&mut now, &mut sides, Duration::from_millis(200));
    let [_, wants] = &mut sides;
    let from = wants.channels.sources(104)[0];
    wants.channels.request(now, &wants.membership, from, 104);
    run(&mut now, &mut sides, Duration::from_millis(1_500));
    let received = sides[1].channels.received(from, 104).unwrap();
    assert!((150_000..290_000).contains(&received), "{received} of 300,000 bytes in 1.5 of 2 s");
    run(&mut now, &mut sides, Duration::from_millis(1_000));
    assert_eq!(sides[1].channels.take_complete().len(), 1);
}

/// Carries datagrams between a viewer and the peers of another one for a second.
fn run_with(now: &mut Instant, side: &mut Side, (peers, address): (&mut Neighbours, SocketAddr)) {
    for _ in 0..200 {
        *now += Duration::from_millis(5);
        side.tick(*now);
        for transmit in side.channels.take_transmits() {
            peers.datagram(*now, (side.address, None), &transmit.bytes);
        }
        peers.tick(*now);
        for transmit in peers.channels().unwrap().take_transmits() {
            side.channels.datagram(*now, &side.membership, (address, None), &transmit.bytes);
        }
    }
}

#[test]
fn what_came_is_used_when_it_is_proven_and_who_sent_something_else_is_left() {
    for is_right in [true, false] {
        let (mut now, [mut has, wants]) = connected(PeerEngine::V22);
        let (mut peers, address) =
            (Neighbours::new(wants.membership, Some(wants.channels)), wants.address);
        has.has(104, segment());
        run_with(&mut now, &mut has, (&mut peers, address));
        let from = peers.request(now, 104, &[], &mut fastrand::Rng::with_seed(1)).unwrap();
        run_with(&mut now, &mut has, (&mut peers, address));
        // Its hash is not known yet.
        peers.judge(now, &mut |_: &Arrived| Ok(None));
        assert!(matches!(peers.received(now, from, 104), Sent::Partly(SEGMENT_BYTES, _)));
        peers.judge(now, &mut |arrived: &Arrived| match is_right {
            true => Ok(Some(WholeSegment::opaque(arrived.bytes.len() as u64))),
            false => Err("segment 104: another SHA-256".to_owned()),
        });
        if is_right {
            assert!(matches!(peers.received(now, from, 104), Sent::Whole(_)));
            assert_eq!(peers.degree(now), 1);
        } else {
            assert!(matches!(peers.received(now, from, 104), Sent::Broken));
            assert_eq!(peers.degree(now), 0);
            let problems = peers.channels().unwrap().take_problems();
            assert_eq!(problems, ["disconnected from a peer: segment 104: another SHA-256"]);
        }
    }
}

/// The list of hashes of a recording of which a range is a segment with this hash.
fn hashes_of(range: &Resource, hash: &[u8]) -> Hashes {
    let (first, last) = range.range.unwrap();
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(r#"{{"film.mp4":{{"{first}-{last}":"{hash}"}}}}"#);
    Hashes::with_list(range.url.clone(), &text)
}

#[test]
fn a_range_of_a_recording_with_another_hash_is_refused_and_counted() {
    let range = Resource {
        url: Url::parse("http://10.0.0.1/film.mp4").unwrap(),
        range: Some((1_000, 999 + SEGMENT_BYTES)),
    };
    for is_right in [true, false] {
        let hash = digest::digest(&digest::SHA256, &segment());
        let hashes = hashes_of(&range, if is_right { hash.as_ref() } else { &[0; 32] });
        let (mut now, [mut has, wants]) = connected(PeerEngine::V22);
        let address = wants.address;
        let peers = Neighbours::new(wants.membership, Some(wants.channels));
        let policy = Policy::new(&PeerConfig::preset(PeerPreset::Lan), false);
        let mut loader = Loader::new(policy, true, peers, 1);
        has.has(104, segment());
        run_with(&mut now, &mut has, (loader.neighbours_mut(), address));
        // It is not urgent.
        let queue = [Queued { number: 104, starts_us: 60_000_000, ends_us: 64_000_000 }];
        assert_eq!(loader.pump(now, &queue, None, 0, &mut |_, _| true), []);
        run_with(&mut now, &mut has, (loader.neighbours_mut(), address));
        loader.neighbours_mut().judge(now, &mut |arrived: &Arrived| {
            assert!(hashes.names(&range));
            match hashes.match_bytes(&range, &arrived.bytes) {
                true => Ok(Some(WholeSegment::opaque(arrived.bytes.len() as u64))),
                false => Err("another SHA-256".to_owned()),
            }
        });
        loader.pump(now, &queue, None, 0, &mut |_, _| true);
        let received = loader.take_received();
        let expected = if is_right { (1, 0) } else { (0, 1) };
        assert_eq!((received.segments, received.failed), expected);
        assert_eq!(loader.held(104).is_some(), is_right);
        assert_eq!(loader.neighbours().degree(now), usize::from(is_right), "who sent it is left");
    }
}
