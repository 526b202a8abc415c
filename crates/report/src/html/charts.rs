//! The charts, all over the same time.

use throng_observation::limits::{LAG_P99_MS_MAX, THREAD_CPU_RATIO_MAX};
use throng_observation::run::RunData;
use throng_observation::{Counters as _, TrackCounters};

use super::chart::{Line, Scale};
use super::timeline::{Point, Timeline};
use crate::summary::{ClockSummary, Media, Summary, clock_disagreement, one_way_basis};

const THREAD_NAMES: [&str; 4] = ["thread 0", "thread 1", "thread 2", "thread 3"];

pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let time = Timeline::of(run);
    // A chat alone has its own charts, and no media.
    let media = match summary.is_chat_only() {
        true => String::new(),
        false => format!("<h2>Over time</h2><div class=\"charts\">{}</div>", media(&time, summary)),
    };
    format!("{media}<h2>Generator health</h2><div class=\"charts\">{}</div>", health(&time))
}

/// The crowd, and what it received.
fn media(time: &Timeline, summary: &Summary) -> String {
    let plain = |title, unit, lines| time.chart(title, unit, Scale::Plain, "", lines);
    let crowd = |index: usize| time.each(|p| p.crowd.and_then(|sums| sums.get(index).copied()));
    let viewers = vec![
        Line::dashed("intended", 6, crowd(0)),
        Line::solid("connected", 1, crowd(1)),
        Line::solid("playing", 3, crowd(2)),
        Line::solid("failed", 2, crowd(3)),
    ];
    let loss = vec![
        Line::solid("video", 1, time.each(|p| p.video.counters.loss_ratio())),
        Line::solid("audio", 4, time.each(|p| p.audio.counters.loss_ratio())),
    ];
    let fps = vec![
        Line::dashed("source", 6, time.each(|p| p.video.source_fps.mean())),
        Line::solid("median viewer", 1, time.each(|p| p.video.fps_milli.quantile_in(0.50, 1e3))),
        Line::solid("worst 5 % (p5)", 2, time.each(|p| p.video.fps_milli.quantile_in(0.05, 1e3))),
    ];
    let floor = "ms above each track's own floor";
    let size = resolution(time);
    if !summary.has_packets() {
        // What players fetch has no packets that could be lost or late.
        return [
            plain("Viewers", "participants", viewers),
            bitrate(time),
            plain("Frame rate", "frames played/s", fps),
            size,
        ]
        .concat();
    }
    [
        plain("Viewers", "participants", viewers),
        bitrate(time),
        plain(
            "Video delay",
            floor,
            delay(time, |p, q| p.video.relative_delay_us.quantile_in(q, 1e3)),
        ),
        absolute(time, summary),
        time.chart("Packet loss", "of packets expected", Scale::Percent, "", loss),
        plain("Frame rate", "decodable frames/s", fps),
        size,
        sums(time),
        plain(
            "Audio delay",
            floor,
            delay(time, |p, q| p.audio.relative_delay_us.quantile_in(q, 1e3)),
        ),
    ]
    .concat()
}

/// The sums of video that declare a chart.
fn sums(time: &Timeline) -> String {
    let charts = TrackCounters::COUNTERS.iter().enumerate().filter_map(|(at, counter)| {
        let (title, unit) = counter.chart()?;
        let each_second = time.each(|p| {
            let (_, sum) = p.video.counters.sums().nth(at)?;
            (p.video.tracks > 0).then(|| sum as f64 / p.seconds.max(1) as f64)
        });
        let line = Line::solid(title.to_lowercase(), 2, each_second);
        Some(time.chart(title, unit, Scale::Plain, "", vec![line]))
    });
    charts.collect()
}

/// The size of pictures, where it is known.
fn resolution(time: &Timeline) -> String {
    if time.points.iter().all(|p| p.video.picture_lines.is_empty()) {
        return String::new();
    }
    let size = |quantile: f64| {
        time.each(|p| p.video.picture_lines.lowest_at(quantile).map(|lines| lines as f64))
    };
    let lines = vec![
        Line::solid("median viewer", 1, size(0.50)),
        Line::solid("smallest picture", 2, size(0.0)),
    ];
    time.chart("Resolution", "pixels, the shorter side", Scale::Plain, "", lines)
}

/// Whether the generator kept up.
fn health(time: &Timeline) -> String {
    let limit = format!("limit {LAG_P99_MS_MAX:.0} ms");
    let lag = vec![Line::solid("lag", 5, time.each(|p| p.lag_ms))];
    let megabytes = time.each(|p| p.rss_bytes.map(|bytes| bytes / 1e6));
    let resident = vec![Line::solid("resident", 5, megabytes)];
    [
        cpu(time),
        time.chart("Generator lag", "ms late (p99 of the worst thread)", Scale::Plain, &limit, lag),
        time.chart("Generator memory", "MB resident", Scale::Plain, "", resident),
    ]
    .concat()
}

fn delay(time: &Timeline, of: impl Fn(&Point, f64) -> Option<f64>) -> Vec<Line> {
    [("p50", 1, 0.50), ("p95", 4, 0.95), ("p99", 2, 0.99)]
        .into_iter()
        .map(|(name, colour, quantile)| Line::solid(name, colour, time.each(|p| of(p, quantile))))
        .collect()
}

