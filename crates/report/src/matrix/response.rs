//! The measured quantities whose effects are tabulated.

use throng_analysis::experiment::Margin;
use throng_observation::units::{bit_rate, percent};

use super::RunFigures;

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// Share of user-seconds with good service.
    Served,
    /// The largest crowd that was served well.
    Capacity,
    /// Bits per second that the crowd received.
    Received,
    /// CPU of the server, in cores.
    ServerCpu,
    /// Share of the host's CPU time that waited for I/O.
    Iowait,
}

impl ResponseKind {
    /// Its stable key.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Served => "served_ratio",
            Self::Capacity => "capacity",
            Self::Received => "received_bps",
            Self::ServerCpu => "server_cpu_cores",
            Self::Iowait => "iowait_ratio",
        }
    }

    /// Its kind by key.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        [Self::Served, Self::Capacity, Self::Received, Self::ServerCpu, Self::Iowait]
            .into_iter()
            .find(|kind| kind.key() == key)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Served => "user-seconds served well",
            Self::Capacity => "capacity, users served well",
            Self::Received => "received bit rate",
            Self::ServerCpu => "CPU of the server, cores",
            Self::Iowait => "host CPU waiting for I/O",
        }
    }

    /// Differences below it do not matter: 5 points of a share that is judged by itself, else 5 %
    /// of the mean.
    pub(super) fn margin(self) -> Margin {
        match self {
            Self::Served | Self::Iowait => Margin::Absolute(0.05),
            Self::Capacity | Self::Received | Self::ServerCpu => Margin::Relative(0.05),
        }
    }

    pub(super) fn of(self, figures: &RunFigures) -> Option<f64> {
        match self {
            Self::Served => figures.served_ratio,
            Self::Capacity => figures.capacity.map(f64::from),
            Self::Received => Some(figures.received_bps),
            Self::ServerCpu => figures.server_cpu_cores,
            Self::Iowait => figures.iowait_ratio,
        }
    }

    /// A value with its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Served | Self::Iowait => percent(value),
            Self::Capacity => format!("{value:.0}"),
            Self::Received => bit_rate(value),
            Self::ServerCpu => format!("{value:.2}"),
        }
    }

    /// A difference with its sign and unit.
    #[must_use]
    pub fn show_difference(self, value: f64) -> String {
        let sign = if value < 0.0 { "−" } else { "+" };
        let size = value.abs();
        match self {
            Self::Served | Self::Iowait => format!("{sign}{:.1} points", size * 100.0),
            Self::Capacity => format!("{sign}{size:.1}"),
            _ => format!("{sign}{}", self.show(size)),
        }
    }
}
