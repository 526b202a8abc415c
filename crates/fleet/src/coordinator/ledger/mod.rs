//! What the coordinator knows of its workers: who plays, who has ended, who is lost; and the rows
//! of all as those of one run.

mod decisions;
mod handover;
mod now;

use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::fleet::ReassignedJoins;
use throng_observation::run::{Ending, Row};

use crate::disciplined::ClockBasis;
use crate::inbox::{Arrival, Inbox};
use crate::merge::{MergeLimits, Merger, PlannedJoin, Taken, WorkerId, WorkerName};
use crate::message::{ClockSaid, Decision, End, Pulse, Reassignment};
use crate::reassign::Deal;
use crate::shares::Shares;
use crate::wire::{self, WireLimits};
use handover::Handover;

/// A worker that was not heard for so long is lost: people are told within five seconds.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(4);

/// After the bus was away, workers have so long to be heard again.
const AFTER_BUS: Duration = Duration::from_secs(6);

/// Bytes of a worker's batches that may wait for an earlier one.
const EARLY_BYTES_MAX: usize = 64 << 20;

/// How long nobody at all may be heard. Workers stop after eight seconds without their coordinator.
const DEAF_MAX: Duration = Duration::from_secs(12);

/// A coordinator that did not look for so long stood still itself.
const STOOD_STILL: Duration = Duration::from_millis(1500);

/// How long the last batches of a worker that has ended may take.
const LAST_ROWS_WITHIN: Duration = Duration::from_secs(30);

/// How long workers that are still there may take to bring the rest to whoever collects a run,
/// besides its patience.
const COLLECTED_WITHIN: Duration = Duration::from_secs(60);

/// When a worker ends early in order, its participants leave within so long before its end.
const LEAVES_WITHIN_US: i64 = 6_000_000;

/// What happened to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its number.
    pub worker: u16,
    /// What happened.
    pub what: NoticeKind,
}

/// Kinds of notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// It is lost, with everybody whom it played.
    Lost(String),
    /// Its part ended early by itself, with all that it had measured.
    EndedEarly(String),
    /// Its wall clock was set during the run.
    ClockStepped,
    /// What its host and the coordinator's say of their clocks contradicts the exchanges of their
    /// times.
    ClockContradicted,
    /// Nobody plays its participants, although others should; why not.
    NotReassigned(String),
    /// Others play its participants from a moment on.
    Reassigned {
        /// That moment.
        from: RunTime,
        /// Participants that join anew, in the places of lost ones.
        anew: u32,
        /// Participants that join as planned.
        planned: u32,
    },
}

/// The state of one worker.
#[derive(Clone, Debug)]
enum Fate {
    Plays,
    /// It has ended; its last rows may be on the way since then.
    Ends(End, Instant),
    Ended,
    Lost,
}

#[derive(Debug)]
struct WorkerState {
    heard_at: Instant,
    fate: Fate,
    inbox: Inbox,
    clock: ClockSaid,
    is_contradicted: bool,
    changed: u64,
    reassigned: u32,
    spooled_bytes: u64,
    given_up: u64,
}

/// How the run of a fleet ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetEnd {
    /// Complete if each worker's part is, aborted if one was aborted or lost, interrupted
    /// otherwise.
    pub ending: Ending,
    /// Why, if early.
    pub why: Option<String>,
    /// When the last participant had ended.
    pub ended_at: RunTime,
}

/// The workers of a run.
#[derive(Debug)]
pub struct Ledger {
    names: Vec<String>,
    workers: Vec<WorkerState>,
    joins: Vec<Vec<PlannedJoin>>,
    merger: Merger,
    heard_from: Instant,
    is_bus_up: bool,
    notices: Vec<Notice>,
    first_reason: Option<(Ending, String)>,
    ended_at: RunTime,
    shares: Shares,
    participants_max: u32,
    ticked_at: Instant,
    /// When everybody should have ended.
    deadline: Option<Instant>,
    started_at: Instant,
    handover: Option<Handover>,
    reassigned_joins: ReassignedJoins,
    decisions: Vec<Decision>,
    /// What a coordinator left that is gone is collected: silence means so much then, and decisions
    /// are its own.
    collects: Option<Duration>,
    /// What the bus had of the run was read: from then on silence counts. Always where a run is
    /// led.
    has_caught_up: bool,
}

