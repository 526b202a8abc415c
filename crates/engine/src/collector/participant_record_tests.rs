//! The collector's record of a participant, with seconds and tracks made by hand.

use super::*;
use std::time::Instant;
use throng_observation::CaptureBasis;

fn interval(packets_original: u64) -> TrackInterval {
    TrackInterval {
        track: TrackId(0),
        kind: MediaKind::Video,
        ended_at: Instant::now(),
        counters: TrackCounters { packets_original, active_us: 1, ..TrackCounters::default() },
        jitter_us: None,
        relative_delay_us: Vec::new(),
        absolute_delay_us: Vec::new(),
        capture_basis: None::<CaptureBasis>,
        oven_rtc_tester_delay_us: None,
        source_fps: None,
        frames_due_us: 0,
        first_frame_awaited_since: None,
        picture_lines: None,
        missing: None,
    }
}

fn joins_at(at_s: f64, leave_at_s: Option<f64>) -> Join {
    let time = |s: f64| RunTime((s * 1e6) as i64);
    Join {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        place: 0,
        at: time(at_s),
        leave_at: leave_at_s.map(time),
        others_follow: false,
        source_ip: None,
    }
}

fn failure() -> Outcome {
    Outcome::Failed(throng_observation::Failure::new(FailureReason::Ice, "no pair"))
}

#[test]
fn a_visit_that_ended_well_is_not_bad_in_the_second_in_which_it_still_joined() {
    let mut seconds = Seconds::new(1);
    let mut record = ParticipantRecord::new(&joins_at(4.2, Some(6.3)));
    record.started(RunTime(4_200_000), &mut seconds);
    record.reached(Phase::DtlsConnected, RunTime(4_600_000), &mut seconds);
    record.mark_played(5);
    record.ended(RunTime(6_300_000), &Outcome::Completed, &mut seconds);
    // A second is judged after the visit has ended.
    let of =
        |second| record.experience(second, &BadIf::default(), |_| 0).map(|quality| quality.bits);
    assert_eq!([3, 4, 5, 6, 7].map(of), [None, None, Some(0), None, None]);
}

#[test]
fn a_second_without_media_is_bad_of_what_was_due_in_it() {
    let mut seconds = Seconds::new(1);
    let mut record = ParticipantRecord::new(&joins_at(0.0, None));
    record.started(RunTime(0), &mut seconds);
    record.reached(Phase::DtlsConnected, RunTime(100_000), &mut seconds);
    let no_media = Clause::NoMedia.bit();
    let of = |record: &ParticipantRecord, second| {
        record.experience(second, &BadIf::default(), |_| 0).map(|quality| quality.bits)
    };
    assert_eq!(
        [2, 3, 4].map(|second| of(&record, second)),
        [None, None, Some(no_media)],
        "it never began"
    );
    record.mark_played(5);
    let missing =
        TrackCounters { active_us: 1_000_000, missing_us: 1_000_000, ..TrackCounters::default() };
    record.interval(&TrackInterval { counters: missing, ..interval(0) }, 7, &BadIf::default());
    let bits = [5, 6, 7].map(|second| of(&record, second));
    assert_eq!(bits, [Some(0), Some(0), Some(no_media)], "in the sixth all were mute");
}

#[test]
fn a_failed_participant_is_served_badly_until_it_was_to_leave() {
    let mut seconds = Seconds::new(1);
    let mut record = ParticipantRecord::new(&joins_at(4.2, Some(9.5)));
    record.started(RunTime(4_200_000), &mut seconds);
    record.reached(Phase::DtlsConnected, RunTime(4_600_000), &mut seconds);
    record.ended(RunTime(6_300_000), &failure(), &mut seconds);
    let bad = Some(Clause::NotConnected.bit());
    let of =
        |second| record.experience(second, &BadIf::default(), |_| 0).map(|quality| quality.bits);
    // It failed in the seventh second: after its end it is no longer a joining participant.
    assert_eq!([4, 5, 6, 7, 8, 9, 10].map(of), [None, None, bad, bad, bad, None, None]);
}

