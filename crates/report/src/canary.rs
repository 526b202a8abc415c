//! What real browsers saw beside what the virtual participants did, by the same definitions and over the same seconds.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::canary::{CanaryBrowserRow, CanarySecondRow};
use throng_observation::run::{RunData, SeriesRow};
use throng_observation::units::{bit_rate, duration_ms, percent};
use throng_observation::{Distribution, MediaKind, Phase, RunTime, TrackCounters};

use crate::figures::CONNECTED;

/// Browsers among the crowd. Absent figures are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanarySummary {
    /// Every browser, in the order of its joins.
    pub browsers: Vec<CanaryBrowser>,
    /// How many showed a picture.
    pub playing: u64,
    /// How many failed, at whatever point.
    pub failed: u64,
    /// Seconds that are compared: after the warm-up, a browser and a virtual participant played video.
    pub seconds: u64,
    /// CPU that all browsers together used of the generator's machine, mean over the seconds in which they were there,
    /// in cores.
    pub cpu_cores: Option<f64>,
    /// Frames that a browser dropped after decoding (`framesDropped`), of those that it decoded or dropped.
    pub frames_dropped_ratio: Option<f64>,
    /// Mean wait of a frame in a browser's jitter buffer, milliseconds.
    pub jitter_buffer_ms: Option<f64>,
    /// Mean time that a browser took to decode a frame, milliseconds.
    pub decode_ms: Option<f64>,
    /// The same figure of both.
    pub agreement: Vec<Agreement>,
}

/// One browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanaryBrowser {
    /// Its number, from 0.
    pub browser: u16,
    /// What it calls itself; empty where it did not start.
    pub version: String,
    /// From its intended join until its first peer connection was up, milliseconds.
    pub connect_ms: Option<f64>,
    /// From its intended join until its first picture could be shown, milliseconds.
    pub first_frame_ms: Option<f64>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Candidates of the server that the consent guard kept from it.
    pub candidates_refused: u32,
}

/// A figure of the browsers beside the same of the virtual participants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// `fps`, `loss_ratio`, `freeze_ratio`, `track_bps`, `jitter_ms`, `connect_ms` or `first_frame_ms`; docs/canary.md
    /// says how each is defined.
    pub figure: String,
    /// Of the browsers.
    pub browser: Option<f64>,
    /// Of the virtual participants.
    #[serde(rename = "virtual")]
    pub virtual_: Option<f64>,
    /// Browser less virtual.
    pub difference: Option<f64>,
}

/// What both sides are compared by.
#[derive(Clone, Debug, Default)]
struct Side {
    frames: u64,
    received: u64,
    lost: i64,
    bytes: u64,
    freeze_us: u64,
    active_us: u64,
    jitter_us: Distribution,
}

impl Side {
    fn add_browser(&mut self, row: &CanarySecondRow) {
        self.frames += row.frames_decoded;
        self.received += row.video_packets_received;
        self.lost += row.video_packets_lost;
        self.bytes += row.video_bytes;
        self.freeze_us += row.freeze_us;
        self.active_us += row.video_active_us;
        self.jitter_us.merge(&row.video_jitter_us);
    }

    fn add_virtual(&mut self, row: &SeriesRow) {
        let TrackCounters { packets_received, packets_lost, packets_recovered, .. } = row.counters;
        self.frames += row.counters.frames_decodable;
        self.received += packets_received;
        // A browser counts what was lost before retransmission brought it back.
        self.lost += packets_lost + i64::try_from(packets_recovered).unwrap_or(i64::MAX);
        self.bytes += row.counters.payload_bytes;
        self.freeze_us += row.counters.freeze_us;
        self.active_us += row.counters.active_us;
        self.jitter_us.merge(&row.jitter_us);
    }

    fn of_active(&self, sum: f64) -> Option<f64> {
        (self.active_us > 0).then(|| sum / (self.active_us as f64 / 1e6))
    }

    fn fps(&self) -> Option<f64> {
        self.of_active(self.frames as f64)
    }

    fn loss_ratio(&self) -> Option<f64> {
        let lost = self.lost.max(0) as f64;
        let expected = self.received as f64 + lost;
        (expected > 0.0).then(|| lost / expected)
    }

    fn freeze_ratio(&self) -> Option<f64> {
        self.of_active(self.freeze_us as f64 / 1e6).map(|ratio| ratio.min(1.0))
    }

