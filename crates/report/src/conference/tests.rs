//! Laws of the matrix and of the flow, on lessons made up by hand.

use throng_observation::run::{
    CohortId, CrowdRow, ParticipantId, RunData, SentRow, SeriesRow, TrackRow,
};
use throng_observation::{
    Codec, Distribution, MediaKind, OneWayDelay, Phase, RunTime, SentCounters, TrackCounters,
    TrackId,
};

use super::*;
use crate::example;

const KINDS: [MediaKind; 2] = [MediaKind::Video, MediaKind::Audio];

/// A lesson of `size` for `seconds`; each sends 1,000 bytes a second of each kind, and the server
/// forwards the share of it that `forwards` says of a second.
pub(crate) fn lesson(size: u32, seconds: i64, forwards: impl Fn(i64) -> f64) -> RunData {
    let mut run = example::healthy(size, seconds);
    let scenario = format!(
        "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1\"\n[crowd]\nsize = {size}\n\
         [run]\nduration = \"{seconds}s\"\n"
    );
    example::plan(&mut run, scenario);
    (run.series, run.tracks, run.crowd) = (Vec::new(), Vec::new(), Vec::new());
    for second in 0..seconds {
        let there = size.min(second as u32 + 1);
        run.crowd.push(CrowdRow {
            second,
            connected: there,
            playing: there,
            ..CrowdRow::default()
        });
        for kind in KINDS {
            let bytes = 1_000 * u64::from(there);
            let counters =
                SentCounters { wire_bytes: bytes, payload_bytes: bytes, ..SentCounters::default() };
            run.sent.push(SentRow { second, cohort: CohortId(0), kind, tracks: there, counters });
            let out = (bytes * u64::from(there - 1)) as f64 * forwards(second);
            let counters = TrackCounters {
                wire_bytes: out as u64,
                payload_bytes: out as u64,
                ..TrackCounters::default()
            };
            run.series.push(SeriesRow {
                second,
                kind: Some(kind),
                counters,
                ..SeriesRow::default()
            });
        }
    }
    for (to, from) in (0..size)
        .flat_map(|to| (0..size).map(move |from| (to, from)))
        .filter(|(to, from)| to != from)
    {
        for kind in KINDS {
            run.tracks.push(stream(from, to, kind));
        }
    }
    run
}

/// Plans the run as with these lines in place of that of its crowd.
fn plan_with(run: &mut RunData, crowd: &str) {
    let scenario = run.info.scenario.replace("[crowd]\n", crowd);
    example::plan(run, scenario);
}

fn stream(from: u32, to: u32, kind: MediaKind) -> TrackRow {
    let mut delay = Distribution::new();
    delay.record(8_000 + 100 * u64::from(to));
    TrackRow {
        participant: ParticipantId(to),
        track: TrackId(u16::try_from(from).unwrap() * 2 + u16::from(kind == MediaKind::Audio)),
        kind,
        codec: Codec::Vp8,
        from: Some(ParticipantId(from).name()),
        first_frame_at: Some(RunTime(5_000_000 + 1_000_000 * i64::from(from.max(to)))),
        counters: TrackCounters {
            packets_original: 900,
            frames_decodable: 300,
            active_us: 9_000_000,
            ..TrackCounters::default()
        },
        relative_delay_us: delay,
        absolute_delay: OneWayDelay::default(),
        fps: None,
        jitter_us: None,
        oven_rtc_tester_delay_us: None,
    }
}

