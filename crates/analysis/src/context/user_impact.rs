//! Whether users felt an error counter: they are worse in the seconds in which it counts more, or
//! it counts the packets that they miss.
//!
//! The line between the largest load that passed and the first that failed is drawn through a share
//! of bad seconds that grows with the load. An error counter that grows evenly through that line,
//! from nothing, is nearly as high where service just passed. It may be the cause all the same, and
//! what the users have in its seconds decides.

use std::ops::RangeInclusive;

use throng_observation::MediaKind;
use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::MeasuredSeries;

use super::{Context, Reading, sums};
use crate::windows::{quality_by_second, second_range, whole_seconds};

/// Least number of bad seconds, and of good ones, in holds that have both.
const SECONDS_MIN: usize = 5;
/// Least share of the pairs of a bad and a good second of a hold in which the bad one has the
/// higher value; by chance it is a half.
const SUPERIORITY_MIN: f64 = 0.65;
/// The same in standard deviations: one counter in two hundred does so by chance at one of the
/// three shifts in time that are tried (0.005 ÷ 3, one-sided).
const Z_MIN: f64 = 2.94;
/// Growth of what is dropped ÷ growth of what users miss. A datagram that is sent again is dropped
/// again, and other receivers than the users may miss some.
const ACCOUNTED: RangeInclusive<f64> = 0.5..=2.0;

