//! Negotiated media that does not arrive, and media that was not meant to be sent: only the first
//! is bad service.

use std::collections::BTreeSet;

use throng_observation::Clause;
use throng_observation::run::RunData;
use throng_sim::janus::{Janus, ROOM};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::conference::ADDRESS;
use crate::throng::{Ran, Stage, figure, run};

/// Participants with a bad second in the worst second from `second` on: for any reason, and for
/// missing media.
fn worst(run: &RunData, second: i64) -> (u32, u32) {
    let no_media = Clause::ALL.iter().position(|clause| *clause == Clause::NoMedia).unwrap();
    let rows = run.experience.iter().filter(|row| row.second >= second);
    rows.fold((0, 0), |(bad, none), row| (bad.max(row.bad), none.max(row.clauses[no_media])))
}

fn rows(ran: &Ran) -> RunData {
    RunFolder::read(ran.folder()).unwrap()
}

#[test]
fn viewers_that_never_get_the_negotiated_video_are_not_served() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--pictures-max", "3"]);
    let view = ["view", &stage.target(), "-n", "10", "--every", "50ms", "--for", "9s"];
    let ran = run(None, &view).expect_code(1);
    assert!(ran.stdout.starts_with("10 viewers played for"), "{ran}");
    assert!(ran.stdout.contains("; video was never received on 7 of 10 tracks"), "{ran}");
    let summary = ran.summary();
    assert_eq!(figure(&summary, "video.tracks_missing"), 7.0, "{ran}");
    assert_eq!(figure(&summary, "audio.tracks_missing"), 0.0, "{ran}");
    // Three seconds are the time to join; from then on all seven are badly served, for missing
    // media only.
    assert_eq!(worst(&rows(&ran), 5), (7, 7), "{ran}");

    let objectives =
        ["video.loss < 1%", "video.freeze < 1%", "video.freeze p95 < 1%", "video.fps min > 20"];
    let objectives: Vec<&str> = objectives.iter().flat_map(|text| ["--objective", text]).collect();
    let ran = run(None, &[&view[..], &objectives].concat()).expect_code(1);
    let verdicts = ran.summary()["objectives"].clone();
    assert!(
        verdicts.as_array().unwrap().iter().all(|verdict| verdict["met"] == false),
        "{verdicts:#}"
    );
}

#[test]
fn sound_that_stops_for_everybody_is_missing_from_then_on() {
    let stage = Stage::start(None, "127.0.0.1:0", &["--sound-ends-after-s", "4"]);
    let view = ["view", &stage.target(), "-n", "4", "--every", "50ms", "--for", "10s"];
    let ran = run(None, &view).expect_code(1);
    assert!(ran.stdout.contains("; audio was missing"), "{ran}");
    let run = rows(&ran);
    assert_eq!(worst(&run, 6), (4, 4), "{ran}");
    let before = run.experience.iter().filter(|row| row.second < 4);
    assert_eq!(before.map(|row| row.bad).max(), Some(0), "{ran}");
    assert!((figure(&ran.summary(), "video.fps_p50") - 30.0).abs() < 1.5, "{ran}");
}

/// 25 s: 5 s of the idle server, and 20 s in which participants come and go.
#[test]
fn joins_and_leaves_at_a_server_without_a_limit_are_served_well() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let port =
        stage.whep.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let crowd = ["view", &stage.target(), "-n", "30", "--every", "30ms", "--for", "20s"];
    let stay = [
        "--set",
        "crowd.stay={ mean = \"5s\", rejoin = true }",
        "--watch",
        &format!("port={port}"),
    ];
    let ran = run(None, &[&crowd[..], &stay].concat()).expect_code(0);
    let summary = ran.summary();
    assert!(
        figure(&summary, "participants.intended") > 60.0,
        "no participant came and went\n{ran}"
    );
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    let run = rows(&ran);
    assert!(run.experience.iter().map(|row| row.users).sum::<u32>() > 200, "{ran}");
    assert_eq!(worst(&run, 0).1, 0, "{ran}");
    // Other tests may delay pictures for a moment; joins and leaves are in all seconds.
    let bad: BTreeSet<i64> =
        run.experience.iter().filter(|row| row.bad > 0).map(|row| row.second).collect();
    assert!(bad.len() <= 2, "{bad:?}\n{ran}");
    assert!(summary["bottleneck"].is_null(), "{ran}");
}

/// On the real Janus, which does not signal mute to other participants.
/// Half a minute: two runs of 16 s, one after the other.
#[test]
fn muted_silent_and_camera_less_participants_are_not_missing() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("missing", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}");
    let view = ["view", &url, "-n", "3", "--every", "200ms", "--for", "16s"];
    // A silent participant sends a packet each 400 ms; all are mute for five seconds, in video and
    // then in audio.
    let script = r#"crowd.script=[{ at = "5s", mute = "video", for = "5s" }, { at = "8s", mute = "audio" }]"#;
    let ran = run(
        Some(&namespace),
        &[&view[..], &["--set", "conversation.talkspurt=\"1500ms\"", "--set", script]].concat(),
    );
    let ran = ran.expect_code(0);
    // Other tests may delay pictures; what is said to be missing here is media.
    assert_eq!(worst(&rows(&ran), 0).1, 0, "{ran}");
    assert_eq!(figure(&ran.summary(), "conference.video.playing"), 6.0, "{ran}");

    let sound = ["--set", "crowd.publish={ audio = true }"];
    let ran = run(Some(&namespace), &[&view[..], &sound].concat()).expect_code(0);
    assert_eq!(worst(&rows(&ran), 0).1, 0, "{ran}");
    assert_eq!(figure(&ran.summary(), "video.tracks"), 0.0, "{ran}");
    assert_eq!(figure(&ran.summary(), "conference.audio.playing"), 6.0, "{ran}");
}
