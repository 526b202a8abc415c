//! The workers of a run that several machines played.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The event of a worker that was lost. Its count is the number of participants that were lost with it.
pub const WORKER_LOST_EVENT: &str = "worker_lost";

/// The event of a worker that ended before the run, with all that it had measured: somebody stopped it, or a guard of it did.
pub const WORKER_ENDED_EVENT: &str = "worker_ended";

/// The event of participants of a worker that is gone, which others play from then on.
pub const WORKER_REASSIGNED_EVENT: &str = "worker_reassigned";

/// The event of a run whose coordinator was gone before its end; what workers had measured was collected afterwards.
pub const COORDINATOR_GONE_EVENT: &str = "coordinator_gone";

/// The event of a worker of which rows are missing.
pub const WORKER_ROWS_MISSING_EVENT: &str = "worker_rows_missing";

/// One worker, as it was before the run. Its figures of each second are generator rows with its number.
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
    /// The coordinator's clock less the worker's, microseconds. Rows are in the coordinator's time already.
    pub clock_offset_us: i64,
    /// The offset was right within so many microseconds: half the shortest round trip of an exchange, and drift since
    /// (RFC 5905 section 8).
    pub clock_bound_us: u64,
    /// That round trip, microseconds.
    pub round_trip_us: u64,
    /// Its host: CPU model, cores, kernel, limits; by name.
    pub host: BTreeMap<String, String>,
}
