//! `hosts.csv`: a row for each sample of each series of the watched hosts. Labels are `name=value`
//! with `;` between them; an absent value ends a series.

use std::collections::HashMap;

use throng_observation::CellType::{self, Number, Text};
use throng_observation::host::{
    HostData, HostNames, HostRow, HostSample, HostSeries, SeriesId, Unit,
};
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
#[derive(Debug, Default)]
pub struct HostRows {
    names: HostNames,
    series: HashMap<SeriesId, OfSeries>,
}

#[derive(Debug)]
struct OfSeries {
    host: String,
    metric: String,
    labels: String,
    unit: &'static str,
}

impl HostRows {
    /// Those of hosts and their series.
    pub(super) fn of(host: &HostData) -> Self {
        let mut rows = Self { names: HostNames::of(&host.hosts), ..Self::default() };
        host.series.iter().for_each(|series| rows.begin(series));
        rows
    }

    /// Learns of the hosts and then of their series, and returns the rows of the samples that
    /// follow; none of one whose series is not known.
    pub fn row(&mut self, row: &HostRow) -> Option<Vec<TableCell>> {
        match row {
            HostRow::Info(info) => self.names.learn(info.host, &info.name),
            HostRow::Series(series) => self.begin(series),
            HostRow::Sample(sample) => return self.sample(sample),
            HostRow::Event(_) | HostRow::Profile(_) => {}
        }
        None
    }

    fn begin(&mut self, series: &HostSeries) {
        let of = OfSeries {
            host: self.names.name(series.host),
            metric: series.metric.clone(),
            labels: labels(series),
            unit: unit(series.unit),
        };
        self.series.insert(series.id, of);
    }

    /// The row of a sample; `None` where its series is not known.
    pub(super) fn sample(&self, sample: &HostSample) -> Option<Vec<TableCell>> {
        let of = self.series.get(&sample.series)?;
        Some(vec![
            sample.at.as_secs_f64().into(),
            of.host.as_str().into(),
            of.metric.as_str().into(),
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
    let lines = run.host.samples.iter().filter_map(|sample| rows.sample(sample));
    lines.fold(header(&host_columns()), |out, row| out + &line(&row))
}

/// The labels in one text, in which `%` and `;` of theirs are percent-encoded: programs choose the
/// names of their threads, and none may look like another label.
fn labels(series: &HostSeries) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace(';', "%3B");
    let label = |(name, value): (&String, &String)| {
        format!("{}={}", escaped(name).replace('=', "%3D"), escaped(value))
    };
    series.labels.iter().map(label).collect::<Vec<_>>().join(";")
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
    use std::collections::BTreeMap;

    use throng_observation::RunTime;
    use throng_observation::host::{HostId, HostInfo};
    use throng_observation::percent::decoded;

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

    #[test]
    fn what_a_thread_is_called_is_no_other_label() {
        let named = [("process", "media"), ("thread", "x;tid=1 100%3B"), ("tid", "4012")];
        let series = HostSeries {
            labels: named.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..HostSeries::default()
        };
        let text = labels(&series);
        assert_eq!(text, "process=media;thread=x%3Btid=1 100%253B;tid=4012");
        let read = text.split(';').map(|label| label.split_once('=').unwrap());
        let read: Vec<_> = read.map(|(name, value)| (name, decoded(value))).collect();
        assert_eq!(read, named.map(|(name, value)| (name, value.to_owned())));
        let odd = BTreeMap::from([("a=b;c%".to_owned(), "=".to_owned())]);
        assert_eq!(labels(&HostSeries { labels: odd, ..series }), "a%3Db%3Bc%25==");
    }

    #[test]
    fn two_watches_of_one_machine_have_lines_of_their_own() {
        let mut rows = HostRows::default();
        let hosts = [HostId(0), HostId(1)];
        let info = |host| HostInfo { host, name: "lab".into(), ..HostInfo::default() };
        let series = |host: HostId| HostSeries {
            id: SeriesId(host.0.into()),
            host,
            metric: "host.cpu.busy".into(),
            ..HostSeries::default()
        };
        for row in hosts.map(|host| HostRow::Info(info(host))) {
            assert_eq!(rows.row(&row), None);
        }
        for row in hosts.map(|host| HostRow::Series(series(host))) {
            assert_eq!(rows.row(&row), None);
        }
        let sample = |id| HostSample { series: SeriesId(id), at: RunTime(0), value: 1.0 };
        let mut host = |id| rows.row(&HostRow::Sample(sample(id))).map(|row| row[1].clone());
        let expect = [Some(TableCell::from("lab 0")), Some("lab 1".into()), None];
        assert_eq!([host(0), host(1), host(2)], expect);
    }
}
