//! Lessons on the real Janus VideoRoom: everybody sends, everybody receives everybody, and nothing is left behind.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use throng_observation::MediaKind;
use throng_observation::run::RunData;
use throng_sim::janus::{Janus, ROOM};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::throng::{Running, alone, figure, valid};

pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

fn url() -> String {
    format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}")
}

/// Who sees or hears whom: (receiver, sender, kind) of every track that played.
pub(crate) fn pairs(run: &RunData) -> BTreeSet<(u32, String, MediaKind)> {
    let played = run.tracks.iter().filter(|track| track.counters.frames_decodable > 0);
    played.filter_map(|track| Some((track.participant.0, track.from.clone()?, track.kind))).collect()
}

/// Waits until Janus has no session, handle and media port of ours any more.
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

fn lesson(name: &str, users: u32, more: &[&str]) {
    if !requires_root(name) {
        return;
    }
    let _alone = alone();
    let namespace = Namespace::with_veth("lesson", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let (url, size) = (url(), users.to_string());
    let view = ["view", &url, "-n", &size, "--every", "300ms", "--for", "14s"];
    let (ran, (handles, arrived)) = valid(|| {
        let running = Running::start(Some(&namespace), &[&view[..], more].concat());
        std::thread::sleep(Duration::from_secs(11));
        let seen = (janus.open_ends().unwrap(), janus.packets_received().unwrap());
        (running.wait(), seen)
    });
    let ran = ran.expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), f64::from(users), "{ran}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    // Every pair plays, in sound and picture.
    let expect = users * (users - 1) * 2;
    assert_eq!(pairs(&run).len(), expect as usize, "{:?}", pairs(&run));
    let lost: i64 = run.tracks.iter().map(|track| track.counters.packets_lost).sum();
    assert_eq!(lost, 0, "{ran}");
    // One session each, and the handles that the mode means.
    let per_feed = more.iter().any(|word| word.contains("connection_per_feed"));
    let each = if per_feed { users } else { 2 };
    assert_eq!(handles, (users as usize, (users * each) as usize));
    let pairs = users * (users - 1);
    for kind in ["video", "audio"] {
        for figure_name in ["expected", "playing"] {
            let path = format!("pairs.{kind}.{figure_name}");
            assert_eq!(figure(&summary, &path), f64::from(pairs), "{path}: {ran}");
        }
    }
    // What Janus counts at its end is what was sent until then; when exactly it was asked is not known to the second.
    let sent_until = |second: i64| -> u64 {
        run.sent.iter().filter(|row| row.second <= second).map(|row| row.counters.packets_sent).sum()
    };
    assert!(
        (sent_until(8)..=sent_until(12)).contains(&arrived),
        "{arrived} of {} to {}",
        sent_until(8),
        sent_until(12)
    );
    // What is sent is what is received, as often as there are others.
    let whole = |second: i64| (6..11).contains(&second);
    let sent: u64 =
        run.sent.iter().filter(|row| whole(row.second)).map(|row| row.counters.packets_sent).sum();
    let received: u64 =
        run.series.iter().filter(|row| whole(row.second)).map(|row| row.counters.packets_received).sum();
    let ratio = received as f64 / (sent * u64::from(users - 1)) as f64;
    assert!((0.97..=1.03).contains(&ratio), "sent {sent}, received {received}: {ratio}");
    let delivered = figure(&summary, "pairs.flow.delivered_ratio");
    assert!((0.97..=1.03).contains(&delivered), "{delivered} of what was due: {ran}");
    assert!(is_left_clean(&janus, Duration::from_secs(5)), "{:?}", janus.open_ends());
}

#[test]
fn a_lesson_of_two_plays_every_pair() {
    lesson("a_lesson_of_two_plays_every_pair", 2, &[]);
}

#[test]
fn a_lesson_of_twelve_plays_every_pair() {
    lesson("a_lesson_of_twelve_plays_every_pair", 12, &[]);
}

#[test]
fn a_lesson_of_six_plays_every_pair_over_one_handle() {
    lesson("a_lesson_of_six_plays_every_pair_over_one_handle", 6, &[]);
}

#[test]
fn a_lesson_of_six_plays_every_pair_with_a_handle_a_feed() {
    let more = ["--set", "crowd.connection_per_feed=true"];
    lesson("a_lesson_of_six_plays_every_pair_with_a_handle_a_feed", 6, &more);
}

#[test]
fn a_room_that_is_not_there_is_named() {
    if !requires_root("a_room_that_is_not_there_is_named") {
        return;
    }
    let _alone = alone();
    let namespace = Namespace::with_veth("lesson", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/99");
    let view = ["view", &url, "-n", "3", "--every", "100ms", "--for", "2s"];
    let ran = Running::start(Some(&namespace), &view).wait().expect_code(3);
    assert_eq!(figure(&ran.summary(), "failures.no_such_room"), 3.0, "{ran}");
    assert!(ran.stdout.contains("No such room"), "{ran}");
}
