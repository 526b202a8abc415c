//! Queries on a watched host's rows: series by metric, and sums, means and quantiles of a series
//! over a part of the run.

use std::collections::HashMap;

use super::{
    BOOT_ID_FACT, HostData, HostEvent, HostEventKind, HostId, HostInfo, HostNames, HostSample,
    HostSeries, Profile, SeriesId, Unit,
};
use crate::run::RunData;

/// A rate is the mean since the previous reading; where values did not change the time of that
/// reading is unknown, and taken as at most this long ago.
const PERIOD_US_MAX: i64 = 1_000_000;

/// Of windows longer than a day the first day is used.
const SECONDS_MAX: usize = 86_400;

/// No value of a host is larger; a larger one comes from a damaged file or a wrong endpoint, and is
/// ignored.
const VALUE_MAX: f64 = 1e18;

/// One watched host.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// Which.
    pub id: HostId,
    /// Its facts.
    pub info: Option<&'a HostInfo>,
    /// Its events.
    pub events: Vec<&'a HostEvent>,
    /// Its profiles.
    pub profiles: Vec<&'a Profile>,
    name: String,
    by_metric: HashMap<&'a str, Vec<MeasuredSeries<'a>>>,
    /// The part of the run in which it was watched.
    pub window: Window,
}

/// A stretch of the run, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From here on.
    pub from_us: i64,
    /// The end of the stretch, exclusive.
    pub until_us: i64,
}

impl Window {
    /// How long it is.
    #[must_use]
    pub fn seconds(self) -> f64 {
        (self.until_us - self.from_us).max(0) as f64 / 1e6
    }
}

/// A series and its samples in order of time.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredSeries<'a> {
    /// What is measured.
    pub series: &'a HostSeries,
    samples: &'a [HostSample],
    /// How far before its sample a value began to hold, microseconds.
    shift_us: i64,
    /// When the host was last read: until then the last value holds.
    until_us: i64,
}

/// The hosts of a run in their order.
#[must_use]
pub fn hosts(run: &RunData) -> Vec<Host<'_>> {
    let data = &run.host;
    let mut ids: Vec<HostId> = data.hosts.iter().map(|info| info.host).collect();
    ids.extend(data.series.iter().map(|series| series.host));
    ids.extend(data.events.iter().map(|event| event.host));
    ids.sort_unstable();
    ids.dedup();
    let ends_us = run.ended_at.map_or(i64::MAX, |at| at.0);
    ids.into_iter().map(|id| host(data, id, ends_us)).collect()
}

/// The mean over the window of what all series of a metric add up to, those of all `hosts`
/// together; a process that lived for a part of the window counts for that part. `None` without
/// such a series, and of a window without time.
#[must_use]
pub fn mean_of_all(
    hosts: &[Host<'_>],
    metric: impl AsRef<str> + Copy,
    window: Window,
) -> Option<f64> {
    let series = hosts.iter().flat_map(|host| host.metric(metric));
    let sum = series.filter_map(|series| series.integral(window)).reduce(|a, b| a + b)?;
    (window.seconds() > 0.0).then(|| sum / window.seconds())
}

fn host(data: &HostData, id: HostId, ends_us: i64) -> Host<'_> {
    let mut by_metric: HashMap<&str, Vec<MeasuredSeries<'_>>> = HashMap::new();
    let of: HashMap<SeriesId, &HostSeries> = data
        .series
        .iter()
        .filter(|series| series.host == id)
        .map(|series| (series.id, series))
        .collect();
    let runs = || {
        data.samples.chunk_by(|a, b| a.series == b.series).filter_map(|samples| {
            let series = samples.first().and_then(|first| of.get(&first.series))?;
            Some((*series, samples))
        })
    };
    let last_us =
        runs().filter_map(|(_, samples)| samples.last().map(|last| last.at.0)).max().unwrap_or(0);
    for (series, samples) in runs() {
        let shift_us = shift_us(series.unit, samples);
        by_metric.entry(series.metric.as_str()).or_default().push(MeasuredSeries {
            series,
            samples,
            shift_us,
            until_us: last_us,
        });
    }
    Host {
        id,
        info: data.hosts.iter().find(|info| info.host == id),
        events: data.events.iter().filter(|event| event.host == id).collect(),
        profiles: data.profiles.iter().filter(|profile| profile.host == id).collect(),
        name: HostNames::of(&data.hosts).name(id),
        by_metric,
        window: Window { from_us: 0, until_us: last_us.min(ends_us).max(0) },
    }
}

fn shift_us(unit: Unit, samples: &[HostSample]) -> i64 {
    match unit {
        Unit::Count | Unit::Bytes => 0,
        Unit::PerSecond | Unit::BytesPerSecond | Unit::Ratio | Unit::Milliseconds => samples
            .iter()
            .zip(samples.iter().skip(1))
            .map(|(a, b)| b.at.0.saturating_sub(a.at.0))
            .min()
            .unwrap_or(PERIOD_US_MAX)
            .clamp(0, PERIOD_US_MAX),
    }
}

