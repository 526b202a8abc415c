//! What is compared, of runs and of the cells of a matrix: each quantity's name, direction, unit,
//! and what difference of it does not matter.

use throng_analysis::comparison::{Direction, Tolerance};
use throng_analysis::experiment::Margin;
use throng_observation::units::Unit;
use throng_scenario::objective::{self, Better, Quantile};
use throng_scenario::{Metric, Objective, Statistic, Threshold};

/// A quantity of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// The largest crowd that was served well, by a search.
    Capacity,
    /// Share of user-seconds that were served well.
    Served,
    /// A statistic of a metric of the scenario's catalogue.
    Metric {
        /// The metric.
        metric: Metric,
        /// The statistic.
        statistic: Statistic,
        /// Whether a frame rate is a ratio of the source's.
        is_of_source: bool,
    },
    /// Bits per second that the crowd received.
    Received,
    /// CPU time of the watched server per user and second.
    ServerCpuPerUser,
    /// Resident memory of the watched server.
    ServerMemory,
    /// CPU of the watched server, in cores; of the cells of a matrix.
    ServerCpu,
    /// Share of the host's CPU time that waited for I/O; of the cells of a matrix.
    Iowait,
}

/// Metrics that are compared whether or not there is an objective on them.
const STANDARD: [(Metric, Statistic); 12] = [
    (Metric::Failed, Statistic::Whole),
    (Metric::Connect, Statistic::P95),
    (Metric::FirstFrame, Statistic::P95),
    (Metric::VideoLoss, Statistic::Whole),
    (Metric::AudioLoss, Statistic::Whole),
    (Metric::VideoDelay, Statistic::P50),
    (Metric::VideoDelay, Statistic::P95),
    (Metric::VideoDelay, Statistic::P99),
    (Metric::VideoFreeze, Statistic::Whole),
    (Metric::Startup, Statistic::P95),
    (Metric::StallRatio, Statistic::Whole),
    (Metric::Delivery, Statistic::Whole),
];

impl Quantity {
    /// What is compared of plain runs, in the order of reports, without the objectives.
    pub(crate) fn standard() -> impl Iterator<Item = Self> {
        let metrics = STANDARD.map(|(metric, statistic)| Self::Metric {
            metric,
            statistic,
            is_of_source: false,
        });
        std::iter::once(Self::Served).chain(metrics).chain([
            Self::Received,
            Self::ServerCpuPerUser,
            Self::ServerMemory,
        ])
    }

    /// What an objective is about.
    #[must_use]
    pub fn of(objective: &Objective) -> Self {
        Self::Metric {
            metric: objective.metric,
            statistic: objective.statistic,
            is_of_source: matches!(objective.threshold, Threshold::OfSource(_)),
        }
    }

