//! The rows of all workers as the rows of one run, as if one machine had played the whole crowd.
//!
//! A second is *sealed*, and its rows written, when every worker that is alive has closed it. A
//! worker's rows of a second count from the moment it closes it: of a worker that is lost in the
//! middle of one, nothing of that second is counted. Counters and distributions add up; rows about
//! one participant pass through, because each is played by one worker.
//!
//! What a worker sends may be wrong. It is refused and counted for that worker, and takes no more
//! memory than [`MergeLimits`] and the constants here allow.

mod crowd;
mod experience;
mod family;
mod http_requests;
mod intake;
mod participants;
mod second;
mod taken;
mod unserved;
mod worker;

use std::collections::BTreeMap;

use throng_observation::RunTime;
use throng_observation::run::{EventRow, Row};

use http_requests::Requests;
use participants::Participants;
pub use participants::PlannedJoin;
use second::OpenSecond;
pub use taken::{MergeLimits, Refusal, Taken};
use unserved::Unserved;
use worker::{Absence, State, Worker};
pub use worker::{Counts, WorkerId, WorkerName};

pub use throng_observation::fleet::WORKER_LOST_EVENT;

/// Merges the rows of a fleet.
#[derive(Debug)]
pub struct Merger {
    limits: MergeLimits,
    workers: Vec<Worker>,
    /// The next second to seal.
    open: i64,
    seconds: BTreeMap<i64, OpenSecond>,
    requests: Requests,
    participants: Participants,
}

impl Merger {
    /// A merge of the rows of `workers`, all alive; their ids are their places in the list.
    #[must_use]
    pub fn new(workers: &[WorkerName], limits: MergeLimits) -> Self {
        Self {
            limits,
            workers: workers.iter().map(Worker::new).collect(),
            open: 0,
            seconds: BTreeMap::new(),
            requests: Requests::default(),
            participants: Participants::default(),
        }
    }

    /// Takes a row of `worker`. Rows of one worker come in the order in which its engine made them,
    /// each once (see [`Inbox`](crate::inbox::Inbox)). Merged rows are added to `out`.
    pub fn take(&mut self, worker: WorkerId, row: Row, out: &mut Vec<Row>) -> Taken {
        let taken = match self.workers.get(usize::from(worker.0)) {
            None => return Taken::Refused(Refusal::UnknownWorker),
            Some(one) if !one.is_live() => Taken::Late,
            Some(_) => self.sort(worker.0, row, out),
        };
        if let Some(one) = self.workers.get_mut(usize::from(worker.0)) {
            match taken {
                Taken::Yes => {}
                Taken::Late => one.counts.late_rows += 1,
                Taken::Refused(_) => one.counts.refused_rows += 1,
            }
        }
        taken
    }

    /// `worker` has ended as planned, and all its rows were taken: no second waits for it any more.
    /// Of its `joins` those that failed remain bad users of the seconds in which they should have
    /// been served.
    pub fn finished(
        &mut self,
        worker: WorkerId,
        joins: impl IntoIterator<Item = PlannedJoin>,
        out: &mut Vec<Row>,
    ) {
        if self.end(worker, State::Finished).is_some() {
            let unserved = Unserved::new(self.participants.failed(joins));
            if let Some(one) = self.workers.get_mut(usize::from(worker.0)) {
                one.unserved = unserved;
            }
            self.seal(out);
        }
    }

    /// `worker` was lost at `at`: no second waits for it any more, and its participants are lost by
    /// the generator. `joins` are those of its share. Those that were due at `at` and had not ended
    /// get a last row with
    /// [`FailureReason::WorkerLost`](throng_observation::FailureReason::WorkerLost), which counts
    /// as cut off and never as failed; of later ones there is no row, as on a machine that ends
    /// early. Rows of it that come later are late.
    pub fn lost(
        &mut self,
        worker: WorkerId,
        at: RunTime,
        joins: impl IntoIterator<Item = PlannedJoin>,
        out: &mut Vec<Row>,
    ) {
        self.lost_with_joins_until(worker, (at, at), None, joins, out);
    }