impl<'a> Host<'a> {
    /// Its display name, which no other host of the run has.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether both are the same machine: each `[[watch]]` has a host of its own, also where
    /// several watch one machine. Runs without [`BOOT_ID_FACT`] do not tell.
    #[must_use]
    pub fn is_same_machine(&self, other: &Host<'_>) -> bool {
        let (own, others) = (self.fact(BOOT_ID_FACT), other.fact(BOOT_ID_FACT));
        self.id == other.id || own.is_some() && own == others
    }

    /// A fact of the host.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&'a str> {
        self.info?.facts.get(name).map(String::as_str)
    }

    /// All series of a metric: one of the [catalogue](super::catalogue), or the name of an
    /// endpoint's or a log's metric.
    #[must_use]
    pub fn metric(&self, metric: impl AsRef<str>) -> &[MeasuredSeries<'a>] {
        self.by_metric.get(metric.as_ref()).map_or(&[], Vec::as_slice)
    }

    /// Every metric with its series, by name.
    #[must_use]
    pub fn metrics(&self) -> Vec<(&'a str, &[MeasuredSeries<'a>])> {
        let mut all: Vec<_> =
            self.by_metric.iter().map(|(name, list)| (*name, list.as_slice())).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// The largest value of any series of a metric.
    #[must_use]
    pub fn max(&self, metric: impl AsRef<str>) -> Option<f64> {
        self.metric(metric).iter().filter_map(|series| series.max(self.window)).reduce(f64::max)
    }

    /// The integral of a rate over the whole window, all series of the metric together.
    #[must_use]
    pub fn total(&self, metric: impl AsRef<str>) -> Option<f64> {
        self.metric(metric)
            .iter()
            .filter_map(|series| series.integral(self.window))
            .reduce(|a, b| a + b)
    }

    /// Its events of one kind, in order.
    pub fn events_of(&self, kind: HostEventKind) -> impl Iterator<Item = &'a HostEvent> {
        self.events.iter().copied().filter(move |event| event.kind == kind)
    }
}

