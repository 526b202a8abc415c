use std::collections::BTreeMap;

use super::*;
use throng_observation::run::{CohortId, EventRow, SeriesRow};
use throng_observation::{Clause, Distribution, ExperienceRow, Phase, SecondClosed};

/// A second at whose end `began` participants have begun and `gone` have failed, one of them
/// for each of `reasons` in it.
fn crowd_of(seconds: &Seconds, began: u32, gone: u32, reasons: &[FailureReason]) {
    for reason in reasons {
        seconds.observe(&Row::Participant(Box::new(ParticipantRow {
            participant: ParticipantId(0),
            cohort: CohortId(0),
            intended_at: RunTime(0),
            reached: BTreeMap::from([(Phase::Started, RunTime(0))]),
            ended_at: Some(RunTime(1)),
            outcome: Some(Outcome::Failed(Failure::new(reason.clone(), "127.0.0.1:9"))),
            local_address: None,
        })));
    }
    seconds.observe(&Row::Crowd(CrowdRow { started: began, failed: gone, ..CrowdRow::default() }));
    seconds.observe(&Row::SecondClosed(SecondClosed::default()));
}

#[test]
fn a_target_where_all_fail_alike_is_not_reached_by_any_load() {
    use FailureReason as F;
    let why = |seconds: &Seconds| seconds.unreachable(3).map(|failure| failure.reason);
    let closed_port = Seconds::default();
    crowd_of(&closed_port, 0, 0, &[]);
    assert_eq!(why(&closed_port), None, "the baseline of the idle server");
    crowd_of(&closed_port, 3, 2, &[F::Tcp, F::Tcp]);
    assert_eq!(why(&closed_port), None, "one is still on its way");
    crowd_of(&closed_port, 3, 3, &[F::Tcp]);
    assert_eq!(why(&closed_port), Some(F::Tcp));
    let full = Seconds::default();
    crowd_of(&full, 2, 2, &[F::HttpStatus(503), F::Tcp]);
    assert_eq!(why(&full), None, "another load may be served");
    let connected = Seconds::default();
    connected.observe(&Row::Crowd(CrowdRow { started: 1, connected: 1, ..CrowdRow::default() }));
    connected.observe(&Row::SecondClosed(SecondClosed::default()));
    crowd_of(&connected, 1, 1, &[F::Tcp]);
    assert_eq!(why(&connected), None, "a server that went away was there");
}

/// One who fails may have met what no other does: a name server that was slow, a connection
/// that was reset.
#[test]
fn one_of_many_that_fails_does_not_end_a_search() {
    use FailureReason as F;
    let seconds = Seconds::default();
    let is_over = |wanted| seconds.unreachable(wanted).is_some();
    crowd_of(&seconds, 1, 1, &[F::Tcp]);
    assert!(!is_over(1) && !is_over(10), "the whole crowd, or one of ten");
    crowd_of(&seconds, 1, 1, &[]);
    assert!(!is_over(10), "for two seconds, and still one");
    crowd_of(&seconds, 3, 3, &[F::Tcp, F::Tcp]);
    assert!(is_over(10), "three, and all for three seconds");
    crowd_of(&seconds, 4, 3, &[]);
    assert!(!is_over(10), "the fourth is on its way");
    crowd_of(&seconds, 4, 4, &[F::Tcp]);
    assert!(!is_over(10), "for a second");
}

#[test]
fn a_search_that_begins_with_one_tries_twice_before_it_ends() {
    use FailureReason as F;
    let closed_port = Seconds::default();
    let ends = |seconds: &Seconds| seconds.unreachable(1).is_some();
    assert!(!closed_port.tries_again(1), "nobody has tried");
    crowd_of(&closed_port, 1, 1, &[F::Dns]);
    assert!(!closed_port.tries_again(1), "the crowd does not know yet who failed");
    closed_port.take_failed();
    assert!(closed_port.tries_again(1) && !closed_port.tries_again(1) && !ends(&closed_port));
    crowd_of(&closed_port, 2, 1, &[]);
    assert!(!ends(&closed_port), "the second is on its way");
    crowd_of(&closed_port, 2, 2, &[F::Dns]);
    closed_port.take_failed();
    assert!(ends(&closed_port) && !closed_port.tries_again(1));

    let by_chance = Seconds::default();
    crowd_of(&by_chance, 1, 1, &[F::Tcp]);
    by_chance.take_failed();
    assert!(by_chance.tries_again(1));
    by_chance.observe(&Row::Crowd(CrowdRow {
        started: 2,
        failed: 1,
        connected: 1,
        ..CrowdRow::default()
    }));
    by_chance.observe(&Row::SecondClosed(SecondClosed::default()));
    assert!(!ends(&by_chance), "the second is served");
    let crowd = Seconds::default();
    crowd_of(&crowd, 3, 3, &[F::Tcp]);
    crowd.take_failed();
    assert!(!crowd.tries_again(3), "three say it of all");
}

