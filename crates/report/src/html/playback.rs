//! Players over time: waiting viewers, buffers, and the rate delivered against that of the media.

use std::fmt::Write as _;

use throng_observation::run::RunData;
use throng_observation::units::{bit_rate, bytes, duration_ms, percent};
use throng_observation::{LatencyBasis, PlaybackCounters, PlaybackRow};

use super::chart::{Line, Scale};
use super::markup::{escape, known, table};
use super::timeline::{Point, Timeline};
use crate::playback::{Peers, Playback};
use crate::summary::Summary;

/// Empty where nobody plays from a buffer.
pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let Some(playback) = &summary.playback else { return String::new() };
    let time = Timeline::of(run);
    let charts = [
        waiting(&time),
        buffer(&time),
        delivery(&time),
        rates(&time, playback),
        peers(&time, playback),
        latency(&time, playback),
    ]
    .concat();
    let mut out = format!("<h2>Playback</h2><div class=\"charts\">{charts}</div>");
    out += &startup(summary);
    let (stalls, transfer) = (playback.playback_line(), playback.transfer_line());
    let _ = write!(out, "<p>{}.</p><p>{}.</p>", escape(&stalls), escape(&transfer));
    let peers = playback.peers.as_ref();
    for (what, line) in [
        ("Page around the player", playback.page_line()),
        ("Requests", playback.requests_line()),
        ("Peers", peers.map(Peers::line)),
        ("Data channels", peers.and_then(Peers::channel_line)),
        ("Hashes", peers.and_then(Peers::hashes_line)),
        ("Tracker", peers.and_then(Peers::tracker_line)),
        ("Behind live", playback.latency_line()),
    ] {
        line.iter().for_each(|line| out += &format!("<p>{what}: {}.</p>", escape(line)));
    }
    out += &figures(playback);
    out
}

/// A line with a value of the players for each point.
fn line(
    time: &Timeline,
    name: &'static str,
    colour: u8,
    value: impl Fn(&PlaybackRow) -> Option<f64>,
) -> Line {
    Line::solid(name, colour, time.each(|point| value(&point.playback)))
}

/// Who waits.
fn waiting(time: &Timeline) -> String {
    let lines = vec![
        line(time, "stalled", 2, PlaybackRow::stalled_ratio),
        line(time, "starting", 4, PlaybackRow::starting_ratio),
    ];
    let note = "Stalled: playback had begun and waited for data. Starting: it had not begun, or \
                not again after a seek.";
    time.chart("Waiting viewers", "of players, in each second", Scale::Percent, note, lines)
}

fn buffer(time: &Timeline) -> String {
    let lines = vec![
        line(time, "median viewer", 1, |p| p.buffer_us.quantile_in(0.50, 1e6)),
        line(time, "lowest 5 % (p5)", 2, |p| p.buffer_us.quantile_in(0.05, 1e6)),
    ];
    time.chart("Buffer", "seconds of media ahead of playback", Scale::Plain, "", lines)
}

fn delivery(time: &Timeline) -> String {
    let lines = vec![
        line(time, "median viewer", 1, |p| p.delivery_ratio(0.50)),
        line(time, "lowest 5 % (p5)", 2, |p| p.delivery_ratio(0.05)),
    ];
    let note = "Of players that wanted data throughout the last seconds: below 100 % their \
                buffers shrink. Absent while buffers are full.";
    time.chart("Delivery", "of the media's bit rate", Scale::Percent, note, lines)
}

/// How far behind a live stream; empty where nobody plays one.
fn latency(time: &Timeline, playback: &Playback) -> String {
    let Some(latency) = &playback.latency else { return String::new() };
    let basis = latency.basis();
    let at = |p: &PlaybackRow, quantile| p.latency_us_by(basis).quantile_in(quantile, 1e6);
    let lines = vec![
        line(time, "median viewer", 1, |p| at(p, 0.50)),
        line(time, "highest 5 % (p95)", 2, |p| at(p, 0.95)),
    ];
    let note = match basis {
        LatencyBasis::ProgramDateTime => {
            "This host's clock minus the date that the playlist gives to what is played: in error \
             by the difference of the two clocks."
        }
        LatencyBasis::PlaylistEdge => {
            "To the end of the playlist: what encoder, packager and caches took is not in it."
        }
    };
    time.chart("Behind live", "seconds", Scale::Plain, note, lines)
}