impl<'a> MeasuredSeries<'a> {
    /// A label of the series; empty where it has none of that name.
    #[must_use]
    pub fn label(&self, name: &str) -> &'a str {
        self.series.labels.get(name).map_or("", String::as_str)
    }

    /// Whether it is of the interface of another series: each network namespace may have an `eth0`.
    #[must_use]
    pub fn is_of_interface(&self, of: &MeasuredSeries<'_>) -> bool {
        ["interface", "netns"].iter().all(|name| self.label(name) == of.label(name))
    }

    /// The value that it cannot exceed.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        self.series.limit.filter(|limit| limit.is_finite())
    }

    /// The intervals in which the series has one value: begin and end in microseconds, and the
    /// value. Unknown parts are left out.
    fn pieces(&self, window: Window) -> impl Iterator<Item = (i64, i64, f64)> {
        let ends = self.samples.iter().skip(1).map(|next| next.at.0.saturating_sub(self.shift_us));
        let ends = ends.chain(std::iter::once(self.until_us.saturating_add(1)));
        self.samples.iter().zip(ends).filter_map(move |(sample, ends_us)| {
            let begins_us = sample.at.0.saturating_sub(self.shift_us).max(window.from_us);
            let ends_us = ends_us.min(window.until_us);
            (sample.value.abs() <= VALUE_MAX && begins_us < ends_us).then_some((
                begins_us,
                ends_us,
                sample.value,
            ))
        })
    }

    /// Value × seconds over the window; `None` where it was never known.
    #[must_use]
    pub fn integral(&self, window: Window) -> Option<f64> {
        self.pieces(window)
            .map(|(from, until, value)| value * (until - from) as f64 / 1e6)
            .reduce(|a, b| a + b)
    }

    /// The mean over the time in which it was known.
    #[must_use]
    pub fn mean(&self, window: Window) -> Option<f64> {
        let known_us: i64 = self.pieces(window).map(|(from, until, _)| until - from).sum();
        self.integral(window).map(|sum| sum / (known_us as f64 / 1e6))
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self, window: Window) -> Option<f64> {
        self.pieces(window).map(|(.., value)| value).reduce(f64::max)
    }

    /// The largest mean of a second. Rates of what the kernel accounts only at its ticks vary
    /// around the true value when they are read more often. For values that were never known for a
    /// whole second, the largest value.
    #[must_use]
    pub fn max_of_seconds(&self, window: Window) -> Option<f64> {
        let count =
            usize::try_from(window.until_us.saturating_sub(window.from_us).div_euclid(1_000_000));
        let count = count.unwrap_or(0).min(SECONDS_MAX);
        let mut sums = vec![(0.0, 0); count];
        self.spread(
            Grid { first_us: window.from_us, width_us: 1_000_000, count },
            |index, us, value| {
                if let Some((sum, known_us)) = sums.get_mut(index) {
                    *sum += value * us as f64;
                    *known_us += us;
                }
            },
        );
        let whole = sums.into_iter().filter(|(_, known_us)| *known_us >= 900_000);
        whole.map(|(sum, us)| sum / us as f64).reduce(f64::max).or_else(|| self.max(window))
    }

    /// The value that was not exceeded for a share `quantile` of the time in which it was known.
    #[must_use]
    pub fn quantile(&self, window: Window, quantile: f64) -> Option<f64> {
        let mut pieces: Vec<(f64, i64)> =
            self.pieces(window).map(|(from, until, value)| (value, until - from)).collect();
        pieces.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = pieces.iter().map(|(_, us)| *us).sum::<i64>() as f64 * quantile;
        let mut so_far = 0.0;
        let at = pieces.iter().find(|(_, us)| {
            so_far += *us as f64;
            so_far >= wanted
        });
        at.or(pieces.last()).map(|(value, _)| *value)
    }

    /// Of the time that was read in intervals of at most `moment_us`, the share in which the value
    /// was `level` (0 to 1) or more; `None` where that was less than half of the window. A moment
    /// as short as an interval mostly lies in two of them: what both have above the median reading
    /// is then one moment.
    #[must_use]
    pub fn share_of_moments(&self, window: Window, level: f64, moment_us: i64) -> Option<f64> {
        let pieces: Vec<_> =
            self.pieces(window).filter(|(from, until, _)| until - from <= moment_us).collect();
        let mut values: Vec<f64> = pieces.iter().map(|(.., value)| *value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let usual = values.get(values.len() / 2).copied().unwrap_or(0.0).min(level);
        let known_us: i64 = pieces.iter().map(|(from, until, _)| until - from).sum();
        let is_one_moment = |a: f64, b: f64| {
            a.min(b) > usual && a.max(b) < level && a + b - 2.0 * usual >= level * (1.0 - usual)
        };
        let (mut reached_us, mut at) = (0, 0);
        while let Some((from, until, value)) = pieces.get(at) {
            let next = pieces.get(at + 1).filter(|(next, ..)| next == until);
            if *value >= level {
                reached_us += until - from;
            } else if next.is_some_and(|(.., next)| is_one_moment(*value, *next)) {
                reached_us += until - from;
                at += 1;
            }
            at += 1;
        }
        (known_us > 0 && known_us * 2 >= window.until_us - window.from_us)
            .then(|| reached_us as f64 / known_us as f64)
    }

    /// Its intervals cut at the points of `grid`: the point, microseconds, value.
    fn spread(&self, grid: Grid, mut put: impl FnMut(usize, i64, f64)) {
        let (first_us, width_us) = (grid.first_us, grid.width_us.max(1));
        for (from_us, until_us, value) in self.pieces(grid.window()) {
            let mut at_us = from_us;
            while at_us < until_us {
                let index = (at_us - first_us).div_euclid(width_us);
                let ends_us = (first_us + (index + 1) * width_us).min(until_us);
                if let Ok(index) = usize::try_from(index) {
                    put(index, ends_us - at_us, value);
                }
                at_us = ends_us;
            }
        }
    }

    /// The last value that was read up to and with this moment.
    #[must_use]
    pub fn value_at(&self, at_us: i64) -> Option<f64> {
        let until = self.samples.partition_point(|sample| sample.at.0 <= at_us);
        self.samples
            .get(..until)?
            .last()
            .map(|sample| sample.value)
            .filter(|value| value.is_finite())
    }

    /// Adds its mean over each point of `grid` to `sums`, unknown parts as 0; points in which it
    /// was never known stay as they are, and so does a last point of which less than half was
    /// observed.
    pub fn add_to(&self, grid: Grid, sums: &mut [Option<f64>]) {
        let seen = (self.until_us.saturating_sub(grid.first_us) as f64
            / grid.width_us.max(1) as f64)
            .round();
        let seen = sums.len().min(seen.max(0.0) as usize);
        self.spread(grid, |index, us, value| {
            if let Some(sum) = sums.get_mut(..seen).and_then(|sums| sums.get_mut(index)) {
                *sum = Some(sum.unwrap_or(0.0) + value * us as f64 / grid.width_us.max(1) as f64);
            }
        });
    }

    /// Its mean over the known part of each point of `grid`.
    #[must_use]
    pub fn on(&self, grid: Grid) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0); grid.count];
        self.spread(grid, |index, us, value| {
            if let Some((sum, known_us)) = sums.get_mut(index) {
                *sum += value * us as f64;
                *known_us += us;
            }
        });
        sums.into_iter()
            .map(|(sum, known_us)| (known_us > 0).then(|| sum / known_us as f64))
            .collect()
    }
}

/// Points of equal width over time.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Where the first point begins.
    pub first_us: i64,
    /// How wide each is.
    pub width_us: i64,
    /// How many there are.
    pub count: usize,
}

impl Grid {
    fn window(self) -> Window {
        let span = i64::try_from(self.count).unwrap_or(0).saturating_mul(self.width_us);
        Window { from_us: self.first_us, until_us: self.first_us.saturating_add(span) }
    }
}