/// A participant without WebRTC is connected by the request that is answered.
#[test]
fn who_was_connected_by_any_protocol_met_a_target_that_is_there() {
    for phase in Phase::CONNECTED {
        let seconds = Seconds::default();
        seconds.observe(&Row::Participant(Box::new(ParticipantRow {
            participant: ParticipantId(0),
            cohort: CohortId(0),
            intended_at: RunTime(0),
            reached: BTreeMap::from([(phase, RunTime(0))]),
            ended_at: Some(RunTime(1)),
            outcome: Some(Outcome::Failed(Failure::new(FailureReason::Tcp, "127.0.0.1:9"))),
            local_address: None,
        })));
        crowd_of(&seconds, 3, 3, &[FailureReason::Tcp, FailureReason::Tcp]);
        crowd_of(&seconds, 3, 3, &[]);
        assert_eq!(seconds.unreachable(3), None, "{phase:?}");
    }
}

#[test]
fn what_the_generator_lacked_last_is_known() {
    let seconds = Seconds::default();
    crowd_of(&seconds, 1, 1, &[FailureReason::Tcp]);
    assert_eq!(seconds.limited_by(), None, "the target's");
    crowd_of(&seconds, 2, 2, &[FailureReason::Generator]);
    assert_eq!(seconds.limited_by().as_deref(), Some("generator: 127.0.0.1:9"));
    let late = "thread 0 was 31.0 ms late (p99), more than 20 ms";
    seconds.observe(&Row::Event(EventRow {
        at: RunTime(0),
        participant: None,
        kind: GENERATOR_LIMITED_EVENT.to_owned(),
        count: 1,
        detail: late.into(),
    }));
    assert_eq!(seconds.limited_by().as_deref(), Some(late));
}

#[test]
fn a_closed_second_sums_its_cohorts_and_has_its_delay_and_the_generators_state() {
    let seconds = Seconds::default();
    let delay = |kind, second, us| {
        let mut relative_delay_us = Distribution::new();
        relative_delay_us.record(us);
        let row = SeriesRow { second, kind: Some(kind), relative_delay_us, ..SeriesRow::default() };
        Row::Series(Box::new(row))
    };
    let experience = |cohort, users, bad| {
        let mut row =
            ExperienceRow { second: 4, cohort: CohortId(cohort), users, bad, ..Default::default() };
        row.clauses[Clause::Stall as usize] = bad;
        row
    };
    seconds.observe(&delay(MediaKind::Video, 4, 20_000));
    seconds.observe(&delay(MediaKind::Audio, 4, 1_000));
    assert!(seconds.take().is_empty());
    let closed = |second, experience| {
        Row::SecondClosed(SecondClosed { second, experience, is_generator_limited: true })
    };
    seconds.observe(&closed(4, vec![experience(0, 3, 1), experience(1, 5, 2)]));
    seconds.observe(&delay(MediaKind::Audio, 5, 1_000));
    seconds.observe(&closed(5, Vec::new()));
    seconds.observe(&closed(6, vec![experience(0, 3, 1)]));
    let seen = seconds.take();
    assert_eq!((seen.len(), seen[0].users(), seen[0].is_limited), (2, 8, true));
    let quality = seen[0].quality;
    assert_eq!((quality.bad_users(), quality.clauses[Clause::Stall as usize]), (3.0, 3));
    assert!(seen[0].delay_ms.is_some_and(|ms| (ms - 20.0).abs() < 0.5), "{seen:?}");
    assert_eq!((seen[0].ends_at(), seen[1].delay_ms), (RunTime(5_000_000), None));
    assert_eq!((seen[0].quality.bad_by_patterns(), seen[1].media), (0.0, Unloaded::default()));
    assert!((19_500..20_500).contains(&seen[0].media.delay_us), "{seen:?}");
}