#[test]
fn the_last_seconds_of_a_publisher_are_judged_as_those_before() {
    let mut seconds = Seconds::new(1);
    let mut record = ParticipantRecord::new(&joins_at(0.0, Some(6.3)));
    record.started(RunTime(0), &mut seconds);
    record.sends = true;
    record.reached(Phase::DtlsConnected, RunTime(100_000), &mut seconds);
    let of = |record: &ParticipantRecord, second| {
        record.experience(second, &BadIf::default(), |_| 0).map(|quality| quality.bits)
    };
    assert_eq!([4, 5].map(|second| of(&record, second)), [Some(0), Some(0)]);
    // Seconds are judged a while later, when it has left.
    record.ended(RunTime(6_300_000), &Outcome::Completed, &mut seconds);
    assert_eq!([4, 5, 6].map(|second| of(&record, second)), [Some(0), Some(0), None]);
}

#[test]
fn each_sender_of_a_track_that_changes_hands_has_a_row_of_its_own() {
    let mut record = ParticipantRecord::new(&joins_at(0.0, None));
    record.track_opened(TrackId(0), MediaKind::Video, Codec::Vp8, false);
    for (from, packets) in
        [(Some("a"), 1), (Some("a"), 2), (Some("b"), 10), (None, 0), (Some("a"), 4)]
    {
        record.track_from(TrackId(0), from.map(str::to_owned));
        if packets > 0 {
            record.interval(&interval(packets), 0, &BadIf::default());
        }
    }
    let rows = record.rows(true);
    let of = |row: &Row| match row {
        Row::Track(track) => {
            Some((track.track.0, track.from.clone()?, track.counters.packets_original))
        }
        _ => None,
    };
    let tracks: Vec<_> = rows.iter().filter_map(of).collect();
    assert_eq!(tracks, [(0, "a".into(), 7), (u16::MAX - 1, "b".into(), 10)]);
}

/// A participant of a conference that receives audio and video from two others.
fn sees_two() -> ParticipantRecord {
    let mut record = ParticipantRecord::new(&joins_at(0.0, None));
    for (track, sender) in [(0, 1), (1, 1), (2, 2), (3, 2)] {
        record.track_opened(TrackId(track), MediaKind::Video, Codec::Vp8, false);
        record.track_from(TrackId(track), Some(ParticipantId(sender).name()));
    }
    record.mark_played(5);
    record
}

fn frozen(track: u16, freeze_us: u64) -> TrackInterval {
    let counters = TrackCounters { freeze_us, ..interval(20).counters };
    TrackInterval { track: TrackId(track), counters, ..interval(20) }
}

#[test]
fn a_receiver_of_one_frozen_sender_out_of_two_counts_half() {
    let mut record = sees_two();
    let bad_if = BadIf::default();
    for (track, freeze_us) in [(0, 400_000), (1, 400_000), (2, 0), (3, 0)] {
        record.interval(&frozen(track, freeze_us), 5, &bad_if);
    }
    let quality = record.experience(5, &bad_if, |_| 0).expect("a second");
    assert_eq!((quality.bits, quality.badly_milli), (Clause::Freeze.bit(), 500));
    record.interval(&frozen(3, 400_000), 5, &bad_if);
    let quality = record.experience(5, &bad_if, |_| 0).expect("a second");
    assert_eq!(quality.badly_milli, 1_000, "no participant was received well");
}

#[test]
fn a_picture_that_paused_in_its_sender_is_not_the_servers() {
    let mut record = sees_two();
    let bad_if = BadIf::default();
    for (track, freeze_us) in [(0, 220_000), (1, 0), (2, 0), (3, 0)] {
        record.interval(&frozen(track, freeze_us), 5, &bad_if);
    }
    let of = |pause_us: u64| {
        let pause = move |sender: ParticipantId| if sender.0 == 1 { pause_us } else { 0 };
        record
            .experience(5, &bad_if, pause)
            .map(|quality| (quality.bits, quality.badly_milli, quality.paused))
    };
    assert_eq!(of(180_000), Some((0, 0, 1)));
    assert_eq!(of(100_000), Some((Clause::Freeze.bit(), 500, 0)), "it stood still for much longer");
}
