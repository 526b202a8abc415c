//! What access logs tell of: bytes and requests by URI group, against what the network card sent.

use std::collections::BTreeMap;

use super::{Host, MeasuredSeries};

/// What the accounts of a host come to.
pub(crate) struct Accounts {
    /// By bytes, the most first.
    pub(crate) groups: Vec<UriGroup>,
    /// Bytes that the server's interfaces sent and no account tells of, as a share; `None` where either is not known.
    pub(crate) unexplained_ratio: Option<f64>,
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

/// Metrics of accounts, as the reader of access logs names them.
const BYTES: &str = "access.bytes";
const REQUESTS: &str = "access.requests";

impl Accounts {
    /// `None` where no access log was read.
    pub(crate) fn of(host: &Host<'_>) -> Option<Self> {
        let (bytes, requests) = (host.metric(BYTES), host.metric(REQUESTS));
        if bytes.is_empty() && requests.is_empty() {
            return None;
        }
        let mut groups: BTreeMap<&str, UriGroup> = BTreeMap::new();
        let total = |series: &MeasuredSeries<'_>| series.integral(host.window).unwrap_or(0.0);
        for series in bytes {
            groups.entry(series.label("uri_group")).or_default().bytes += total(series);
        }
        for series in requests {
            let (group, count) = (groups.entry(series.label("uri_group")).or_default(), total(series));
            group.requests += count;
            for (name, map) in [("status", &mut group.by_status), ("protocol", &mut group.by_protocol)] {
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
        let told =
            throng_observation::host::accounted_traffic(host).filter(|told| told.accounted_bytes > 0.0);
        let unexplained_ratio = told.and_then(|told| told.unaccounted_share());
        Some(Self { groups, unexplained_ratio })
    }
}
