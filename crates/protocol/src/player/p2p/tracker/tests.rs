use serde_json::{Value, json};

use super::*;

const STREAM: &str = "https://a.example/master.m3u8";

fn tracker() -> Tracker {
    Tracker::new(Url::parse("wss://a.example/tracker/socket").unwrap(), PeerEngine::V22, 7)
}

/// What it sends next, as JSON.
fn sent(tracker: &mut Tracker) -> Vec<Value> {
    let outputs = tracker.take_outputs();
    let texts = outputs.into_iter().filter_map(|output| match output {
        TrackerOutput::Send(text) => Some(serde_json::from_str(&text).unwrap()),
        _ => None,
    });
    texts.collect()
}

/// Two viewers in a swarm, who have announced.
fn pair(now: Instant) -> ([Tracker; 2], [Id; 2], [Value; 2]) {
    let mut trackers =
        [7, 8].map(|seed| Tracker { rng: fastrand::Rng::with_seed(seed), ..tracker() });
    let ids = trackers.each_mut().map(|tracker| tracker.enter(now, STREAM, 0).1);
    let announced = trackers.each_mut().map(|tracker| {
        tracker.opened(now);
        tracker.tick(now + GATHERING, &mut Nowhere);
        sent(tracker).remove(0)
    });
    (trackers, ids, announced)
}

#[test]
fn it_announces_with_offers_at_the_interval_of_the_tracker() {
    let (now, mut tracker) = (Instant::now(), tracker());
    tracker.enter(now, STREAM, 0);
    assert!(matches!(tracker.take_outputs()[..], [TrackerOutput::Open(_)]));
    tracker.opened(now);
    tracker.tick(now, &mut Nowhere);
    assert!(sent(&mut tracker).is_empty(), "candidates are gathered");
    tracker.tick(now + GATHERING, &mut Nowhere);
    let first = sent(&mut tracker).remove(0);
    assert_eq!((&first["event"], &first["numwant"]), (&json!("started"), &json!(5)));
    assert_eq!(
        (first["offers"].as_array().unwrap().len(), &first["action"]),
        (5, &json!("announce"))
    );
    let length = first.to_string().len();
    assert!((3_800..4_300).contains(&length), "{length}: a browser's has 3,930 bytes");
    let reply = json!({"complete": 0, "incomplete": 3, "action": "announce", "interval": 120,
                       "info_hash": first["info_hash"]});
    assert_eq!(tracker.message(now + GATHERING, &reply.to_string(), &mut Nowhere), None);
    assert_eq!(tracker.next_timeout(), Some(now + GATHERING + Duration::from_secs(120)));
    tracker.tick(now + GATHERING + Duration::from_secs(120), &mut Nowhere);
    let second = sent(&mut tracker).remove(0);
    assert_eq!(second.get("event"), None);
    assert_ne!(second["offers"][0]["offer_id"], first["offers"][0]["offer_id"]);
    assert_eq!(tracker.take_counters().announces, 2);
}

#[test]
fn who_answers_an_offer_and_who_is_answered_find_each_other() {
    let now = Instant::now();
    let ([mut a, mut b], [a_id, b_id], [announced, _]) = pair(now);
    let offer = json!({"action": "announce", "info_hash": announced["info_hash"], "peer_id": announced["peer_id"],
                       "offer": announced["offers"][0]["offer"], "offer_id": announced["offers"][0]["offer_id"]});
    assert_eq!(
        b.message(now, &offer.to_string(), &mut Nowhere),
        Some(Found { swarm: 0, peer: a_id, answered: None })
    );
    let mut answer = sent(&mut b).remove(0);
    assert_eq!(
        (&answer["to_peer_id"], &answer["answer"]["type"]),
        (&announced["peer_id"], &json!("answer"))
    );
    assert!(
        (800..960).contains(&answer.to_string().len()),
        "{}: a browser's has 880",
        answer.to_string().len()
    );
    // The tracker hands it on without the name of who it is for.
    answer.as_object_mut().unwrap().remove("to_peer_id");
    let found = a.message(now, &answer.to_string(), &mut Nowhere).unwrap();
    assert_eq!((found.swarm, found.peer), (0, b_id));
    let (offer, sdp) = found.answered.unwrap();
    assert_eq!(Some(&*ids::text(&offer)), announced["offers"][0]["offer_id"].as_str());
    assert_eq!(Some(&*sdp), answer["answer"]["sdp"].as_str());
    assert_eq!(
        a.message(now, &answer.to_string(), &mut Nowhere),
        None,
        "each offer is answered once"
    );
}

