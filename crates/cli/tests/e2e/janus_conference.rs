//! Events in a conference on the real Janus: recordings as sources, subscriptions to speakers,
//! rooms that are created or refuse joins, participants that rejoin at once or vanish.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_observation::MediaKind;
use throng_sim::chromium::Chromium;
use throng_sim::janus::{
    ADMIN_KEY, H264_ROOM, Janus, RECORDED_ROOM, ROOM, ROOM_WITH_PIN, SMALL_ROOM,
};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::conference::{ADDRESS, is_left_clean, pairs};
use crate::throng::{Ran, Running, figure, plain, run, valid};

fn url(room: u64) -> String {
    format!("janus+ws://{ADDRESS}:8188/videoroom/{room}")
}

/// A conference with these keys over the defaults.
fn held(namespace: &Namespace, room: u64, size: u32, seconds: u32, sets: &[&str]) -> Ran {
    let (url, size, length) = (url(room), size.to_string(), format!("{seconds}s"));
    let mut args = vec!["view", &url, "-n", &size, "--every", "200ms", "--for", &length, "--csv"];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    valid(|| (Running::start(Some(namespace), &args).wait(), ())).0
}

fn rooms(janus: &Janus<'_>) -> BTreeSet<u64> {
    janus.rooms().unwrap().into_iter().collect()
}

/// What Chromium shows at a moment: the figures of each video that it receives, as in
/// `window.pictures` of janus_attend.js, and the number on the test card.
struct Look {
    figures: Vec<[f64; 6]>,
    numbers: Vec<Option<u64>>,
}

impl Look {
    fn take(browser: &mut Chromium) -> Self {
        let figures = browser.evaluate("window.pictures()").unwrap();
        let row = |row: &Value| std::array::from_fn(|at| row[at].as_f64().unwrap_or(0.0));
        let seen = browser.evaluate("window.seen()").unwrap();
        Self {
            figures: figures.as_array().into_iter().flatten().map(row).collect(),
            numbers: seen.as_array().into_iter().flatten().map(|seen| seen[1].as_u64()).collect(),
        }
    }

    /// Waits until `people` videos advance; otherwise returns what is wrong.
    fn when_all_play(browser: &mut Chromium, people: usize) -> Result<(), String> {
        let given_up_at = Instant::now() + Duration::from_secs(15);
        loop {
            let look = Self::take(browser);
            if look.figures.iter().filter(|[_, _, _, frames, _, _]| *frames > 0.0).count() == people
            {
                return Ok(());
            }
            if Instant::now() > given_up_at {
                let reported = browser.evaluate("[window.member.at, window.pc?.iceConnectionState, window.pc?.connectionState, ...window.member.errors]").unwrap();
                return Err(format!(
                    "only {:?} of {people} pictures play in Chromium: {reported}",
                    look.figures
                ));
            }
            std::thread::sleep(Duration::from_millis(250));
        }
    }
}

/// Every second has its frames, no decoder ever failed, and the numbers on the test cards advance.
fn plays_without_a_gap(looks: &[Look], more: &str) {
    let (first, last) = (looks.first().unwrap(), looks.last().unwrap());
    assert_eq!((first.figures.len(), last.figures.len()), (3, 3), "{more}");
    for (at, (begin, end)) in first.figures.iter().zip(&last.figures).enumerate() {
        let [seconds, _, lost, frames, asked, frozen]: [f64; 6] =
            std::array::from_fn(|what| end[what] - begin[what]);
        assert!(seconds > 15.0, "{seconds} s are no three turns");
        assert_eq!(
            (lost, asked),
            (0.0, 0.0),
            "packets lost and key frames asked for by Chromium: {more}"
        );
        assert!((frames / seconds - 20.0).abs() < 1.0, "{} fps: {more}", frames / seconds);
        assert!(frozen < 0.03 * seconds, "{frozen} s frozen of {seconds}: {more}");
        // No two seconds lack more than a fifth of their frames, as a turn that does not join
        // would.
        for pair in looks.windows(5) {
            let of = |look: &Look| look.figures.get(at).copied().unwrap_or_default();
            let (a, b) = (of(&pair[0]), of(&pair[4]));
            assert!((b[3] - a[3]) / (b[0] - a[0]) > 16.0, "{a:?} {b:?}: {more}");
        }
        let numbers: BTreeSet<u64> =
            looks.iter().filter_map(|look| *look.numbers.get(at)?).collect();
        assert!(numbers.len() >= 8, "{numbers:?}: {more}");
    }
}

