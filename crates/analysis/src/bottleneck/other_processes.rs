//! CPU use of other processes on the server's host, which reduces the capacity that is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use crate::context::{BUSY_MIN, Context, Reading, WAIT_MIN};

/// Cores; less is the ordinary housekeeping of a host.
const CORES_MIN: f64 = 0.25;

/// CPU use of other processes on the server's host under the loads that decide the capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherProcessesCpu {
    /// Cores under the largest load that passed; `null` if not measured.
    pub pass_cores: Option<f64>,
    /// Cores under the load that failed.
    pub fail_cores: f64,
    /// The longest wait of a thread of the server for a CPU under the load that failed, share of
    /// the time.
    pub waited_ratio: f64,
}

impl OtherProcessesCpu {
    /// The higher of both loads, cores.
    #[must_use]
    pub fn cores(&self) -> f64 {
        self.fail_cores.max(self.pass_cores.unwrap_or(0.0))
    }

    /// The meaning for the capacity, as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let when = match self.pass_cores {
            Some(pass) => {
                format!(
                    "{pass:.1} cores under the load that passed, {:.1} under the one that failed",
                    self.fail_cores
                )
            }
            None => format!("{:.1} cores under the load that failed", self.fail_cores),
        };
        let waited = if self.waited_ratio >= WAIT_MIN {
            format!(
                "the server's threads waited for a CPU up to {} of the time",
                percent(self.waited_ratio)
            )
        } else {
            "the host was full".to_owned()
        };
        format!(
            "other processes on the server's host used its CPUs ({when}), and {waited}: without \
             them the capacity may be larger"
        )
    }
}

/// The CPU use of other processes; `None` if it is small or did not affect the server: its threads
/// did not wait and the host had idle CPUs.
pub(super) fn cpu(context: &Context<'_>) -> Option<OtherProcessesCpu> {
    let (others, wait) =
        (others(context), context.longest_wait().map_or(0.0, |(_, wait)| wait.fail()));
    let is_full = context.host_busy().is_some_and(|busy| busy.fail() >= BUSY_MIN);
    let used =
        OtherProcessesCpu { pass_cores: others.pass, fail_cores: others.fail?, waited_ratio: wait };
    (used.cores() >= CORES_MIN && (wait >= WAIT_MIN || is_full)).then_some(used)
}

/// Cores used by neither the watched processes nor the generator, without low-priority work, which
/// yields, and interrupts, which include the server's own packets.
fn others(context: &Context<'_>) -> Reading {
    let modes = [&metric::HOST_CPU_USER, &metric::HOST_CPU_SYSTEM, &metric::HOST_CPU_GUEST]
        .map(|mode| context.sum(mode));
    let all =
        modes.into_iter().filter(|mode| mode.fail.is_some()).reduce(|a, b| a.with(b, |a, b| a + b));
    let watched = context.own_cores().less(context.own_low_priority());
    all.unwrap_or_default().less(watched).less(context.generator_cores())
}
