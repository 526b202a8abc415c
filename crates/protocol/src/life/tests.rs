//! A life in its order, and in any.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// What `life` has put out.
fn told<S>(life: &mut Life<S>) -> Vec<String> {
    let tell = |output: Output| match output {
        Output::Observed(Observation::Reached(phase, _)) => phase.key().to_owned(),
        Output::Observed(Observation::LeaveUnanswered) => "leave unanswered".to_owned(),
        Output::Ended(Outcome::Completed) => "completed".to_owned(),
        Output::Ended(Outcome::Failed(failure)) => failure.to_string(),
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(|| life.pop()).map(tell).collect()
}

fn kicked() -> Outcome {
    Outcome::Failed(Failure::new(FailureReason::Kicked, "by the owner"))
}

#[test]
fn it_goes_from_its_start_to_its_one_end_and_tells_of_each_phase_once() {
    let (now, mut life) = (Instant::now(), Life::new());
    life.enter(7);
    assert_eq!(life.live(), None, "it has not begun");
    life.start(now, 1);
    life.enter(2);
    life.start(now, 3);
    assert_eq!(life.live(), Some(&2));
    life.reach(Phase::Joined, now);
    life.reach(Phase::Joined, now);
    assert!(life.has_reached(Phase::Joined) && !life.has_reached(Phase::Playing));
    assert!(life.leave(None, Outcome::Completed), "there is a goodbye to say");
    assert!(!life.leave(None, kicked()), "it is said");
    life.enter(4);
    assert_eq!((life.live(), life.is_leaving()), (None, true));
    life.end_with("signalling");
    life.end(kicked());
    life.anomaly("test", "after its end");
    assert_eq!(told(&mut life), ["started", "joined", "completed"]);
    assert!(life.is_over() && !life.has_output());
}

#[test]
fn an_unanswered_goodbye_ends_it_when_it_is_overdue() {
    let now = Instant::now();
    let by = now + Duration::from_secs(2);
    for is_reported in [true, false] {
        let mut life = Life::new();
        life.start(now, ());
        life.leave(Some(by), kicked());
        assert_eq!(life.next_timeout(), Some((by, "goodbye overdue")));
        life.give_up_goodbye(now, |_| true);
        assert!(life.is_leaving(), "it is not overdue");
        life.give_up_goodbye(by, |outcome| *outcome == kicked() && is_reported);
        assert!(life.is_over() && life.next_timeout().is_none());
        let mut expect = vec!["started", "leave unanswered", "kicked: by the owner"];
        expect.retain(|what| is_reported || *what != "leave unanswered");
        assert_eq!(told(&mut life), expect);
    }
}

#[test]
fn one_that_never_began_has_no_goodbye_and_one_that_does_not_leave_fails_with_its_dialogue() {
    let mut idle = Life::<()>::new();
    assert!(!idle.leave(None, Outcome::not_started("left before it came")));
    assert_eq!(told(&mut idle), ["not_started: left before it came"]);
    let mut live = Life::new();
    live.start(Instant::now(), 1);
    live.over();
    assert_eq!(live.live(), Some(&1), "it does not leave");
    live.end_with("the session");
    assert_eq!(told(&mut live), ["started", "signalling_closed: the session ended by itself"]);
}

fn stage<S>(life: &Life<S>) -> u8 {
    match life.stage {
        Stage::Idle => 0,
        Stage::Live(_) => 1,
        Stage::Leaving { .. } => 2,
        Stage::Over => 3,
    }
}

proptest! {
    /// Whatever is done to it in whatever order, it goes forward only, ends once and last, and
    /// tells of each phase once.
    #[test]
    fn any_life_goes_forward_to_its_one_end(
        deeds in proptest::collection::vec((0_u8..9, 0_usize..Phase::ALL.len()), 0..60),
    ) {
        let began = Instant::now();
        let (mut life, mut before, mut outputs) = (Life::new(), 0, Vec::new());
        for (at, (deed, phase)) in deeds.into_iter().enumerate() {
            let now = began + Duration::from_secs(at as u64);
            match deed {
                0 => life.start(now, 0),
                1 => life.enter(1),
                2 | 3 => {
                    let by = (deed == 2).then_some(now + Duration::from_secs(3));
                    life.leave(by, kicked());
                }
                4 => life.give_up_goodbye(now, |_| true),
                5 => life.over(),
                6 => life.end(kicked()),
                7 => outputs.extend(life.pop()),
                _ => life.reach(Phase::ALL[phase], now),
            }
            let after = stage(&life);
            prop_assert!(after >= before, "from {} to {}", before, after);
            prop_assert_eq!(life.live().is_some(), after == 1);
            before = after;
        }
        life.end(kicked());
        outputs.extend(std::iter::from_fn(|| life.pop()));
        let is_end = |output: &Output| matches!(output, Output::Ended(_));
        prop_assert_eq!(outputs.iter().position(is_end), outputs.len().checked_sub(1));
        let mut phases: Vec<_> = outputs.iter().filter_map(|output| match output {
            Output::Observed(Observation::Reached(phase, _)) => Some(*phase),
            _ => None,
        }).collect();
        let count = phases.len();
        phases.sort_unstable();
        phases.dedup();
        prop_assert_eq!(phases.len(), count);
    }
}
