//! Which joins are traced, and their spans: the session of the participant, whose parts are the
//! phases of its join. A part is sent once its phase is reached, the session when it is over.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::Value;
use throng_observation::run::{ParticipantId, ParticipantRow};
use throng_observation::{Outcome, Phase, RunTime};

use super::attribute::{plain, shown, whole};
use super::span::Span;
use super::trace_ids::TraceContext;

/// How many sessions that are over are remembered, as rows of them come again; of as many joins a
/// second as can be traced, those of some seconds.
const OVER_MAX: usize = 4_096;

/// Which participants have traces: at most so many of those that are to join in the same second,
/// the first that are asked about. What it keeps grows with the crowd, and not with the run.
#[derive(Debug)]
pub(super) struct TracedJoins {
    seed: u64,
    most_per_second: u32,
    taken: BTreeMap<i64, u32>,
    /// Of the seconds before this one nobody else gets a trace: it may have had one and be
    /// forgotten.
    decided_before: i64,
    told: HashMap<ParticipantId, JoinProgress>,
    /// Whose sessions are over, and the seconds of their joins, in the order of their ends.
    over: VecDeque<(ParticipantId, i64)>,
}

/// What was said of a participant.
#[derive(Clone, Copy, Debug, Default)]
struct JoinProgress {
    /// A bit for each phase.
    phases: u32,
    is_over: bool,
}

impl TracedJoins {
    pub(super) fn new(seed: u64, most_per_second: u32) -> Self {
        Self {
            seed,
            most_per_second,
            taken: BTreeMap::new(),
            decided_before: i64::MIN,
            told: HashMap::new(),
            over: VecDeque::new(),
        }
    }

    /// The trace of a join, if it has one: the same answer each time, until it is forgotten.
    pub(super) fn trace(
        &mut self,
        participant: ParticipantId,
        intended_at: RunTime,
    ) -> Option<TraceContext> {
        let trace = TraceContext::of_join(self.seed, participant);
        if self.told.contains_key(&participant) {
            return Some(trace);
        }
        let second = intended_at.second();
        if self.most_per_second == 0 || second < self.decided_before {
            return None;
        }
        let taken = self.taken.entry(second).or_default();
        if *taken >= self.most_per_second {
            return None;
        }
        *taken += 1;
        self.told.insert(participant, JoinProgress::default());
        Some(trace)
    }

    /// The spans that a row makes known; `cohort` is the name of the participant's.
    pub(super) fn spans(&mut self, row: &ParticipantRow, cohort: &str) -> Vec<Span> {
        let Some(trace) = self.trace(row.participant, row.intended_at) else { return Vec::new() };
        let told = self.told.entry(row.participant).or_default();
        let mut reached: Vec<(Phase, RunTime)> =
            row.reached.iter().map(|(phase, at)| (*phase, *at)).collect();
        reached.sort_by_key(|(_, at)| *at);
        let (mut spans, mut from) = (Vec::new(), row.intended_at);
        for (phase, at) in reached {
            let place = phase as u32;
            let bit = 1_u32.checked_shl(place).unwrap_or(0);
            if told.phases & bit == 0 {
                told.phases |= bit;
                spans.push(Span::part(trace, place + 1, phase.key(), (from, at)));
            }
            from = from.max(at);
        }
        if let Some(outcome) = &row.outcome
            && !std::mem::replace(&mut told.is_over, true)
        {
            let until = row.ended_at.unwrap_or(from);
            let times = (row.intended_at, until);
            let span = Span::first(trace, "session", times, attributes(row, cohort));
            let run = TraceContext::of_run(self.seed);
            spans.push(span.of_client_in(run).with_error(error(outcome)));
            self.end(row.participant, row.intended_at.second());
        }
        spans
    }

    /// Notes that a session is over, and forgets the one that has been over for longest.
    fn end(&mut self, participant: ParticipantId, second: i64) {
        self.over.push_back((participant, second));
        if self.over.len() > OVER_MAX
            && let Some((oldest, second)) = self.over.pop_front()
        {
            self.told.remove(&oldest);
            self.decided_before = self.decided_before.max(second.saturating_add(1));
            self.taken = self.taken.split_off(&self.decided_before);
        }
    }
}

fn attributes(row: &ParticipantRow, cohort: &str) -> Vec<Value> {
    let mut attributes =
        vec![plain("throng.cohort", cohort), whole("throng.participant", row.participant.0)];
    if let Some(Outcome::Failed(failure)) = &row.outcome {
        attributes.push(plain("error.type", &failure.reason.key()));
    }
    attributes
}

/// Why a session failed. Of one whose observation ended before, nobody knows that it did.
fn error(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed(failure) if !failure.reason.is_censored() => {
            Some(shown(failure.detail.as_str()))
        }
        Outcome::Failed(_) | Outcome::Completed => None,
    }
}
