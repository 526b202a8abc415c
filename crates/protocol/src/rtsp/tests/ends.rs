//! Where recordings end, by what tells it and by what does not.

use std::time::Duration;

use throng_observation::{FailureReason, Outcome};
use throng_scenario::{
    AtEnd, PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, RtspTransport,
};

use super::fixture::{Fixture, RECORDING, bye, frame};

const S: Duration = Duration::from_secs(1);
const BOTH: [RtspTransport; 2] = [RtspTransport::Tcp, RtspTransport::Udp];
const SESSION: &str = "Session: 77\r\n";

/// A viewer of twenty seconds that begins at `start` and has played thirty frames, at its action.
fn acting(transport: RtspTransport, start: Duration, action: PlaybackAction) -> Fixture {
    let steps = vec![PlaybackStep { at: S, action }];
    let start = PlaybackPosition::At(start);
    let script = PlaybackScript { start, steps, ..PlaybackScript::default() };
    let mut fixture = Fixture::set_up(transport, script, RECORDING);
    fixture.answers("PLAY", "200 OK", SESSION, "");
    plays(&mut fixture, transport, 0..30);
    fixture.wait(Duration::from_millis(10));
    fixture
}

fn seeking(transport: RtspTransport, to: Duration) -> Fixture {
    acting(transport, Duration::ZERO, PlaybackAction::Seek(PlaybackPosition::At(to)))
}

/// Frames of a source of 30 fps, each a key frame.
fn plays(fixture: &mut Fixture, transport: RtspTransport, sequences: std::ops::Range<u16>) {
    for sequence in sequences {
        fixture.now += Duration::from_micros(33_333);
        fixture.arrives(transport, &frame(0, sequence));
    }
}

/// It has ended and is played again, and neither its end nor what came before was a fault.
#[track_caller]
fn begins_anew(fixture: &mut Fixture, what: &str) {
    assert!(fixture.ended.is_none() && !fixture.requests.is_empty(), "{what}: {:?}", fixture.ended);
    let play = fixture.answers("PLAY", "200 OK", SESSION, "");
    assert!(play.contains("Range: npt=0.000-\r\n"), "{what}: {play}");
    let intervals = fixture.intervals();
    assert!(intervals.iter().all(|it| it.missing.is_none()), "{what}: {intervals:?}");
    let frozen = intervals.iter().map(|it| it.counters.freeze_us + it.counters.freeze_count);
    assert_eq!(frozen.sum::<u64>(), 0, "{what}");
}

#[test]
fn a_recording_that_ends_soon_after_a_seek_is_neither_missing_nor_frozen() {
    // Of as many seconds as are left so many frames come, because the server began at a key frame
    // behind the position, or sends ahead.
    for (to, frames) in [(18, 20), (18, 60), (17, 3), (19, 0), (14, 100)] {
        for (transport, has_bye) in BOTH.into_iter().flat_map(|by| [(by, false), (by, true)]) {
            let what = format!("{to} s, {frames} frames, {transport:?}, {has_bye}");
            let mut fixture = seeking(transport, to * S);
            fixture.answers("PAUSE", "200 OK", SESSION, "");
            fixture.answers("PLAY", "200 OK", SESSION, "");
            plays(&mut fixture, transport, 300..300 + frames);
            if has_bye {
                fixture.arrives(transport, &bye(1, 9));
                fixture.wait(S / 2);
            } else {
                fixture.wait((20 - to) * S + S + S / 5);
            }
            begins_anew(&mut fixture, &what);
            // The silence in which the end was awaited counts no more than the pause at a seek.
            let active_us: u64 = fixture.intervals().iter().map(|it| it.counters.active_us).sum();
            let played_ms = 1_009 + u64::from(frames) * 33;
            assert!((played_ms..played_ms + 200).contains(&(active_us / 1_000)), "{what}");
        }
    }
}

