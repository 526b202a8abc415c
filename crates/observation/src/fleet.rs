//! The workers of a run that several machines played.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The event of a worker that was lost. Its count is the number of participants that were lost with
/// it.
pub const WORKER_LOST_EVENT: &str = "worker_lost";

/// The event of a worker that ended before the run, with all that it had measured: somebody stopped
/// it, or a guard of it did.
pub const WORKER_ENDED_EVENT: &str = "worker_ended";

/// The event of participants of a worker that is gone, which others play from then on.
pub const WORKER_REASSIGNED_EVENT: &str = "worker_reassigned";

/// The event of a run whose coordinator was gone before its end; what workers had measured was
/// collected afterwards.
pub const COORDINATOR_GONE_EVENT: &str = "coordinator_gone";

/// The event of a worker of which rows are missing.
pub const WORKER_ROWS_MISSING_EVENT: &str = "worker_rows_missing";

/// The event of a worker whose clock is not where its host's time service and the coordinator's
/// say.
pub const WORKER_CLOCK_EVENT: &str = "worker_clock_contradicted";

/// What was known of a worker's clock when it was last heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndClock {
    /// The coordinator's clock less the worker's, microseconds.
    pub offset_us: i64,
    /// The offset was right within so many microseconds.
    pub bound_us: u64,
}

/// What a worker of a run in progress does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerFate {
    /// It plays its share.
    Plays,
    /// Its part has ended, and its last rows are on the way.
    Ends,
    /// Its part has ended, and all its rows have come.
    Ended,
    /// It was given up, and its participants with it.
    Lost,
}

impl WorkerFate {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plays, Self::Ends, Self::Ended, Self::Lost];

    /// A stable name.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Plays => "playing",
            Self::Ends => "ending",
            Self::Ended => "ended",
            Self::Lost => "lost",
        }
    }

    /// Whether something of it is still to come.
    #[must_use]
    pub const fn is_there(self) -> bool {
        matches!(self, Self::Plays | Self::Ends)
    }
}

/// How it goes for a worker of a run in progress, as its coordinator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerNow {
    /// What it does.
    pub fate: WorkerFate,
    /// Participants of it that played in the last second that all workers have closed.
    pub playing: u32,
    /// What it said last of its clock; `None` if that was nothing.
    pub clock: Option<EndClock>,
    /// Since the end of the last second of which all its rows have come, microseconds.
    pub rows_age_us: u64,
    /// Since it was last heard, microseconds.
    pub silent_us: u64,
    /// Rows that wait there for the bus, bytes.
    pub spooled_bytes: u64,
    /// Batches of rows that it had to give up because its spool was full.
    pub given_up_batches: u64,
}

/// Participants of workers that are gone, which others play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassignedJoins {
    /// Those that join anew, in the places of lost ones.
    pub anew: u64,
    /// Those that join as planned.
    pub planned: u64,
}

/// How it goes for the workers of a run in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetNow {
    /// Each, by number.
    pub workers: Vec<WorkerNow>,
    /// Who was given to others so far.
    pub reassigned: ReassignedJoins,
}

/// The error of a delay between the two workers whose clocks are known worst, from what each adds
/// to it, microseconds.
#[must_use]
pub fn of_two_us(each_us: impl IntoIterator<Item = u64>) -> u64 {
    let (first, second) = each_us.into_iter().fold((0, 0), |(first, second), us| {
        if us > first { (us, first) } else { (first, us.max(second)) }
    });
    u64::saturating_add(first, second)
}

/// One worker, as it was before the run. Its figures of each second are generator rows with its
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Its name; distinct within the run.
    pub name: String,
    /// Cores that it could use.
    pub cores: u32,
    /// Its share of the crowd, relative to the others.
    pub weight: u32,
    /// Participants of its share; of a search those that it could have had.
    pub participants: u32,
    /// The coordinator's clock less the worker's, microseconds. Rows are in the coordinator's time
    /// already.
    pub clock_offset_us: i64,
    /// The offset was right within so many microseconds: half the shortest round trip of an
    /// exchange, and drift since (RFC 5905 section 8), or less where the time services of both
    /// hosts know better.
    pub clock_bound_us: u64,
    /// What the bound comes from. Empty in folders of earlier versions.
    #[serde(default)]
    pub clock_basis: String,
    /// Its clock at the end of the run. `None` before it, where it was not heard, and in folders of
    /// earlier versions.
    #[serde(default)]
    pub clock_end: Option<EndClock>,
    /// That round trip, microseconds.
    pub round_trip_us: u64,
    /// Its host: CPU model, cores, kernel, limits; by name.
    pub host: BTreeMap<String, String>,
}

impl WorkerInfo {
    /// How far its rows' times may be off at the end of the run, microseconds: they have the offset
    /// of the start.
    #[must_use]
    pub fn clock_end_error_us(&self) -> Option<u64> {
        let end = self.clock_end?;
        Some(end.offset_us.abs_diff(self.clock_offset_us).saturating_add(end.bound_us))
    }

    /// The same at the start or at the end, whatever is more.
    #[must_use]
    pub fn clock_error_us_max(&self) -> u64 {
        self.clock_end_error_us().unwrap_or(0).max(self.clock_bound_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_drift_apart_show_in_the_error_of_the_end() {
        let worker = |clock_end| WorkerInfo {
            clock_offset_us: -400,
            clock_bound_us: 300,
            clock_end,
            ..WorkerInfo::default()
        };
        let errors =
            |worker: WorkerInfo| (worker.clock_end_error_us(), worker.clock_error_us_max());
        let end = |offset_us, bound_us| errors(worker(Some(EndClock { offset_us, bound_us })));
        assert_eq!(errors(worker(None)), (None, 300));
        assert_eq!(end(500, 100), (Some(1000), 1000));
        assert_eq!(end(-400, 10), (Some(10), 300));
        assert_eq!(end(i64::MAX, u64::MAX), (Some(u64::MAX), u64::MAX));
    }

    #[test]
    fn two_workers_add_to_a_delay_at_most() {
        assert_eq!(of_two_us([]), 0);
        assert_eq!(of_two_us([5]), 5);
        assert_eq!(of_two_us([1, 9, 4, 7]), 16);
        assert_eq!(of_two_us([3, 3, 3]), 6);
        assert_eq!(of_two_us([u64::MAX, 1]), u64::MAX);
    }

    #[test]
    fn workers_of_earlier_folders_are_read() {
        let old = r#"{"name":"a","cores":2,"weight":2,"participants":1,"clock_offset_us":-7,"clock_bound_us":9,
                      "round_trip_us":10,"host":{}}"#;
        let worker: WorkerInfo = serde_json::from_str(old).expect("a worker");
        assert_eq!(
            (worker.clock_bound_us, worker.clock_basis.as_str(), worker.clock_end),
            (9, "", None)
        );
    }
}
