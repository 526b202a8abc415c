//! Translates an agent's rows into the run's: host id, times and series ids.

use std::collections::HashMap;
use std::time::Instant;

use throng_observation::RunTime;
use throng_observation::host::{HostEvent, HostEventKind, HostId, HostRow, HostSample, SeriesId};

use crate::remote::clock::AgentClock;
use crate::rows::{RowSender, run_time};

/// Maximum number of live series of an agent. Beyond it an event is written once, and further rows
/// count as dropped.
const SERIES_MAX: usize = 1 << 18;

/// Translates rows and sends them to the run's queue.
pub(super) struct RowTranslator {
    pub(super) host: HostId,
    pub(super) name: Option<String>,
    pub(super) zero: Instant,
    pub(super) rows: RowSender,
    /// The run's series ids by the agent's, of series that are live.
    series: HashMap<u32, SeriesId>,
    reported_too_many: bool,
    pub(super) dropped_before: u64,
    /// The largest error bound so far, microseconds.
    pub(super) clock_error_us: u64,
}

impl RowTranslator {
    pub(super) fn new(host: HostId, name: Option<String>, zero: Instant, rows: RowSender) -> Self {
        let (series, reported_too_many) = (HashMap::new(), false);
        let (dropped_before, clock_error_us) = (0, 0);
        Self { host, name, zero, rows, series, reported_too_many, dropped_before, clock_error_us }
    }

    /// The run's id of a series that the agent announces; `None` when there are too many.
    pub(super) fn announce(&mut self, theirs: SeriesId) -> Option<SeriesId> {
        if self.series.len() >= SERIES_MAX && !self.series.contains_key(&theirs.0) {
            self.rows.count_dropped(1);
            if !std::mem::replace(&mut self.reported_too_many, true) {
                let detail = format!(
                    "the agent has more than {SERIES_MAX} series at a time: the rest is dropped"
                );
                self.event(HostEventKind::Unreadable, detail);
            }
            return None;
        }
        Some(*self.series.entry(theirs.0).or_insert_with(|| self.rows.new_series()))
    }

    /// The run's series id of a sample. A series that ends with it is removed; if it continues, the
    /// agent announces it again.
    pub(super) fn series_of(&mut self, sample: &HostSample) -> Option<SeriesId> {
        if sample.value.is_nan() {
            return self.series.remove(&sample.series.0);
        }
        let known = self.series.get(&sample.series.0).copied();
        if known.is_none() {
            // Its announcement was lost, or there are too many series.
            self.rows.count_dropped(1);
        }
        known
    }

    /// Ends all series with NaN. After a loss the agent assigns new series ids.
    pub(super) fn end_series(&mut self) {
        let at = self.now();
        for (_, series) in self.series.drain() {
            self.rows.send(HostRow::Sample(HostSample { series, at, value: f64::NAN }));
        }
        self.dropped_before = 0;
    }

    pub(super) fn event(&self, kind: HostEventKind, detail: String) {
        let (host, at) = (self.host, self.now());
        self.rows.send(HostRow::Event(HostEvent::new(host, at, kind, detail)));
    }

    /// Converts a time of the agent to the run's; `base` is the origin of the clock's own times.
    pub(super) fn run_time(&self, agent: RunTime, clock: &AgentClock, base: Instant) -> RunTime {
        RunTime(clock.ours_us(agent.0).saturating_add(run_time(self.zero, base).0))
    }

    fn now(&self) -> RunTime {
        run_time(self.zero, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(series: u32, value: f64) -> HostSample {
        HostSample { series: SeriesId(series), at: RunTime(0), value }
    }

    #[test]
    fn series_that_ended_are_forgotten_however_many_they_were() {
        let (rows, receiver) = crate::rows(10);
        let mut translator = RowTranslator::new(HostId(1), None, Instant::now(), rows.clone());
        // Thousands of threads that start and end.
        for number in 0..2 * u32::try_from(SERIES_MAX).unwrap() {
            let ours = translator.announce(SeriesId(number)).unwrap();
            assert_eq!(translator.series_of(&sample(number, 1.0)), Some(ours));
            assert_eq!(translator.series_of(&sample(number, f64::NAN)), Some(ours));
        }
        assert!(translator.series.is_empty() && translator.series.capacity() < 1_000);
        assert_eq!((rows.dropped(), receiver.try_iter().count()), (0, 0));
    }

    #[test]
    fn too_many_series_of_an_agent_are_reported_once_and_counted() {
        let (rows, receiver) = crate::rows(10);
        let mut translator = RowTranslator::new(HostId(1), None, Instant::now(), rows.clone());
        let max = u32::try_from(SERIES_MAX).unwrap();
        assert!((0..max).all(|number| translator.announce(SeriesId(number)).is_some()));
        assert!((max..max + 5).all(|number| translator.announce(SeriesId(number)).is_none()));
        assert!(translator.announce(SeriesId(7)).is_some(), "a known one may be announced again");
        assert_eq!(translator.series_of(&sample(max, 1.0)), None);
        assert_eq!(rows.dropped(), 6);
        let said: Vec<_> = receiver.try_iter().collect();
        assert!(
            matches!(&said[..], [HostRow::Event(event)] if event.kind == HostEventKind::Unreadable)
        );
        translator.series_of(&sample(0, f64::NAN));
        assert!(translator.announce(SeriesId(max)).is_some(), "there is room again");
    }
}