/// 35 s: a recording of 5 s, and a run of 28 s, in which it is seen for three turns.
#[test]
fn what_janus_recorded_plays_back_in_a_loop_without_a_gap() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    held(&namespace, RECORDED_ROOM, 1, 5, &[]);
    let recordings = janus.recordings().unwrap();
    let of = |kind: &str| {
        let name =
            |path: &&std::path::PathBuf| path.to_string_lossy().contains(&format!("-{kind}-"));
        recordings
            .iter()
            .find(name)
            .unwrap_or_else(|| panic!("no {kind} in {recordings:?}"))
            .display()
            .to_string()
    };
    let (video, audio) = (of("video"), of("audio"));
    let publish = format!("crowd.publish={{ video = \"{video}\", audio = \"{audio}\" }}");
    let mut browser = Chromium::start(&namespace).unwrap();
    let conference = url(ROOM);
    let args = [
        "view",
        &conference,
        "-n",
        "3",
        "--every",
        "200ms",
        "--for",
        "28s",
        "--csv",
        "--set",
        &publish,
    ];
    let (ran, looks) = valid(|| {
        browser.load("about:blank").unwrap();
        browser.evaluate(include_str!("livekit/member.js")).unwrap();
        browser.evaluate(include_str!("janus_attend.js")).unwrap();
        let running = Running::start(Some(&namespace), &args);
        browser.evaluate(&format!("attend('ws://{ADDRESS}:8188', {ROOM}, 3)")).unwrap();
        if let Err(error) = Look::when_all_play(&mut browser, 3) {
            running.signal("INT");
            panic!("{error}\n{}", running.wait());
        }
        std::thread::sleep(Duration::from_secs(1));
        let mut looks = vec![Look::take(&mut browser)];
        // Three turns of a loop of just over five seconds.
        for _ in 0..32 {
            std::thread::sleep(Duration::from_millis(500));
            looks.push(Look::take(&mut browser));
        }
        (running.wait(), looks)
    });
    let errors = browser.evaluate("window.member.errors").unwrap();
    let ran = ran.expect_code(0);
    plays_without_a_gap(&looks, &format!("{errors} {ran}"));
    let summary = ran.summary();
    assert_eq!(figure(&summary, "conference.video.playing"), 6.0, "{ran}");
    assert_eq!(figure(&summary, "conference.audio.playing"), 6.0, "{ran}");
    // Every turn of the loop joins the previous one: nothing is lost, discarded or late.
    assert!(figure(&summary, "video.freeze_ratio") < 0.02, "{ran}");
    assert_eq!(
        figure(&summary, "video.packets_lost") + figure(&summary, "audio.packets_lost"),
        0.0,
        "{ran}"
    );
    assert_eq!(figure(&summary, "video.frames_dropped"), 0.0, "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    let frames: u64 = run
        .sent
        .iter()
        .filter(|row| row.kind == MediaKind::Video)
        .map(|row| row.counters.frames_sent)
        .sum();
    // The recording has less than five seconds of 20 frames/s: three loops of three senders are 900
    // frames.
    assert!(frames >= 900, "{frames} frames\n{ran}");
    let table = std::fs::read_to_string(ran.folder().join("conference.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 6 * 2, "{table}");

    // Unplayable files are reported before any join, with the file and the remedy.
    let reported =
        plain(&["view", &url(ROOM), "--set", "crowd.publish={ video = \"nowhere.mjr\" }"]);
    let said = String::from_utf8_lossy(&reported.stderr).into_owned();
    for words in [
        "publish.video of viewers cannot be played: nowhere.mjr",
        "paths are relative to the folder",
    ] {
        assert!(reported.status.code() == Some(2) && said.contains(words), "{words}: {said}");
    }
}

#[test]
fn video_of_the_last_speakers_and_audio_of_all_is_received() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let sets = [
        "conversation.talkspurt=\"1500ms\"",
        "crowd.subscribe={ video = \"last_speakers(2)\", audio = \"all\" }",
    ];
    let ran = held(&namespace, ROOM, 6, 18, &sets).expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "conference.audio.playing"), 30.0, "{ran}");
    let lost = figure(&summary, "video.packets_lost") + figure(&summary, "audio.packets_lost");
    assert_eq!(lost, 0.0, "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    // Two videos at a time, and more than two over the whole conference: subscriptions follow the
    // speakers.
    let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
    for (to, _, kind) in pairs(&run) {
        *seen.entry(to).or_default() += u32::from(kind == MediaKind::Video);
    }
    assert!(seen.len() == 6 && seen.values().all(|count| *count >= 3), "{seen:?}\n{ran}");
    let full = run
        .series
        .iter()
        .filter(|row| (5..16).contains(&row.second) && row.kind == Some(MediaKind::Video));
    let rates: Vec<f64> = full.map(|row| row.counters.active_us as f64 / 1e6).collect();
    let at_a_time = rates.iter().sum::<f64>() / rates.len().max(1) as f64 / 6.0;
    assert!((1.6..=2.1).contains(&at_a_time), "{at_a_time} pictures at a time\n{ran}");
    // A silent participant sends a packet each 400 ms, not fifty a second.
    let sound: u64 = run
        .sent
        .iter()
        .filter(|row| row.kind == MediaKind::Audio)
        .map(|row| row.counters.packets_sent)
        .sum();
    assert!((300..2_500).contains(&sound), "{sound} packets of sound\n{ran}");
    assert!(is_left_clean(&janus, Duration::from_secs(5)), "{:?}", janus.open_ends());
}

