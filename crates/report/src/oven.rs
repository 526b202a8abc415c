//! The figures of OvenRtcTester's `<Summary>` and `<Details>`, so that its users find what they know.
//!
//! Its "delay" is drift since the first packet (see `TrackInterval::oven_delay_us`); it is printed under that name,
//! beside the relative delay that replaces it. Losses are packets, not gaps.

use std::collections::BTreeMap;
use std::fmt::Write as _;

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
    let [new, checking, connected, disconnected, failed, closed] = ice_at_the_end(run, figures.duration_s);
    // Libwebrtc's offerers are completed when all their checks are over; who answers is connected to the last.
    let _ = writeln!(
        out,
        "ICE Connection State : New({new}), Checking({checking}) Connected({connected}) Completed(0) \
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
    let _ = writeln!(out, "{}", gop(run));
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

/// Whose ICE was how when everybody was told to leave: at the end of the last second before it. A second later they are
/// closed.
fn ice_at_the_end(run: &RunData, ended_s: f64) -> [u64; 6] {
    let mut by_second: BTreeMap<i64, [u64; 6]> = BTreeMap::new();
    for row in run.crowd.iter().filter(|row| row.second < ended_s.ceil().max(1.0) as i64) {
        let sums = by_second.entry(row.second).or_default();
        for (sum, count) in sums.iter_mut().zip(row.ice) {
            *sum += u64::from(count);
        }
    }
    let connected = |ice: &[u64; 6]| ice.get(2).copied().unwrap_or(0);
    let mut last = by_second.into_values().rev().take(2);
    match (last.next(), last.next()) {
        // The second in which the end fell may have been looked at after it.
        (Some(last), Some(before)) if connected(&before) > connected(&last) => before,
        (last, _) => last.unwrap_or_default(),
    }
}

/// How many frames there are to a key frame: of all clients together, and of the one with the most and the fewest.
fn gop(run: &RunData) -> String {
    let mut by_client: BTreeMap<ParticipantId, (u64, u64)> = BTreeMap::new();
    for track in run.tracks.iter().filter(|track| track.kind == MediaKind::Video) {
        let (frames, keys) = by_client.entry(track.participant).or_default();
        *frames += track.counters.frames_decodable;
        *keys += track.counters.key_frames;
    }
    let each =
        by_client.values().filter(|(_, keys)| *keys > 0).map(|(frames, keys)| *frames as f64 / *keys as f64);
    let bounds = each.fold(None, |bounds: Option<(f64, f64)>, gop| match bounds {
        None => Some((gop, gop)),
        Some((most, fewest)) => Some((most.max(gop), fewest.min(gop))),
    });
    let (frames, keys) = by_client.values().fold((0, 0), |(f, k), (frames, keys)| (f + frames, k + keys));
    match bounds {
        Some((most, fewest)) => {
            format!("Avg GOP({:.2}) Max GOP({most:.2}) Min GOP({fewest:.2})", frames as f64 / keys as f64)
        }
        None => "Avg GOP(none) Max GOP(none) Min GOP(none)".into(),
    }
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
            Some(Outcome::Failed(failure)) => format!("failed, {failure}"),
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
        (MediaKind::Video, Some(fps)) => {
            let gop = if c.key_frames > 0 {
                format!("{:.2}", c.frames_decodable as f64 / c.key_frames as f64)
            } else {
                "none".into()
            };
            format!(
                " frames({}) keyframes({}) avg_gop({gop}) avg_fps({fps:.2})",
                c.frames_decodable, c.key_frames
            )
        }
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
    use throng_observation::run::{CohortId, CrowdRow};

    fn line<'t>(text: &'t str, begins: &str) -> &'t str {
        text.lines().find(|line| line.starts_with(begins)).unwrap_or_default()
    }

    #[test]
    fn the_last_ice_line_is_of_who_was_there_when_all_were_told_to_leave() {
        let mut run = crate::example::healthy(3, 4);
        run.ended_at = Some(RunTime(4_000_000));
        let row = |second, ice| CrowdRow { second, ice, ..run.crowd[0] };
        let beside = |second, ice| CrowdRow { cohort: CohortId(1), ..row(second, ice) };
        let before =
            vec![row(2, [1, 0, 2, 0, 0, 0]), beside(3, [0, 0, 1, 0, 0, 0]), row(3, [0, 0, 2, 0, 1, 0])];
        let after = vec![row(4, [0, 0, 0, 0, 1, 2]), row(5, [0, 0, 0, 0, 1, 2])];
        run.crowd = [before, after].concat();
        let expect = "ICE Connection State : New(0), Checking(0) Connected(3) Completed(0) Disconnected(0) Failed(1) Closed(0)";
        assert_eq!(line(&summary(&run), "ICE"), expect);
        // Looked at just after the end.
        run.crowd.retain(|row| row.second != 3);
        run.crowd.push(CrowdRow { second: 3, ice: [0, 0, 0, 0, 0, 3], ..run.crowd[0] });
        let expect = "ICE Connection State : New(1), Checking(0) Connected(2) Completed(0) Disconnected(0) Failed(0) Closed(0)";
        assert_eq!(line(&summary(&run), "ICE"), expect);
        run.crowd.clear();
        assert!(line(&summary(&run), "ICE").contains("Connected(0)"));
    }

    #[test]
    fn a_gop_is_the_frames_to_a_key_frame() {
        let mut run = crate::example::healthy(2, 4);
        for (track, (frames, keys)) in
            run.tracks.iter_mut().filter(|track| track.kind == MediaKind::Video).zip([(120, 4), (60, 1)])
        {
            (track.counters.frames_decodable, track.counters.key_frames) = (frames, keys);
        }
        assert_eq!(line(&summary(&run), "Avg GOP"), "Avg GOP(36.00) Max GOP(60.00) Min GOP(30.00)");
        assert!(details(&run).contains("frames(120) keyframes(4) avg_gop(30.00)"), "{}", details(&run));
        run.tracks.clear();
        assert_eq!(line(&summary(&run), "Avg GOP"), "Avg GOP(none) Max GOP(none) Min GOP(none)");
    }

    #[test]
    fn every_figure_of_the_old_tester_is_there() {
        let text = report(&crate::example::degraded());
        for figure in [
            "Running time : 60s",
            "Number of clients : 100",
            "ICE Connection State : New(",
            " Completed(0) Disconnected(",
            "Avg GOP(",
            "keyframes(",
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
