//! Users who are judged beyond what they see without load.

use std::sync::mpsc;

use throng_net::Waker;
use throng_observation::run::{CohortId, ParticipantId};
use throng_observation::{
    Clause, MediaKind, Observation, TrackCounters, TrackId, TrackInterval, Unloaded,
};

use super::*;

const S: i64 = 1_000_000;

/// A viewer whose frames are so late in each second, and which seconds after that of its join were
/// bad by their delay. From second `from_s` on it is judged beyond what is there without load.
fn late_seconds(delays_us: &[u32], from_s: usize, unloaded: Unloaded) -> Vec<bool> {
    let join = Join {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        place: 0,
        at: RunTime(0),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let (rows, written) = mpsc::sync_channel(1 << 12);
    let control = Arc::new(Control::new(Vec::<Arc<Waker>>::new(), 1));
    let clock = RunClock { start: Instant::now() };
    let mut collector = Collector::new(CollectorConfig {
        addresses: Arc::default(),
        clock,
        ends_at: RunTime(60 * S),
        cohorts: 1,
        control: Arc::clone(&control),
        plan: [join].into(),
        worst: 5,
        guards: Guards::default(),
        bad_if: BadIf::default(),
        secrets: Vec::new(),
        live: Arc::default(),
        rows,
    });
    collector.take(DriverEvent::Started { id: 0, at: clock.instant(RunTime(0)) });
    for (second, delay_us) in delays_us.iter().enumerate() {
        if second == from_s {
            control.judge_beyond(unloaded);
        }
        let at = clock.instant(RunTime((second as i64 + 1) * S));
        let interval = TrackInterval {
            track: TrackId(0),
            kind: MediaKind::Audio,
            ended_at: at,
            counters: TrackCounters {
                packets_original: 50,
                frames_decodable: 50,
                active_us: 1_000_000,
                ..TrackCounters::default()
            },
            jitter_us: Some(3_000),
            relative_delay_us: vec![*delay_us; 50],
            absolute_delay_us: Vec::new(),
            capture_basis: None,
            oven_rtc_tester_delay_us: None,
            source_fps: None,
            frames_due_us: 0,
            first_frame_awaited_since: None,
            picture_lines: None,
            missing: None,
        };
        let observation = Observation::Interval(Box::new(interval));
        collector.take(DriverEvent::Observed { id: 0, at, observation });
        collector.close_second(RunTime((second as i64 + 2) * S));
    }
    let closed = written.try_iter().filter_map(|row| match row {
        Row::SecondClosed(closed) => Some(closed),
        _ => None,
    });
    closed
        .flat_map(|closed| closed.experience)
        .filter(|row| row.users > 0)
        .map(|row| row.clauses[Clause::Delay as usize] > 0)
        .collect()
}

#[test]
fn a_delay_that_is_there_without_load_is_not_bad_and_one_that_grew_is() {
    let bursts = Unloaded { delay_us: 290_000, ..Unloaded::default() };
    let delays_us = [290_000, 290_000, 290_000, 290_000, 290_000, 2_000_000, 290_000];
    // Bounds are raised when the second ends whose intervals came before.
    assert_eq!(late_seconds(&delays_us, 2, bursts), [true, true, false, false, true, false]);
    assert_eq!(
        late_seconds(&delays_us, 2, Unloaded::default()),
        [true; 6],
        "there was none without load"
    );
}