impl Context<'_> {
    /// `reading` of the counter `of` in these series, with whether users felt it. Asked only of
    /// what begins with the load and grew evenly: what grew clearly more is beyond doubt.
    pub(crate) fn felt_by_users(
        &self,
        of: &Metric,
        list: &[MeasuredSeries<'_>],
        reading: Reading,
    ) -> Reading {
        if !reading.begins() || reading.surpasses(of.unit) {
            return reading;
        }
        // Where packets to the users are dropped one by one.
        let to_users = [&metric::UDP_SNDBUF_ERRORS, &metric::QDISC_DROPS, &metric::NIC_TX_DROPPED];
        let is_missed = || {
            to_users.iter().any(|sent| sent.name == of.name)
                && accounts_for(reading, self.missed(None))
        };
        let felt = if is_missed() { Some(true) } else { self.is_worse_with(list) };
        Reading { felt, ..reading }
    }

    /// Whether users are worse in the seconds of a hold in which the sum of the series is higher,
    /// or in those a second before or after: buffers delay what is felt. `None` if no hold has
    /// enough bad seconds and enough good ones.
    fn is_worse_with(&self, list: &[MeasuredSeries<'_>]) -> Option<bool> {
        let quality_by_second = quality_by_second(self.run);
        let by_shift = [-1, 0, 1].map(|shift_s| {
            let loads = self.windows.holds_that_passed().copied().chain([self.fail]);
            let holds = loads.map(|load| {
                let window = whole_seconds(load.window);
                let values = second_range(window).zip(sums(list, window));
                let judged = values.filter_map(|(second, value)| {
                    let quality =
                        quality_by_second.get(&(second + shift_s)).filter(|q| q.users > 0)?;
                    Some((value?, quality.bad > 0))
                });
                judged.collect::<Vec<(f64, bool)>>()
            });
            is_higher_when_bad(&holds.collect::<Vec<_>>())
        });
        // Higher at one shift is enough; `Some(true)` is the highest, and `None` the lowest.
        by_shift.into_iter().max().flatten()
    }

    /// Packets that users missed at first, lost for good or sent again, a second: of one kind of
    /// media, or of all.
    pub(crate) fn missed(&self, kind: Option<MediaKind>) -> Reading {
        self.reading(|window| {
            let sums = self.sums_of_tracks(window, |row| kind.is_none() || row.kind == kind);
            Some(sums.packets_missed() as f64 / whole_seconds(window).seconds())
        })
    }
}

/// Whether the growth of `part` over the baseline is that of `whole`, under the load that passed
/// and under the one that failed.
pub(crate) fn accounts_for(part: Reading, whole: Reading) -> bool {
    let share = |at: fn(&Reading) -> Option<f64>| {
        let grown = |of: &Reading| Some(at(of)? - of.base?);
        let (part, whole) = (grown(&part)?, grown(&whole)?);
        (whole > 0.0).then(|| part / whole)
    };
    [share(|of| of.pass), share(|of| of.fail)]
        .into_iter()
        .all(|share| share.is_some_and(|share| ACCOUNTED.contains(&share)))
}

/// Whether the value is higher in the bad seconds of a hold than in its good ones: the Mann-Whitney
/// test, pooled over the holds, so that nothing is compared across loads. Each second is its value
/// and whether it was bad. Ties make it more careful. `None` if there are too few of either.
fn is_higher_when_bad(holds: &[Vec<(f64, bool)>]) -> Option<bool> {
    let (mut seconds_bad, mut seconds_good) = (0, 0);
    let (mut higher, mut pairs, mut variance) = (0.0, 0.0, 0.0);
    for hold in holds {
        let of = |is_bad: bool| -> Vec<f64> {
            hold.iter().filter(|second| second.1 == is_bad).map(|second| second.0).collect()
        };
        let (bad, mut good) = (of(true), of(false));
        if bad.is_empty() || good.is_empty() {
            continue;
        }
        good.sort_unstable_by(f64::total_cmp);
        for value in &bad {
            let below = good.partition_point(|other| other < value);
            let up_to = good.partition_point(|other| other <= value);
            higher += (below + up_to) as f64 / 2.0;
        }
        (seconds_bad, seconds_good) = (seconds_bad + bad.len(), seconds_good + good.len());
        let (bad, good) = (bad.len() as f64, good.len() as f64);
        pairs += bad * good;
        variance += bad * good * (bad + good + 1.0) / 12.0;
    }
    let is_enough = seconds_bad >= SECONDS_MIN && seconds_good >= SECONDS_MIN;
    is_enough.then(|| {
        higher >= SUPERIORITY_MIN * pairs && higher - pairs / 2.0 >= Z_MIN * f64::sqrt(variance)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_felt_that_is_higher_in_the_bad_seconds_of_each_hold() {
        let hold = |good: f64, bad: f64, seconds: usize| -> Vec<(f64, bool)> {
            (0..seconds).flat_map(|n| [(good + n as f64, false), (bad + n as f64, true)]).collect()
        };
        for (holds, expect, why) in [
            (vec![hold(50.0, 70.0, 8), hold(150.0, 170.0, 8)], Some(true), "higher in each hold"),
            (vec![hold(50.0, 70.0, 4)], None, "too few seconds"),
            (vec![hold(50.0, 50.0, 50)], Some(false), "as high in good seconds"),
            (vec![hold(50.0, 30.0, 50)], Some(false), "lower in bad ones"),
            (vec![hold(7.0, 8.0, 8)], Some(false), "by chance"),
            // A load with good seconds only, and one with bad seconds only, differ by more than
            // this counter.
            (vec![vec![(50.0, false); 30], vec![(170.0, true); 30]], None, "no hold has both"),
            (Vec::new(), None, "nothing was held"),
        ] {
            assert_eq!(is_higher_when_bad(&holds), expect, "{why}");
        }
    }

    #[test]
    fn what_is_dropped_accounts_for_what_is_missed_at_both_loads() {
        let of = |base, pass, fail| Reading {
            base: Some(base),
            pass: Some(pass),
            fail: Some(fail),
            ..Reading::default()
        };
        let missed = of(0.0, 115.0, 130.0);
        assert!(accounts_for(of(0.0, 117.0, 127.0), missed));
        assert!(!accounts_for(of(0.0, 117.0, 300.0), missed), "more than twice");
        assert!(!accounts_for(of(0.0, 20.0, 127.0), missed), "only where it failed");
        assert!(!accounts_for(of(0.0, 117.0, 127.0), of(0.0, 0.0, 0.0)), "nobody missed anything");
        assert!(!accounts_for(of(0.0, 117.0, 127.0), Reading { base: None, ..missed }));
    }
}
