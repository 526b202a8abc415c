//! The live snapshot of a crowd that other machines play, from their merged rows.

use std::collections::{BTreeMap, HashSet};

use throng_observation::run::{GeneratorRow, ParticipantId, ParticipantRow, Row};
use throng_observation::{Phase, RunTime};

use super::join_times::JoinTimes;
use super::seconds::ClosedSecond;
use super::snapshot;
use crate::health::limits_passed;
use crate::live::{LiveSnapshot, RunState};

/// Makes the snapshot of a merged run. It has no worst participants: those are in the rows of
/// seconds of no machine.
#[derive(Debug, Default)]
pub struct MergedLive {
    snapshot: LiveSnapshot,
    second: ClosedSecond,
    generator: Vec<GeneratorRow>,
    join_times: JoinTimes,
    /// Phases that were counted: rows of participants come again and again.
    counted: HashSet<(ParticipantId, Phase)>,
    failed: HashSet<ParticipantId>,
}

impl MergedLive {
    /// Of a run with `planned` joins that ends at `ends_at`.
    #[must_use]
    pub fn new(planned: u32, ends_at: RunTime) -> Self {
        let mut live = Self::default();
        live.snapshot.ends_at = ends_at;
        live.snapshot.planned = planned;
        live
    }

    /// The snapshot up to the last whole second.
    #[must_use]
    pub fn snapshot(&self) -> &LiveSnapshot {
        &self.snapshot
    }

    /// A participant was added to the plan.
    pub fn added(&mut self) {
        self.snapshot.planned = self.snapshot.planned.saturating_add(1);
    }

    /// The state of the run.
    pub fn set_state(&mut self, state: RunState) {
        self.snapshot.state = state;
    }

