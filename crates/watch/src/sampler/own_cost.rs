//! What monitoring itself costs, and the pace that keeps it within its budget.

use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, catalogue as metric};
use throng_observation::units::duration;

use super::cost::Change;
use super::meter::{Meter, Rate, SeriesSpec};
use super::{Sampler, facts};
use crate::cpu_accounting::{CpuUsage, process_cpu};

/// A pass that starts later than this share of its period counts as late.
const LATE_RATIO: f64 = 0.2;

/// The watcher's series about itself.
#[derive(Debug, Default)]
pub(super) struct OwnMeters {
    late: u64,
    pub(super) cpu: Meter,
    rss: Meter,
    late_rate: Rate,
    dropped_rate: Rate,
}

impl Sampler {
    pub(super) fn count_late(&mut self, due: Instant, period: Duration) {
        let late = Instant::now().saturating_duration_since(due);
        self.own.late += u64::from(late > period.mul_f64(LATE_RATIO));
    }

    /// CPU time of monitoring this host so far. If the process does nothing else, all its threads
    /// count: those that read, encrypt or draw.
    pub(super) fn cpu_usage(&self) -> CpuUsage {
        let spent = self.sink.rows.cpu_usage(self.sink.host);
        match self.began {
            Some(began) => {
                let reading = process_cpu().saturating_sub(began).saturating_sub(spent.profiles);
                CpuUsage { reading, ..spent }
            }
            None => spent,
        }
    }

    pub(super) fn check_own_cost(&mut self) {
        let (now, spent) = (Instant::now(), self.cpu_usage());
        if self.has_opened {
            return self.budget.exclude(now, spent);
        }
        let (sink, own) = (&self.sink, &mut self.own);
        let (late, dropped) = (&metric::WATCHER_LATE_PASSES, &metric::WATCHER_ROWS_DROPPED);
        own.late_rate.put(sink, now, own.late, 1.0, &SeriesSpec::host(late));
        own.dropped_rate.put(sink, now, sink.rows.dropped(), 1.0, &SeriesSpec::host(dropped));
        let Some(evaluation) = self.budget.evaluate(now, spent, self.pace) else { return };
        let spec = SeriesSpec::host(&metric::WATCHER_CPU).limit(Some(self.settings.cpu_max));
        own.cpu.put(sink, now, evaluation.cost, &spec);
        let rss_bytes = facts::own_rss_bytes(&self.units) as f64;
        own.rss.put(sink, now, rss_bytes, &SeriesSpec::host(&metric::WATCHER_RSS));
        if let Some(change) = evaluation.change {
            self.change_pace(now, change, evaluation.reading);
        }
        self.write_host_info();
    }

    fn change_pace(&mut self, now: Instant, change: Change, cost: f64) {
        let (kind, pace, compared) = match change {
            Change::Lower(pace) => (HostEventKind::RateLowered, pace, "more than"),
            Change::Raise(pace) => (HostEventKind::Watcher, pace, "less than half of"),
        };
        self.pace = pace;
        let fast = pace.fast.map_or_else(
            || "without fast passes".into(),
            |fast| format!("hot threads each {}", duration(fast)),
        );
        let detail = format!(
            "monitoring used {:.1} % of a core, {compared} the budget of {:.1} %: a full pass \
             each {}, {fast}",
            cost * 100.0,
            self.settings.cpu_max * 100.0,
            duration(pace.slow),
        );
        self.sink.event(now, kind, detail);
    }
}