/// 20 s: one run, whose script lasts until 11 s and whose participants rejoin at 13 s.
#[test]
fn a_room_is_made_for_the_run_and_everybody_comes_back_at_once() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let before = rooms(&janus);
    let key = format!("room.admin_key=\"{ADMIN_KEY}\"");
    let script = "crowd.script=[{ at = \"5s\", mute = \"video\", for = \"3s\" }, { at = \"5s\", screen_share = \"360p\", for = \"6s\" }]";
    let ran = held(&namespace, 77, 4, 20, &[&key, script, "crowd.reconnect={ at = \"13s\" }"])
        .expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.intended"), 8.0, "{ran}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    // Twelve streams before, and twelve after.
    assert_eq!(
        (
            figure(&summary, "conference.video.playing"),
            figure(&summary, "conference.video.expected")
        ),
        (24.0, 24.0),
        "{ran}"
    );
    let run = RunFolder::read(ran.folder()).unwrap();
    let sent = |second: i64| -> u64 {
        let rows =
            run.sent.iter().filter(|row| row.second == second && row.kind == MediaKind::Video);
        rows.map(|row| row.counters.payload_bytes).sum()
    };
    // Mute, then a screen with four times the bit rate of the camera, then the camera again. A
    // packet may count for a second up to half a second away: these seconds lie in one part of the
    // script even so.
    assert!(
        sent(6) * 20 < sent(3) && sent(9) > 2 * sent(3) && sent(12) < 2 * sent(3),
        "{:?}",
        (0..14).map(sent).collect::<Vec<_>>()
    );
    assert_eq!(rooms(&janus), before, "the room that the run made is gone");
    assert!(is_left_clean(&janus, Duration::from_secs(5)), "{:?}", janus.open_ends());
}

