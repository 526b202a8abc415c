//! Meetings on the real LiveKit server: every pair plays, counters of both ends agree, layers
//! switch on request.

pub(crate) mod browser;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};
use throng_observation::run::RunData;
use throng_observation::{Layer, MediaKind};
use throng_sim::livekit::{KEY, LiveKit, PORT, SECRET};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::throng::{Ran, Running, figure, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);

pub(crate) fn can_run() -> bool {
    requires_root() && LiveKit::is_installed()
}

/// The credentials of a run's participants.
pub(crate) fn access() -> [String; 4] {
    [
        "--set".into(),
        format!("target.api_key={KEY}"),
        "--set".into(),
        format!("target.api_secret={SECRET}"),
    ]
}

fn arguments<'a>(url: &'a str, access: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["view", url];
    arguments.extend(access.iter().map(String::as_str));
    arguments.extend(more);
    arguments
}

fn url(room: &str) -> String {
    format!("livekit+ws://{ADDRESS}:{PORT}/{room}")
}

/// The received media: (receiver, sender, kind) of every track that played.
fn pairs(run: &RunData) -> BTreeSet<(u32, String, MediaKind)> {
    let played = run.tracks.iter().filter(|track| track.counters.frames_decodable > 0);
    played
        .filter_map(|track| Some((track.participant.0, track.from.clone()?, track.kind)))
        .collect()
}

/// Identity, tracks and state of the participants that the server knows.
fn known(server: &LiveKit<'_>, room: &str) -> BTreeSet<(String, usize, String)> {
    let of = |person: &Value| {
        let tracks = person["tracks"].as_array().map_or(0, Vec::len);
        let text = |name: &str| person[name].as_str().unwrap_or_default().to_owned();
        (without_mark(&text("identity")).to_owned(), tracks, text("state"))
    };
    server.participants(room).unwrap().iter().map(of).collect()
}

/// The name within the run of a participant in a room.
fn without_mark(identity: &str) -> &str {
    identity.rsplit_once('-').map_or(identity, |(name, _)| name)
}

#[test]
fn a_meeting_of_six_plays_every_pair_and_the_server_counts_the_same() {
    const USERS: u32 = 6;
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("livekit", ADDRESS).unwrap();
    let server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let packets = |direction: &str| server.metric("livekit_packet_total", direction).unwrap();
    let (url, access) = (url("meeting"), access());
    let view = arguments(&url, &access, &["-n", "6", "--every", "300ms", "--for", "14s"]);
    let mut before = (0.0, 0.0);
    let (ran, seen) = valid(|| {
        before = (packets("incoming"), packets("outgoing"));
        let mut running = Running::start(Some(&namespace), &view);
        running.when_playing(USERS);
        let seen = known(&server, "meeting");
        (running.wait(), seen)
    });
    let ran = ran.expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), f64::from(USERS), "{ran}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    assert_eq!(pairs(&run).len(), (USERS * (USERS - 1) * 2) as usize, "{:?}", pairs(&run));
    let lost: i64 = run.tracks.iter().map(|track| track.counters.packets_lost).sum();
    assert_eq!(lost, 0, "{ran}");
    // The server's own API lists the same participants, each with two tracks.
    let expect =
        (0..USERS).map(|number| (format!("throng-{number}"), 2, "ACTIVE".to_owned())).collect();
    assert_eq!(seen, expect);
    // The server's counters: it received what the run sent, and sent what the run received.
    let sent: u64 = run.sent.iter().map(|row| row.counters.packets_sent).sum();
    let received: u64 = run.tracks.iter().map(|track| track.counters.packets_original).sum();
    let until = std::time::Instant::now() + Duration::from_secs(15);
    let counted = loop {
        // The server aggregates counters when a track ends, and every few seconds before.
        let counted = (packets("incoming") - before.0, packets("outgoing") - before.1);
        let near = |ours: u64, theirs: f64| (theirs / ours as f64 - 1.0).abs() < 0.03;
        if near(sent, counted.0) && near(received, counted.1) || std::time::Instant::now() > until {
            break counted;
        }
        std::thread::sleep(Duration::from_millis(300));
    };
    for (what, ours, theirs) in [("sent", sent, counted.0), ("received", received, counted.1)] {
        let ratio = theirs / ours as f64;
        assert!(
            (0.97..=1.03).contains(&ratio),
            "{what}: ours {ours}, the server's {theirs}\n{ran}"
        );
    }
    // All participants have signed off: the room is empty.
    assert_eq!(known(&server, "meeting"), BTreeSet::new());
}

#[test]
fn two_runs_in_one_room_know_their_own_people() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("livekit", ADDRESS).unwrap();
    let server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let (url, access) = (url("shared"), access());
    let view = arguments(&url, &access, &["-n", "2", "--every", "200ms", "--for", "9s"]);
    let (runs, seen) = valid(|| {
        let mut running = [0, 1].map(|_| Running::start(Some(&namespace), &view));
        running.iter_mut().for_each(|running| running.when_playing(2));
        let seen = server.participants("shared").unwrap().len();
        // The less valid of the two runs is judged.
        let mut ran = running.map(Running::wait);
        ran.sort_by_key(|ran| ran.code != Some(4));
        let [first, second] = ran;
        (first, (second, seen))
    });
    let (second, seen) = seen;
    assert_eq!(seen, 4, "a participant was removed\n{runs}");
    for ran in [runs, second] {
        let ran = ran.expect_code(0);
        // Each participant receives four: one of its own plan, two of the other, and the browser.
        let run = RunFolder::read(ran.folder()).unwrap();
        let own = |from: &str| throng_observation::run::ParticipantId::from_name(from).is_some();
        let from = run.tracks.iter().filter_map(|track| track.from.as_deref());
        let (ours, theirs): (Vec<_>, Vec<_>) = from.partition(|from| own(from));
        assert_eq!((ours.len(), theirs.len()), (4, 8), "{ours:?} {theirs:?}\n{ran}");
        assert_eq!(figure(&ran.summary(), "conference.video.received"), 2.0, "{ran}");
    }
}

