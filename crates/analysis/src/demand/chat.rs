//! What a chat costs its server: a join, and each presence, vCard and message that is delivered to
//! somebody.
//!
//! A join is an impulse, no steady demand, and it costs more the more are there: a room tells each
//! of its N participants of each other, which are N (N + 1) presences (its own account's included),
//! and as many vCards where everybody asks for everybody's. The deliveries of each second, counted
//! where they arrived, explain the CPU time that a thread used in it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::ChatCounters;
use throng_observation::host::catalogue::THREAD_CPU;
use throng_observation::host::measured::{Grid, Host, MeasuredSeries};
use throng_observation::run::RunData;

use super::additive::{Costs, Row, half_interval};
use crate::knowledge::{CROWD_GROUP, Knowledge};

/// Longest part of a run that is used: a day.
const SECONDS_MAX: i64 = 86_400;
/// Least share of a thread's variance that deliveries explain.
const EXPLAINED_MIN: f64 = 0.5;
/// How much of what the participants count to a second they received in the one before it, in it,
/// and in the one after it: they count to the middle of their own seconds, which begin at any time.
const SMEAR: [f64; 3] = [0.125, 0.75, 0.125];

/// What a server does for a chat.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ChatWork {
    /// Somebody comes into a room, without the deliveries to others and of others.
    Join,
    /// A presence is delivered.
    Presence,
    /// A vCard is delivered.
    Vcard,
    /// A message is delivered, one of the archive included.
    Message,
}

impl ChatWork {
    /// In the order in which costs are kept.
    pub const ALL: [Self; 4] = [Self::Join, Self::Presence, Self::Vcard, Self::Message];

    /// Its name in tables: `presences`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Join => "joins",
            Self::Presence => "presences",
            Self::Vcard => "vCards",
            Self::Message => "messages",
        }
    }

    /// Its place among the kinds of work, after the time itself.
    pub(crate) fn place(self) -> usize {
        self as usize + 1
    }
}

/// Kinds of work: the time itself, and those of [`ChatWork`].
pub(crate) const KINDS: usize = 1 + ChatWork::ALL.len();

/// What one of a kind of work costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatWorkCost {
    /// Which.
    pub work: ChatWork,
    /// How many there were in the run.
    pub count: u64,
    /// CPU time of the thread for each, microseconds; 0 if it cannot be told from that of the
    /// others.
    pub cpu_us: f64,
    /// Half its 95 % interval.
    pub cpu_us_error: f64,
    /// Bytes that arrived for each, without those of WebSocket and below.
    pub bytes: f64,
}

/// What a chat costs the thread that works most for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatCost {
    /// The thread.
    pub thread: String,
    /// What it uses without any of that, cores.
    pub idle: f64,
    /// Each kind of work that occurred.
    pub costs: Vec<ChatWorkCost>,
    /// Covariances of the costs in seconds squared: of a second, and of each kind of work.
    pub covariance: [[f64; KINDS]; KINDS],
    /// The share of the variance of its use that they explain.
    pub explained: f64,
    /// Seconds behind them.
    pub seconds: u32,
    /// Most participants that were in one room.
    pub room_max: u32,
    /// Joins a second while they joined.
    pub joins_per_second: f64,
    /// Messages that a participant said each second.
    pub messages_per_second: f64,
}

impl ChatCost {
    /// The costs of the run's chat on a host; `None` where there is no chat, or no thread of the
    /// host works for it.
    #[must_use]
    pub fn of(run: &RunData, host: &Host<'_>, knowledge: &Knowledge) -> Option<Self> {
        let seconds = Seconds::of(run)?;
        let threads = host.metric(THREAD_CPU.name).iter();
        threads
            .filter(|thread| {
                knowledge.group(thread.label("process"), thread.label("thread")) != CROWD_GROUP
            })
            .filter_map(|thread| of_thread(&seconds, thread))
            .max_by(|a, b| a.cpu_s().total_cmp(&b.cpu_s()))
    }

    /// The cost of one kind of work; `None` if it did not occur.
    #[must_use]
    pub fn cost(&self, work: ChatWork) -> Option<&ChatWorkCost> {
        self.costs.iter().find(|cost| cost.work == work)
    }

    /// CPU time of all deliveries, seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.costs.iter().map(|cost| cost.count as f64 * cost.cpu_us / 1e6).sum()
    }

    /// Half the 95 % interval of what `counts` of the kinds cost, CPU-seconds.
    pub(crate) fn error_of(&self, counts: impl Fn(ChatWork) -> f64) -> f64 {
        let mut factors = [0.0; KINDS];
        for work in ChatWork::ALL {
            factors[work.place()] = counts(work);
        }
        half_interval(&self.covariance, &factors, self.seconds)
    }
}

