//! `hosts.csv`: a row for each sample of each series of the watched hosts. Labels are `name=value`
//! with `;` between them; an absent value ends a series.

use std::collections::{BTreeMap, HashMap};

use throng_observation::CellType::{self, Number, Text};
use throng_observation::host::{HostData, HostId, HostSample, HostSeries, SeriesId, Unit};
use throng_observation::run::RunData;
use throng_observation::{TableCell, TableColumn};

use super::{header, line, named};

const COLUMNS: [(&str, CellType); 6] = [
    ("at_s", Number),
    ("host", Text),
    ("metric", Text),
    ("labels", Text),
    ("unit", Text),
    ("value", Number),
];

/// The columns of [`HostRows::row`].
#[must_use]
pub fn host_columns() -> Vec<TableColumn> {
    named(&COLUMNS)
}

/// What the rows of each series have in common: a series may have millions of samples, and its name
/// and labels are formatted once.
#[derive(Debug)]
pub struct HostRows<'a>(HashMap<SeriesId, OfSeries<'a>>);

#[derive(Debug)]
struct OfSeries<'a> {
    host: String,
    metric: &'a str,
    labels: String,
    unit: &'static str,
}

impl<'a> HostRows<'a> {
    /// Those of hosts and their series.
    #[must_use]
    pub fn of(host: &'a HostData) -> Self {
        let names: BTreeMap<HostId, &str> =
            host.hosts.iter().map(|info| (info.host, info.name.as_str())).collect();
        let of_series = |series: &'a HostSeries| {
            let labels: Vec<_> =
                series.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let name = names.get(&series.host).map(|name| (*name).to_owned());
            OfSeries {
                host: name.unwrap_or_else(|| series.host.0.to_string()),
                metric: &series.metric,
                labels: labels.join(";"),
                unit: unit(series.unit),
            }
        };
        Self(host.series.iter().map(|series| (series.id, of_series(series))).collect())
    }

    /// The row of a sample; `None` where its series is not known.
    #[must_use]
    pub fn row(&self, sample: &HostSample) -> Option<Vec<TableCell>> {
        let of = self.0.get(&sample.series)?;
        Some(vec![
            sample.at.as_secs_f64().into(),
            of.host.as_str().into(),
            of.metric.into(),
            of.labels.as_str().into(),
            of.unit.into(),
            sample.value.into(),
        ])
    }
}

/// `hosts.csv`.
#[must_use]
pub fn hosts(run: &RunData) -> String {
    let rows = HostRows::of(&run.host);
    let lines = run.host.samples.iter().filter_map(|sample| rows.row(sample));
    lines.fold(header(&host_columns()), |out, row| out + &line(&row))
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::PerSecond => "per_second",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes_per_second",
        Unit::Ratio => "ratio",
        Unit::Milliseconds => "milliseconds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_line_for_each_sample() {
        let run = crate::server::tests::watched();
        let csv = hosts(&run);
        assert_eq!(csv.lines().count(), run.host.samples.len() + 1);
        let line = csv.lines().nth(1).unwrap();
        assert_eq!(
            line,
            "-3.97,media one,thread.cpu,pid=4000;process=janus;thread=hloop 1;tid=4012,ratio,0"
        );
    }
}