#[test]
fn meetings_side_by_side_have_rooms_of_their_own() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("livekit", ADDRESS).unwrap();
    let server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let (url, access) = (url("class"), access());
    let rooms = ["-n", "2", "--every", "200ms", "--for", "9s", "--set", "target.rooms=2"];
    let view = arguments(&url, &access, &rooms);
    let (ran, seen) = valid(|| {
        let mut running = Running::start(Some(&namespace), &view);
        running.when_playing(4);
        let seen =
            ["class", "class-2"].map(|room| known(&server, room).into_iter().map(|(who, ..)| who));
        (running.wait(), seen.map(Iterator::collect::<Vec<String>>))
    });
    let ran = ran.expect_code(0);
    assert_eq!(seen, [["throng-0", "throng-1"], ["throng-2", "throng-3"]], "{ran}");
    for what in ["expected", "playing", "received"] {
        assert_eq!(
            figure(&ran.summary(), &format!("conference.video.{what}")),
            4.0,
            "{what}: {ran}"
        );
    }
}

#[test]
fn layers_of_a_simulcast_change_when_asked_for() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("livekit", ADDRESS).unwrap();
    let _server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let (url, access) = (url("layers"), access());
    let publish = r#"crowd.publish={simulcast=["144p","240p","360p"]}"#;
    let layers =
        r#"crowd.layers=[{layer="low"},{after="6s",layer="high"},{after="10s",layer="low"}]"#;
    let more = ["-n", "3", "--every", "300ms", "--for", "14s", "--set", publish, "--set", layers];
    let view = arguments(&url, &access, &more);
    let (ran, ()) = valid(|| (Running::start(Some(&namespace), &view).wait(), ()));
    let ran = ran.expect_code(0);
    let run = RunFolder::read(ran.folder()).unwrap();
    // Each of three participants receives two others, and requests a layer twice.
    let of =
        |layer| run.layer_switches.iter().filter(move |row| row.layer == layer).collect::<Vec<_>>();
    let (up, down) = (of(Layer::High), of(Layer::Low));
    assert_eq!((up.len(), down.len()), (6, 6), "{:?}", run.layer_switches);
    for (rows, size) in [(up, (640, 360)), (down, (256, 144))] {
        for row in rows {
            assert_eq!((row.width, row.height), size, "{row:?}");
            let took_ms = row.shown_at.map(|at| (at.0 - row.requested_at.0) / 1_000);
            assert!(took_ms.is_some_and(|ms| (0..3_500).contains(&ms)), "{row:?}");
        }
    }
    // All three sizes are sent all the time: three video streams each, and one audio stream.
    let tracks = |kind| run.sent.iter().filter(|row| row.kind == kind).map(|row| row.tracks).max();
    assert_eq!((tracks(MediaKind::Video), tracks(MediaKind::Audio)), (Some(9), Some(3)));
}

/// Three participants that the server refuses.
fn refused(url: &str, access: &[String], namespace: &Namespace) -> Ran {
    let view = arguments(url, access, &["-n", "3", "--every", "100ms", "--for", "2s"]);
    Running::start(Some(namespace), &view).wait().expect_code(3)
}

#[test]
fn a_refused_token_and_a_removed_participant_are_named() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("livekit", ADDRESS).unwrap();
    let server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let url = url("door");
    let wrong =
        access().map(|word| word.replace(SECRET, "another-secret-of-thirty-two-characters"));
    let ran = refused(&url, &wrong, &namespace);
    assert_eq!(figure(&ran.summary(), "failures.http_401"), 3.0, "{ran}");
    assert!(ran.stdout.contains("LiveKit: it refused the token"), "{ran}");
    // One participant is removed in mid-run; the rest continue.
    let access = access();
    let view = arguments(&url, &access, &["-n", "3", "--every", "100ms", "--for", "8s"]);
    let mut running = Running::start(Some(&namespace), &view);
    running.when_playing(3);
    let all = server.participants("door").unwrap();
    let mut identities = all.iter().filter_map(|person| person["identity"].as_str());
    let removed = identities.find(|identity| without_mark(identity) == "throng-1").unwrap();
    server.ask("RemoveParticipant", &json!({ "room": "door", "identity": removed })).unwrap();
    let ran = running.wait();
    let summary = ran.summary();
    assert_eq!(figure(&summary, "failures.kicked"), 1.0, "{ran}");
    assert!(ran.stdout.contains("this participant was removed from the room"), "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    let last = run.crowd.iter().map(|row| row.second).max().unwrap_or(0);
    let playing: u32 =
        run.crowd.iter().filter(|row| row.second == last - 2).map(|row| row.playing).sum();
    assert_eq!(playing, 2, "{ran}");
}