    /// The same, where others play its participants after a while: of its `joins` those until the
    /// second of these times are lost with it. What it did from the first one until it was last
    /// heard is not known.
    pub fn lost_with_joins_until(
        &mut self,
        worker: WorkerId,
        (at, due): (RunTime, RunTime),
        heard: Option<RunTime>,
        joins: impl IntoIterator<Item = PlannedJoin>,
        out: &mut Vec<Row>,
    ) {
        let Some(name) = self.end(worker, State::Lost(at)) else { return };
        let why =
            format!("{name} was lost at {:.1} s, and this participant with it", at.as_secs_f64());
        let before = out.len();
        let rows = self.participants.lost(worker.0, (at, due), &why, joins);
        out.extend(rows.map(|row| Row::Participant(Box::new(row))));
        let lost = u32::try_from(out.len() - before).unwrap_or(u32::MAX);
        let detail = format!(
            "{name} was lost: {lost} participants that it played are lost by the generator, and \
             count neither as served nor as failed{}",
            heard.filter(|heard| *heard > at).map(|heard| gap(at, heard)).unwrap_or_default()
        );
        let kind = WORKER_LOST_EVENT.to_owned();
        out.push(Row::Event(EventRow {
            at,
            participant: None,
            kind,
            count: lost,
            detail: detail.into(),
        }));
        self.seal(out);
    }

    /// The numbers of the participants of `worker` that had ended before a moment, ascending.
    #[must_use]
    pub fn ended(&self, worker: WorkerId, before: RunTime) -> Vec<u32> {
        let mut ended: Vec<u32> =
            self.participants.ended(worker.0, before).map(|id| id.0).collect();
        ended.sort_unstable();
        ended
    }

    /// The last second that `worker` has closed; `None` before the first one.
    #[must_use]
    pub fn watermark(&self, worker: WorkerId) -> Option<i64> {
        self.workers.get(usize::from(worker.0))?.watermark
    }

    /// How many participants of `worker` played in the last sealed second; none of one that has
    /// ended.
    #[must_use]
    pub fn playing(&self, worker: WorkerId) -> u32 {
        let worker = self.workers.get(usize::from(worker.0)).filter(|worker| worker.is_live());
        worker.map_or(0, Worker::playing)
    }

    /// The workers for which the next second waits: alive, and they have not closed it.
    pub fn awaited(&self) -> impl Iterator<Item = WorkerId> {
        let workers = (0..).map(WorkerId).zip(&self.workers);
        workers
            .filter(|(_, worker)| worker.is_live() && !worker.has_passed(self.open))
            .map(|(id, _)| id)
    }

    /// How many seconds are kept because a worker has not closed an earlier one.
    #[must_use]
    pub fn seconds_kept(&self) -> usize {
        self.seconds.len()
    }

    /// What of a worker's rows is not in the merged ones.
    #[must_use]
    pub fn counts(&self, worker: WorkerId) -> Counts {
        self.workers.get(usize::from(worker.0)).map(|worker| worker.counts).unwrap_or_default()
    }

    /// Ends a worker that is alive, and returns its name.
    fn end(&mut self, worker: WorkerId, state: State) -> Option<WorkerName> {
        let worker =
            self.workers.get_mut(usize::from(worker.0)).filter(|worker| worker.is_live())?;
        worker.end(state);
        Some(worker.name.clone())
    }

    /// Seals the seconds for which no worker is awaited, and writes what is left when all have
    /// ended.
    fn seal(&mut self, out: &mut Vec<Row>) {
        while self.workers.iter().any(|worker| worker.has_passed(self.open))
            && self.awaited().next().is_none()
        {
            self.seal_second(out);
        }
        if !self.workers.iter().any(Worker::is_live) {
            self.requests.take_changed(out);
        }
    }

    fn seal_second(&mut self, out: &mut Vec<Row>) {
        let second = self.open;
        let mut sums = self.seconds.remove(&second).unwrap_or_default();
        for (id, worker) in (0..).zip(&mut self.workers) {
            if sums.is_closed_by(id) {
                worker.sealed(sums.crowd_of(id));
                continue;
            }
            let absence = worker.absence(second);
            sums.unserved(worker.unserved.rows(second));
            if absence != Absence::Ended {
                worker.counts.missing_seconds += 1;
                sums.miss();
            }
            worker.crowd_without_it(second, absence).for_each(|row| sums.add(id, Row::Crowd(row)));
        }
        sums.seal(second, &mut self.requests, out);
        self.open += 1;
    }
}

/// What is not known of a worker, as the rest of a sentence.
fn gap(at: RunTime, heard: RunTime) -> String {
    let (at_s, heard_s) = (at.as_secs_f64(), heard.as_secs_f64());
    format!(
        "; {:.1} s of it are not known: its last whole second ended at {at_s:.1} s, and it was \
         heard until {heard_s:.1} s",
        heard_s - at_s
    )
}

#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod tests;