#[test]
fn what_is_late_wrong_or_of_nobody_is_no_peer() {
    let now = Instant::now();
    let ([mut a, _], [a_id, b_id], [announced, _]) = pair(now);
    let answer = json!({"action": "announce", "info_hash": announced["info_hash"], "peer_id": ids::text(&b_id),
                        "answer": {"type": "answer", "sdp": ""}, "offer_id": announced["offers"][0]["offer_id"]});
    assert_eq!(
        a.message(now + GATHERING + OFFER_TIMEOUT, &answer.to_string(), &mut Nowhere),
        None,
        "too late"
    );
    let changed = |key: &str, value: Value| {
        let mut message = answer.clone();
        message[key] = value;
        message.to_string()
    };
    for message in [
        changed("peer_id", json!(ids::text(&a_id))),
        changed("info_hash", json!("another")),
        changed("offer_id", json!("unknown")),
        changed("action", json!("scrape")),
        changed("peer_id", json!(7)),
        String::new(),
        "[".repeat(100_000),
        "{}".into(),
    ] {
        let shown: String = message.chars().take(99).collect();
        assert_eq!(a.message(now, &message, &mut Nowhere), None, "{shown}");
    }
    let problems = a.take_outputs();
    assert!(matches!(&problems[..], [TrackerOutput::Anomaly(_)]), "once: {problems:?}");
}

#[test]
fn a_broken_connection_is_made_again_later_and_later() {
    let (mut now, mut tracker) = (Instant::now(), tracker());
    tracker.enter(now, STREAM, 0);
    for turn in 0..12 {
        tracker.closed(now, "reset");
        let at = tracker.next_timeout().unwrap();
        let least = RECONNECT_MIN.saturating_mul(1 << turn).min(RECONNECT_MAX);
        assert!((least..=least + Duration::from_secs(300)).contains(&(at - now)), "{turn}");
        now = at;
        tracker.tick(now, &mut Nowhere);
        assert!(
            tracker.take_outputs().iter().any(|output| matches!(output, TrackerOutput::Open(_)))
        );
    }
    tracker.opened(now);
    tracker.tick(now + GATHERING, &mut Nowhere);
    assert_eq!(sent(&mut tracker).len(), 1);
}

#[test]
fn engine_0_6_says_that_it_leaves() {
    let now = Instant::now();
    let mut tracker = Tracker { engine: PeerEngine::V06, ..tracker() };
    tracker.enter(now, STREAM, 0);
    tracker.opened(now);
    tracker.tick(now + GATHERING, &mut Nowhere);
    tracker.take_outputs();
    tracker.close();
    let outputs = tracker.take_outputs();
    let [TrackerOutput::Send(stopped), TrackerOutput::Close] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert!(stopped.contains(r#""event":"stopped""#) && !stopped.contains("offers"), "{stopped}");
}

/// A viewer that has all the peers it keeps.
struct Full;

impl Describe for Full {
    fn offer(&mut self, _: Instant, _: usize, _: Id) -> Option<String> {
        None
    }

    fn answer(&mut self, _: Instant, _: usize, _: Id, _: &str) -> Described {
        Described::Refused
    }

    fn wants_peers(&mut self, _: Instant, _: usize) -> bool {
        false
    }
}

#[test]
fn who_has_no_room_offers_nothing_and_promises_nothing() {
    let now = Instant::now();
    let ([mut a, mut b], _, [announced, _]) = pair(now);
    let offer = json!({"action": "announce", "info_hash": announced["info_hash"], "peer_id": announced["peer_id"],
                       "offer": announced["offers"][0]["offer"], "offer_id": announced["offers"][0]["offer_id"]});
    b.message(now, &offer.to_string(), &mut Full);
    assert!(sent(&mut b).is_empty(), "no answer");
    a.tick(now + Duration::from_secs(60), &mut Full);
    let announce = sent(&mut a).remove(0);
    assert_eq!((announce.get("offers"), &announce["numwant"]), (None, &json!(0)));
}

#[test]
fn a_socket_that_was_open_may_be_closed_and_one_that_cannot_be_opened_is_an_anomaly() {
    let (now, mut tracker) = (Instant::now(), tracker());
    tracker.enter(now, STREAM, 0);
    tracker.tick(now, &mut Nowhere);
    tracker.opened(now);
    tracker.take_outputs();
    let mut problems = |now: Instant| {
        tracker.closed(now, "closed by the server");
        let again_at = tracker.next_timeout().unwrap();
        tracker.tick(again_at, &mut Nowhere);
        let outputs = tracker.take_outputs();
        let is_problem = |output: &&TrackerOutput| matches!(output, TrackerOutput::Anomaly(_));
        (outputs.iter().filter(is_problem).count(), again_at)
    };
    let (of_idle, again_at) = problems(now + Duration::from_secs(60));
    assert_eq!(of_idle, 0);
    assert_eq!(problems(again_at).0, 1, "refused");
    assert_eq!(tracker.take_counters().tracker_reconnects, 2);
}
