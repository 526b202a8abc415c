//! What the coordinator wants, by its beats; and the dead man's switch: who hears nothing for long
//! enough stops.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tokio::task::JoinHandle;

use super::part::Wanted;
use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::message::{Heartbeat, Start, read};

/// A coordinator that was not heard for so long is gone. Its workers stop within ten seconds.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(8);

/// The coordinator's beats to one worker.
#[derive(Clone)]
pub(super) struct Heartbeats {
    state: Arc<Mutex<State>>,
    worker: u16,
}

struct State {
    heard_at: Instant,
    latest: Heartbeat,
    /// The last change of the crowd that was taken.
    changed: u64,
    /// The last reassignment that was taken.
    reassigned: u32,
}

impl Heartbeats {
    /// Hears the beats of a run, until the task is aborted.
    pub(super) async fn listen(
        bus: &Bus,
        subjects: &Subjects,
        worker: u16,
    ) -> Result<(Self, JoinHandle<()>), FleetError> {
        let subscribed = bus.client.subscribe(subjects.beats()).await;
        let mut beats = subscribed.map_err(|error| FleetError::Bus(error.to_string()))?;
        let state = State {
            heard_at: Instant::now(),
            latest: Heartbeat::default(),
            changed: 0,
            reassigned: 0,
        };
        let heard = Self { state: Arc::new(Mutex::new(state)), worker };
        let listening = heard.clone();
        let task = tokio::spawn(async move {
            while let Some(message) = beats.next().await {
                match read::<Heartbeat>("a beat", &message.payload) {
                    Ok(beat) => listening.heard(beat, Instant::now()),
                    Err(error) => tracing::warn!("{error}"),
                }
            }
        });
        Ok((heard, task))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self, beat: Heartbeat, now: Instant) {
        let mut state = self.lock();
        state.heard_at = now;
        // A stop stays a stop, whatever comes later.
        let stop = state.latest.stop.take().or_else(|| beat.stop.clone());
        state.latest = Heartbeat { stop, ..beat };
    }

    /// Counts the silence from now on.
    pub(super) fn heard_now(&self) {
        self.lock().heard_at = Instant::now();
    }

    /// The start, once it is known.
    pub(super) fn start(&self) -> Option<Start> {
        self.lock().latest.start
    }

    /// The last change of the crowd that was taken.
    pub(super) fn changed(&self) -> u64 {
        self.lock().changed
    }

    /// The last reassignment that was taken.
    pub(super) fn reassigned(&self) -> u32 {
        self.lock().reassigned
    }

    /// Whether the coordinator has given this worker up: it takes nothing of it.
    pub(super) fn is_given_up(&self) -> bool {
        self.lock().latest.lost.contains(&self.worker)
    }

    /// Whether the coordinator has everything.
    pub(super) fn is_over(&self) -> bool {
        self.lock().latest.is_over
    }

    /// Whether the coordinator is silent.
    pub(super) fn is_silent(&self) -> bool {
        self.lock().heard_at.elapsed() > SILENCE_MAX
    }

    /// What is wanted now; each change of the crowd, and each reassignment, is told once.
    pub(super) fn wanted(&self) -> Wanted {
        let mut state = self.lock();
        let silence = state.heard_at.elapsed();
        let stop = if state.latest.lost.contains(&self.worker) {
            Some("the coordinator had declared this worker lost".to_owned())
        } else if silence > SILENCE_MAX {
            Some(format!("nothing was heard from the coordinator for {} s", SILENCE_MAX.as_secs()))
        } else {
            state.latest.stop.clone()
        };
        let changed = state.changed;
        let changes: Vec<_> =
            state.latest.changes.iter().filter(|change| change.0 > changed).copied().collect();
        state.changed = changes.iter().map(|change| change.0).fold(changed, u64::max);
        let own = |&(_, worker, change)| (worker == self.worker).then_some(change);
        let reassigned =
            state.latest.reassigned.iter().filter(|given| given.number > state.reassigned);
        let reassigned: Vec<_> = reassigned.cloned().collect();
        state.reassigned =
            reassigned.iter().map(|given| given.number).fold(state.reassigned, u32::max);
        Wanted { stop, changes: changes.iter().filter_map(own).collect(), reassigned }
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::run::ParticipantId;

    use super::*;
    use crate::message::{CrowdChange, Reassignment};

    fn beats() -> Heartbeats {
        let state = State {
            heard_at: Instant::now(),
            latest: Heartbeat::default(),
            changed: 0,
            reassigned: 0,
        };
        Heartbeats { state: Arc::new(Mutex::new(state)), worker: 1 }
    }

    #[test]
    fn changes_of_the_crowd_are_told_once_and_a_stop_stays() {
        let beats = beats();
        let remove = |number, worker, participant| {
            (number, worker, CrowdChange::Remove(ParticipantId(participant)))
        };
        let beat =
            Heartbeat { changes: vec![remove(1, 1, 10), remove(2, 0, 20)], ..Heartbeat::default() };
        beats.heard(beat.clone(), Instant::now());
        beats.heard(beat, Instant::now());
        assert_eq!(beats.wanted().changes, [CrowdChange::Remove(ParticipantId(10))]);
        let more =
            Heartbeat { changes: vec![remove(2, 0, 20), remove(3, 1, 30)], ..Heartbeat::default() };
        beats.heard(more, Instant::now());
        assert_eq!(beats.wanted().changes, [CrowdChange::Remove(ParticipantId(30))]);
        assert_eq!((beats.changed(), beats.wanted().changes.len()), (3, 0));
        beats.heard(
            Heartbeat { stop: Some("enough".into()), ..Heartbeat::default() },
            Instant::now(),
        );
        beats.heard(Heartbeat::default(), Instant::now());
        assert_eq!(beats.wanted().stop.as_deref(), Some("enough"));
    }

    #[test]
    fn reassignments_are_told_once_and_in_order_however_often_they_are_heard() {
        let beats = beats();
        let given = |number| Reassignment {
            number,
            of: 2,
            to: vec![0, 1],
            from: throng_observation::RunTime(9),
            ended: Vec::new(),
        };
        let beat = |numbers: &[u32]| Heartbeat {
            reassigned: numbers.iter().map(|number| given(*number)).collect(),
            ..Heartbeat::default()
        };
        let told = |beat: Heartbeat| {
            beats.heard(beat, Instant::now());
            beats.wanted().reassigned.iter().map(|given| given.number).collect::<Vec<_>>()
        };
        assert_eq!(told(beat(&[1])), [1]);
        assert_eq!(told(beat(&[1, 2])), [2]);
        assert_eq!(told(beat(&[1])), Vec::<u32>::new(), "an old beat that comes late");
        assert_eq!((told(beat(&[])), beats.reassigned()), (Vec::new(), 2));
    }

    #[test]
    fn a_worker_that_was_given_up_or_hears_nothing_stops() {
        let beats = beats();
        beats.heard(Heartbeat { lost: vec![0], ..Heartbeat::default() }, Instant::now());
        assert_eq!(beats.wanted().stop, None);
        beats.heard(Heartbeat { lost: vec![0, 1], ..Heartbeat::default() }, Instant::now());
        assert!(beats.wanted().stop.is_some_and(|why| why.contains("declared this worker lost")));
        let long_ago = Instant::now().checked_sub(SILENCE_MAX + Duration::from_millis(1));
        beats.heard(Heartbeat::default(), long_ago.expect("the machine runs for longer"));
        assert!(
            beats.is_silent()
                && beats
                    .wanted()
                    .stop
                    .is_some_and(|why| why.contains("from the coordinator for 8 s"))
        );
    }
}
