//! Laws of reading a conference: media sent and received, talkspurts, timed actions.

use std::time::Duration;

use throng_observation::{Codec, MediaKind};

use crate::{Action, Role, Scenario, ScenarioError, ScriptStep, SubscribePolicy, Subscription};

const LESSON: &str =
    "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1234\"\n[run]\nduration = \"90s\"\n";

fn read(crowd: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(&format!("{LESSON}{crowd}"))
}

fn role(keys: &str) -> Role {
    let scenario = read(&format!("[conversation]\n[crowd]\nsize = 5\n{keys}\n"))
        .unwrap_or_else(|e| panic!("{keys}: {e}"));
    assert_eq!(
        Scenario::parse(&scenario.to_toml()).unwrap_or_else(|e| panic!("{e}")),
        scenario,
        "{keys}"
    );
    scenario.crowd[0].role.clone().unwrap_or_default()
}

#[test]
fn a_picture_is_a_size_of_the_test_card_or_a_file() {
    for (keys, card, file, codec) in [
        ("publish = { video = \"360p\", codec = \"h264\" }", Some("360p"), None, Codec::H264),
        ("publish = { video = \"lesson.mjr\" }", None, Some("lesson.mjr"), Codec::Vp8),
        (
            "publish = { video = \"a/b.H265\", codec = \"h265\", fps = 29.97 }",
            None,
            Some("a/b.H265"),
            Codec::H265,
        ),
        (
            "publish = { video = \"call.pcap\", codec = \"vp9\", ssrc = 77 }",
            None,
            Some("call.pcap"),
            Codec::Vp9,
        ),
        ("publish = { audio = \"talk.ogg\" }", None, None, Codec::Vp8),
    ] {
        let publish = role(keys).publish.unwrap();
        let path = publish.video_file.as_ref().map(|file| file.path.as_str());
        assert_eq!((publish.video.as_deref(), path, publish.codec), (card, file, codec), "{keys}");
        assert!(publish.audio);
    }
    let publish = role("publish = { video = \"a.h264\", fps = 29.97, audio = \"talk.ogg\" }")
        .publish
        .unwrap();
    assert_eq!(publish.video_file.as_ref().and_then(|file| file.fps_milli), Some(29_970));
    assert_eq!(
        publish.files().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["a.h264", "talk.ogg"]
    );
}

#[test]
fn received_participants_are_reported_for_video_and_audio_separately() {
    use SubscribePolicy::{All, LastSpeakers};
    for (keys, video, audio) in [
        ("subscribe = \"all\"", All, All),
        ("subscribe = \"last_speakers(3)\"", LastSpeakers(3), LastSpeakers(3)),
        ("subscribe = { video = \"last_speakers( 10 )\" }", LastSpeakers(10), All),
        (
            "subscribe = { video = \"last_speakers(10)\", audio = \"none\" }",
            LastSpeakers(10),
            SubscribePolicy::None,
        ),
    ] {
        assert_eq!(role(keys).subscribe, Subscription { video, audio }, "{keys}");
    }
    assert_eq!(
        [All, SubscribePolicy::None, LastSpeakers(3)].map(|policy| policy.count_of(9)),
        [9, 0, 3]
    );
    assert_eq!(LastSpeakers(30).count_of(9), 9);
}

#[test]
fn a_script_is_read_in_its_order() {
    let s = Duration::from_secs;
    let role = role(
        "speaking_weight = 5\nscript = [{ at = \"20s\", mute = \"video\", for = \"5s\" }, { at = \"1m\", screen_share = \"720p\" }]",
    );
    let expect = [
        ScriptStep { at: s(20), lasts: Some(s(5)), action: Action::Mute(MediaKind::Video) },
        ScriptStep { at: s(60), lasts: None, action: Action::ScreenShare("720p".into()) },
    ];
    assert_eq!((role.speaking_weight, role.script.as_slice()), (5, &expect[..]));
}

#[test]
fn everybody_comes_back_after_a_reconnect() {
    let scenario = read(
        "[crowd]\nsize = 10\narrival = { every = \"1s\" }\nreconnect = { at = \"30s\", within = \"2s\" }\n",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Scenario::parse(&scenario.to_toml()).ok().as_ref(), Some(&scenario));
    let plan = scenario.plan();
    let again: Vec<_> =
        plan.joins.iter().filter(|join| join.at >= Duration::from_secs(30)).collect();
    assert_eq!((plan.joins.len(), again.len(), plan.expected.users), (20, 10, 10));
    assert!(again.iter().all(|join| join.at < Duration::from_secs(32) && join.leave_at.is_none()));
    assert_eq!(plan.expected.joins_per_s, 5);
    assert!(
        plan.joins[..10]
            .iter()
            .all(|join| join.leave_at == Some(Duration::from_secs(30)) && join.others_follow)
    );
}

#[test]
fn a_leave_precedes_joins_in_progress_and_longer_stays() {
    let followed = |crowd: &str| -> Vec<bool> {
        let plan = read(crowd).unwrap_or_else(|error| panic!("{error}")).plan();
        plan.joins
            .iter()
            .filter(|join| join.leave_at.is_some())
            .map(|join| join.others_follow)
            .collect()
    };
    // They join at 0, 20 and 40 s. The last to join leaves last: 5 s after a join others still
    // follow, 15 s after it they do not.
    let crowd = |stay: &str| {
        format!(
            "[crowd]\nsize = 3\narrival = {{ every = \"20s\", jitter = false }}\nstay = \"{stay}\"\n"
        )
    };
    assert_eq!(followed(&crowd("10s")), [true, true, false]);
    assert_eq!(followed(&crowd("45s")), [true, false, false]);
    assert_eq!(followed(&crowd("35s")), [true, false, false]);
    assert_eq!(followed(&crowd("29s")), [true, true, false]);
    // Two rooms, each with a first and a last participant: those of the other room do not follow.
    let rooms =
        "[crowd]\nsize = 2\narrival = { every = \"20s\", jitter = false }\nstay = \"10s\"\n";
    let two = format!("{}{rooms}", LESSON.replace("[run]", "rooms = 2\n[run]"));
    let plan = Scenario::parse(&two).unwrap_or_else(|error| panic!("{error}")).plan();
    assert!(plan.joins.iter().map(|join| join.others_follow).eq([true, false, true, false]));
}

