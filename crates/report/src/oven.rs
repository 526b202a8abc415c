//! The figures of OvenRtcTester's `<Summary>` and `<Details>`, so that its users find what they know.
//!
//! Its "delay" is drift since the first packet (see `TrackInterval::oven_delay_us`); it is printed under that name,
//! beside the relative delay that replaces it. Losses are packets, not gaps.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use throng_observation::foreign;
use throng_observation::run::{ParticipantId, RunData, TrackRow};
use throng_observation::units::{bit_rate, bytes, duration_ms};
use throng_observation::{Distribution, MediaKind, Outcome, RunTime, TrackCounters};

use crate::figures::Figures;

/// The `<Summary>` of the whole run, then a paragraph for every participant.
#[must_use]
pub fn report(run: &RunData) -> String {
    format!("{}{}", summary(run), details(run))
}

/// The `<Summary>` block.
#[must_use]
pub fn summary(run: &RunData) -> String {
    let figures = Figures::of(run, 0.0);
    let clients = figures.intended.len();
    let mut out = String::from("<Summary>\n");
    let _ = writeln!(out, "Running time : {:.0}s", figures.duration_s);
    let _ = writeln!(out, "Number of clients : {clients}");
    let last = run.crowd.iter().map(|row| row.second).max();
    let mut ice = [0; 6];
    for row in run.crowd.iter().filter(|row| Some(row.second) == last) {
        for (sum, count) in ice.iter_mut().zip(row.ice) {
            *sum += u64::from(count);
        }
    }
    let [new, checking, connected, disconnected, failed, closed] = ice;
    let _ = writeln!(
        out,
        "ICE Connection State : New({new}), Checking({checking}) Connected({connected}) \
         Disconnected({disconnected}) Failed({failed}) Closed({closed})"
    );
    for (name, kind) in [("Video", &figures.video), ("Audio", &figures.audio)] {
        let _ = writeln!(out, "{}", spread(&format!("{name} Delay"), "", &kind.relative_delay_us, &delay));
        let _ = writeln!(
            out,
            "{}",
            spread(&format!("{name} Drift"), " (OvenRtcTester's \"delay\")", &kind.oven_delay_us, &delay)
        );
    }
    let fps = |milli: f64| format!("{:.2}", milli / 1e3);
    let _ = writeln!(out, "{}", spread("FPS", "", &figures.video.fps_milli, &fps));
    let (by_client, all) = by_client(run);
    let mut bps = Distribution::new();
    by_client.values().for_each(|sum| bps.record(rate_bps(sum) as u64));
    let _ = writeln!(out, "{}", spread("BPS", "", &bps, &bit_rate));
    let each = |total: f64| if clients == 0 { 0.0 } else { total / clients as f64 };
    let total_bytes = all.payload_bytes as f64;
    let _ = writeln!(out, "Total Bytes({}) Avg Bytes({})", bytes(total_bytes), bytes(each(total_bytes)));
    let packets = all.packets_received;
    let _ = writeln!(out, "Total Packets({packets}) Avg Packets({:.0})", each(packets as f64));
    let lost = all.packets_lost.max(0);
    let _ = writeln!(out, "Total Packet Losses({lost}) Avg Packet Losses({:.1})", each(lost as f64));
    out
}

/// The `<Details>` of every participant.
#[must_use]
pub fn details(run: &RunData) -> String {
    let ended_s = Figures::of(run, 0.0).duration_s;
    let mut tracks: BTreeMap<ParticipantId, Vec<&TrackRow>> = BTreeMap::new();
    for track in &run.tracks {
        tracks.entry(track.participant).or_default().push(track);
    }
    let mut out = String::from("<Details>\n");
    for row in &run.participants {
        let state = match &row.outcome {
            None => "unfinished".into(),
            Some(Outcome::Completed) => "completed".into(),
            Some(Outcome::Failed(failure)) => {
                format!("failed, {}", foreign::line(&failure.to_string()))
            }
        };
        let ran_s = row.ended_at.map_or(ended_s, RunTime::as_secs_f64) - row.intended_at.as_secs_f64();
        let _ =
            writeln!(out, "[client_{}]\n\trunning_time({:.0}s) {state}", row.participant.0, ran_s.max(0.0));
        for track in tracks.get(&row.participant).into_iter().flatten() {
            let _ = writeln!(out, "\t{}", track_line(track));
        }
    }
    out
}

fn track_line(track: &TrackRow) -> String {
    let c = &track.counters;
    let fps = match (track.kind, track.fps) {
        (MediaKind::Video, Some(fps)) => format!(" frames({}) avg_fps({fps:.2})", c.frames_decodable),
        _ => String::new(),
    };
    let delay_p95 =
        track.relative_delay_us.quantile(0.95).map_or_else(|| "none".into(), |us| delay(us as f64));
    let drift = track.oven_delay_us.map_or_else(|| "none".into(), |us| delay(f64::from(us)));
    format!(
        "{}({}) total_packets({}) packet_loss({}) total_bytes({}) avg_bps({}){fps} delay_p95({delay_p95}) last_drift({drift})",
        track.kind.key(),
        track.codec.name(),
        c.packets_received,
        c.packets_lost.max(0),
        bytes(c.payload_bytes as f64),
        bit_rate(rate_bps(c)),
    )
}

fn by_client(run: &RunData) -> (BTreeMap<ParticipantId, TrackCounters>, TrackCounters) {
    let mut by_client: BTreeMap<_, TrackCounters> = BTreeMap::new();
    let mut all = TrackCounters::default();
    for track in &run.tracks {
        let sum = by_client.entry(track.participant).or_default();
        let active_us = sum.active_us.max(track.counters.active_us);
        *sum += track.counters;
        // Tracks of one client run side by side: their times do not add up.
        sum.active_us = active_us;
        all += track.counters;
    }
    (by_client, all)
}

fn rate_bps(c: &TrackCounters) -> f64 {
    if c.active_us == 0 { 0.0 } else { c.payload_bytes as f64 * 8e6 / c.active_us as f64 }
}

fn delay(us: f64) -> String {
    duration_ms(us / 1e3)
}

fn spread(name: &str, note: &str, values: &Distribution, show: &dyn Fn(f64) -> String) -> String {
    let at = |value: Option<f64>| value.map_or_else(|| "none".into(), show);
    format!(
        "Avg {name}({}) Max {name}({}) Min {name}({}){note}",
        at(values.mean()),
        at(values.quantile(1.0).map(|value| value as f64)),
        at(values.quantile(0.0).map(|value| value as f64)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_old_tester_is_there() {
        let text = report(&crate::example::degraded());
        for figure in [
            "Running time : 60s",
            "Number of clients : 100",
            "ICE Connection State",
            "Avg Video Delay",
            "Min Video Delay",
            "Max Audio Delay",
            "Avg FPS",
            "Avg BPS",
            "Total Bytes",
            "Avg Packets",
            "Total Packet Losses",
            "<Details>",
            "[client_0]",
            "failed, ice: no candidate pair",
        ] {
            assert!(text.contains(figure), "{figure} in:\n{text}");
        }
    }
}
