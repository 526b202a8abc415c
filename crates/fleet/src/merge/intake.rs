//! Where the rows of a worker go: rows that add up wait until their second is closed, others pass
//! through.

use throng_observation::run::{EventRow, ParticipantId, Row};
use throng_observation::{ExperienceRow, SecondClosed};

use super::participants::Participants;
use super::{Merger, Refusal, Taken};

/// Most rows of a worker that wait for the end of their second.
pub(super) const STAGED_MAX: usize = 65_536;

/// Most events of a worker: an engine writes at most a thousand of each kind.
const EVENTS_MAX: u32 = 100_000;

impl Merger {
    /// Takes a row of a worker that is alive.
    pub(super) fn sort(&mut self, worker: u16, row: Row, out: &mut Vec<Row>) -> Taken {
        match row {
            Row::Crowd(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Series(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Sent(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Playback(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            Row::Chat(ref at) => self.stage(worker, at.second, at.cohort.0, row),
            // One machine writes late health rows with a later second as well; nothing adds up in
            // them.
            Row::Generator(_) => self.keep(worker, row),
            Row::SecondClosed(closed) => self.close(worker, closed, out),
            Row::Participant(row) => {
                self.participant(worker, row.participant, out, |participants| {
                    participants.seen(worker, &row);
                    Row::Participant(row)
                })
            }
            Row::Track(row) => self.participant(worker, row.participant, out, |_| Row::Track(row)),
            Row::Player(row) => {
                self.participant(worker, row.participant, out, |_| Row::Player(row))
            }
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
        let is_late =
            self.workers.get(usize::from(worker)).is_none_or(|worker| worker.has_passed(second));
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
        let is_right =
            |row: &ExperienceRow| row.second == second && row.cohort.0 < self.limits.cohorts;
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
        let detail = format!("{}: {}", worker.name, row.detail).into();
        out.push(Row::Event(EventRow { detail, ..row }));
        Taken::Yes
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
        Row::Generator(_)
        | Row::SecondClosed(_)
        | Row::Participant(_)
        | Row::Track(_)
        | Row::Player(_)
        | Row::HttpRequests(_)
        | Row::LayerSwitch(_)
        | Row::Event(_)
        | Row::Hold(_)
        | Row::Canary(_)
        | Row::Host(_) => None,
    }
}
