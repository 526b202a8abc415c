//! A second of a run at a glance.

use throng_analysis::windows::SecondQuality;
use throng_observation::run::{CrowdRow, Row};
use throng_observation::{Received, SecondClosed};

/// What a second of a run comes to, over all cohorts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Glance {
    /// The time of the run at its end, seconds.
    pub at_s: f64,
    /// The planned length of the run, seconds.
    pub planned_s: f64,
    /// Participants whose intended join has come.
    pub intended: u32,
    /// Participants whose transport is up.
    pub connected: u32,
    /// Participants that received or played media.
    pub playing: u32,
    /// Participants that have failed so far.
    pub failed: u32,
    /// What all received, bits per second.
    pub received_bps: f64,
    /// The share of those who should be served whose second was good; `None` where nobody should.
    pub served_ratio: Option<f64>,
}

impl Glance {
    /// Adds a row of the second that is open.
    pub(super) fn take(&mut self, row: &Row) {
        match row {
            Row::Crowd(row) => self.crowd(row),
            Row::Series(row) => self.received(&Received::of(Some(&**row), None, None)),
            Row::Playback(row) => self.received(&Received::of(None, Some(&**row), None)),
            Row::Chat(row) => self.received(&Received::of(None, None, Some(&**row))),
            // Neither the crowd, nor what it received.
            Row::Sent(_)
            | Row::SecondClosed(_)
            | Row::Participant(_)
            | Row::HttpRequests(_)
            | Row::Generator(_)
            | Row::Hold(_)
            | Row::Track(_)
            | Row::Player(_)
            | Row::LayerSwitch(_)
            | Row::Event(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }

    fn crowd(&mut self, row: &CrowdRow) {
        for (sum, count) in [
            (&mut self.intended, row.intended),
            (&mut self.connected, row.connected),
            (&mut self.playing, row.playing),
            (&mut self.failed, row.failed),
        ] {
            *sum = sum.saturating_add(count);
        }
    }

    fn received(&mut self, received: &Received) {
        // The rows are of one second.
        let bytes = received.by_second().map(|(_, bytes)| bytes as f64).sum::<f64>();
        self.received_bps += bytes * 8.0;
    }

    /// The second, which is whole now.
    pub(super) fn of_second(self, row: &SecondClosed, planned_us: i64) -> Self {
        let quality: SecondQuality = row.experience.iter().map(SecondQuality::from).sum();
        let served_ratio = quality.served_ratio().map(|ratio| ratio.clamp(0.0, 1.0));
        let at_s = row.second.saturating_add(1) as f64;
        Self { at_s, planned_s: planned_us as f64 / 1e6, served_ratio, ..self }
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::ExperienceRow;
    use throng_observation::run::{CohortId, SeriesRow};

    use super::*;

    #[test]
    fn a_second_is_the_sum_of_its_cohorts() {
        let mut glance = Glance::default();
        for cohort in [0, 1] {
            let (cohort, playing) = (CohortId(cohort), 2);
            glance.take(&Row::Crowd(CrowdRow { cohort, playing, ..CrowdRow::default() }));
            let mut series = SeriesRow { cohort, ..SeriesRow::default() };
            series.counters.wire_bytes = 1_000;
            glance.take(&Row::Series(Box::new(series)));
        }
        let of_cohort = |users, bad| ExperienceRow { users, bad, ..ExperienceRow::default() };
        let experience = vec![of_cohort(3, 1), of_cohort(1, 0)];
        let closed = SecondClosed { second: 6, experience, ..SecondClosed::default() };
        let whole = glance.of_second(&closed, 60_000_000);
        assert_eq!((whole.at_s, whole.planned_s, whole.playing), (7.0, 60.0, 4));
        assert_eq!((whole.received_bps, whole.served_ratio), (16_000.0, Some(0.75)));
        let idle = Glance::default().of_second(&SecondClosed::default(), 0);
        assert_eq!(idle.served_ratio, None);
    }
}