/// The chat second by second.
struct Seconds {
    first: i64,
    rows: Vec<Second>,
    room_max: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    joined: u32,
    joins: f64,
    counters: ChatCounters,
}

impl Second {
    fn work(&self) -> [f64; KINDS] {
        let counters = &self.counters;
        [
            1.0,
            self.joins,
            counters.presences_received as f64,
            counters.vcards_received as f64,
            counters.messages_received as f64,
        ]
    }
}

impl Seconds {
    fn of(run: &RunData) -> Option<Self> {
        let mut by_second: BTreeMap<i64, Second> = BTreeMap::new();
        for row in &run.chat {
            let second = by_second.entry(row.second).or_default();
            second.joined += row.joined;
            second.counters += row.counters;
        }
        let (first, last) = (*by_second.first_key_value()?.0, *by_second.last_key_value()?.0);
        let last = last.min(first.checked_add(SECONDS_MAX)?);
        let mut rows: Vec<Second> = (first..=last)
            .map(|second| by_second.get(&second).copied().unwrap_or_default())
            .collect();
        let mut before = 0;
        for row in &mut rows {
            row.joins = f64::from(row.joined.saturating_sub(before));
            before = row.joined;
        }
        let room_max = run.chat.iter().map(|row| row.occupants_max).max()?.saturating_add(1);
        Some(Self { first, rows, room_max })
    }

    /// Joins a second, from the first to the last second with one.
    fn joins_per_second(&self) -> f64 {
        let with = |row: &Second| row.joins > 0.0;
        let (Some(from), Some(until)) =
            (self.rows.iter().position(with), self.rows.iter().rposition(with))
        else {
            return 0.0;
        };
        self.rows.iter().map(|row| row.joins).sum::<f64>() / (until - from + 1) as f64
    }

    fn messages_per_second(&self) -> f64 {
        let there: f64 = self.rows.iter().map(|row| f64::from(row.joined)).sum();
        let said: u64 = self.rows.iter().map(|row| row.counters.messages_sent).sum();
        if there > 0.0 { said as f64 / there } else { 0.0 }
    }
}

fn of_thread(seconds: &Seconds, thread: &MeasuredSeries<'_>) -> Option<ChatCost> {
    let rows = rows(seconds, &cpu_by_second(seconds, thread)?);
    let costs = Costs::of(&rows)?;
    let bytes: Vec<Row<KINDS>> =
        seconds.rows.iter().map(|row| (row.work(), row.counters.bytes_received as f64)).collect();
    let bytes = Costs::of(&bytes).map_or([0.0; KINDS], |bytes| bytes.each);
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let mut cost = ChatCost {
        thread: format!("{} ({})", thread.label("thread"), thread.label("tid")),
        idle: costs.each[0],
        costs: Vec::new(),
        covariance: costs.covariance,
        explained: costs.explained,
        seconds: count,
        room_max: seconds.room_max,
        joins_per_second: seconds.joins_per_second(),
        messages_per_second: seconds.messages_per_second(),
    };
    for work in ChatWork::ALL {
        let place = work.place();
        let there: f64 = seconds.rows.iter().map(|row| row.work()[place]).sum();
        if there > 0.0 {
            let only = |other: ChatWork| f64::from(u8::from(other == work));
            let cpu_us_error = cost.error_of(only) * 1e6;
            cost.costs.push(ChatWorkCost {
                work,
                count: there as u64,
                cpu_us: costs.each[place] * 1e6,
                cpu_us_error,
                bytes: bytes[place],
            });
        }
    }
    (costs.explained >= EXPLAINED_MIN && cost.cpu_s() > 0.0).then_some(cost)
}

/// The CPU time of the thread as the participants count: see [`SMEAR`]. One second more at both
/// ends.
fn cpu_by_second(seconds: &Seconds, thread: &MeasuredSeries<'_>) -> Option<Vec<Option<f64>>> {
    let first_us = seconds.first.checked_sub(1)?.checked_mul(1_000_000)?;
    let grid = Grid { first_us, width_us: 1_000_000, count: seconds.rows.len().checked_add(2)? };
    let mut cpu = vec![None; grid.count];
    thread.add_to(grid, &mut cpu);
    Some(cpu)
}

/// The seconds whose CPU time is known, with that of their neighbours.
fn rows(seconds: &Seconds, cpu: &[Option<f64>]) -> Vec<Row<KINDS>> {
    let used = |around: &[Option<f64>]| -> Option<f64> {
        around.iter().zip(SMEAR).map(|(used, share)| Some((*used)? * share)).sum()
    };
    let rows = seconds.rows.iter().zip(cpu.windows(SMEAR.len()));
    rows.filter_map(|(row, around)| Some((row.work(), used(around)?))).collect()
}

#[cfg(test)]
#[path = "chat_tests.rs"]
pub(crate) mod tests;