#[test]
fn conferences_side_by_side_have_rooms_of_their_own() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let before = rooms(&janus);
    let (url, key) = (url(80), format!("room.admin_key=\"{ADMIN_KEY}\""));
    let conferences = ["view", &url, "-n", "3", "--every", "200ms", "--for", "14s"];
    let sets = ["--set", &key, "--set", "target.rooms=3"];
    let (ran, made) = valid(|| {
        let mut running = Running::start(Some(&namespace), &[&conferences[..], &sets].concat());
        running.when_playing(9);
        let made: BTreeSet<u64> = rooms(&janus).difference(&before).copied().collect();
        (running.wait(), made)
    });
    let ran = ran.expect_code(0);
    assert_eq!(made, BTreeSet::from([80, 81, 82]), "{ran}");
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), 9.0, "{ran}");
    for kind in ["video", "audio"] {
        for what in ["expected", "playing", "received"] {
            assert_eq!(
                figure(&summary, &format!("conference.{kind}.{what}")),
                18.0,
                "{kind} {what}: {ran}"
            );
        }
    }
    let delivered = figure(&summary, "conference.flow.delivered_ratio");
    assert!((0.97..=1.03).contains(&delivered), "{delivered} of the expected rate: {ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    assert_eq!(run.info.cohorts, ["viewers, room 1", "viewers, room 2", "viewers, room 3"]);
    assert_eq!(rooms(&janus), before, "the rooms that the run made are gone");
    assert!(is_left_clean(&janus, Duration::from_secs(5)), "{:?}", janus.open_ends());
}

/// 25 s: a run of 24 s, in which each participant stays for 8 s.
#[test]
fn a_replacement_is_received_by_the_remaining_participants() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    // A participant leaves and another joins every two seconds; Janus reuses media sections of
    // those that left.
    let url = url(ROOM);
    let exactly = ["--every", "2s", "--set", "crowd.arrival.jitter=false", "--for", "24s"];
    let stay = ["--set", "crowd.stay={ exactly = \"8s\", rejoin = true }"];
    let ran = run(Some(&namespace), &[&["view", &url, "-n", "4"][..], &exactly, &stay].concat());
    let ran = ran.expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert!(figure(&summary, "participants.intended") >= 10.0, "{ran}");
    for kind in ["video", "audio"] {
        let of = |what: &str| figure(&summary, &format!("conference.{kind}.{what}"));
        assert!(of("expected") >= 12.0, "{ran}");
        assert_eq!(of("playing"), of("expected"), "{ran}");
    }
    let run = RunFolder::read(ran.folder()).unwrap();
    // Participants that were there from the start also receive those that joined just now.
    let met = pairs(&run).into_iter().filter(|(_, _, kind)| *kind == MediaKind::Video).count();
    assert!(met >= 50, "{met} pairs\n{ran}");
    // No participant keeps requesting key frames of a video that no participant sends.
    let asked: u64 = run.sent.iter().map(|row| row.counters.pli_received).sum();
    assert!(asked < 4 * met as u64, "{asked} key frames asked for by {met} pairs\n{ran}");
}

#[test]
fn each_way_in_which_a_room_refuses_has_a_name() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    let failures = |ran: &Ran, key: &str| ran.summary()["failures"][key].as_u64().unwrap_or(0);
    let no_pin = held(&namespace, ROOM_WITH_PIN, 2, 2, &[]);
    assert_eq!(failures(&no_pin, "unauthorized"), 2, "{no_pin}");
    let wrong_key = held(&namespace, 78, 2, 2, &["room.admin_key=\"wrong\""]);
    assert_eq!(failures(&wrong_key, "unauthorized"), 2, "{wrong_key}");
    // The first participant takes the only place; the conference continues without the others,
    // which are refused.
    let full = held(&namespace, SMALL_ROOM, 3, 3, &[]);
    assert_eq!(
        (failures(&full, "room_full"), figure(&full.summary(), "participants.connected")),
        (2, 1.0),
        "{full}"
    );
    let codec =
        held(&namespace, H264_ROOM, 2, 2, &["crowd.publish={ video = \"240p\", audio = false }"]);
    assert_eq!(failures(&codec, "codec_refused"), 2, "{codec}");
    // Two of three continue when one is removed.
    let url = url(ROOM);
    let (kicked, ()) = valid(|| {
        let args = ["view", &url, "-n", "3", "--every", "100ms", "--for", "7s"];
        let mut running = Running::start(Some(&namespace), &args);
        running.when_playing(3);
        janus.kick("throng-1").unwrap();
        (running.wait(), ())
    });
    let failed = figure(&kicked.summary(), "participants.failed");
    assert_eq!((failures(&kicked, "kicked"), failed), (1, 1.0), "{kicked}");
}