impl Ledger {
    /// Of workers with these names, by number, their shares, and the joins of each, in order of
    /// their times.
    #[must_use]
    pub fn new(
        names: Vec<String>,
        shares: Shares,
        joins: Vec<Vec<PlannedJoin>>,
        limits: MergeLimits,
        now: Instant,
    ) -> Self {
        let worker = |_: &String| WorkerState {
            heard_at: now,
            fate: Fate::Plays,
            inbox: Inbox::new(EARLY_BYTES_MAX),
            clock: ClockSaid { bound_us: u64::MAX, ..ClockSaid::default() }, // not heard yet
            is_contradicted: false,
            changed: 0,
            reassigned: 0,
            spooled_bytes: 0,
            given_up: 0,
        };
        let known: Vec<WorkerName> = names.iter().cloned().map(WorkerName).collect();
        Self {
            workers: names.iter().map(worker).collect(),
            merger: Merger::new(&known, limits),
            names,
            joins,
            heard_from: now,
            is_bus_up: true,
            notices: Vec::new(),
            first_reason: None,
            ended_at: RunTime(0),
            shares,
            participants_max: limits.participants,
            ticked_at: now,
            deadline: None,
            started_at: now,
            handover: None,
            reassigned_joins: ReassignedJoins::default(),
            decisions: Vec::new(),
            collects: None,
            has_caught_up: true,
        }
    }

    /// Gives the participants of workers that are lost to the others, by `deal`.
    #[must_use]
    pub fn reassigning(self, deal: Deal) -> Self {
        Self { handover: Some(Handover::new(deal)), ..self }
    }

    /// Collects what the workers of a run have left whose coordinator is gone: once all was read
    /// that the bus has ([`Self::caught_up`]), a worker may be silent for `patience`.
    #[must_use]
    pub fn collecting(self, patience: Duration) -> Self {
        Self { collects: Some(patience), has_caught_up: false, ..self }
    }

    /// All was read that the bus had when the collecting began. What is to come has to come soon.
    pub fn caught_up(&mut self, now: Instant) {
        (self.has_caught_up, self.heard_from) = (true, now);
        self.end_by(now + self.collects.unwrap_or_default() + COLLECTED_WITHIN);
    }

    /// Plans a join that a search added to a worker's share.
    pub fn added(&mut self, worker: u16, join: PlannedJoin) {
        if let Some(joins) = self.joins.get_mut(usize::from(worker)) {
            joins.push(join);
        }
    }

    /// The connection to the bus came up or went down. While it is down, nobody can be heard.
    pub fn bus(&mut self, is_up: bool, now: Instant) {
        self.is_bus_up = is_up;
        self.heard_from = now + AFTER_BUS.saturating_sub(SILENCE_MAX);
    }

    /// Takes a pulse.
    pub fn pulse(&mut self, pulse: &Pulse, now: Instant) {
        let Some(state) = self.workers.get_mut(usize::from(pulse.worker)) else { return };
        state.heard_at = now;
        let worker = pulse.worker;
        if pulse.clock.steps > state.clock.steps {
            self.notices.push(Notice { worker, what: NoticeKind::ClockStepped });
        }
        // Told once: at the edge of a bound it may come and go.
        if pulse.clock.basis == ClockBasis::Contradicted && !state.is_contradicted {
            state.is_contradicted = true;
            self.notices.push(Notice { worker, what: NoticeKind::ClockContradicted });
        }
        (state.clock, state.changed, state.given_up) = (pulse.clock, pulse.changed, pulse.given_up);
        (state.reassigned, state.spooled_bytes) = (pulse.reassigned, pulse.spooled_bytes);
        if let Some(end) = &pulse.end {
            self.ends(worker, end, now);
        }
    }