/// The rate that was delivered, and the one that the media of all players has.
fn rates(time: &Timeline, playback: &Playback) -> String {
    let mbit = |point: &Point, bytes: f64| {
        let seconds = point.seconds.max(1) as f64;
        (point.playback.players > 0).then(|| bytes * 8.0 / 1e6 / seconds)
    };
    let delivered = time.each(|point| mbit(point, point.playback.counters.media_bytes as f64));
    let needed = time.each(|point| {
        mbit(point, point.playback.counters.active_us as f64 / 8e6 * playback.sums.media_bps?)
    });
    let mut lines = vec![
        Line::dashed("bit rate of the media", 6, needed),
        Line::solid("delivered", 1, delivered),
    ];
    if playback.peers.is_some() {
        let by_peers = time.each(|point| mbit(point, point.playback.counters.peer_bytes as f64));
        lines.push(Line::solid("from other viewers", 2, by_peers));
    }
    let note = "Bit rate of the media: that of the media received, times the players that were \
                meant to play. Delivered is above it while buffers are filled.";
    let title = "Delivered against the media's bit rate";
    time.chart(title, "Mbit/s of media", Scale::Plain, note, lines)
}

/// What the server sends to each viewer, and what it would send without peers; empty where there
/// are none.
fn peers(time: &Timeline, playback: &Playback) -> String {
    if playback.peers.is_none() {
        return String::new();
    }
    let per_viewer = |of: fn(&PlaybackCounters) -> u64| {
        time.each(|point| {
            let counters = &point.playback.counters;
            counters.bps_per_player(of(counters)).map(|bps| bps / 1e6)
        })
    };
    let lines = vec![
        Line::dashed("all media", 6, per_viewer(PlaybackCounters::all_media_bytes)),
        Line::solid("from the server", 1, per_viewer(|c| c.media_bytes)),
    ];
    let note = "Below the dashed line is what the server would send to each viewer if they had \
                nothing from each other.";
    time.chart("Each viewer's media", "Mbit/s for each viewer", Scale::Plain, note, lines)
}

/// How the startup divides into phases.
fn startup(summary: &Summary) -> String {
    let rows: Vec<Vec<String>> = summary
        .phases
        .iter()
        .map(|phase| {
            vec![
                phase.name(),
                phase.reached.to_string(),
                duration_ms(phase.ms_p50),
                duration_ms(phase.ms_p95),
            ]
        })
        .collect();
    let header = ["phase, from the one before it", "reached", "p50", "p95"];
    format!("<h3>Phases of the startup</h3>{}", table(&header, &rows))
}

fn figures(playback: &Playback) -> String {
    let sums = &playback.sums;
    let seconds = |seconds: f64| duration_ms(seconds * 1e3);
    let rows = [
        ("time stalled", seconds(playback.stall_s)),
        ("time waiting for playback to begin", seconds(playback.startup_s)),
        ("media played", seconds(playback.played_s)),
        ("pauses of users", seconds(playback.paused_s)),
        ("stall ratio of a viewer, p95", known(playback.stall_ratio_p95, percent)),
        ("most viewers stalled in one second", known(playback.stalled_ratio_max, percent)),
        ("delivery, all viewers together", known(playback.delivery_ratio, percent)),
        ("media jumped over", seconds(sums.skipped_s)),
        ("time segments took, of their media time", known(sums.segment_ratio, percent)),
        ("bit rate of the media", known(sums.media_bps, bit_rate)),
        ("media bytes from the server", bytes(sums.media_bytes as f64)),
        ("other bytes (playlists, manifests, keys, the page)", bytes(sums.other_bytes as f64)),
    ];
    table(&["all players", ""], &rows.map(|(name, value)| vec![name.to_owned(), value]))
}