    fn track_bps(&self) -> Option<f64> {
        self.of_active(self.bytes as f64 * 8.0)
    }

    fn jitter_ms(&self) -> Option<f64> {
        self.jitter_us.quantile(0.5).map(|us| us as f64 / 1e3)
    }
}

/// The browsers of a run; `None` where it had none. Media figures leave out what lies before `warm_up_s`.
pub(crate) fn summarise(run: &RunData, warm_up_s: f64) -> Option<CanarySummary> {
    if run.canary.browsers.is_empty() {
        return None;
    }
    let seen: Vec<&CanarySecondRow> = playing(run, warm_up_s).collect();
    let seconds = compared(run, warm_up_s);
    let (mut browser, mut virtual_) = (Side::default(), Side::default());
    seen.iter().filter(|row| seconds.contains(&row.second)).for_each(|row| browser.add_browser(row));
    let series = run.series.iter().filter(is_video).filter(|row| seconds.contains(&row.second));
    series.for_each(|row| virtual_.add_virtual(row));
    let sum = |of: fn(&CanarySecondRow) -> u64| seen.iter().map(|row| of(row)).sum::<u64>() as f64;
    let (decoded, dropped) = (sum(|row| row.frames_decoded), sum(|row| row.frames_dropped));
    let emitted = sum(|row| row.jitter_buffer_emitted);
    let ratio = |of: f64, all: f64| (all > 0.0).then(|| of / all);
    Some(CanarySummary {
        browsers: run.canary.browsers.iter().map(one).collect(),
        playing: run.canary.browsers.iter().filter(|row| row.first_frame_at.is_some()).count() as u64,
        failed: run.canary.browsers.iter().filter(|row| row.failure.is_some()).count() as u64,
        seconds: seconds.len() as u64,
        cpu_cores: cpu_cores(&run.canary.seconds),
        frames_dropped_ratio: ratio(dropped, decoded + dropped),
        jitter_buffer_ms: ratio(sum(|row| row.jitter_buffer_us) / 1e3, emitted),
        decode_ms: ratio(sum(|row| row.decode_us) / 1e3, decoded),
        agreement: agreement(run, &browser, &virtual_),
    })
}

fn is_video(row: &&SeriesRow) -> bool {
    row.kind == Some(MediaKind::Video) && row.counters.active_us > 0
}

/// What browsers that played saw, after the warm-up.
fn playing(run: &RunData, warm_up_s: f64) -> impl Iterator<Item = &CanarySecondRow> {
    let from_second = warm_up_s.ceil() as i64;
    run.canary.seconds.iter().filter(move |row| row.video_active_us > 0 && row.second >= from_second)
}

/// The seconds in which browsers and virtual viewers both played: by these they are compared.
fn compared(run: &RunData, warm_up_s: f64) -> BTreeSet<i64> {
    let of_browsers: BTreeSet<i64> = playing(run, warm_up_s).map(|row| row.second).collect();
    let of_virtual: BTreeSet<i64> = run.series.iter().filter(is_video).map(|row| row.second).collect();
    of_browsers.intersection(&of_virtual).copied().collect()
}

/// Where stretches of compared seconds begin and end.
pub(crate) fn edges(run: &RunData, warm_up_s: f64) -> Vec<i64> {
    let seconds = compared(run, warm_up_s);
    let begins = seconds.iter().filter(|second| !seconds.contains(&(*second - 1))).copied();
    begins.chain(seconds.iter().map(|second| second + 1).filter(|next| !seconds.contains(next))).collect()
}

fn one(row: &CanaryBrowserRow) -> CanaryBrowser {
    CanaryBrowser {
        browser: row.browser.0,
        version: row.version.clone(),
        connect_ms: ms_to(row, row.connected_at),
        first_frame_ms: ms_to(row, row.first_frame_at),
        failure: row.failure.clone(),
        candidates_refused: row.candidates_refused,
    }
}

fn ms_to(row: &CanaryBrowserRow, at: Option<RunTime>) -> Option<f64> {
    at.map(|at| at.millis_since(row.intended_at))
}

fn cpu_cores(rows: &[CanarySecondRow]) -> Option<f64> {
    let seconds: BTreeSet<i64> = rows.iter().map(|row| row.second).collect();
    let cpu_us: u64 = rows.iter().map(|row| row.cpu_us).sum();
    (!seconds.is_empty()).then(|| cpu_us as f64 / 1e6 / seconds.len() as f64)
}

