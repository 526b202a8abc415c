//! The figures of OvenRtcTester's `<Summary>` and `<Details>`, for users of that tool.
//!
//! Its "delay" is drift since the first packet (see `TrackInterval::oven_rtc_tester_delay_us`); it
//! is printed under that name, next to the relative delay that replaces it. Losses are packets, not
//! gaps.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::slice::Iter;

use throng_observation::run::{CrowdRow, ParticipantId, ParticipantRow, RunData, TrackRow};
use throng_observation::units::{bit_rate, bytes, duration_ms};
use throng_observation::untrusted;
use throng_observation::{Distribution, IceState, MediaKind, Outcome, RunTime, TrackCounters};

use crate::figures::Figures;
use crate::planned::duration_s;

/// The `<Summary>` block.
#[must_use]
pub fn summary(run: &RunData) -> String {
    let figures = Figures::of(run, 0.0);
    let clients = figures.intended.len();
    let mut out = String::from("<Summary>\n");
    let _ = writeln!(out, "Running time : {:.0}s", figures.duration_s);
    let _ = writeln!(out, "Number of clients : {clients}");
    let by_state = ice_at_the_end(run, figures.duration_s);
    let ice = |state| in_state(&by_state, state);
    // In libwebrtc the offerer reaches `completed` when all its checks have ended; the answerer
    // stays `connected`.
    let _ = writeln!(
        out,
        "ICE Connection State : New({}), Checking({}) Connected({}) Completed(0) \
         Disconnected({}) Failed({}) Closed({})",
        ice(IceState::New),
        ice(IceState::Checking),
        ice(IceState::Connected),
        ice(IceState::Disconnected),
        ice(IceState::Failed),
        ice(IceState::Closed),
    );
    for (name, kind) in [("Video", &figures.video), ("Audio", &figures.audio)] {
        let _ = writeln!(
            out,
            "{}",
            spread(&format!("{name} Delay"), "", &kind.relative_delay_us, &delay)
        );
        let _ = writeln!(
            out,
            "{}",
            spread(
                &format!("{name} Drift"),
                " (OvenRtcTester's \"delay\")",
                &kind.oven_rtc_tester_delay_us,
                &delay
            )
        );
    }
    let _ = writeln!(out, "{}", gop(run));
    let fps = |milli: f64| format!("{:.2}", milli / 1e3);
    let _ = writeln!(out, "{}", spread("FPS", "", &figures.video.fps_milli, &fps));
    let (by_client, all) = by_client(run);
    let mut bps = run.aggregated.payload_bps().clone();
    by_client.values().for_each(|sum| bps.record(sum.payload_bps().unwrap_or(0.0) as u64));
    let _ = writeln!(out, "{}", spread("BPS", "", &bps, &bit_rate));
    let each = |total: f64| if clients == 0 { 0.0 } else { total / clients as f64 };
    let total_bytes = all.payload_bytes as f64;
    let _ = writeln!(
        out,
        "Total Bytes({}) Avg Bytes({})",
        bytes(total_bytes),
        bytes(each(total_bytes))
    );
    if all.is_fetched() {
        return out; // players fetch media, and no packet of theirs is seen
    }
    let packets = all.packets_original;
    let _ = writeln!(out, "Total Packets({packets}) Avg Packets({:.0})", each(packets as f64));
    let lost = all.packets_lost_for_good();
    let _ =
        writeln!(out, "Total Packet Losses({lost}) Avg Packet Losses({:.1})", each(lost as f64));
    out
}

/// Participants by their ICE state, as [`CrowdRow::ice`] has them.
type ByIceState = [u64; IceState::ALL.len()];

fn in_state(ice: &ByIceState, state: IceState) -> u64 {
    ice.get(CrowdRow::ice_index(state)).copied().unwrap_or(0)
}

/// ICE states when all participants began to leave: at the end of the last second before. A second
/// later they are closed.
fn ice_at_the_end(run: &RunData, ended_s: f64) -> ByIceState {
    let mut by_second: BTreeMap<i64, ByIceState> = BTreeMap::new();
    for row in run.crowd.iter().filter(|row| row.second < ended_s.ceil().max(1.0) as i64) {
        let sums = by_second.entry(row.second).or_default();
        for (sum, count) in sums.iter_mut().zip(row.ice) {
            *sum += u64::from(count);
        }
    }
    let connected = |ice: &ByIceState| in_state(ice, IceState::Connected);
    let mut last = by_second.into_values().rev().take(2);
    match (last.next(), last.next()) {
        // The second in which the end fell may have been looked at after it.
        (Some(last), Some(before)) if connected(&before) > connected(&last) => before,
        (last, _) => last.unwrap_or_default(),
    }
}

/// How many frames there are to a key frame: of all clients together, and of the one with the most
/// and the fewest.
fn gop(run: &RunData) -> String {
    let mut by_client: BTreeMap<ParticipantId, (u64, u64)> = BTreeMap::new();
    for track in run.tracks.iter().filter(|track| track.kind == MediaKind::Video) {
        let (frames, keys) = by_client.entry(track.participant).or_default();
        *frames += track.counters.frames_decodable;
        *keys += track.counters.key_frames;
    }
    let mut pictures = run.aggregated.pictures();
    by_client.values().for_each(|(frames, keys)| pictures.add(*frames, *keys));
    match pictures.mean().zip(pictures.bounds) {
        Some((all, (most, fewest))) => {
            format!("Avg GOP({all:.2}) Max GOP({most:.2}) Min GOP({fewest:.2})")
        }
        None => "Avg GOP(none) Max GOP(none) Min GOP(none)".into(),
    }
}

