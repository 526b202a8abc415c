//! The series of watched hosts, for the summary, the page and the tables.

use throng_observation::RunTime;
use throng_observation::run::RunData;

mod accounts;
pub(crate) mod errors;
mod summary;
#[cfg(test)]
pub(crate) mod tests;
mod threads;

pub(crate) use accounts::Accounts;
pub(crate) use summary::summarise;
pub use summary::{
    EndedProcess, HottestThread, NetworkInterface, ServerErrors, UriTraffic, WatchedHost,
    WatchedProcess,
};
pub(crate) use threads::{Thread, Threads};
pub(crate) use throng_analysis::knowledge::Knowledge;
pub(crate) use throng_observation::host::measured::{Grid, Host, MeasuredSeries, Window, hosts};

/// The earliest whole second with a sample of a host, at most a minute before the run: the idle
/// server.
pub(crate) fn first_second(run: &RunData) -> Option<i64> {
    const BEFORE_S_MAX: i64 = 60;
    let first = run.host.samples.iter().map(|sample| sample.at).min()?;
    Some(RunTime(first.0).second().max(-BEFORE_S_MAX))
}
