//! Families of series: their names, units and meanings, as Prometheus and OpenMetrics want them
//! (base units, a unit at the end of the name).

use throng_observation::host::Unit;
use throng_observation::host::catalogue::Metric;
use throng_observation::{Counter, SumUnit};
use throng_scenario::objective::{MetricEntry, Unit as ObjectiveUnit};

use super::declared::Declared;

/// What a family counts or measures by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl Kind {
    /// Its name in `# TYPE`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    /// The same to formats that know no information: it is a gauge there.
    pub(super) fn older(self) -> Self {
        match self {
            Self::Info => Self::Gauge,
            Self::Counter | Self::Gauge | Self::Histogram => self,
        }
    }

    /// The endings of the names of its series.
    pub(crate) fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Counter => &["_total"],
            Self::Gauge => &[""],
            Self::Histogram => &["_bucket", "_count", "_sum"],
            Self::Info => &["_info"],
        }
    }
}

/// A family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// Its name, without the ending of its series.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The unit, with which the name ends; empty without one.
    pub(crate) unit: &'static str,
    pub(crate) help: String,
}

/// A family of counters: how its names begin.
pub(super) const TRACKS: &str = "throng_track_";
/// See [`TRACKS`].
pub(super) const SENT: &str = "throng_sent_";
/// See [`TRACKS`].
pub(super) const PLAYERS: &str = "throng_player_";
/// See [`TRACKS`].
pub(super) const CHAT: &str = "throng_chat_";
/// See [`TRACKS`].
pub(super) const REQUESTS: &str = "throng_http_";

impl Family {
    /// The unit as UCUM writes it, which OpenTelemetry asks for; empty without one.
    pub(crate) fn ucum(&self) -> &'static str {
        match self.unit {
            "seconds" => "s",
            "bytes" => "By",
            "ratio" => "1",
            // Counts. `1` would be a ratio to who makes Prometheus's names of it.
            _ => "",
        }
    }

    /// The name by which it is asked for, and which formats before OpenMetrics give it: with the
    /// ending of its series, of which a histogram has several.
    pub(super) fn called(&self) -> String {
        let ending = match self.kind.endings() {
            [only] => *only,
            _ => "",
        };
        format!("{}{ending}", self.name)
    }

    /// One that is declared here.
    pub(super) fn of(declared: &Declared) -> Self {
        let Declared { name, kind, unit, help, .. } = *declared;
        Self { name: name.to_owned(), kind, unit, help: help.to_owned() }
    }

    /// A sum of a family of counters, and by what its figure is multiplied.
    pub(super) fn of_sum(prefix: &str, counter: &Counter) -> (Self, f64) {
        // Names of sent tracks end with what the prefix says.
        let said = prefix.trim_start_matches("throng").trim_end_matches('_');
        let name = counter.name.strip_suffix(said).unwrap_or(counter.name);
        let (name, unit, scale) = match counter.unit {
            SumUnit::Bytes => (format!("{}_bytes", without_bytes(name)), "bytes", 1.0),
            SumUnit::Microseconds => {
                (format!("{}_seconds", name.trim_end_matches("_us")), "seconds", 1e-6)
            }
            // `_count` ends the name of a series of histograms.
            SumUnit::Count => match name.strip_suffix("_count") {
                Some(one) => (format!("{one}s"), "", 1.0),
                None => (name.to_owned(), "", 1.0),
            },
        };
        let (kind, falls) = if counter.can_fall {
            (Kind::Gauge, " The sum so far; it can fall.")
        } else {
            (Kind::Counter, "")
        };
        let help = format!("{}{falls}", counter.meaning());
        (Self { name: format!("{prefix}{name}"), kind, unit, help }, scale)
    }

    /// A metric of a watched host, and by what its values are multiplied. Of a rate it is the sum
    /// over time: `rate()` gives the rate back, whenever it was scraped.
    pub(super) fn of_host(metric: &Metric) -> (Self, f64) {
        let name = metric.name.strip_prefix("host.").unwrap_or(metric.name).replace('.', "_");
        let is_share = metric.unit == Unit::Ratio && metric.is_rate();
        let (name, unit, scale) = match metric.unit {
            Unit::Count | Unit::PerSecond => (name, "", 1.0),
            Unit::Bytes | Unit::BytesPerSecond => {
                (format!("{}_bytes", without_bytes(&name)), "bytes", 1.0)
            }
            Unit::Ratio if is_share => (format!("{name}_seconds"), "seconds", 1.0),
            Unit::Ratio => (format!("{name}_ratio"), "ratio", 1.0),
            Unit::Milliseconds => (format!("{name}_seconds"), "seconds", 1e-3),
        };
        let kind = if metric.is_rate() { Kind::Counter } else { Kind::Gauge };
        let over_time = if is_share { "; summed over time" } else { "" };
        let help = format!("{}{over_time}.", metric.meaning);
        (Self { name: format!("throng_host_{name}"), kind, unit, help }, scale)
    }

    /// What objectives of a metric measured, and by what their figure is multiplied;
    /// `is_of_source`: it is a share of the source's frame rate.
    pub(super) fn of_objective(entry: &MetricEntry, is_of_source: bool) -> (Self, f64) {
        let name = entry.names.first().copied().unwrap_or_default().replace('.', "_");
        let (ending, unit, scale) = match entry.unit {
            ObjectiveUnit::FramesPerSecond if is_of_source => ("_of_source_ratio", "ratio", 1.0),
            ObjectiveUnit::FramesPerSecond => ("_frames_per_second", "", 1.0),
            ObjectiveUnit::Ratio | ObjectiveUnit::OfBitRate => ("_ratio", "ratio", 1.0),
            ObjectiveUnit::Milliseconds => ("_seconds", "seconds", 1e-3),
            ObjectiveUnit::Lines => ("_lines", "", 1.0),
            ObjectiveUnit::Count => ("", "", 1.0),
        };
        let name = name.strip_suffix(ending).unwrap_or(&name);
        let (name, help) = (format!("throng_objective_{name}{ending}"), entry.doc.to_owned());
        (Self { name, kind: Kind::Gauge, unit, help }, scale)
    }
}

/// A name without the unit, wherever it stands in it: `bytes_received`, `peer_bytes`.
fn without_bytes(name: &str) -> String {
    let parts: Vec<&str> = name.split('_').filter(|part| *part != "bytes").collect();
    parts.join("_")
}