/// The rate that participants received, Mbit/s.
pub(super) fn received_mbit(p: &Point) -> Option<f64> {
    p.received_bps.map(|bps| bps / 1e6)
}

/// Offered is what the playing viewers get when all is well: the best sustained rate of one (the
/// 90th percentile over the run, so that a burst of key frames does not count) times how many were
/// connected. Mbit/s on the wire.
pub(super) fn offered_mbit(time: &Timeline) -> Vec<Option<f64>> {
    let connected =
        |p: &Point| p.crowd.map(|sums| sums[1].max(sums[2])).filter(|count| *count > 0.0);
    let mut each: Vec<f64> = time
        .points
        .iter()
        .filter_map(|p| Some(received_mbit(p)? / p.crowd.map(|s| s[2]).filter(|n| *n > 0.0)?))
        .collect();
    each.sort_by(f64::total_cmp);
    let sustained = each.get(each.len() * 9 / 10).copied();
    time.each(|p| Some(connected(p)? * sustained?))
}

fn bitrate(time: &Timeline) -> String {
    let lines = vec![
        Line::dashed("offered", 6, offered_mbit(time)),
        Line::solid("delivered", 1, time.each(received_mbit)),
    ];
    let unit = "Mbit/s on the wire, of players without headers";
    let note = "Offered: connected viewers × the rate one viewer sustains when all is well (p90 of \
                seconds).";
    time.chart("Bitrate, offered against delivered", unit, Scale::Plain, note, lines)
}

fn absolute(time: &Timeline, summary: &Summary) -> String {
    if time.points.iter().all(|p| p.video.absolute_delay.is_empty()) {
        return String::new();
    }
    let note = one_way_note(&summary.video, &summary.clock_error);
    let lines = delay(time, |p, q| p.video.absolute_delay.quantile_ms(q));
    time.chart("Video one-way delay", "ms from capture to arrival", Scale::Plain, &note, lines)
}

/// The basis of the delay, its error, and whether the clocks agree at all.
fn one_way_note(media: &Media, clock: &ClockSummary) -> String {
    let mut note =
        one_way_basis(media).map_or_else(String::new, |basis| format!("By {}. ", basis.text()));
    note += &match clock.bound_ms {
        Some(ms) => format!("Clock error at most {ms:.1} ms ({}).", clock.basis),
        None => format!("Clock error not known ({}).", clock.basis),
    };
    if let Some((disagreement, basis)) = clock_disagreement(media, clock).zip(one_way_basis(media))
    {
        note += &format!(
            " The clocks disagree: {}; percentiles among them are left out.",
            disagreement.text(basis)
        );
    }
    note
}

/// A line for each thread; with more threads than colours, the busiest and the idlest.
fn cpu(time: &Timeline) -> String {
    let threads: std::collections::BTreeSet<u16> =
        time.points.iter().flat_map(|p| p.thread_cpu.keys().copied()).collect();
    let lines = if threads.len() <= THREAD_NAMES.len()
        && threads.iter().all(|w| usize::from(*w) < THREAD_NAMES.len())
    {
        let line = |thread: &u16| {
            let name = THREAD_NAMES.get(usize::from(*thread)).copied().unwrap_or("thread");
            Line::solid(
                name,
                [1, 4, 3, 5][usize::from(*thread) % 4],
                time.each(|p| p.thread_cpu.get(thread).copied()),
            )
        };
        threads.iter().map(line).collect()
    } else {
        let pick =
            |best: fn(f64, f64) -> f64| time.each(|p| p.thread_cpu.values().copied().reduce(best));
        vec![
            Line::solid("busiest thread", 1, pick(f64::max)),
            Line::solid("idlest thread", 4, pick(f64::min)),
        ]
    };
    let limit = format!("limit {:.0} %", THREAD_CPU_RATIO_MAX * 100.0);
    time.chart("Generator CPU", "of one core, by thread", Scale::Percent, &limit, lines)
}

#[cfg(test)]
mod tests {
    use throng_observation::MediaKind;
    use throng_observation::run::{CrowdRow, SeriesRow};

    use super::*;

    #[test]
    fn a_sum_with_a_chart_is_drawn_by_the_second_where_there_is_video() {
        let counters = TrackCounters { freeze_count: 3, ..TrackCounters::default() };
        let freezing =
            SeriesRow { kind: Some(MediaKind::Video), tracks: 1, counters, ..SeriesRow::default() };
        let run = RunData {
            series: vec![freezing],
            crowd: vec![CrowdRow { second: 1, ..CrowdRow::default() }],
            ..RunData::default()
        };
        let time = Timeline::of(&run);
        let drawn = sums(&time);
        let expected = |values| {
            let line = Line::solid("freezes", 2, values);
            let unit = "freezes begun per second";
            time.chart("Freezes", unit, Scale::Plain, "", vec![line])
        };
        assert!(drawn.contains(&expected(vec![Some(3.0), None])), "{drawn}");
        assert!(!drawn.contains(&expected(vec![Some(2.0), None])));
    }
}
