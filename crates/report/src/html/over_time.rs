//! Several runs on one time axis: how each went, beside what it came to.

use std::borrow::Cow;

use throng_analysis::windows::{SecondQuality, quality_by_second};
use throng_observation::run::RunData;

use super::chart::{Chart, Line, Scale};
use super::charts::received_mbit;
use super::timeline::{POINTS_MAX, Point, Timeline};

/// A chart: its title, what its values are and how they read.
struct Figure {
    title: &'static str,
    unit: &'static str,
    scale: Scale,
    /// The value of a point.
    of: fn(&Point) -> Option<f64>,
}

const FIGURES: [Figure; 6] = [
    Figure {
        title: "Viewers",
        unit: "participants connected",
        scale: Scale::Plain,
        of: |p| p.crowd.map(|[_, connected, _, _]| connected),
    },
    Figure { title: "Received", unit: "Mbit/s", scale: Scale::Plain, of: received_mbit },
    Figure {
        title: "Packet loss",
        unit: "of packets of video expected",
        scale: Scale::Percent,
        of: |p| p.video.counters.loss_ratio(),
    },
    Figure {
        title: "Video delay, p95",
        unit: "ms above each track's own floor",
        scale: Scale::Plain,
        of: |p| p.video.relative_delay_us.quantile_in(0.95, 1e3),
    },
    Figure {
        title: "Stalled",
        unit: "of the time of players",
        scale: Scale::Percent,
        of: |p| p.playback.counters.stall_ratio(),
    },
    Figure {
        title: "Chat delivery, p95",
        unit: "ms",
        scale: Scale::Plain,
        of: |p| p.chat.as_ref()?.delay_us.quantile_in(0.95, 1e3),
    },
];

/// A run over its time, as it is drawn beside others: at most [`POINTS_MAX`] points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OverTime {
    /// The seconds at which points begin, since the first intended join of the run.
    starts: Vec<i64>,
    /// The share of users that was served well.
    served: Vec<Option<f64>>,
    /// The values of each of [`FIGURES`].
    values: Vec<Vec<Option<f64>>>,
}

impl OverTime {
    pub(crate) fn of(run: &RunData) -> Self {
        let time = Timeline::of(run);
        let quality = quality_by_second(run);
        let ends = time.starts.iter().skip(1).copied().chain([i64::MAX]);
        let served = time.starts.iter().zip(ends).map(|(start, end)| {
            let seconds = quality.range(*start..end).map(|(_, second)| *second);
            seconds.sum::<SecondQuality>().served_ratio()
        });
        let (served, values) =
            (served.collect(), FIGURES.iter().map(|figure| time.each(figure.of)));
        Self { served, values: values.collect(), starts: time.starts }
    }

    fn width_s(&self) -> i64 {
        match self.starts.as_slice() {
            [first, second, ..] => second - first,
            _ => 1,
        }
    }
}

/// A run among others: the line that it has in each chart.
pub(super) struct Drawn<'a> {
    pub(super) name: String,
    /// 1–6: the colour, by its place in the palette.
    pub(super) colour: u8,
    pub(super) dashed: bool,
    pub(super) run: &'a OverTime,
}