#[test]
fn silence_near_the_end_that_was_not_the_end_counts() {
    for transport in BOTH {
        let mut fixture = seeking(transport, 17 * S);
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        fixture.answers("PLAY", "200 OK", SESSION, "");
        plays(&mut fixture, transport, 300..320);
        fixture.wait(2 * S);
        plays(&mut fixture, transport, 320..340);
        fixture.wait(2 * S);
        fixture.answers("PLAY", "200 OK", SESSION, "");
        let frozen_us: u64 = fixture.intervals().iter().map(|it| it.counters.freeze_us).sum();
        assert!((1_900_000..2_200_000).contains(&frozen_us), "{transport:?}: {frozen_us}");
    }
}

#[test]
fn a_recording_that_ends_soon_after_a_pause_is_played_again() {
    for (transport, frames) in BOTH.into_iter().flat_map(|by| [(by, 0), (by, 20)]) {
        let mut fixture = acting(transport, 17 * S, PlaybackAction::Pause(2 * S));
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        fixture.wait(2 * S);
        fixture.answers("PLAY", "200 OK", SESSION, "");
        plays(&mut fixture, transport, 30..30 + frames);
        fixture.wait(3 * S + S / 2);
        begins_anew(&mut fixture, &format!("{transport:?}, {frames} frames"));
    }
    // A server that has come to the end does not play on from there.
    for status in ["457 Invalid Range", "455 Method Not Valid in This State"] {
        let mut fixture = acting(RtspTransport::Tcp, 18 * S, PlaybackAction::Pause(2 * S));
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        fixture.wait(2 * S);
        fixture.answers("PLAY", status, "", "");
        begins_anew(&mut fixture, status);
    }
    // One that fails there has not.
    for (status, code) in [
        ("454 Session Not Found", 454),
        ("500 Internal Server Error", 500),
        ("503 Service Unavailable", 503),
    ] {
        let mut fixture = acting(RtspTransport::Tcp, 18 * S, PlaybackAction::Pause(2 * S));
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        fixture.wait(2 * S);
        fixture.answers("PLAY", status, "", "");
        fixture.answers("TEARDOWN", "200 OK", "", "");
        assert_eq!(fixture.failed().0, FailureReason::RtspStatus(code));
    }
}

/// Whether it is the end is not known when the viewer pauses: only media that comes after all
/// refutes it.
#[test]
fn silence_near_the_end_counts_before_a_pause_no_more_than_before_a_seek() {
    for (transport, comes_again) in BOTH.into_iter().flat_map(|by| [(by, false), (by, true)]) {
        let script = PlaybackScript {
            start: PlaybackPosition::At(17 * S),
            steps: vec![PlaybackStep { at: 2 * S, action: PlaybackAction::Pause(2 * S) }],
            ..PlaybackScript::default()
        };
        let mut fixture = Fixture::set_up(transport, script, RECORDING);
        fixture.answers("PLAY", "200 OK", SESSION, "");
        plays(&mut fixture, transport, 0..30);
        fixture.wait(S + S / 10);
        if comes_again {
            plays(&mut fixture, transport, 30..31);
        }
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        let active_us: u64 = fixture.intervals().iter().map(|it| it.counters.active_us).sum();
        let expect_ms = if comes_again { 2_000..2_300 } else { 1_000..1_200 };
        assert!(expect_ms.contains(&(active_us / 1_000)), "{transport:?}: {active_us}");
        fixture.wait(2 * S);
        fixture.answers("PLAY", "200 OK", SESSION, "");
        fixture.wait(2 * S);
        if !comes_again {
            begins_anew(&mut fixture, &format!("{transport:?}"));
        }
    }
}