    /// A worker says how its part ended. It may say so again.
    pub fn ends(&mut self, worker: u16, end: &End, now: Instant) {
        let state = self.workers.get_mut(usize::from(worker));
        let Some(state) = state.filter(|state| matches!(state.fate, Fate::Plays)) else { return };
        (state.heard_at, state.fate) = (now, Fate::Ends(end.clone(), now));
        self.ended_at = self.ended_at.max(end.ended_at);
        if end.ending != Ending::Complete {
            let why = end.why.clone().unwrap_or_else(|| "it was stopped".to_owned());
            let name = self.name(worker);
            self.first_reason.get_or_insert((end.ending, format!("worker {name}: {why}")));
            self.notices.push(Notice { worker, what: NoticeKind::EndedEarly(why) });
        }
    }

    /// Takes a batch of rows; merged rows are added to `out`.
    pub fn rows(
        &mut self,
        worker: u16,
        sequence: u64,
        bytes: Vec<u8>,
        now: Instant,
        out: &mut Vec<Row>,
    ) {
        let Some(state) = self.workers.get_mut(usize::from(worker)) else { return };
        if matches!(state.fate, Fate::Lost) {
            return;
        }
        state.heard_at = now;
        if state.inbox.take(sequence, bytes) == Arrival::NoRoom {
            self.lose(worker, now, "it sent more rows out of order than are kept", out);
            return;
        }
        while let Some((_, bytes)) =
            self.workers.get_mut(usize::from(worker)).and_then(|state| state.inbox.pop())
        {
            match wire::decode(&bytes, WireLimits::default()) {
                Ok(rows) => {
                    for row in rows {
                        let wrong = self.wrong(worker, &row).or_else(|| {
                            match self.merger.take(WorkerId(worker), row, out) {
                                Taken::Refused(why) => Some(why.to_string()),
                                Taken::Yes | Taken::Late => None,
                            }
                        });
                        if let Some(why) = wrong {
                            self.lose(
                                worker,
                                now,
                                &format!("it sent an impossible row: {why}"),
                                out,
                            );
                            return;
                        }
                    }
                }
                Err(error) => {
                    self.lose(
                        worker,
                        now,
                        &format!("it sent a batch that cannot be read: {error}"),
                        out,
                    );
                    return;
                }
            }
        }
    }

    /// What no engine would have written: figures that are no numbers, participants of other
    /// workers.
    fn wrong(&self, worker: u16, row: &Row) -> Option<String> {
        let figure = match row {
            Row::Generator(row) => Some(row.steal_ratio),
            Row::Track(row) => row.fps,
            _ => None,
        };
        if let Some(figure) = figure.filter(|figure| !figure.is_finite()) {
            return Some(format!("the value {figure}"));
        }
        let participant = match row {
            Row::Participant(row) => row.participant,
            Row::Track(row) => row.participant,
            Row::Player(row) => row.participant,
            Row::LayerSwitch(row) => row.participant,
            _ => return None,
        };
        let number = participant.0;
        let is_its_own = match &self.handover {
            Some(handover) => handover.plays(worker, number, &self.shares),
            None => number < self.participants_max && self.shares.worker_of(number) == worker,
        };
        (!is_its_own).then(|| format!("participant {number}, whom it does not play"))
    }

    /// Everybody should have ended by then; who has not is lost.
    pub fn end_by(&mut self, deadline: Instant) {
        self.deadline = Some(self.deadline.map_or(deadline, |known| known.min(deadline)));
    }

    /// Whether nobody who plays was heard: then it is the way, or this process that stood still,
    /// and not the workers.
    fn is_deaf(&self, now: Instant) -> bool {
        let mut playing =
            self.workers.iter().filter(|state| matches!(state.fate, Fate::Plays)).peekable();
        let silence = |state: &WorkerState| now.saturating_duration_since(state.heard_at);
        let several = playing.clone().count() > 1;
        self.collects.is_none()
            && playing.peek().is_some()
            && several
            && playing.all(|state| (SILENCE_MAX..DEAF_MAX).contains(&silence(state)))
    }

