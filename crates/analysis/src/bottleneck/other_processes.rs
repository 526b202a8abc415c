//! Who else used the CPUs of the server's host: their work is not in the answer, and makes it smaller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::RunTime;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::Window;
use throng_observation::units::percent;

use crate::context::{Context, Reading};
use crate::findings::{BUSY_MIN, WAIT_MIN};

/// Less than this, in cores, is the ordinary housekeeping of a host.
const CORES_MIN: f64 = 0.25;

/// What others on the server's host used of its CPUs while the loads were held that decide the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherProcessesCpu {
    /// Cores under the largest load that passed; `null` where that was not seen.
    pub pass_cores: Option<f64>,
    /// Cores under the load that failed.
    pub fail_cores: f64,
    /// The longest that a thread of the server waited for a CPU under the load that failed, share of the time.
    pub waited_ratio: f64,
}

impl OtherProcessesCpu {
    /// The most of both loads, cores.
    #[must_use]
    pub fn cores(&self) -> f64 {
        self.fail_cores.max(self.pass_cores.unwrap_or(0.0))
    }

    /// What it means, in a sentence.
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
            format!("the server's threads waited for a CPU up to {} of the time", percent(self.waited_ratio))
        } else {
            "the host was full".to_owned()
        };
        format!(
            "others on the server's host used its CPUs ({when}), and {waited}: without them more may be served"
        )
    }
}

/// What others used; `None` where that is little, or did the server no harm: it never waited for a CPU and the host had room.
pub(super) fn cpu(context: &Context<'_>) -> Option<OtherProcessesCpu> {
    let (others, wait) = (others(context), context.longest_wait().map_or(0.0, |(_, wait)| wait.fail()));
    let is_full = context.host_busy().is_some_and(|busy| busy.fail() >= BUSY_MIN);
    let told = OtherProcessesCpu { pass_cores: others.pass, fail_cores: others.fail?, waited_ratio: wait };
    (told.cores() >= CORES_MIN && (wait >= WAIT_MIN || is_full)).then_some(told)
}

/// Cores that ran neither the watched processes nor the generator, low-priority work and interrupts left out: the former
/// makes way, and the latter are the server's own packets as well.
fn others(context: &Context<'_>) -> Reading {
    let modes = [&metric::HOST_CPU_USER, &metric::HOST_CPU_SYSTEM, &metric::HOST_CPU_GUEST]
        .map(|mode| context.sum(mode));
    let all = modes.into_iter().filter(|mode| mode.fail.is_some()).reduce(|a, b| a.with(b, |a, b| a + b));
    let watched = context.sum(&metric::PROCESS_CPU).less(context.own_low_priority());
    all.unwrap_or_default().less(watched).less(generator(context))
}

/// Cores of the generator's process, where it runs on the watched host; 0 elsewhere.
fn generator(context: &Context<'_>) -> Reading {
    // Times of another host are never known exactly.
    let is_here = context.host.info.is_none_or(|info| info.clock_error_us == 0);
    context.reading(|window: Window| {
        if !is_here {
            return Some(0.0);
        }
        let seconds = RunTime(window.from_us).second()..RunTime(window.until_us).second();
        let rows = context.run.generator.iter().filter(|row| seconds.contains(&row.second));
        // The process as a whole; where it said nothing, its threads.
        let sum_us = |of_process: bool| -> u64 {
            rows.clone().filter(|row| row.thread.is_none() == of_process).map(|row| row.cpu_us).sum()
        };
        let used_us = sum_us(true).max(sum_us(false));
        Some(used_us as f64 / 1e6 / window.seconds().max(1.0))
    })
}
