//! How much of the bytes sent by the network interfaces appears in an access log.

use super::catalogue::{ACCESS_BYTES, NIC_TX_BYTES};
use super::measured::Host;

/// Bytes sent, and those of them that the server's access logs contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccountedTraffic {
    /// Bytes sent by the server's interfaces, with headers of all layers and the traffic of all
    /// other programs.
    pub sent_bytes: f64,
    /// Bytes in access logs: bodies, and response headers where the log has them.
    pub accounted_bytes: f64,
}

impl AccountedTraffic {
    /// The share of the sent bytes that is in no access log, 0 to 1; `None` where nothing was sent.
    /// 0 where the logs contain more than was sent: a connection of an hour is logged at its end,
    /// so a window that is shorter than the connections may contain bytes sent before it.
    #[must_use]
    pub fn unaccounted_share(&self) -> Option<f64> {
        (self.sent_bytes > 0.0)
            .then(|| (1.0 - self.accounted_bytes / self.sent_bytes).clamp(0.0, 1.0))
    }
}

/// Compares what the server's interfaces sent ([`Host::interfaces`]) with its access logs, over the
/// time in which the host was watched. `None` where no interface was.
#[must_use]
pub fn accounted_traffic(host: &Host<'_>) -> Option<AccountedTraffic> {
    let sent = host.interfaces(NIC_TX_BYTES);
    let sent_bytes =
        sent.iter().filter_map(|nic| nic.integral(host.window)).reduce(|a, b| a + b)?;
    Some(AccountedTraffic { sent_bytes, accounted_bytes: host.total(ACCESS_BYTES).unwrap_or(0.0) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::measured::hosts;
    use super::super::{HostData, HostId, HostSample, HostSeries, SeriesId, Unit};
    use super::*;
    use crate::RunTime;
    use crate::run::RunData;

    /// A host whose series each have one value from second 0 to 10.
    /// Metric, labels, value.
    type Constant<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

    fn traffic(series: &[Constant<'_>]) -> Option<AccountedTraffic> {
        let mut host = HostData::default();
        for (number, (metric, labels, value)) in (0..).zip(series) {
            let id = SeriesId(number);
            let labels: BTreeMap<_, _> = labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let (metric, unit) = ((*metric).to_owned(), Unit::BytesPerSecond);
            host.series.push(HostSeries { id, host: HostId(0), metric, unit, labels, limit: None });
            let at = |second: i64| RunTime(second * 1_000_000);
            host.samples.extend((0..11).map(|s| HostSample {
                series: id,
                at: at(s),
                value: *value,
            }));
        }
        accounted_traffic(hosts(&RunData { host, ..RunData::default() }).first()?)
    }

    #[test]
    fn time_in_no_account_is_unexplained() {
        let traffic = traffic(&[
            ("nic.tx_bytes", &[("interface", "eth0")], 59e6 / 8.0),
            ("access.bytes", &[("uri_group", "chat")], 30e6 / 8.0),
            ("access.bytes", &[("uri_group", "video")], 3e6 / 8.0),
        ]);
        let traffic = traffic.unwrap();
        assert!((traffic.sent_bytes - 59e6 / 8.0 * 10.0).abs() < 1.0, "{traffic:?}");
        assert!((traffic.unaccounted_share().unwrap() - 26.0 / 59.0).abs() < 1e-9);
    }

    #[test]
    fn bytes_that_pass_several_interfaces_were_sent_once() {
        let sent = |series: &[Constant<'_>]| traffic(series).map(|traffic| traffic.sent_bytes);
        // A container's bytes pass its own interface, the peer interface on the host, the bridge
        // and the network card.
        let host = sent(&[
            ("nic.tx_bytes", &[("interface", "lo")], 40.0),
            ("nic.tx_bytes", &[("interface", "eth0")], 100.0),
            ("nic.tx_bytes", &[("interface", "docker0")], 90.0),
            ("nic.tx_bytes", &[("interface", "veth12")], 90.0),
            ("nic.tx_bytes", &[("interface", "eth0"), ("netns", "4000")], 90.0),
        ]);
        assert_eq!(host, Some(1_000.0));
        // A machine with two network cards, and a test that runs on one machine.
        let cards = sent(&[
            ("nic.tx_bytes", &[("interface", "eth0")], 100.0),
            ("nic.tx_bytes", &[("interface", "eth1")], 50.0),
        ]);
        assert_eq!(cards, Some(1_500.0));
        let local = sent(&[
            ("nic.tx_bytes", &[("interface", "lo")], 100.0),
            ("nic.tx_bytes", &[("interface", "eth0")], 1.0),
        ]);
        assert_eq!(local, Some(1_000.0));
        // A network namespace has only its end of a veth pair.
        assert_eq!(sent(&[("nic.tx_bytes", &[("interface", "veth0")], 7.0)]), Some(70.0));
        assert_eq!(sent(&[("access.bytes", &[], 7.0)]), None);
    }

    #[test]
    fn an_account_larger_than_the_card_leaves_nothing_unexplained() {
        let traffic = AccountedTraffic { sent_bytes: 10.0, accounted_bytes: 11.0 };
        assert_eq!(traffic.unaccounted_share(), Some(0.0));
        assert_eq!(
            AccountedTraffic { sent_bytes: 0.0, accounted_bytes: 0.0 }.unaccounted_share(),
            None
        );
    }
}