    /// Looks who is silent, and who has ended; merged rows are added to `out`.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<Row>) {
        if now.saturating_duration_since(self.ticked_at) > STOOD_STILL {
            // This process stood still: what workers said meanwhile has yet to be read.
            self.heard_from = now;
        }
        self.ticked_at = now;
        if self.is_deaf(now) {
            return;
        }
        if self.deadline.is_some_and(|deadline| now > deadline) {
            for worker in 0..u16::try_from(self.workers.len()).unwrap_or(u16::MAX) {
                self.lose(worker, now, "it did not end in time", out);
            }
        }
        for worker in 0..u16::try_from(self.workers.len()).unwrap_or(u16::MAX) {
            let Some(state) = self.workers.get_mut(usize::from(worker)) else { continue };
            let heard_at = state.heard_at.max(self.heard_from);
            let silence_max = self.collects.unwrap_or(SILENCE_MAX);
            match &state.fate {
                Fate::Ends(end, _) if state.inbox.confirmed() >= end.batches => {
                    let left_from = RunTime(end.ended_at.0.saturating_sub(LEAVES_WITHIN_US));
                    let is_early = end.ending != Ending::Complete;
                    state.fate = Fate::Ended;
                    // Who was stopped early has no later seconds.
                    let joins = self.joins.get_mut(usize::from(worker)).filter(|_| !is_early);
                    let joins = joins.map(std::mem::take).unwrap_or_default();
                    self.merger.finished(WorkerId(worker), joins, out);
                    if is_early
                        && let Some(reassignment) = self.reassignment(worker, left_from, now)
                    {
                        self.hand_over(&reassignment);
                        self.note(Decision {
                            worker,
                            gave_up: None,
                            reassignment: Some(reassignment),
                        });
                    }
                }
                Fate::Ends(_, since)
                    if self.has_caught_up
                        && now.saturating_duration_since((*since).max(self.heard_from))
                            > LAST_ROWS_WITHIN =>
                {
                    self.lose(worker, now, "its last rows did not come", out);
                }
                Fate::Plays
                    if self.is_bus_up
                        && self.has_caught_up
                        && now.saturating_duration_since(heard_at) > silence_max =>
                {
                    let why = match self.collects {
                        Some(_) => "its last rows are not on the bus, and it did not deliver them"
                            .to_owned(),
                        None => {
                            format!("nothing was heard from it for {} s", SILENCE_MAX.as_secs())
                        }
                    };
                    self.lose(worker, now, &why, out);
                }
                _ => {}
            }
        }
    }

    /// Gives a worker up: nothing of it counts from the second on that it had not closed.
    pub fn lose(&mut self, worker: u16, now: Instant, why: &str, out: &mut Vec<Row>) {
        if self.is_gone(worker) {
            return;
        }
        let reassignment = self.reassignment(worker, RunTime(i64::MAX), now);
        self.give_up(worker, why, reassignment.as_ref(), out);
        self.note(Decision { worker, gave_up: Some(why.to_owned()), reassignment });
    }

    /// Whether a worker has ended or is lost.
    fn is_gone(&self, worker: u16) -> bool {
        let state = self.workers.get(usize::from(worker));
        state.is_none_or(|state| matches!(state.fate, Fate::Ended | Fate::Lost))
    }

    fn give_up(
        &mut self,
        worker: u16,
        why: &str,
        reassignment: Option<&Reassignment>,
        out: &mut Vec<Row>,
    ) {
        let name = self.name(worker);
        // What is collected later comes at other times.
        let started_at = self.collects.is_none().then_some(self.started_at);
        let Some(state) = self.workers.get_mut(usize::from(worker)) else { return };
        state.fate = Fate::Lost;
        let heard = started_at.map(|started_at| run_time(started_at, state.heard_at));
        let closed = self.merger.watermark(WorkerId(worker)).map_or(0, |second| second + 1);
        let at = RunTime(closed.saturating_mul(1_000_000));
        self.ended_at = self.ended_at.max(at);
        let joins = self.joins.get_mut(usize::from(worker)).map(std::mem::take).unwrap_or_default();
        // Whoever was to join until others may play it is lost, too.
        let due = reassignment.map_or(at, |given| RunTime(given.from.0.saturating_sub(1)).max(at));
        self.merger.lost_with_joins_until(WorkerId(worker), (at, due), heard, joins, out);
        self.first_reason
            .get_or_insert((Ending::Aborted, format!("worker {name} was lost: {why}")));
        self.notices.push(Notice { worker, what: NoticeKind::Lost(why.to_owned()) });
        reassignment.iter().for_each(|reassignment| self.hand_over(reassignment));
    }

    /// What happened since the last time.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The name of a worker.
    #[must_use]
    pub fn name(&self, worker: u16) -> String {
        self.names.get(usize::from(worker)).cloned().unwrap_or_else(|| worker.to_string())
    }

    /// What is missing in the rows of a worker that has ended in order, as a sentence.
    #[must_use]
    pub fn missing(&self, worker: u16) -> Option<String> {
        let state = self
            .workers
            .get(usize::from(worker))
            .filter(|state| matches!(state.fate, Fate::Ended))?;
        let counts = self.merger.counts(WorkerId(worker));
        let name = self.name(worker);
        let rows = counts.late_rows + counts.unclosed_rows;
        match (state.given_up, rows, counts.missing_seconds) {
            (0, 0, 0) => None,
            (0, rows, seconds) => {
                Some(format!("{rows} rows and {seconds} seconds of worker {name} are missing"))
            }
            (batches, ..) => Some(format!(
                "worker {name} had no room for {batches} batches of rows while the bus was away \
                 (--spool-mb)"
            )),
        }
    }

    /// What a worker said last of its clock; `None` if it knew nothing, or said what cannot be.
    #[must_use]
    pub fn clock(&self, worker: u16) -> Option<ClockSaid> {
        let said = self.workers.get(usize::from(worker)).map(|state| state.clock);
        said.filter(ClockSaid::is_known)
    }

    /// The numbers of all workers.
    pub fn workers(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.workers.len()).unwrap_or(u16::MAX)
    }

    /// The last change of the crowd that all workers have made that still play.
    #[must_use]
    pub fn changed_by_all(&self) -> u64 {
        let playing = self.workers.iter().filter(|state| matches!(state.fate, Fate::Plays));
        playing.map(|state| state.changed).min().unwrap_or(u64::MAX)
    }

    /// When the last participant had ended, of the workers that have.
    #[must_use]
    pub fn last_end(&self) -> RunTime {
        self.ended_at
    }

    /// The workers that are lost.
    #[must_use]
    pub fn lost(&self) -> Vec<u16> {
        let all = (0..).zip(&self.workers);
        all.filter(|(_, state)| matches!(state.fate, Fate::Lost))
            .map(|(worker, _)| worker)
            .collect()
    }

    /// How the run ended, once every worker has ended or is lost, and all rows are merged.
    #[must_use]
    pub fn end(&self) -> Option<FleetEnd> {
        let is_over = |state: &WorkerState| matches!(state.fate, Fate::Ended | Fate::Lost);
        self.workers.iter().all(is_over).then(|| {
            let (ending, why) = self.first_reason.clone().unzip();
            FleetEnd { ending: ending.unwrap_or(Ending::Complete), why, ended_at: self.ended_at }
        })
    }
}

/// A moment of a run that started at `started_at`.
fn run_time(started_at: Instant, at: Instant) -> RunTime {
    let us = at.saturating_duration_since(started_at).as_micros();
    RunTime(i64::try_from(us).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