/// 25 s: a run of 20 s, in which participants join 2 s apart, after one that ends early.
#[test]
fn a_room_that_ends_and_a_server_that_dies_and_comes_back_are_named_and_the_rest_carries_on() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let mut janus = Janus::start(&namespace, ADDRESS).unwrap();
    // The room is destroyed with all participants in it.
    let room = url(SMALL_ROOM);
    // Janus 1.1.2 sometimes dies of this with a segmentation fault; then the test repeats it.
    let destroyed = (0..3).find_map(|_| {
        let mut running =
            Running::start(Some(&namespace), &["view", &room, "-n", "1", "--for", "20s"]);
        running.when_connected(1);
        let is_destroyed = janus.destroy_room(SMALL_ROOM).is_ok();
        if !is_destroyed {
            running.signal("INT");
            janus.restart().unwrap();
        }
        let ran = running.wait();
        is_destroyed.then_some(ran)
    });
    let ran = destroyed.expect("Janus survives one of three times");
    assert_eq!(figure(&ran.summary(), "failures.room_ended"), 1.0, "{ran}");

    // Two participants are in when the server dies; the others join after its restart, in a new
    // conference.
    let conference = url(ROOM);
    let args = ["view", &conference, "-n", "5", "--every", "2s", "--for", "20s"];
    let (ran, ()) = valid(|| {
        let mut running = Running::start(Some(&namespace), &args);
        running.when_connected(2);
        janus.restart().unwrap();
        (running.wait(), ())
    });
    let summary = ran.summary();
    let named = |key: &str| summary["failures"][key].as_u64().unwrap_or(0);
    let died = named("signalling_closed") + named("tcp");
    let failed = figure(&summary, "participants.failed");
    assert!((1..=3).contains(&died) && died as f64 == failed, "{ran}");
    let left = 5.0 - failed;
    for kind in ["video", "audio"] {
        let of = |what: &str| figure(&summary, &format!("conference.{kind}.{what}"));
        assert_eq!(
            (of("expected"), of("playing")),
            (left * (left - 1.0), left * (left - 1.0)),
            "{ran}"
        );
    }
}

/// A conference of four that a signal ends in mid-run; checks that Janus keeps nothing of it after
/// five seconds.
fn is_ended_by(janus: &Janus<'_>, namespace: &Namespace, signal: &str, per_feed: bool) {
    let (url, set) = (url(ROOM), format!("crowd.connection_per_feed={per_feed}"));
    let view = ["view", &url, "-n", "4", "--every", "100ms", "--for", "60s", "--set", &set];
    let running = Running::start(Some(namespace), &view);
    let handles = if per_feed { 16 } else { 8 };
    let given_up_at = Instant::now() + Duration::from_secs(15);
    while janus.open_ends().unwrap() != (4, handles) || janus.media_ports().unwrap() == 0 {
        assert!(Instant::now() < given_up_at, "{:?}", janus.open_ends());
        std::thread::sleep(Duration::from_millis(200));
    }
    std::thread::sleep(Duration::from_secs(1));
    running.signal(signal);
    let ran = running.wait();
    let is_clean = is_left_clean(janus, Duration::from_secs(5));
    assert!(is_clean, "{signal}, per feed {per_feed}: {:?} {ran}", janus.open_ends());
    if signal != "KILL" {
        assert_eq!(ran.code, Some(130), "{ran}");
        assert_eq!(ran.summary()["ending"], "interrupted", "{ran}");
    }
}

#[test]
fn nothing_is_left_of_a_conference_that_was_killed_or_interrupted() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("conference", ADDRESS).unwrap();
    let janus = Janus::start(&namespace, ADDRESS).unwrap();
    for (signal, per_feed) in
        [("KILL", false), ("KILL", true), ("INT", false), ("INT", true), ("TERM", false)]
    {
        is_ended_by(&janus, &namespace, signal, per_feed);
    }
}