    /// Its stable key: `capacity`, or as objectives write it, `video.delay p95`.
    #[must_use]
    pub fn key(self) -> String {
        match self {
            Self::Capacity => "capacity".into(),
            Self::Served => "served_ratio".into(),
            Self::Received => "received_bps".into(),
            Self::ServerCpuPerUser => "server_cpu_ms_per_user_s".into(),
            Self::ServerMemory => "server_rss_bytes".into(),
            Self::ServerCpu => "server_cpu_cores".into(),
            Self::Iowait => "iowait_ratio".into(),
            Self::Metric { metric, statistic, is_of_source } => {
                let words =
                    [metric.name(), statistic.name(), if is_of_source { "of source" } else { "" }];
                words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The quantity with a key.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        let mut named = Self::standard().chain([Self::Capacity, Self::ServerCpu, Self::Iowait]);
        if let Some(found) = named.find(|quantity| quantity.key() == key) {
            return Some(found);
        }
        // The others are of objectives, whose words their key is; any bound of the right unit makes
        // it one.
        let (words, bounds) = match key.strip_suffix(" of source") {
            Some(words) => (words, ["0.5 of source"; 3]),
            None => (key, ["1", "1%", "1ms"]),
        };
        let texts = bounds
            .into_iter()
            .flat_map(|bound| ["<", ">"].map(|sign| format!("{words} {sign} {bound}")));
        let objective: Objective = texts.into_iter().find_map(|text| text.parse().ok())?;
        Some(Self::of(&objective))
    }

    /// A value of the quantity with a key, which may be one of another version.
    pub(crate) fn shown(key: &str, value: Option<f64>) -> String {
        match (value, Self::of_key(key)) {
            (Some(value), Some(quantity)) => quantity.show(value),
            (Some(value), None) => format!("{value}"),
            (None, _) => "–".into(),
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Capacity => "capacity, users served well".into(),
            Self::Served => "user-seconds served well".into(),
            Self::Received => "received bit rate".into(),
            Self::ServerCpuPerUser => "server CPU per user".into(),
            Self::ServerMemory => "server memory".into(),
            Self::ServerCpu => "server CPU".into(),
            Self::Iowait => "host CPU waiting for I/O".into(),
            Self::Metric { .. } => self.key(),
        }
    }

    /// The direction in which it is better.
    #[must_use]
    pub fn direction(self) -> Direction {
        match self {
            Self::Capacity | Self::Served | Self::Received => Direction::Higher,
            Self::ServerCpuPerUser | Self::ServerMemory | Self::ServerCpu | Self::Iowait => {
                Direction::Lower
            }
            Self::Metric { metric, .. } => match metric.entry().better {
                Better::Higher => Direction::Higher,
                Better::Lower => Direction::Lower,
            },
        }
    }

    /// What difference does not matter, where `relative` is the share of the base that does not,
    /// and `base` its mean. Shares that should be near 100 % are judged by what they lack of it: a
    /// twentieth of 99 % would be five times the bad service.
    #[must_use]
    pub fn tolerance(self, relative: f64, base: f64) -> Tolerance {
        let absolute = |absolute| Tolerance { relative, absolute };
        let of_the_rest = |least: f64| Tolerance {
            relative: 0.0,
            absolute: least.max(relative * (1.0 - base).abs()),
        };
        match self {
            Self::Capacity | Self::Received | Self::ServerCpu => absolute(0.0),
            Self::Iowait => absolute(0.005),
            Self::Served => of_the_rest(0.005),
            Self::ServerCpuPerUser => absolute(0.1),
            Self::ServerMemory => absolute(1e6),
            Self::Metric { is_of_source: true, .. } => of_the_rest(0.01),
            Self::Metric { metric: Metric::Failed, .. } => absolute(0.005),
            Self::Metric { metric, .. } => match metric.entry().unit {
                objective::Unit::Ratio => absolute(0.001),
                objective::Unit::Milliseconds
                    if matches!(metric.entry().quantile, Some(Quantile::Participants(_))) =>
                {
                    absolute(20.0)
                }
                objective::Unit::Milliseconds => absolute(2.0),
                objective::Unit::FramesPerSecond => absolute(0.1),
                objective::Unit::Lines => absolute(8.0),
                objective::Unit::Count => absolute(0.1),
                objective::Unit::OfBitRate => of_the_rest(0.01),
            },
        }
    }

    /// The same of the cells of a matrix: 5 points of a share, else 5 % of the mean. It is coarser
    /// than [`Self::tolerance`], because a cell has few runs.
    pub(crate) fn margin(self) -> Margin {
        if self.unit() == Unit::Ratio { Margin::Absolute(0.05) } else { Margin::Relative(0.05) }
    }

    /// Whether it hangs on the moments of the joins. Of these a run is one sample, however many
    /// join: at a regular interval all meet the same phases of what the server repeats, such as key
    /// frames and segments.
    pub(crate) fn hangs_on_joins(self) -> bool {
        let Self::Metric { metric, statistic, .. } = self else { return false };
        match metric.entry().quantile {
            None => metric == Metric::Failed,
            Some(Quantile::Participants(_)) => statistic != Statistic::Whole,
            // Where in a segment a player begins is how far behind live it stays.
            Some(Quantile::Latency) => true,
            Some(Quantile::UserSeconds(_) | Quantile::Frames(_) | Quantile::Messages(_)) => false,
        }
    }

    /// Whether it is the latency of live streams, which runs measure by different bases.
    pub(crate) fn is_latency(self) -> bool {
        matches!(self, Self::Metric { metric: Metric::Latency, .. })
    }

    /// A value with its unit; `never` where too many failed to reach it.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        if value.is_finite() { self.unit().show(value) } else { "never".into() }
    }

    /// A difference with its sign and unit; of shares in percentage points.
    #[must_use]
    pub fn show_difference(self, value: f64) -> String {
        self.unit().show_difference(value)
    }

    /// The unit of its values.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Capacity => Unit::Users,
            Self::Served | Self::Iowait => Unit::Ratio,
            Self::Received => Unit::BitsPerSecond,
            Self::ServerCpuPerUser => Unit::MillisecondsPerSecond,
            Self::ServerMemory => Unit::Bytes,
            Self::ServerCpu => Unit::Cores,
            Self::Metric { is_of_source: true, .. } => Unit::OfSource,
            Self::Metric { metric, .. } => metric.entry().unit.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_objectives_and_unique() {
        let keys: Vec<String> = Quantity::standard().map(Quantity::key).collect();
        assert!(
            keys.contains(&"video.delay p95".to_owned()) && keys.contains(&"failed".to_owned()),
            "{keys:?}"
        );
        let mut unique = keys.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), keys.len());
        let objective: Objective = "fps p50 > 0.9 of source".parse().unwrap();
        let quantity = Quantity::of(&objective);
        assert_eq!(
            (quantity.key().as_str(), quantity.direction()),
            ("video.fps p50 of source", Direction::Higher)
        );
    }

    #[test]
    fn a_key_reads_back_as_its_quantity() {
        let of_catalogue = throng_scenario::objective::CATALOGUE.iter().map(|entry| {
            let objective: Objective = entry.example.parse().unwrap();
            Quantity::of(&objective)
        });
        let of_matrix = [Quantity::Capacity, Quantity::ServerCpu, Quantity::Iowait];
        for quantity in Quantity::standard().chain(of_matrix).chain(of_catalogue) {
            assert_eq!(Quantity::of_key(&quantity.key()), Some(quantity), "{}", quantity.key());
        }
        assert_eq!(Quantity::of_key("no such thing"), None);
        assert_eq!(Quantity::of_key(""), None);
    }

    #[test]
    fn what_a_participant_has_once_hangs_on_its_join_and_what_is_of_seconds_does_not() {
        for (key, expect) in [
            ("first_frame p95", true),
            ("connect p95", true),
            ("startup p95", true),
            ("failed", true),
            ("latency p95", true),
            ("stall_ratio", false),
            ("video.delay p95", false),
            ("chat.missing", false),
            ("served_ratio", false),
        ] {
            let quantity = Quantity::of_key(key).unwrap_or_else(|| panic!("{key}"));
            assert_eq!(quantity.hangs_on_joins(), expect, "{key}");
        }
    }

    #[test]
    fn good_service_is_judged_by_what_it_lacks() {
        // From 99.9 % to 97 % is thirty times the bad service, and no "within 5 %".
        let margin = Quantity::Served.tolerance(0.05, 0.999).around(0.999);
        assert!((margin - 0.005).abs() < 1e-9, "{margin}");
        let of_a_bad_server = Quantity::Served.tolerance(0.05, 0.4).around(0.4);
        assert!((of_a_bad_server - 0.03).abs() < 1e-9);
        assert!((Quantity::Capacity.tolerance(0.05, 40.0).around(40.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn differences_have_a_sign_and_a_unit() {
        for (quantity, value, expect) in [
            (Quantity::Served, -0.169, "−16.9 points"),
            (Quantity::Served, 0.0, "0"),
            (Quantity::Capacity, 3.0, "+3"),
            (Quantity::Received, -1.5e6, "−1.50 Mbit/s"),
            (Quantity::ServerCpuPerUser, 0.25, "+0.25 ms/s"),
        ] {
            assert_eq!(quantity.show_difference(value), expect);
        }
        assert_eq!(Quantity::Capacity.show(f64::INFINITY), "never");
    }

    #[test]
    fn cells_and_runs_are_shown_alike() {
        assert_eq!(Quantity::Capacity.show(27.5), "27.5");
        assert_eq!(Quantity::Iowait.show_difference(0.034), "+3.40 points");
        assert_eq!(Quantity::Iowait.show_difference(0.0), "0");
    }

    #[test]
    fn a_cell_of_few_runs_has_a_wider_margin() {
        for (quantity, expect) in [
            (Quantity::Served, Margin::Absolute(0.05)),
            (Quantity::Iowait, Margin::Absolute(0.05)),
            (Quantity::Capacity, Margin::Relative(0.05)),
            (Quantity::ServerCpu, Margin::Relative(0.05)),
        ] {
            assert_eq!(quantity.margin(), expect, "{}", quantity.key());
        }
    }
}
