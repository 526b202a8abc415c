//! How much of what the network card sent is accounted for.

use super::HostSample;
use crate::RunTime;

/// Bytes that left, and those of them that a server's access log tells of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explained {
    /// What the card sent, bytes: headers of all layers and every other program's traffic are among it.
    pub sent_bytes: f64,
    /// What the accounts tell of, bytes: bodies, and response headers where the log has them.
    pub explained_bytes: f64,
}

impl Explained {
    /// The share of what was sent that no account tells of, 0 to 1; `None` where nothing was sent. Where the accounts
    /// tell of more than was sent it is 0: a connection of an hour is written at its end, so a window that is shorter
    /// than the connections may hold more than its own.
    #[must_use]
    pub fn unexplained_share(&self) -> Option<f64> {
        (self.sent_bytes > 0.0).then(|| (1.0 - self.explained_bytes / self.sent_bytes).clamp(0.0, 1.0))
    }
}

/// Compares what a card sent (`sent`, bytes a second, in order of time) with the accounts (each a series of bytes a
/// second, in order of time) between two moments. `None` where the card was not seen in that time.
#[must_use]
pub fn explained(
    sent: &[HostSample],
    accounts: &[&[HostSample]],
    from: RunTime,
    until: RunTime,
) -> Option<Explained> {
    let sent_bytes = total(sent, from, until)?;
    let explained_bytes = accounts.iter().filter_map(|account| total(account, from, until)).sum();
    Some(Explained { sent_bytes, explained_bytes })
}

/// The integral of a rate over a window, each sample holding until the next; `None` where no sample covers any of it.
fn total(rate: &[HostSample], from: RunTime, until: RunTime) -> Option<f64> {
    let mut sum = None;
    for (index, sample) in rate.iter().enumerate() {
        let ends = rate.get(index + 1).map_or(until, |next| next.at).min(until);
        let begins = sample.at.max(from);
        if sample.value.is_finite() && begins < ends {
            let seconds = ends.as_secs_f64() - begins.as_secs_f64();
            *sum.get_or_insert(0.0) += sample.value * seconds;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::SeriesId;

    fn series(samples: &[(i64, f64)]) -> Vec<HostSample> {
        let sample = |&(second, value): &(i64, f64)| HostSample {
            series: SeriesId(0),
            at: RunTime(second * 1_000_000),
            value,
        };
        samples.iter().map(sample).collect()
    }

    #[test]
    fn what_no_account_tells_of_is_unexplained() {
        let sent = series(&[(0, 59e6 / 8.0)]);
        let (chat, video) = (series(&[(0, 30e6 / 8.0)]), series(&[(0, 3e6 / 8.0)]));
        let told = explained(&sent, &[&chat, &video], RunTime(0), RunTime(10_000_000)).unwrap();
        assert!((told.sent_bytes - 59e6 / 8.0 * 10.0).abs() < 1.0);
        assert!((told.unexplained_share().unwrap() - 26.0 / 59.0).abs() < 1e-9);
    }

    #[test]
    fn a_sample_holds_until_the_next_and_only_within_the_window() {
        let sent = series(&[(0, 100.0), (10, 0.0), (20, 50.0)]);
        let window = |from: i64, until: i64| {
            explained(&sent, &[], RunTime(from * 1_000_000), RunTime(until * 1_000_000))
                .map(|told| told.sent_bytes)
        };
        assert_eq!(window(0, 10), Some(1_000.0));
        assert_eq!(window(5, 25), Some(750.0));
        assert_eq!(window(-10, -5), None);
        assert_eq!(window(3, 3), None);
    }

    #[test]
    fn an_account_larger_than_the_card_leaves_nothing_unexplained() {
        let told = Explained { sent_bytes: 10.0, explained_bytes: 11.0 };
        assert_eq!(told.unexplained_share(), Some(0.0));
        assert_eq!(Explained { sent_bytes: 0.0, explained_bytes: 0.0 }.unexplained_share(), None);
    }

    #[test]
    fn a_gap_counts_on_neither_side() {
        let sent = series(&[(0, 100.0), (10, f64::NAN), (20, 100.0)]);
        let told = explained(&sent, &[], RunTime(0), RunTime(30_000_000)).unwrap();
        assert_eq!(told.sent_bytes, 2_000.0);
    }
}
