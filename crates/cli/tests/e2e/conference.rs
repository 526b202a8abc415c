//! Conferences on the real Janus VideoRoom: all send, all receive from all, and nothing is left
//! behind.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_observation::MediaKind;
use throng_observation::run::RunData;
use throng_sim::janus::{Janus, ROOM};
use throng_sim::janus_events::JanusEvents;
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::throng::{Ran, Running, figure, valid};

pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

fn url() -> String {
    format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}")
}

/// The received media: (receiver, sender, kind) of every track that played.
pub(crate) fn pairs(run: &RunData) -> BTreeSet<(u32, String, MediaKind)> {
    let played = run.tracks.iter().filter(|track| track.counters.frames_decodable > 0);
    played
        .filter_map(|track| Some((track.participant.0, track.from.clone()?, track.kind)))
        .collect()
}

/// Waits until Janus has no session, handle or media port of the run any more.
pub(crate) fn is_left_clean(janus: &Janus<'_>, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        if janus.open_ends().unwrap() == (0, 0) && janus.media_ports().unwrap() == 0 {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Janus's figures of a conference in its last seconds, when all participants are in and nothing is
/// sent any more.
struct Told {
    sessions_and_handles: (usize, usize),
    packets_received: u64,
    packets_sent: u64,
}

/// All participants are mute from here on, so that the counts of both ends can be compared to the
/// packet.
const MUTE: &str =
    "crowd.script=[{ at = \"15s\", mute = \"video\" }, { at = \"15s\", mute = \"audio\" }]";

fn plays_every_pair(users: u32, per_feed: bool) {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let (url, size) = (url(), users.to_string());
    let mut view =
        vec!["view", &url, "-n", &size, "--every", "300ms", "--for", "18s", "--set", MUTE];
    // What goes in and out is compared in the few seconds in which nobody mutes or comes back:
    // whole ones.
    view.extend(["--set", "crowd.arrival.jitter=false"]);
    view.extend(
        per_feed.then_some(["--set", "crowd.connection_per_feed=true"]).into_iter().flatten(),
    );
    let (ran, (counts, events)) = valid(|| {
        let events = JanusEvents::listen(&namespace).unwrap();
        let janus = Janus::start_telling(&namespace, ADDRESS, &events.url()).unwrap();
        let running = Running::start(Some(&namespace), &view);
        std::thread::sleep(Duration::from_millis(16_500));
        let counts = Told {
            sessions_and_handles: janus.open_ends().unwrap(),
            packets_received: janus.packets_received().unwrap(),
            packets_sent: janus.packets_sent().unwrap(),
        };
        let ran = running.wait();
        assert!(is_left_clean(&janus, Duration::from_secs(5)), "{:?}", janus.open_ends());
        // Janus collects events for a moment before it sends them.
        std::thread::sleep(Duration::from_secs(1));
        (ran, (counts, events))
    });
    let ran = ran.expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), f64::from(users), "{ran}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    every_pair_plays(&run, &summary, users, &ran);
    is_what_janus_says(&counts, &events, &run, users, per_feed);
    // Each sent packet is received once by every other participant.
    let whole = |second: i64| (5..9).contains(&second);
    let sent: u64 =
        run.sent.iter().filter(|row| whole(row.second)).map(|row| row.counters.packets_sent).sum();
    let received: u64 = run
        .series
        .iter()
        .filter(|row| whole(row.second))
        .map(|row| row.counters.packets_original)
        .sum();
    let ratio = received as f64 / (sent * u64::from(users - 1)) as f64;
    assert!((0.97..=1.03).contains(&ratio), "sent {sent}, received {received}: {ratio}");
    let delivered = figure(&summary, "conference.flow.delivered_ratio");
    assert!((0.97..=1.03).contains(&delivered), "{delivered} of the expected rate: {ran}");
}

/// Every pair plays audio and video, and no packet is lost.
fn every_pair_plays(run: &RunData, summary: &Value, users: u32, ran: &Ran) {
    let expect = users * (users - 1);
    assert_eq!(pairs(run).len(), expect as usize * 2, "{:?}", pairs(run));
    let lost: i64 = run.tracks.iter().map(|track| track.counters.packets_lost).sum();
    assert_eq!(lost, 0, "{ran}");
    for kind in ["video", "audio"] {
        for figure_name in ["expected", "playing"] {
            let path = format!("conference.{kind}.{figure_name}");
            assert_eq!(figure(summary, &path), f64::from(expect), "{path}: {ran}");
        }
    }
}

/// Compares with Janus's admin API, and with the joins and leaves that its event handler reported.
fn is_what_janus_says(
    counts: &Told,
    events: &JanusEvents,
    run: &RunData,
    users: u32,
    per_feed: bool,
) {
    let pairs = (users * (users - 1)) as usize;
    let users = users as usize;
    // One session per participant, and the number of handles of the mode.
    let subscriptions = if per_feed { pairs } else { users };
    assert_eq!(counts.sessions_and_handles, (users, users + subscriptions));
    let sent: u64 = run.sent.iter().map(|row| row.counters.packets_sent).sum();
    let again: u64 = run.sent.iter().map(|row| row.counters.retransmitted_packets).sum();
    assert_eq!(counts.packets_received, sent + again, "what Janus has, and what was sent");
    let received: u64 = run.tracks.iter().map(|track| track.counters.packets_original).sum();
    assert_eq!(counts.packets_sent, received, "what Janus sent, and what came");
    for (event, count) in
        [("joined", users), ("published", users), ("subscribed", subscriptions), ("leaving", users)]
    {
        assert_eq!(events.of_room(event), count, "{event}");
    }
    assert_eq!(events.connected(), users + subscriptions);
}

#[test]
fn a_conference_of_two_plays_every_pair() {
    plays_every_pair(2, false);
}

#[test]
fn a_conference_of_two_plays_every_pair_with_a_handle_a_feed() {
    plays_every_pair(2, true);
}

/// Twenty seconds: twelve people arrive one by one, and then seconds of the full room are compared.
#[test]
fn a_conference_of_twelve_plays_every_pair() {
    plays_every_pair(12, false);
}

/// Sizes and modes between two and twelve, which show the same law.
mod long {
    use super::plays_every_pair;

    #[test]
    #[ignore = "minutes: scripts/proof.sh long, make proof"]
    fn a_conference_of_six_plays_every_pair_over_one_handle() {
        plays_every_pair(6, false);
    }

    #[test]
    #[ignore = "minutes: scripts/proof.sh long, make proof"]
    fn a_conference_of_six_plays_every_pair_with_a_handle_a_feed() {
        plays_every_pair(6, true);
    }

    #[test]
    #[ignore = "a burst of 144 handles: scripts/proof.sh long, make proof"]
    fn a_conference_of_twelve_plays_every_pair_with_a_handle_a_feed() {
        plays_every_pair(12, true);
    }
}

#[test]
fn a_room_that_is_not_there_is_named() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/99");
    let view = ["view", &url, "-n", "3", "--every", "100ms", "--for", "2s"];
    let ran = Running::start(Some(&namespace), &view).wait().expect_code(3);
    assert_eq!(figure(&ran.summary(), "failures.no_such_room"), 3.0, "{ran}");
    assert!(ran.stdout.contains("No such room"), "{ran}");
}
