//! The rows of all workers as the rows of one run, as if one machine had played the whole crowd.
//!
//! A second is *sealed*, and its rows written, when every worker that is alive has closed it. A worker's rows of a second count
//! from the moment it closes it: of a worker that is lost in the middle of one, nothing of that second is counted. Counters
//! and distributions add up; rows about one participant pass through, because each is played by one worker.
//!
//! What a worker sends may be wrong. It is refused and counted for that worker, and takes no more memory than
//! [`MergeLimits`] and the constants here allow.

mod chat;
mod crowd;
mod experience;
mod family;
mod http_requests;
mod participants;
mod playback;
mod second;
mod sent;
mod series;
mod worker;

use std::collections::BTreeMap;

use throng_observation::run::{EventRow, ParticipantId, Row};
use throng_observation::{ExperienceRow, RunTime, SecondClosed};

use http_requests::Requests;
use participants::Participants;
pub use participants::PlannedJoin;
use second::OpenSecond;
use worker::{Absence, State, Worker};
pub use worker::{Counts, WorkerId, WorkerName};

/// The event of a worker that was lost. Its count is the number of participants that were lost with it.
pub const WORKER_LOST_EVENT: &str = "worker_lost";

/// Most rows of a worker that wait for the end of their second.
const STAGED_MAX: usize = 65_536;

/// Most events of a worker: an engine writes at most a thousand of each kind.
const EVENTS_MAX: u32 = 100_000;

/// What rows of a run can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeLimits {
    /// Cohorts of the scenario.
    pub cohorts: u16,
    /// The last second that the run can have: its planned end, and some time for its participants to leave.
    pub second_max: i64,
    /// Participants that the run can have, those that a search adds included.
    pub participants: u32,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is, or will be, in the merged rows.
    Yes,
    /// Its second was closed before, or its worker had ended: it is not in the merged rows.
    Late,
    /// It cannot be; it is not in the merged rows.
    Refused(Refusal),
}

