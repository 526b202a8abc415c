//! When a participant sends no audio or no video on purpose.

use throng_observation::RunTime;

/// When a participant was last muted in one kind of media.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MutePeriod {
    since: Option<RunTime>,
    until: Option<RunTime>,
}

impl MutePeriod {
    pub(super) fn changed(&mut self, is_muted: bool, at: RunTime) {
        *self = if is_muted {
            Self { since: Some(at), until: None }
        } else {
            Self { until: Some(at), ..*self }
        };
    }

    /// Whether it overlaps the time from `began` to `ended`. After unmuting, media may take
    /// `patience_us` to begin.
    pub(super) fn covers(&self, began: RunTime, ended: RunTime, patience_us: i64) -> bool {
        self.since.is_some_and(|since| since <= ended)
            && self.until.is_none_or(|until| began.0 < until.0 + patience_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    #[test]
    fn a_mute_period_lasts_until_media_has_had_time_to_begin_again() {
        let mut period = MutePeriod::default();
        let covers = |period: &MutePeriod, began: i64| {
            period.covers(RunTime(began * S), RunTime((began + 1) * S), 3 * S)
        };
        assert!(!covers(&period, 10));
        period.changed(true, RunTime(10 * S + S / 2));
        assert_eq!([8, 9, 10, 60].map(|began| covers(&period, began)), [false, false, true, true]);
        period.changed(false, RunTime(20 * S));
        assert_eq!([15, 22, 23].map(|began| covers(&period, began)), [true, true, false]);
    }
}