fn agreement(run: &RunData, browser: &Side, virtual_: &Side) -> Vec<Agreement> {
    let waits = |of: fn(&CanaryBrowserRow) -> Option<RunTime>| {
        median(run.canary.browsers.iter().filter_map(|row| ms_to(row, of(row))).collect())
    };
    let reached = |phases: &[Phase]| {
        let first =
            |row: &throng_observation::run::ParticipantRow| phases.iter().find_map(|phase| row.ms_to(*phase));
        median(run.participants.iter().filter_map(first).collect())
    };
    [
        ("fps", browser.fps(), virtual_.fps()),
        ("loss_ratio", browser.loss_ratio(), virtual_.loss_ratio()),
        ("freeze_ratio", browser.freeze_ratio(), virtual_.freeze_ratio()),
        ("track_bps", browser.track_bps(), virtual_.track_bps()),
        ("jitter_ms", browser.jitter_ms(), virtual_.jitter_ms()),
        ("connect_ms", waits(|row| row.connected_at), reached(&CONNECTED)),
        ("first_frame_ms", waits(|row| row.first_frame_at), reached(&[Phase::FirstFrame])),
    ]
    .map(|(figure, browser, virtual_)| Agreement {
        figure: figure.into(),
        browser,
        virtual_,
        difference: browser.zip(virtual_).map(|(browser, virtual_)| browser - virtual_),
    })
    .into()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values.get(low)? + values.get(high)?) / 2.0)
}

impl Agreement {
    /// What it is called, for people.
    pub(crate) fn name(&self) -> &str {
        match self.figure.as_str() {
            "fps" => "frames a second",
            "loss_ratio" => "loss before retransmission",
            "freeze_ratio" => "time frozen",
            "track_bps" => "bit rate of a video track",
            "jitter_ms" => "jitter, median",
            "connect_ms" => "connect, median",
            "first_frame_ms" => "first frame, median",
            other => other,
        }
    }

    /// `value` with its unit.
    pub(crate) fn shown(&self, value: Option<f64>) -> String {
        let Some(value) = value else { return "–".into() };
        let size = value.abs();
        let text = match self.figure.as_str() {
            "fps" => format!("{size:.1}"),
            "loss_ratio" | "freeze_ratio" => percent(size),
            "track_bps" => bit_rate(size),
            _ => duration_ms(size),
        };
        // What rounds to nothing has no sign.
        let is_nothing = !text.contains(|c| ('1'..='9').contains(&c));
        if value < 0.0 && !is_nothing { format!("-{text}") } else { text }
    }
}