#[test]
fn a_lesson_comes_to_n_streams_in_and_n_times_all_others_out() {
    let load = |crowd: &str| {
        let plan = read(crowd).unwrap_or_else(|error| panic!("{error}")).plan();
        (
            plan.expected.server_in_mbit_per_s,
            plan.expected.server_out_mbit_per_s,
            plan.expected.assumed,
        )
    };
    let (once, _, _) = load("[crowd]\nsize = 1\n");
    assert!((0.3..0.36).contains(&once), "{once}");
    let (into, out, assumed) = load("[crowd]\nsize = 100\n");
    assert!(
        (into / once - 100.0).abs() < 1e-6 && (out / once - 9_900.0).abs() < 1e-6,
        "{into} {out}"
    );
    assert!(!assumed);
    // Ten videos instead of 99 leave the audio and a tenth of the rest.
    let (_, fewer, _) = load(
        "[conversation]\n[crowd]\nsize = 100\nsubscribe = { video = \"last_speakers(10)\" }\n",
    );
    assert!((0.2..0.3).contains(&(fewer / out)), "{}", fewer / out);
    let watchers = "[[crowd]]\nname = \"t\"\nsize = 1\n[[crowd]]\nname = \"w\"\nsize = 9\npublish = \"none\"\n";
    let (into, out, _) = load(watchers);
    assert!((into / once - 1.0).abs() < 1e-6 && (out / once - 9.0).abs() < 1e-6);
}

#[test]
fn what_does_not_go_together_is_said() {
    let crowd = |keys: &str| format!("[crowd]\nsize = 5\n{keys}\n");
    for (text, expect) in [
        (crowd("publish = { video = \"480p\" }"), "`crowd.publish.video` is not one of \"144p\""),
        (
            crowd("publish = { video = \"lesson.mp4\" }"),
            "`crowd.publish.video` has no known file name extension",
        ),
        (crowd("publish = { video = \"240p\", codec = \"av1\" }"), "there is no test card in AV1"),
        (
            crowd("publish = { video = \"240p\", fps = 60 }"),
            "`crowd.publish.fps` has no effect: `video` is not a file",
        ),
        (
            crowd("publish = { video = \"240p\", ssrc = 7 }"),
            "remove ssrc, or name a file as `video`",
        ),
        (
            crowd("publish = { video = \"a.pcap\", audio_ssrc = 7 }"),
            "remove audio_ssrc, or name a file as `audio`",
        ),
        (
            crowd("publish = { video = \"a.h264\", fps = 5000 }"),
            "`crowd.publish.fps` must be from 0.1 to 1000",
        ),
        (crowd("publish = { audio = false }"), "`crowd.publish` sends neither video nor audio"),
        (crowd("subscribe = \"last_speakers(0)\""), "`crowd.subscribe` is not one of"),
        (crowd("subscribe = \"last_speaker(10)\""), "did you mean \"last_speakers(10)\"?"),
        (crowd("subscribe = \"last_speakers(10)\""), "needs a [conversation]"),
        (crowd("speaking_weight = 3"), "has no effect without a [conversation]"),
        (
            crowd("script = [{ at = \"5s\" }]"),
            "needs `at` and exactly one of `mute` and `screen_share`",
        ),
        (
            crowd("script = [{ at = \"95s\", mute = \"audio\" }]"),
            "has an action at 95s, but the run ends at 90s",
        ),
        (crowd("script = 7"), "is not a list of at most"),
        (crowd("reconnect = { within = \"5s\" }"), "`crowd.reconnect.at` is missing"),
        (crowd("reconnect = { at = \"89s\", within = \"5s\" }"), "`reconnect` has an action at"),
        (
            format!("[conversation]\ntalkspurt = \"10ms\"\n{}", crowd("")),
            "`conversation.talkspurt` must be from 1 s to 1 h",
        ),
        (
            format!("[conversation]\noverlap = 2\n{}", crowd("")),
            "`conversation.overlap` is not a share from 0 to 1",
        ),
        (
            format!("[room]\nvideo_codecs = \"theora\"\n{}", crowd("")),
            "`room.video_codecs` is not a list of codecs",
        ),
        (format!("[room]\nbitrat = \"1Mbit/s\"\n{}", crowd("")), "did you mean `bitrate`?"),
    ] {
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.contains(expect), "{text}\n{error}");
    }
    let whep = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[room]\n[crowd]\nsize = 5\n";
    let error = Scenario::parse(whep).unwrap_err().to_string();
    assert!(error.contains("throng creates rooms on Janus VideoRoom only"), "{error}");
}

#[test]
fn a_rooms_key_is_never_stored() {
    let text = "[room]\nadmin_key = \"open sesame\"\npublishers = 30\nbitrate = \"256kbit/s\"\n[crowd]\nsize = 5\n";
    assert!(read(text).unwrap_err().to_string().contains("`room.admin_key` has characters"));
    let scenario =
        read(&text.replace("open sesame", "sesame")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.room.as_ref().and_then(|room| room.bits_per_s), Some(256e3));
    let stored = scenario.to_toml();
    assert!(!stored.contains("sesame") && stored.contains("publishers = 30"), "{stored}");
    assert!(Scenario::parse(&stored).is_ok());
}
