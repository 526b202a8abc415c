//! Bytes and requests by URI group, as access logs count them, against what the network interfaces
//! sent.

use std::collections::BTreeMap;

use throng_observation::host::accounted_traffic;
use throng_observation::host::catalogue::{ACCESS_BYTES, ACCESS_REQUESTS};

use super::{Host, MeasuredSeries};

/// The access logs of a host added up.
pub(crate) struct Accounts {
    /// By bytes, the most first.
    pub(crate) groups: Vec<UriGroup>,
    /// Share of the bytes sent by the server's interfaces that is in no access log; `None` where
    /// either is not known.
    pub(crate) unaccounted_ratio: Option<f64>,
}

/// Requests that belong together.
#[derive(Default)]
pub(crate) struct UriGroup {
    pub(crate) name: String,
    pub(crate) bytes: f64,
    pub(crate) requests: f64,
    /// Requests by status class or status, and by protocol, as far as the log has them.
    pub(crate) by_status: BTreeMap<String, f64>,
    pub(crate) by_protocol: BTreeMap<String, f64>,
}

impl Accounts {
    /// `None` where no access log was read.
    pub(crate) fn of(host: &Host<'_>) -> Option<Self> {
        let (bytes, requests) = (host.metric(ACCESS_BYTES), host.metric(ACCESS_REQUESTS));
        if bytes.is_empty() && requests.is_empty() {
            return None;
        }
        let mut groups: BTreeMap<&str, UriGroup> = BTreeMap::new();
        let total = |series: &MeasuredSeries<'_>| series.integral(host.window).unwrap_or(0.0);
        for series in bytes {
            groups.entry(series.label("uri_group")).or_default().bytes += total(series);
        }
        for series in requests {
            let (group, count) =
                (groups.entry(series.label("uri_group")).or_default(), total(series));
            group.requests += count;
            for (name, map) in
                [("status", &mut group.by_status), ("protocol", &mut group.by_protocol)]
            {
                if let Some(label) = series.series.labels.get(name).filter(|_| count > 0.0) {
                    *map.entry(label.clone()).or_default() += count;
                }
            }
        }
        let mut groups: Vec<UriGroup> = groups
            .into_iter()
            .map(|(name, group)| UriGroup {
                name: if name.is_empty() { "all" } else { name }.into(),
                ..group
            })
            .collect();
        groups.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
        let traffic = accounted_traffic(host).filter(|traffic| traffic.accounted_bytes > 0.0);
        Some(Self {
            groups,
            unaccounted_ratio: traffic.and_then(|traffic| traffic.unaccounted_share()),
        })
    }
}