/// Why a row cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The fleet has no such worker.
    #[error("the fleet has no worker of this number")]
    UnknownWorker,
    /// The run has no such second, cohort or participant.
    #[error("the row has a second, cohort or participant that the run does not have")]
    OutOfRun,
    /// The participant is played by another worker.
    #[error("the row is about a participant of another worker")]
    NotItsParticipant,
    /// The worker sends more than any engine does.
    #[error("the worker has sent more rows of this kind than are taken from one")]
    TooMany,
    /// Only the coordinator makes such rows.
    #[error("rows of this kind come from the coordinator only")]
    NotAWorkers,
}

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

    /// Takes a row of `worker`. Rows of one worker come in the order in which its engine made them, each once (see
    /// [`Inbox`](crate::inbox::Inbox)). Merged rows are added to `out`.
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
    pub fn finished(&mut self, worker: WorkerId, out: &mut Vec<Row>) {
        if self.end(worker, State::Finished).is_some() {
            self.seal(out);
        }
    }

    /// `worker` was lost at `at`: no second waits for it any more, and its participants are lost by the generator. `joins` are
    /// those of its share. Those that were due at `at` and had not ended get a last row with
    /// [`FailureReason::WorkerLost`](throng_observation::FailureReason::WorkerLost), which counts as cut off and never as failed;
    /// of later ones there is no row, as on a machine that ends early. Rows of it that come later are late.
    pub fn lost(
        &mut self,
        worker: WorkerId,
        at: RunTime,
        joins: impl IntoIterator<Item = PlannedJoin>,
        out: &mut Vec<Row>,
    ) {
        let Some(name) = self.end(worker, State::Lost(at)) else { return };
        let why = format!("{name} was lost at {:.1} s, and this participant with it", at.as_secs_f64());
        let before = out.len();
        let rows = self.participants.lost(worker.0, at, &why, joins);
        out.extend(rows.map(|row| Row::Participant(Box::new(row))));
        let lost = u32::try_from(out.len() - before).unwrap_or(u32::MAX);
        let detail = format!(
            "{name} was lost: {lost} participants that it played are lost by the generator, and count neither as served nor as \
             failed"
        );
        let kind = WORKER_LOST_EVENT.to_owned();
        out.push(Row::Event(EventRow { at, participant: None, kind, count: lost, detail }));
        self.seal(out);
    }

    /// The last second that `worker` has closed; `None` before the first one.
    #[must_use]
    pub fn watermark(&self, worker: WorkerId) -> Option<i64> {
        self.workers.get(usize::from(worker.0))?.watermark
    }

    /// The second that is sealed next.
    #[must_use]
    pub fn open_second(&self) -> i64 {
        self.open
    }

    /// The workers for which the next second waits: alive, and they have not closed it.
    pub fn awaited(&self) -> impl Iterator<Item = WorkerId> {
        let workers = (0..).map(WorkerId).zip(&self.workers);
        workers.filter(|(_, worker)| worker.is_live() && !worker.has_passed(self.open)).map(|(id, _)| id)
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
        let worker = self.workers.get_mut(usize::from(worker.0)).filter(|worker| worker.is_live())?;
        worker.end(state);
        Some(worker.name.clone())
    }

    fn sort(&mut self, worker: u16, row: Row, out: &mut Vec<Row>) -> Taken {
        match row {
            Row::Crowd(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Series(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Sent(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Playback(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Chat(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            // One machine writes late health rows with a later second as well; nothing adds up in them.
            Row::Generator(_) => self.keep(worker, row),
            Row::SecondClosed(closed) => self.close(worker, closed, out),
            Row::Participant(row) => self.participant(worker, row.participant, out, |participants| {
                participants.seen(worker, &row);
                Row::Participant(row)
            }),
            Row::Track(row) => self.participant(worker, row.participant, out, |_| Row::Track(row)),
            Row::Player(row) => self.participant(worker, row.participant, out, |_| Row::Player(row)),
            Row::LayerSwitch(row) => {
                self.participant(worker, row.participant, out, |_| Row::LayerSwitch(row))
            }
            Row::HttpRequests(row) => match self.requests.take(worker, *row) {
                true => Taken::Yes,
                false => Taken::Refused(Refusal::TooMany),
            },
            Row::Event(row) => self.event(worker, row, out),
            Row::Hold(_) | Row::Canary(_) | Row::Host(_) => Taken::Refused(Refusal::NotAWorkers),
        }
    }

    /// Keeps a row of a second until its worker closes it.
    fn stage(&mut self, worker: u16, second: i64, cohort: u16, row: Row) -> Taken {
        if !self.has(second) || cohort >= self.limits.cohorts {
            return Taken::Refused(Refusal::OutOfRun);
        }
        let is_late = self.workers.get(usize::from(worker)).is_none_or(|worker| worker.has_passed(second));
        if is_late { Taken::Late } else { self.keep(worker, row) }
    }

    fn keep(&mut self, worker: u16, row: Row) -> Taken {
        let worker = self.workers.get_mut(usize::from(worker));
        let Some(worker) = worker.filter(|worker| worker.staged.len() < STAGED_MAX) else {
            return Taken::Refused(Refusal::TooMany);
        };
        worker.staged.push(row);
        Taken::Yes
    }

    /// Whether the run can have this second.
    fn has(&self, second: i64) -> bool {
        (0..=self.limits.second_max).contains(&second)
    }

    /// A worker closes a second, and all before it.
    fn close(&mut self, worker: u16, closed: SecondClosed, out: &mut Vec<Row>) -> Taken {
        let second = closed.second;
        let is_right = |row: &ExperienceRow| row.second == second && row.cohort.0 < self.limits.cohorts;
        if !self.has(second) || !closed.experience.iter().all(is_right) {
            return Taken::Refused(Refusal::OutOfRun);
        }
        let Some(one) = self.workers.get_mut(usize::from(worker)) else {
            return Taken::Refused(Refusal::UnknownWorker);
        };
        if one.has_passed(second) {
            return Taken::Late;
        }
        one.watermark = Some(second);
        for row in std::mem::take(&mut one.staged) {
            match second_of(&row) {
                Some(later) if later > second => one.staged.push(row),
                at => self.seconds.entry(at.unwrap_or(second)).or_default().add(worker, row),
            }
        }
        self.seconds.entry(second).or_default().close(worker, closed);
        self.seal(out);
        Taken::Yes
    }

    fn participant(
        &mut self,
        worker: u16,
        participant: ParticipantId,
        out: &mut Vec<Row>,
        row: impl FnOnce(&mut Participants) -> Row,
    ) -> Taken {
        if participant.0 >= self.limits.participants {
            return Taken::Refused(Refusal::OutOfRun);
        }
        if !self.participants.may_tell(worker, participant) {
            return Taken::Refused(Refusal::NotItsParticipant);
        }
        out.push(row(&mut self.participants));
        Taken::Yes
    }

    fn event(&mut self, worker: u16, row: EventRow, out: &mut Vec<Row>) -> Taken {
        let worker = self.workers.get_mut(usize::from(worker));
        let Some(worker) = worker.filter(|worker| worker.events < EVENTS_MAX) else {
            return Taken::Refused(Refusal::TooMany);
        };
        worker.events += 1;
        let detail = format!("{}: {}", worker.name, row.detail);
        out.push(Row::Event(EventRow { detail, ..row }));
        Taken::Yes
    }

    /// Seals the seconds for which no worker is awaited, and writes what is left when all have ended.
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

/// The second that a row which adds up belongs to.
fn second_of(row: &Row) -> Option<i64> {
    match row {
        Row::Crowd(row) => Some(row.second),
        Row::Series(row) => Some(row.second),
        Row::Sent(row) => Some(row.second),
        Row::Playback(row) => Some(row.second),
        Row::Chat(row) => Some(row.second),
        _ => None,
    }
}

#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod tests;