/// Charts of what any of these runs has, each run from its first intended join on; empty where none
/// has anything. `note` says in words which runs they are.
pub(super) fn section(runs: &[Drawn<'_>], note: &str) -> String {
    let axis = Axis::of(runs);
    let served = |run: &OverTime| axis.mean(run, &run.served);
    let mut charts = chart(runs, &axis, ("Served well", "of participants", Scale::Percent), served);
    for (index, Figure { title, unit, scale, .. }) in FIGURES.iter().enumerate() {
        let values = |run: &OverTime| {
            run.values.get(index).map_or_else(Vec::new, |values| axis.mean(run, values))
        };
        charts += &chart(runs, &axis, (*title, *unit, *scale), values);
    }
    if charts.is_empty() {
        return String::new();
    }
    format!(
        "<h2>Over time</h2><div class=\"charts\">{charts}</div><p class=\"over\">Seconds count \
         from the first intended join of each run. {note}</p>"
    )
}

fn chart(
    runs: &[Drawn<'_>],
    axis: &Axis,
    (title, unit, scale): (&str, &str, Scale),
    values: impl Fn(&OverTime) -> Vec<Option<f64>>,
) -> String {
    let line = |drawn: &Drawn<'_>| Line {
        name: Cow::Owned(drawn.name.clone()),
        colour: drawn.colour,
        dashed: drawn.dashed,
        values: values(drawn.run),
    };
    let lines: Vec<Line> = runs.iter().map(line).collect();
    if lines.iter().flat_map(|line| &line.values).all(Option::is_none) {
        return String::new();
    }
    Chart { title, unit, note: "", scale, seconds: &axis.starts, lines }.render()
}

/// The axis that has all of the runs.
struct Axis {
    starts: Vec<i64>,
    width_s: i64,
}

impl Axis {
    fn of(runs: &[Drawn<'_>]) -> Self {
        let ends = |drawn: &Drawn<'_>| {
            let starts = &drawn.run.starts;
            starts.first().copied().zip(starts.last().copied())
        };
        let first = runs.iter().filter_map(ends).map(|(first, _)| first).min().unwrap_or(0);
        let last = runs.iter().filter_map(ends).map(|(_, last)| last).max().unwrap_or(-1);
        // The widest points of any, as those of others can be put together.
        let widest = runs.iter().map(|drawn| drawn.run.width_s()).max().unwrap_or(1);
        let width_s = (last.saturating_sub(first) / POINTS_MAX + 1).max(widest);
        let starts = (first..=last).step_by(usize::try_from(width_s).unwrap_or(1));
        Self { starts: starts.collect(), width_s }
    }

    /// The values of a run by the points of this axis: of several the mean.
    fn mean(&self, run: &OverTime, values: &[Option<f64>]) -> Vec<Option<f64>> {
        let first = self.starts.first().copied().unwrap_or(0);
        let mut sums = vec![(0.0, 0_u32); self.starts.len()];
        for (start, value) in run.starts.iter().zip(values) {
            let place = usize::try_from(start.saturating_sub(first) / self.width_s).ok();
            let place = place.and_then(|place| sums.get_mut(place));
            if let Some(((sum, count), value)) = place.zip(value.filter(|value| value.is_finite()))
            {
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
        let mean = |(sum, count): (f64, u32)| (count > 0).then(|| sum / f64::from(count));
        sums.into_iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// A run whose points have their seconds as the share that was served.
    fn run(starts: impl Iterator<Item = i64>) -> OverTime {
        let starts: Vec<i64> = starts.collect();
        let served = starts.iter().map(|start| Some(*start as f64)).collect();
        OverTime { starts, served, values: Vec::new() }
    }

    fn drawn(run: &OverTime) -> Drawn<'_> {
        Drawn { name: "<run>".into(), colour: 1, dashed: false, run }
    }

    #[test]
    fn runs_of_unlike_lengths_have_one_axis() {
        let (short, long) = (run(0..3), run((-2..7).step_by(2)));
        let axis = Axis::of(&[drawn(&short), drawn(&long)]);
        assert_eq!((axis.starts.as_slice(), axis.width_s), ([-2, 0, 2, 4, 6].as_slice(), 2));
        assert_eq!(axis.mean(&short, &short.served), [None, Some(0.5), Some(2.0), None, None]);
        let all = [-2.0, 0.0, 2.0, 4.0, 6.0].map(Some);
        assert_eq!(axis.mean(&long, &long.served), all);
    }

    #[test]
    fn an_axis_has_no_more_points_than_a_chart() {
        let (early, late) = (run(-90_000..-89_999), run(0..600));
        let axis = Axis::of(&[drawn(&early), drawn(&late)]);
        assert!(axis.starts.len() as i64 <= POINTS_MAX, "{}", axis.starts.len());
        assert_eq!(axis.mean(&early, &early.served)[0], Some(-90_000.0));
        assert!(axis.mean(&late, &late.served).last().is_some_and(Option::is_some));
    }

    #[test]
    fn charts_are_of_what_was_measured_and_names_stay_text() {
        let nothing = OverTime::of(&RunData::default());
        assert_eq!(section(&[drawn(&nothing)], ""), "");
        assert_eq!(section(&[], ""), "");
        let (healthy, bad) =
            (OverTime::of(&example::healthy(5, 20)), OverTime::of(&example::degraded()));
        let page = section(&[drawn(&healthy), drawn(&bad)], "Both.");
        for title in ["Served well", "Viewers", "Received", "Packet loss", "Video delay, p95"] {
            assert!(page.contains(&format!("<h3>{title} <small>")), "{title}: {page}");
        }
        assert!(!page.contains("Stalled") && !page.contains("Chat") && !page.contains("NaN"));
        assert!(page.contains("&lt;run&gt;") && !page.contains("<run>"), "{page}");
        assert!(page.contains(" of each run. Both.</p>"), "{page}");
    }
}