#[test]
fn everybody_is_expected_to_see_and_hear_all_others() {
    let run = lesson(6, 30, |_| 1.0);
    let conference = summarise(&run, None).unwrap();
    for media in [&conference.video, &conference.audio] {
        assert_eq!((media.expected, media.playing, media.playing_ratio), (Some(30), 30, Some(1.0)));
        assert_eq!(media.loss_ratio_max, Some(0.0));
    }
    assert_eq!(
        (conference.members, conference.flow.egress_drop_at_s, conference.flow.note),
        (6, None, None)
    );
    // The rate out is the expected one: N × (N − 1) × b.
    assert!((conference.flow.expected_bps_max.unwrap() - 6.0 * 5.0 * 2.0 * 8_000.0).abs() < 1e-6);
    assert!((conference.flow.delivered_ratio.unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn slow_joins_do_not_lower_the_delivered_ratio() {
    // A participant receives nothing in the second of its join, and the others send key frames for
    // it.
    let settles = |second: i64| {
        if second < 6 { (second - 1).max(0) as f64 / (second + 1) as f64 } else { 1.0 }
    };
    let mut run = lesson(6, 30, settles);
    run.sent
        .iter_mut()
        .filter(|row| row.second <= 5)
        .for_each(|row| row.counters.payload_bytes *= 2);
    run.series
        .iter_mut()
        .filter(|row| row.second <= 5)
        .for_each(|row| row.counters.payload_bytes *= 2);
    run.series
        .iter_mut()
        .filter(|row| row.second <= 5)
        .for_each(|row| row.counters.wire_bytes *= 2);
    let flow = summarise(&run, None).unwrap().flow;
    assert!((flow.delivered_ratio.unwrap() - 1.0).abs() < 1e-9, "{flow:?}");
    // What a server withholds from all does.
    let halved =
        summarise(&lesson(6, 30, |second| if second < 10 { 1.0 } else { 0.5 }), None).unwrap().flow;
    assert!((0.5..0.6).contains(&halved.delivered_ratio.unwrap()), "{halved:?}");
}

/// In each stretch of `every` seconds, half of the participants mutes for 2 s. The intervals of
/// receivers begin half a second before those of senders, so that a second has a part of the next
/// one's rate.
fn muting(every: i64) -> RunData {
    let mut run = lesson(6, 60, |_| 1.0);
    let is_mute = |second: i64| second >= 10 && second % every < 2;
    for row in run.sent.iter_mut().filter(|row| is_mute(row.second)) {
        row.tracks = 3;
        (row.counters.wire_bytes, row.counters.payload_bytes) = (3_000, 3_000);
    }
    for row in run.series.iter_mut().filter(|row| row.second >= 9) {
        let of = |second| if is_mute(second) { 15_000 } else { 30_000 };
        let bytes = (of(row.second) + of(row.second + 1)) / 2;
        (row.counters.wire_bytes, row.counters.payload_bytes) = (bytes, bytes);
    }
    run
}

#[test]
fn seconds_beside_a_mute_do_not_change_what_was_delivered() {
    // Every 20 s: the seconds between are compared.
    let flow = summarise(&muting(20), None).unwrap().flow;
    assert!((flow.delivered_ratio.unwrap() - 1.0).abs() < 1e-9, "{flow:?}");
    assert!((flow.expected_bps_max.unwrap() - 2.0 * 30_000.0 * 8.0).abs() < 1e-6, "{flow:?}");
    // Every 4 s there is no such time.
    let flow = summarise(&muting(4), None).unwrap().flow;
    assert_eq!((flow.expected_bps_max, flow.delivered_ratio), (None, None), "{flow:?}");
}

/// The share that was delivered of a lesson of six for a minute, of whose senders in each second
/// as many are missing as `missing` says, and who then send it all in the next one.
fn delivered_with(missing: impl Fn(i64) -> u32) -> Option<f64> {
    let mut run = lesson(6, 60, |_| 1.0);
    for row in run.sent.iter_mut().filter(|row| row.second >= 10) {
        row.tracks = 6 - missing(row.second);
        let frames = u64::from(row.tracks + missing(row.second - 1));
        (row.counters.wire_bytes, row.counters.payload_bytes) = (frames * 1_000, frames * 1_000);
    }
    summarise(&run, None).unwrap().flow.delivered_ratio
}

#[test]
fn a_sender_who_reports_nothing_for_a_second_has_not_muted() {
    let cases: [(&dyn Fn(i64) -> u32, bool); 5] = [
        (&|second| u32::from(second == 30), true),
        // A picture each two seconds, of one of them, and of all by turns.
        (&|second| u32::from(second % 2 == 0), true),
        (&|second| if second % 2 == 0 { 4 } else { 2 }, true),
        // One, and in the next second two others.
        (&|second| if (30..32).contains(&second) { second as u32 - 29 } else { 0 }, true),
        // Mutes of two seconds each.
        (&|second| u32::from(second % 4 < 2), false),
    ];
    for (missing, is_told) in cases {
        let ratio = delivered_with(missing);
        let expect = is_told.then_some(100.0);
        assert_eq!(ratio.map(|ratio| (ratio * 50.0).round() * 2.0), expect, "{ratio:?}");
    }
}

#[test]
fn who_sends_nothing_receives_all_streams() {
    // Of six one sends nothing: five streams, each with five receivers.
    let mut run = lesson(6, 30, |_| 1.0);
    for row in run.sent.iter_mut().filter(|row| row.tracks == 6) {
        row.tracks = 5;
        (row.counters.wire_bytes, row.counters.payload_bytes) = (5_000, 5_000);
    }
    for row in run.series.iter_mut().filter(|row| row.second >= 5) {
        (row.counters.wire_bytes, row.counters.payload_bytes) = (25_000, 25_000);
    }
    let flow = summarise(&run, None).unwrap().flow;
    assert!((flow.expected_bps_max.unwrap() - 2.0 * 25_000.0 * 8.0).abs() < 1e-6, "{flow:?}");
    assert!((flow.delivered_ratio.unwrap() - 1.0).abs() < 1e-9, "{flow:?}");
}

#[test]
fn a_crowd_that_never_stands_still_has_no_share_that_was_delivered() {
    let flow = |run: &RunData| summarise(run, None).unwrap().flow;
    let growing = flow(&lesson(30, 30, |_| 1.0));
    assert_eq!((growing.expected_bps_max, growing.delivered_ratio), (None, None));
    assert!(growing.out_bps_max.is_some());
    // Nor has one in which a participant replaces another each second.
    let mut changing = lesson(6, 30, |_| 1.0);
    changing.crowd.iter_mut().for_each(|row| row.left = row.second as u32);
    assert_eq!(flow(&changing).delivered_ratio, None);
}

#[test]
fn of_a_simulcast_the_server_owes_what_it_chooses() {
    let mut run = lesson(6, 30, |_| 0.4);
    plan_with(&mut run, "[crowd]\npublish = { simulcast = [\"144p\", \"240p\"] }\n");
    let flow = summarise(&run, None).unwrap().flow;
    assert_eq!((flow.expected_bps_max, flow.delivered_ratio), (None, None), "{flow:?}");
}

#[test]
fn a_stream_that_never_came_is_missed_and_stands_first_among_the_worst() {
    let mut run = lesson(6, 30, |_| 1.0);
    run.tracks.retain(|track| {
        !(track.participant == ParticipantId(2)
            && track.from.as_deref() == Some("throng-4")
            && track.kind == MediaKind::Video)
    });
    run.tracks[7].counters.packets_lost = 100;
    let conference = summarise(&run, None).unwrap();
    assert_eq!(
        (conference.video.playing, conference.video.expected, conference.audio.playing),
        (29, Some(30), 30)
    );
    let worst = &conference.worst[0];
    assert_eq!((worst.from, worst.to, worst.kind.as_str(), worst.plays), (4, 2, "video", false));
    assert_eq!(conference.worst[1].loss_ratio, Some(0.1));
}

/// Removes the participants from `first` on: they failed to join.
pub(crate) fn fail_to_join(run: &mut RunData, first: u32) {
    let failed = |who: u32| who >= first;
    run.participants.iter_mut().filter(|row| failed(row.participant.0)).for_each(|row| {
        row.reached.remove(&Phase::DtlsConnected);
        row.ended_at = Some(RunTime(row.intended_at.0 + 1_000_000));
    });
    let from =
        |track: &TrackRow| track.from.as_deref().and_then(ParticipantId::from_name).unwrap().0;
    run.tracks.retain(|track| !failed(track.participant.0) && !failed(from(track)));
}

#[test]
fn a_failed_join_stays_in_the_denominator() {
    let mut run = lesson(25, 30, |_| 1.0);
    fail_to_join(&mut run, 20);
    let conference = summarise(&run, None).unwrap();
    assert_eq!((conference.members, conference.members_planned), (20, Some(25)));
    // Between the present ones all pairs play …
    assert_eq!((conference.video.expected, conference.video.playing), (Some(380), 380));
    assert!(conference.worst.iter().all(|pair| pair.plays), "{:?}", conference.worst);
    // … and 220 of the lesson's 600 pictures never came.
    assert_eq!(
        (conference.video.planned, conference.video.planned_playing),
        (Some(600), Some(380))
    );
    assert_eq!(conference.video.playing_ratio, Some(380.0 / 600.0));
    let table = crate::csv::conference(&run).unwrap();
    let missing =
        table.lines().filter(|line| line.ends_with(",true") && line.contains(",false,false,"));
    assert_eq!(missing.count(), 2 * 220, "{table}");
}

#[test]
fn a_stream_is_planned_where_both_were_to_be_there_for_five_seconds() {
    // The last two were to join 4 s before the end: their streams are not planned for any receiver.
    let mut late = lesson(6, 30, |_| 1.0);
    late.participants.iter_mut().skip(4).for_each(|row| row.intended_at = RunTime(26_000_000));
    fail_to_join(&mut late, 4);
    let conference = summarise(&late, None).unwrap();
    assert_eq!((conference.video.planned, conference.members_planned), (Some(12), Some(4)));
    // Of a run that ended early, only what was planned until then counts.
    let mut early = lesson(6, 30, |_| 1.0);
    fail_to_join(&mut early, 4);
    early.ended_at = Some(RunTime(4_000_000));
    early.participants.iter_mut().for_each(|row| row.ended_at = early.ended_at);
    assert_eq!(summarise(&early, None).unwrap().video.planned, Some(0));
    // A participant that leaves after 3 s shares less than 5 s with any other; one that only
    // listens sends no stream.
    let mut short = lesson(6, 30, |_| 1.0);
    plan_with(&mut short, "[crowd]\nstay = \"3s\"\n");
    fail_to_join(&mut short, 0);
    assert_eq!(summarise(&short, None).unwrap().video.planned, Some(0));
    let mut listeners = lesson(6, 30, |_| 1.0);
    plan_with(&mut listeners, "[crowd]\nsubscribe = { video = \"none\" }\n");
    fail_to_join(&mut listeners, 3);
    let conference = summarise(&listeners, None).unwrap();
    assert_eq!((conference.video.planned, conference.audio.planned), (Some(0), Some(30)));
}

#[test]
fn a_search_plans_no_stay() {
    let mut run = lesson(6, 30, |_| 1.0);
    fail_to_join(&mut run, 4);
    run.holds.push(throng_observation::HoldRow::default());
    let conference = summarise(&run, None).unwrap();
    assert_eq!((conference.video.planned, conference.members_planned), (None, None));
    assert_eq!(conference.video.playing_ratio, Some(1.0));
}

#[test]
fn with_last_speakers_not_all_streams_are_expected() {
    let mut run = lesson(6, 30, |_| 1.0);
    let last_speakers = "subscribe = { video = \"last_speakers(2)\" }\n";
    plan_with(&mut run, &format!("[conversation]\n[crowd]\n{last_speakers}"));
    let conference = summarise(&run, None).unwrap();
    assert_eq!(
        (conference.video.expected, conference.video.received, conference.audio.expected),
        (Some(0), 30, Some(30))
    );
    assert_eq!(conference.video.first_frame_ms_p50, None);
    let due = conference.flow.expected_bps_max.unwrap();
    assert!((due - 6.0 * (5.0 + 2.0) * 8_000.0).abs() < 1e-6, "{due}");
}

#[test]
fn in_that_rises_while_out_falls_is_seen_and_a_crowd_that_leaves_is_not() {
    let full = lesson(30, 60, |second| if second < 25 { 1.0 } else { 0.5 });
    let flow = summarise(&full, None).unwrap().flow;
    assert!(flow.egress_drop_at_s.is_some_and(|second| (26.0..33.0).contains(&second)), "{flow:?}");
    assert!(flow.note.unwrap().ends_with("in rises, out falls, the server is full"));
    let mut leaving = lesson(30, 60, |_| 1.0);
    leaving.sent.iter_mut().filter(|row| row.second > 40).for_each(|row| {
        row.counters.wire_bytes /= 2;
        row.counters.payload_bytes /= 2;
    });
    leaving.series.iter_mut().filter(|row| row.second > 40).for_each(|row| {
        row.counters.wire_bytes /= 4;
        row.counters.payload_bytes /= 4;
    });
    assert_eq!(summarise(&leaving, None).unwrap().flow.egress_drop_at_s, None);
    // What comes out dips while many join, and comes back.
    let dips = lesson(30, 60, |second| if (20..25).contains(&second) { 0.6 } else { 1.0 });
    assert_eq!(summarise(&dips, None).unwrap().flow.egress_drop_at_s, None);
}

#[test]
fn without_receivers_no_rate_out_is_stated() {
    // A lone publisher, whose rate grows as rates do.
    let mut alone = lesson(1, 30, |_| 1.0);
    alone.tracks.clear();
    for (second, row) in (0..).zip(&mut alone.sent) {
        (row.counters.wire_bytes, row.counters.payload_bytes) =
            (1_000 + 10 * second, 1_000 + 10 * second);
    }
    for subscribe in
        ["", "subscribe = \"none\"\n", "publish = { simulcast = [\"144p\", \"240p\"] }\n"]
    {
        let mut run = alone.clone();
        plan_with(&mut run, &format!("[crowd]\n{subscribe}"));
        let summary = crate::summarise(&run, &[], std::time::Duration::ZERO);
        let flow = &summary.conference.as_ref().unwrap().flow;
        assert!(flow.in_bps_max.is_some_and(|bps| bps > 0.0), "{flow:?}");
        assert_eq!(
            (flow.out_bps_max, flow.egress_drop_at_s, &flow.note),
            (None, None, &None),
            "{subscribe}"
        );
        let text = crate::text::summary(&summary);
        assert!(!text.contains("conference  ") && !text.contains(", out "), "{text}");
        let page = crate::html::render(&run, &summary);
        assert!(
            !page.contains("out of the server") && !page.contains("Every stream played"),
            "{subscribe}"
        );
        assert!(page.contains("Into the server"));
    }
    // Publishers that subscribe to nothing are no receivers; those of a conference that receives
    // nothing are.
    let mut publishers = lesson(5, 30, |_| 0.0);
    publishers.tracks.clear();
    assert_eq!(summarise(&publishers, None).unwrap().flow.out_bps_max, Some(0.0));
    plan_with(&mut publishers, "[crowd]\nsubscribe = \"none\"\n");
    let flow = summarise(&publishers, None).unwrap().flow;
    assert_eq!((flow.out_bps_max, flow.note), (None, None));
}

#[test]
fn a_run_of_viewers_is_no_conference() {
    assert!(summarise(&example::healthy(10, 20), None).is_none());
    assert!(summarise(&RunData::default(), None).is_none());
}

#[test]
fn a_scenario_that_cannot_be_read_leaves_what_was_seen() {
    let mut run = lesson(3, 30, |_| 1.0);
    example::plan(&mut run, "rubbish");
    let conference = summarise(&run, None).unwrap();
    assert_eq!(
        (conference.video.expected, conference.video.received, conference.flow.expected_bps_max),
        (None, 6, None)
    );
}