/// The `<Details>` of every participant, piece by piece: those of a run of a day are hundreds of
/// megabytes.
pub struct Details<'a> {
    rest: Iter<'a, ParticipantRow>,
    ended_s: f64,
}

impl<'a> Details<'a> {
    /// The details of a run, and how they begin.
    #[must_use]
    pub fn of(run: &'a RunData) -> (Self, &'static str) {
        (Self { rest: run.participants.iter(), ended_s: duration_s(run) }, "<Details>\n")
    }

    /// The next piece, up to this track; tracks come in the order of their participants.
    #[must_use]
    pub fn up_to(&mut self, track: &TrackRow) -> String {
        let mut out = self.people(|row| row.participant <= track.participant);
        let _ = writeln!(out, "\t{}", track_line(track));
        out
    }

    /// The rest, after the last track.
    #[must_use]
    pub fn rest(mut self) -> String {
        self.people(|_| true)
    }

    fn people(&mut self, are_told: impl Fn(&ParticipantRow) -> bool) -> String {
        let mut out = String::new();
        while let Some(row) = self.rest.as_slice().first().filter(|row| are_told(row)) {
            let state = match &row.outcome {
                None => "unfinished".into(),
                Some(Outcome::Completed) => "completed".into(),
                Some(Outcome::Failed(failure)) => {
                    format!("failed, {}", untrusted::line(&failure.to_string()))
                }
            };
            let ended_s = row.ended_at.map_or(self.ended_s, RunTime::as_secs_f64);
            let ran_s = (ended_s - row.intended_at.as_secs_f64()).max(0.0);
            let _ = writeln!(
                out,
                "[client_{}]\n\trunning_time({ran_s:.0}s) {state}",
                row.participant.0
            );
            self.rest.next();
        }
        out
    }
}

fn track_line(track: &TrackRow) -> String {
    let c = &track.counters;
    let fps = match (track.kind, track.fps) {
        (MediaKind::Video, Some(fps)) => {
            let gop = c.gop().map_or_else(|| "none".into(), |gop| format!("{gop:.2}"));
            format!(
                " frames({}) keyframes({}) avg_gop({gop}) avg_fps({fps:.2})",
                c.frames_decodable, c.key_frames
            )
        }
        _ => String::new(),
    };
    let delay_p95 =
        track.relative_delay_us.quantile(0.95).map_or_else(|| "none".into(), |us| delay(us as f64));
    let drift =
        track.oven_rtc_tester_delay_us.map_or_else(|| "none".into(), |us| delay(f64::from(us)));
    let (kind, codec) = (track.kind.key(), track.codec.name());
    let (total, rate) = (bytes(c.payload_bytes as f64), bit_rate(c.payload_bps().unwrap_or(0.0)));
    if c.is_fetched() {
        return format!("{kind}({codec}) total_bytes({total}) avg_bps({rate}){fps}");
    }
    format!(
        "{kind}({codec}) total_packets({}) packet_loss({}) total_bytes({total}) \
         avg_bps({rate}){fps} delay_p95({delay_p95}) last_drift({drift})",
        c.packets_original,
        c.packets_lost_for_good(),
    )
}

fn by_client(run: &RunData) -> (BTreeMap<ParticipantId, TrackCounters>, TrackCounters) {
    let mut by_client: BTreeMap<_, TrackCounters> = BTreeMap::new();
    let mut all = *run.aggregated.counters();
    for track in &run.tracks {
        by_client.entry(track.participant).or_default().add_concurrent(&track.counters);
        all += track.counters;
    }
    (by_client, all)
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
    use throng_observation::run::CohortId;

    fn line<'t>(text: &'t str, begins: &str) -> &'t str {
        text.lines().find(|line| line.starts_with(begins)).unwrap_or_default()
    }

    #[test]
    fn the_last_ice_line_counts_participants_before_the_final_leave() {
        let mut run = crate::example::healthy(3, 4);
        run.ended_at = Some(RunTime(4_000_000));
        let row = |second, ice| CrowdRow { second, ice, ..run.crowd[0] };
        let other = |second, ice| CrowdRow { cohort: CohortId(1), ..row(second, ice) };
        let before = vec![
            row(2, [1, 0, 2, 0, 0, 0]),
            other(3, [0, 0, 1, 0, 0, 0]),
            row(3, [0, 0, 2, 0, 1, 0]),
        ];
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
        for (track, (frames, keys)) in run
            .tracks
            .iter_mut()
            .filter(|track| track.kind == MediaKind::Video)
            .zip([(120, 4), (60, 1)])
        {
            (track.counters.frames_decodable, track.counters.key_frames) = (frames, keys);
        }
        assert_eq!(line(&summary(&run), "Avg GOP"), "Avg GOP(36.00) Max GOP(60.00) Min GOP(30.00)");
        let (mut details, _) = Details::of(&run);
        let printed: String = run.tracks.iter().map(|track| details.up_to(track)).collect();
        assert!(printed.contains("frames(120) keyframes(4) avg_gop(30.00)"), "{printed}");
        run.tracks.clear();
        assert_eq!(line(&summary(&run), "Avg GOP"), "Avg GOP(none) Max GOP(none) Min GOP(none)");
    }

    #[test]
    fn every_figure_of_the_old_tester_is_there() {
        let run = crate::example::degraded();
        let (mut details, begin) = Details::of(&run);
        let mut text = summary(&run) + begin;
        run.tracks.iter().for_each(|track| text.push_str(&details.up_to(track)));
        text.push_str(&details.rest());
        assert_eq!(text.matches("[client_").count(), run.participants.len());
        let first = text.split("[client_1]").next().unwrap_or_default();
        assert_eq!(first.matches("total_packets(").count(), 2, "{first}");
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