/// The lines of the terminal's summary.
pub(crate) fn lines(canary: &CanarySummary) -> Vec<String> {
    let (count, seconds) = (canary.browsers.len(), canary.seconds);
    let cpu =
        canary.cpu_cores.map_or_else(String::new, |cores| format!(", {cores:.2} cores of this machine"));
    let mut lines = vec![format!(
        "{} of {count} browsers showed a picture{cpu}; over {seconds} s, browser / virtual (difference):",
        canary.playing
    )];
    let one = |row: &Agreement| {
        let [browser, virtual_, difference] =
            [row.browser, row.virtual_, row.difference].map(|v| row.shown(v));
        format!("{} {browser} / {virtual_} ({difference})", row.name())
    };
    lines.extend(canary.agreement.chunks(2).map(|rows| rows.iter().map(one).collect::<Vec<_>>().join(", ")));
    let failures =
        canary.browsers.iter().filter_map(|browser| Some((browser.browser, browser.failure.as_ref()?)));
    lines.extend(failures.map(|(number, failure)| format!("browser {number} failed: {failure}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, text};
    use std::time::Duration;
    use throng_observation::canary::BrowserId;

    /// A healthy run with two browsers, one of which sees 28 frames a second from second 3 on, the other nothing.
    fn with_browsers() -> RunData {
        let mut run = example::healthy(5, 10);
        run.canary.browsers = vec![
            CanaryBrowserRow {
                version: "HeadlessChrome/156".into(),
                intended_at: RunTime(2_000_000),
                connected_at: Some(RunTime(2_120_000)),
                first_frame_at: Some(RunTime(2_450_000)),
                ..CanaryBrowserRow::default()
            },
            CanaryBrowserRow {
                browser: BrowserId(1),
                failure: Some("its page <b>crashed</b>".into()),
                ..CanaryBrowserRow::default()
            },
        ];
        run.canary.seconds = (2..10)
            .map(|second| {
                let plays = u64::from(second > 2);
                let mut row = CanarySecondRow {
                    second,
                    video_tracks: u32::from(second > 2),
                    video_active_us: plays * 1_000_000,
                    frames_decoded: plays * 28,
                    frames_dropped: plays * 2,
                    video_packets_received: plays * 99,
                    video_packets_lost: plays as i64,
                    video_bytes: plays * 125_000,
                    freeze_us: plays * 10_000,
                    jitter_buffer_us: plays * 28 * 40_000,
                    jitter_buffer_emitted: plays * 28,
                    cpu_us: 500_000,
                    ..CanarySecondRow::default()
                };
                row.video_jitter_us.record(4_000);
                row
            })
            .collect();
        run
    }

    fn figure(canary: &CanarySummary, name: &str) -> Agreement {
        canary.agreement.iter().find(|row| row.figure == name).unwrap().clone()
    }

    #[test]
    fn both_sides_are_compared_over_the_seconds_in_which_both_played() {
        let mut run = with_browsers();
        let summary = crate::summarise(&run, &[], Duration::from_secs(5));
        let canary = summary.canary.clone().unwrap();
        assert_eq!((canary.playing, canary.failed, canary.seconds), (1, 1, 5));
        assert!((canary.cpu_cores.unwrap() - 0.5).abs() < 1e-9);
        assert!((canary.jitter_buffer_ms.unwrap() - 40.0).abs() < 1e-9);
        let fps = figure(&canary, "fps");
        assert_eq!((fps.browser, fps.virtual_, fps.difference), (Some(28.0), Some(30.0), Some(-2.0)));
        assert_eq!(figure(&canary, "loss_ratio").browser, Some(0.01));
        assert_eq!(figure(&canary, "freeze_ratio").browser, Some(0.01));
        assert_eq!(figure(&canary, "track_bps").browser, Some(1e6));
        assert_eq!(figure(&canary, "connect_ms").browser, Some(120.0));
        assert_eq!(figure(&canary, "first_frame_ms").browser, Some(450.0));
        assert!(figure(&canary, "connect_ms").virtual_.is_some());
        // What only the crowd lived through is not held against the browsers.
        run.series.iter_mut().filter(|row| row.second < 3).for_each(|row| row.counters.frames_decodable = 0);
        assert_eq!(figure(&super::summarise(&run, 0.0).unwrap(), "fps").virtual_, Some(30.0));
    }

    #[test]
    fn a_retransmitted_packet_counts_as_lost_on_both_sides() {
        let mut run = with_browsers();
        run.series.iter_mut().for_each(|row| {
            row.counters.packets_received = 98;
            (row.counters.packets_lost, row.counters.packets_recovered) = (1, 1);
        });
        let canary = super::summarise(&run, 0.0).unwrap();
        assert_eq!(figure(&canary, "loss_ratio").virtual_, Some(0.02));
    }

    #[test]
    fn words_and_page_show_both_and_only_where_there_were_browsers() {
        let run = with_browsers();
        let summary = crate::summarise(&run, &[], Duration::ZERO);
        let words = text::summary(&summary);
        assert!(words.contains("1 of 2 browsers showed a picture, 0.50 cores"), "{words}");
        assert!(words.contains("frames a second 28.0 / 30.0 (-2.0)"), "{words}");
        assert!(words.contains("browser 1 failed: its page"), "{words}");
        let page = crate::html::render(&run, &summary);
        assert!(page.contains("<h2>Browsers beside the crowd</h2>") && page.contains("&lt;b&gt;crashed"));
        assert!(!page.contains("<b>crashed"));
        let none = crate::summarise(&example::healthy(5, 10), &[], Duration::ZERO);
        assert!(none.canary.is_none() && !crate::html::render(&run, &none).contains("Browsers beside"));
    }

    #[test]
    fn browsers_that_saw_nothing_leave_figures_absent() {
        let mut run = with_browsers();
        run.canary.seconds.clear();
        let canary = super::summarise(&run, 0.0).unwrap();
        assert_eq!((canary.seconds, canary.cpu_cores, figure(&canary, "fps").difference), (0, None, None));
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