    /// Takes a merged row, in the order in which they are stored.
    pub fn take(&mut self, row: &Row) {
        match row {
            Row::Crowd(row) => self.second.crowd.push(*row),
            Row::Series(row) => self.second.series.push((**row).clone()),
            Row::Sent(row) => self.second.sent.push(*row),
            Row::Playback(row) => self.second.playback.push((**row).clone()),
            Row::Chat(row) => self.second.chat.push((**row).clone()),
            Row::Generator(row) => self.generator.push(row.clone()),
            Row::Participant(row) => self.participant(row),
            Row::Event(event) => snapshot::remember(&mut self.snapshot, event),
            Row::SecondClosed(closed) => self.close(closed.second),
            Row::Track(_)
            | Row::Player(_)
            | Row::HttpRequests(_)
            | Row::LayerSwitch(_)
            | Row::Hold(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }

    fn participant(&mut self, row: &ParticipantRow) {
        for (phase, at) in &row.reached {
            let Some(times) = self.join_times.to(*phase) else { continue };
            if self.counted.insert((row.participant, *phase)) {
                times.record(u64::try_from(at.0 - row.intended_at.0).unwrap_or(0));
            }
        }
        if let Some(reason) = row.failure().filter(|_| !self.failed.contains(&row.participant)) {
            self.failed.insert(row.participant);
            *self.snapshot.failures.entry(reason.key().to_owned()).or_default() += 1;
            self.snapshot.last_failure_at = self.snapshot.last_failure_at.max(row.ended_at);
        }
    }

    fn close(&mut self, second: i64) {
        let closed = std::mem::take(&mut self.second);
        snapshot::second(&mut self.snapshot, second, &closed);
        self.snapshot.at = RunTime((second + 1) * 1_000_000);
        self.join_times.show(&mut self.snapshot);
        let rows = std::mem::take(&mut self.generator);
        let limits = limits_of_workers(&rows);
        snapshot::health(&mut self.snapshot, &of_all(rows), limits);
    }
}

/// The exceeded limits of each worker.
fn limits_of_workers(rows: &[GeneratorRow]) -> Vec<String> {
    let mut workers: BTreeMap<u16, Vec<GeneratorRow>> = BTreeMap::new();
    rows.iter().for_each(|row| workers.entry(row.worker).or_default().push(row.clone()));
    let limits = workers.into_iter().flat_map(|(worker, rows)| {
        limits_passed(&rows).into_iter().map(move |limit| format!("worker {worker}: {limit}"))
    });
    limits.collect()
}

/// One row for the processes of all workers, and those of the threads.
fn of_all(rows: Vec<GeneratorRow>) -> Vec<GeneratorRow> {
    let (processes, mut all): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.thread.is_none());
    let sum = |part: fn(&GeneratorRow) -> u64| processes.iter().map(part).sum();
    let most = |part: fn(&GeneratorRow) -> u64| processes.iter().map(part).max().unwrap_or(0);
    if let Some(last) = processes.last() {
        all.push(GeneratorRow {
            cpu_us: sum(|row| row.cpu_us),
            run_queue_wait_us: sum(|row| row.run_queue_wait_us),
            lag_p99_us: most(|row| row.lag_p99_us),
            lag_max_us: most(|row| row.lag_max_us),
            socket_drops: sum(|row| row.socket_drops),
            ring_drops: sum(|row| row.ring_drops),
            ring_datagrams: sum(|row| row.ring_datagrams),
            ring_bytes: sum(|row| row.ring_bytes),
            send_drops: sum(|row| row.send_drops),
            sent_bytes: sum(|row| row.sent_bytes),
            rss_bytes: sum(|row| row.rss_bytes),
            open_fds: sum(|row| row.open_fds),
            steal_ratio: processes.iter().map(|row| row.steal_ratio).fold(0.0, f64::max),
            observations_dropped: sum(|row| row.observations_dropped),
            ..last.clone()
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use throng_observation::run::{CohortId, CrowdRow};
    use throng_observation::{Failure, FailureReason, Outcome, SecondClosed};

    use super::*;

    fn participant(reached: &[(Phase, i64)], outcome: Option<Outcome>) -> Row {
        Row::Participant(Box::new(ParticipantRow {
            participant: ParticipantId(3),
            cohort: CohortId(0),
            intended_at: RunTime(1_000_000),
            reached: reached.iter().map(|(phase, us)| (*phase, RunTime(*us))).collect(),
            ended_at: None,
            outcome,
            local_address: None,
        }))
    }

    #[test]
    fn a_second_of_all_workers_is_shown_once_it_is_closed_and_participants_count_once() {
        let mut live = MergedLive::new(10, RunTime(60_000_000));
        live.take(&Row::Crowd(CrowdRow { connected: 7, ..CrowdRow::default() }));
        assert_eq!(live.snapshot().crowd.connected, 0);
        let failed = Outcome::Failed(Failure::new(FailureReason::Ice, "no pair"));
        for outcome in [None, Some(failed)] {
            live.take(&participant(&[(Phase::FirstFrame, 1_250_000)], outcome));
        }
        for worker in [0, 1] {
            let process = GeneratorRow {
                worker,
                cpu_us: 100_000,
                lag_max_us: 500,
                ..GeneratorRow::default()
            };
            live.take(&Row::Generator(process.clone()));
            live.take(&Row::Generator(GeneratorRow { thread: Some(0), ..process }));
        }
        live.take(&Row::SecondClosed(SecondClosed::default()));
        let snapshot = live.snapshot();
        assert_eq!((snapshot.second, snapshot.planned, snapshot.crowd.connected), (Some(0), 10, 7));
        assert_eq!(snapshot.first_frame_ms.map(|ms| ms.count), Some(1));
        assert_eq!(snapshot.failures.values().sum::<u32>(), 1);
        let generator = &snapshot.generator;
        assert_eq!((generator.process.cpu_us, generator.process.lag_max_us), (200_000, 500));
        assert_eq!(generator.threads.len(), 2);
    }
}
