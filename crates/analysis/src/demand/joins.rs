//! The cost of a join: signalling, handshakes and key exchanges occur once per user, and a ramp
//! needs them in addition to the demand of the connected users.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::catalogue::PROCESS_CPU;
use throng_observation::host::measured::{Grid, Host};
use throng_observation::run::RunData;

/// Least seconds with joins for a regression.
const SECONDS_MIN: usize = 10;
/// Longest part of a run that is used: a week.
const SECONDS_MAX: i64 = 7 * 86_400;

/// The CPU of a join.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JoinCost {
    /// CPU time of the watched processes for one join, milliseconds.
    pub cpu_ms: f64,
    /// Half its 95 % interval; consecutive seconds are not independent, so three count as one.
    pub cpu_ms_error: f64,
    /// Seconds with joins.
    pub seconds: u32,
}

/// Variance inflation: three consecutive seconds count as one independent second.
const INFLATION: f64 = 3.0;

/// Fits CPU = a + b·connected + j·joins over the seconds of the run; `None` with too few seconds or
/// no significant cost.
#[must_use]
pub fn joins(run: &RunData, host: &Host<'_>) -> Option<JoinCost> {
    let mut seconds: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for row in &run.crowd {
        let (connected, started) = seconds.entry(row.second).or_default();
        *connected += f64::from(row.connected);
        *started += f64::from(row.started);
    }
    let (first, last) = (*seconds.first_key_value()?.0, *seconds.last_key_value()?.0);
    let count = usize::try_from(last.checked_sub(first)?.checked_add(1)?.min(SECONDS_MAX)).ok()?;
    let grid = Grid { first_us: first.checked_mul(1_000_000)?, width_us: 1_000_000, count };
    let mut cpu = vec![None; count];
    host.metric(PROCESS_CPU.name).iter().for_each(|process| process.add_to(grid, &mut cpu));
    let mut rows: Vec<Row> = Vec::new();
    let mut before: Option<(i64, f64)> = None;
    for (second, (connected, started)) in seconds {
        let joined = before
            .filter(|(earlier, _)| *earlier + 1 == second)
            .map(|(_, earlier)| (started - earlier).max(0.0));
        before = Some((second, started));
        let place = usize::try_from(second - first).unwrap_or(usize::MAX);
        if let (Some(joined), Some(Some(used))) = (joined, cpu.get(place)) {
            rows.push(([1.0, connected, joined], *used));
        }
    }
    let with_joins = rows.iter().filter(|(x, _)| x[2] > 0.0).count();
    if with_joins < SECONDS_MIN || rows.len() < with_joins + SECONDS_MIN {
        return None;
    }
    cost(&rows, with_joins)
}

/// A second: 1, connected users, joins; and the CPU time used.
type Row = ([f64; 3], f64);

/// The coefficient of joins by the Frisch–Waugh theorem: regression of residuals.
fn cost(rows: &[Row], with_joins: usize) -> Option<JoinCost> {
    let n = rows.len() as f64;
    let residuals = |of: &dyn Fn(&Row) -> f64| {
        let mean = rows.iter().map(of).sum::<f64>() / n;
        let crowd = rows.iter().map(|(x, _)| x[1]).sum::<f64>() / n;
        let spread: f64 = rows.iter().map(|(x, _)| (x[1] - crowd).powi(2)).sum();
        let both: f64 = rows.iter().map(|row| (row.0[1] - crowd) * (of(row) - mean)).sum();
        let slope = if spread > 0.0 { both / spread } else { 0.0 };
        rows.iter().map(|row| of(row) - mean - slope * (row.0[1] - crowd)).collect::<Vec<f64>>()
    };
    let (joined, used) = (residuals(&|row| row.0[2]), residuals(&|row| row.1));
    let spread: f64 = joined.iter().map(|x| x * x).sum();
    let slope = joined.iter().zip(&used).map(|(x, y)| x * y).sum::<f64>() / spread;
    let left: f64 = joined.iter().zip(&used).map(|(x, y)| (y - slope * x).powi(2)).sum();
    let error = 2.0 * (INFLATION * left / (n - 3.0).max(1.0) / spread).sqrt();
    let cost = JoinCost {
        cpu_ms: slope * 1e3,
        cpu_ms_error: error * 1e3,
        seconds: u32::try_from(with_joins).unwrap_or(u32::MAX),
    };
    (cost.cpu_ms.is_finite() && cost.cpu_ms_error.is_finite() && slope > error).then_some(cost)
}