/// Where the server says that it plays is no proof that it has played.
#[test]
fn who_asks_for_the_beginning_and_gets_nothing_has_not_seen_the_end() {
    for transport in BOTH {
        // The first session.
        let mut fixture = Fixture::set_up(transport, PlaybackScript::default(), RECORDING);
        let at_end = format!("{SESSION}Range: npt=20.000-\r\n");
        fixture.answers("PLAY", "200 OK", &at_end, "");
        fixture.wait(11 * S);
        fixture.answers("TEARDOWN", "200 OK", "", "");
        assert_eq!(fixture.failed().0, FailureReason::NoMedia, "{transport:?}");
        // A replay, which is tried once, and the session after it, which is the last.
        let mut fixture = Fixture::set_up(transport, PlaybackScript::default(), RECORDING);
        fixture.answers("PLAY", "200 OK", SESSION, "");
        plays(&mut fixture, transport, 0..30);
        fixture.arrives(transport, &bye(1, 9));
        fixture.wait(S / 2);
        fixture.answers("PLAY", "200 OK", &at_end, "");
        fixture.wait(2 * S + S / 5);
        fixture.answers("TEARDOWN", "200 OK", "", "");
        fixture.sets_up(transport, RECORDING);
        let shortly_after = format!("{SESSION}Range: npt=0.040-8.0\r\n");
        fixture.answers("PLAY", "200 OK", &shortly_after, "");
        fixture.wait(11 * S);
        fixture.answers("TEARDOWN", "200 OK", "", "");
        assert_eq!(fixture.failed().0, FailureReason::MediaLost, "{transport:?}");
    }
}

#[test]
fn slow_answers_to_a_seek_near_the_end_are_no_silence_of_media() {
    for transport in BOTH {
        let mut fixture = seeking(transport, 19 * S);
        fixture.wait(6 * S);
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        fixture.wait(6 * S);
        fixture.answers("PLAY", "200 OK", SESSION, "");
        fixture.wait(2 * S + S / 5);
        begins_anew(&mut fixture, &format!("{transport:?}"));
    }
}

#[test]
fn who_joins_near_the_end_has_seen_it_and_who_never_had_media_has_not() {
    for transport in BOTH {
        let join = |start| {
            let start = PlaybackPosition::At(start);
            let script = PlaybackScript { start, ..PlaybackScript::default() };
            let mut fixture = Fixture::set_up(transport, script, RECORDING);
            fixture.answers("PLAY", "200 OK", SESSION, "");
            fixture
        };
        let mut fixture = join(20 * S - S / 10);
        fixture.wait(S + S / 5);
        begins_anew(&mut fixture, "a tenth of a second");
        for start in [0, 12] {
            let mut fixture = join(start * S);
            fixture.wait(11 * S);
            fixture.answers("TEARDOWN", "200 OK", "", "");
            assert_eq!(fixture.failed().0, FailureReason::NoMedia, "{transport:?}, {start}");
        }
    }
    let script = PlaybackScript {
        start: PlaybackPosition::At(20 * S - S / 10),
        at_end: AtEnd::Leave,
        ..PlaybackScript::default()
    };
    let mut fixture = Fixture::set_up(RtspTransport::Tcp, script, RECORDING);
    fixture.answers("PLAY", "200 OK", SESSION, "");
    fixture.wait(S + S / 5);
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.ended, Some(Outcome::Completed));
}

#[test]
fn the_end_of_the_position_before_is_not_that_of_the_new_one() {
    for transport in BOTH {
        let mut fixture = seeking(transport, 5 * S);
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        fixture.arrives(transport, &bye(1, 9));
        fixture.answers("PLAY", "200 OK", SESSION, "");
        plays(&mut fixture, transport, 300..310);
        fixture.wait(S);
        assert!(fixture.requests.is_empty(), "{transport:?}: {:?}", fixture.requests);
    }
}

#[test]
fn a_server_says_in_its_answer_where_it_stops() {
    for transport in BOTH {
        let mut fixture = seeking(transport, 12 * S);
        fixture.answers("PAUSE", "200 OK", SESSION, "");
        let range = format!("{SESSION}Range: npt=12.000-14.000\r\n");
        fixture.answers("PLAY", "200 OK", &range, "");
        plays(&mut fixture, transport, 300..360);
        fixture.wait(S + S / 5);
        begins_anew(&mut fixture, &format!("{transport:?}"));
    }
}
