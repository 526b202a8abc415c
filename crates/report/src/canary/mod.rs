//! Compares real browsers with the virtual participants, by the same definitions and over the same
//! seconds.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::canary::{BrowserId, CanaryBrowserRow, CanarySecondRow};
use throng_observation::run::{ParticipantRow, RunData, SeriesRow, SourceFps};
use throng_observation::units::{bit_rate, duration_ms, percent};
use throng_observation::{Distribution, MediaKind, Phase, RunTime, TrackCounters};

pub use judgement::CanaryJudgement;
use judgement::{SECONDS_MIN, Times, starved};

mod judgement;

/// Browsers among the crowd. Absent figures are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanarySummary {
    /// Every browser, in the order of its joins.
    pub browsers: Vec<CanaryBrowser>,
    /// How many showed a picture.
    pub playing: u64,
    /// How many failed, at whatever point.
    pub failed: u64,
    /// Whether the browsers agree with the crowd; docs/canary.md has the bounds.
    #[serde(default)]
    pub judgement: CanaryJudgement,
    /// What is disputed, or why no comparison is possible; empty where they agree.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Seconds that are compared: after the warm-up (in a search: of loads that passed), a browser
    /// and a virtual participant played video.
    pub seconds: u64,
    /// Seconds that are left out because this machine had no CPU for the browsers.
    #[serde(default)]
    pub seconds_starved: u64,
    /// CPU use of all browsers together, cores of the generator's machine: mean over the seconds in
    /// which they ran.
    pub cpu_cores: Option<f64>,
    /// Frames that a browser dropped after decoding (`framesDropped`), of those that it decoded or
    /// dropped.
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
    /// Its product name and version; empty where it did not start.
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

/// A figure of the browsers and the same of the virtual participants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// `fps`, `loss_ratio`, `freeze_ratio`, `track_bps`, `jitter_ms`, `connect_ms` or
    /// `first_frame_ms`; docs/canary.md says how each is defined.
    pub figure: String,
    /// Of the browsers.
    pub browser: Option<f64>,
    /// Of the virtual participants.
    #[serde(rename = "virtual")]
    pub virtual_: Option<f64>,
    /// Browser less virtual.
    pub difference: Option<f64>,
    /// The largest difference, of either sign, that noise explains; `null` where the two differ by
    /// nature, or too little was compared.
    #[serde(default)]
    pub bound: Option<f64>,
    /// The difference is beyond the bound.
    #[serde(default)]
    pub disputed: bool,
}

/// The figures that both sides are compared by.
#[derive(Clone, Debug, Default)]
struct Side {
    frames: u64,
    /// Packets expected on the tracks' own SSRCs.
    expected: u64,
    /// W3C `packetsLost`.
    lost: i64,
    bytes: u64,
    freeze_us: u64,
    active_us: u64,
    jitter_us: Distribution,
    /// Frame rates of the sources by their timestamps.
    source_fps: SourceFps,
}

impl Side {
    fn of_browsers<'a>(
        rows: impl Iterator<Item = &'a CanarySecondRow>,
        is_conference: bool,
    ) -> Self {
        let mut side = Self::default();
        let mut first: u64 = 0;
        for row in rows {
            side.frames += row.frames_decoded;
            side.lost = side.lost.saturating_add(row.video_packets_lost);
            // Browsers count what came on an RTX stream as received, and not as no longer lost.
            let repeated = row.video_packets_repeated;
            first = first.saturating_add(row.video_packets_received.saturating_sub(repeated));
            side.bytes += row.video_bytes;
            side.freeze_us += row.freeze_us;
            side.active_us += active_us(row, is_conference);
            side.jitter_us.merge(&row.video_jitter_us);
        }
        // Of all rows together: what came a second late is lost in one, and the reverse in another.
        side.expected = first.saturating_add_signed(side.lost);
        side
    }

    fn of_virtual<'a>(rows: impl Iterator<Item = &'a SeriesRow>) -> Self {
        let (mut side, mut sums) = (Self::default(), TrackCounters::default());
        for row in rows {
            sums += row.counters;
            side.jitter_us.merge(&row.jitter_us);
            side.source_fps += row.source_fps;
        }
        Self {
            frames: sums.frames_decodable,
            expected: sums.packets_expected(),
            lost: sums.packets_lost_on_ssrc(),
            bytes: sums.payload_bytes,
            freeze_us: sums.freeze_us,
            active_us: sums.active_us,
            ..side
        }
    }

    fn of_active(&self, sum: f64) -> Option<f64> {
        (self.active_us > 0).then(|| sum / (self.active_us as f64 / 1e6))
    }

    fn fps(&self) -> Option<f64> {
        self.of_active(self.frames as f64)
    }

    fn loss_ratio(&self) -> Option<f64> {
        (self.expected > 0).then(|| self.lost.max(0) as f64 / self.expected as f64)
    }

    fn freeze_ratio(&self) -> Option<f64> {
        self.of_active(self.freeze_us as f64 / 1e6).map(|ratio| ratio.min(1.0))
    }

    fn track_bps(&self) -> Option<f64> {
        self.of_active(self.bytes as f64 * 8.0)
    }

    fn jitter_ms(&self) -> Option<f64> {
        self.jitter_us.quantile_in(0.5, 1e3)
    }
}

/// Time in which a browser should have received media, summed over its tracks. In a conference a
/// silent track belongs to a participant that is muted or left; the virtual participants do not
/// count that time either.
fn active_us(row: &CanarySecondRow, is_conference: bool) -> u64 {
    row.video_active_us.saturating_sub(if is_conference { row.video_silent_us } else { 0 })
}

/// The browsers of a run; `None` where it had none. Media figures leave out what lies before
/// `warm_up_s`, and what a browser that failed did not see any more: that is judged as the failure
/// that it is.
pub(crate) fn summarise(run: &RunData, warm_up_s: f64) -> Option<CanarySummary> {
    if run.canary.browsers.is_empty() {
        return None;
    }
    let (times, starved) = (Times::of(run, warm_up_s), starved(&run.canary.seconds));
    let is_conference = !run.sent.is_empty();
    let Compared { rows, seconds, left_out, is_enough } = Compared::of(run, &times, &starved);
    let both = rows.iter().copied().filter(|row| seconds.contains(&row.second));
    let browser = Side::of_browsers(both, is_conference);
    let series = run.series.iter().filter(is_video).filter(|row| seconds.contains(&row.second));
    let virtual_ = Side::of_virtual(series);
    let mut agreement = agreement(run, &browser, &virtual_);
    if is_enough {
        let second = |row: &&ParticipantRow| row.intended_at.0.div_euclid(1_000_000);
        let joins =
            run.participants.iter().filter(|row| seconds.contains(&second(row))).count() as u64;
        agreement.iter_mut().for_each(|row| row.judge(&browser, &virtual_, joins));
    }
    let mut reasons: Vec<String> =
        agreement.iter().filter(|row| row.disputed).map(judgement::sentence).collect();
    reasons.extend(judgement::failed(run, &times, &starved));
    let judgement = match (reasons.is_empty(), is_enough) {
        (false, _) => CanaryJudgement::Disputed,
        (true, true) => CanaryJudgement::Agrees,
        (true, false) => {
            reasons = judgement::unknown(run, seconds.len(), left_out);
            CanaryJudgement::CannotTell
        }
    };
    let sum = |of: fn(&CanarySecondRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>() as f64;
    let (decoded, dropped) = (sum(|row| row.frames_decoded), sum(|row| row.frames_dropped));
    let emitted = sum(|row| row.jitter_buffer_emitted);
    let ratio = |of: f64, all: f64| (all > 0.0).then(|| of / all);
    Some(CanarySummary {
        browsers: run.canary.browsers.iter().map(one).collect(),
        playing: run.canary.browsers.iter().filter(|row| row.first_frame_at.is_some()).count()
            as u64,
        failed: run.canary.browsers.iter().filter(|row| row.failure.is_some()).count() as u64,
        judgement,
        reasons,
        seconds: seconds.len() as u64,
        seconds_starved: left_out as u64,
        cpu_cores: cpu_cores(&run.canary.seconds),
        frames_dropped_ratio: ratio(dropped, decoded + dropped),
        jitter_buffer_ms: ratio(sum(|row| row.jitter_buffer_us) / 1e3, emitted),
        decode_ms: ratio(sum(|row| row.decode_us) / 1e3, decoded),
        agreement,
    })
}

fn is_video(row: &&SeriesRow) -> bool {
    row.kind == Some(MediaKind::Video) && row.counters.active_us > 0
}

/// The seconds in which browsers and virtual viewers both played: by these they are compared.
struct Compared<'a> {
    rows: Vec<&'a CanarySecondRow>,
    seconds: BTreeSet<i64>,
    /// Seconds that were left out because a browser had no CPU in them.
    left_out: usize,
    /// Whether enough seconds are left for a judgement. Fewer are shown too, with the number left
    /// out.
    is_enough: bool,
}

impl<'a> Compared<'a> {
    fn of(run: &'a RunData, times: &Times, starved: &BTreeSet<(BrowserId, i64)>) -> Self {
        let is_conference = !run.sent.is_empty();
        let failed_second = |browser| {
            let row = run.canary.browsers.iter().find(|row| row.browser == browser);
            row.and_then(|row| row.failed_at).map_or(i64::MAX, |at| at.0.div_euclid(1_000_000))
        };
        let plays = |row: &&CanarySecondRow| {
            active_us(row, is_conference) > 0
                && times.count(row.second)
                && row.second < failed_second(row.browser)
        };
        let played: Vec<&CanarySecondRow> = run.canary.seconds.iter().filter(plays).collect();
        let of_virtual: BTreeSet<i64> =
            run.series.iter().filter(is_video).map(|row| row.second).collect();
        let seconds_of = |rows: &[&CanarySecondRow]| -> BTreeSet<i64> {
            rows.iter().map(|row| row.second).filter(|second| of_virtual.contains(second)).collect()
        };
        let had_cpu = |row: &&&CanarySecondRow| !starved.contains(&(row.browser, row.second));
        let fit: Vec<&CanarySecondRow> = played.iter().filter(had_cpu).copied().collect();
        let left_out = seconds_of(&played).len() - seconds_of(&fit).len();
        let is_enough = seconds_of(&fit).len() >= SECONDS_MIN;
        let rows = if is_enough { fit } else { played };
        Self { seconds: seconds_of(&rows), rows, left_out, is_enough }
    }
}

/// Where stretches of compared seconds begin and end.
pub(crate) fn edges(run: &RunData, warm_up_s: f64) -> Vec<i64> {
    let (times, starved) = (Times::of(run, warm_up_s), starved(&run.canary.seconds));
    let seconds = Compared::of(run, &times, &starved).seconds;
    let begins = seconds.iter().filter(|second| !seconds.contains(&(*second - 1))).copied();
    begins
        .chain(seconds.iter().map(|second| second + 1).filter(|next| !seconds.contains(next)))
        .collect()
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
        let first = |row: &throng_observation::run::ParticipantRow| {
            phases.iter().find_map(|phase| row.ms_to(*phase))
        };
        median(run.participants.iter().filter_map(first).collect())
    };
    [
        ("fps", browser.fps(), virtual_.fps()),
        ("loss_ratio", browser.loss_ratio(), virtual_.loss_ratio()),
        ("freeze_ratio", browser.freeze_ratio(), virtual_.freeze_ratio()),
        ("track_bps", browser.track_bps(), virtual_.track_bps()),
        ("jitter_ms", browser.jitter_ms(), virtual_.jitter_ms()),
        ("connect_ms", waits(|row| row.connected_at), reached(&Phase::CONNECTED)),
        ("first_frame_ms", waits(|row| row.first_frame_at), reached(&[Phase::FirstFrame])),
    ]
    .map(|(figure, browser, virtual_)| Agreement {
        figure: figure.into(),
        browser,
        virtual_,
        difference: browser.zip(virtual_).map(|(browser, virtual_)| browser - virtual_),
        bound: None,
        disputed: false,
    })
    .into()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values.get(low)? + values.get(high)?) / 2.0)
}

impl Agreement {
    /// Compares the difference with its bound.
    fn judge(&mut self, browser: &Side, virtual_: &Side, joins: u64) {
        self.bound = judgement::bound(&self.figure, browser, virtual_, joins);
        self.disputed = self
            .difference
            .zip(self.bound)
            .is_some_and(|(difference, bound)| difference.abs() > bound);
    }

    /// Its display name.
    pub(crate) fn name(&self) -> &str {
        match self.figure.as_str() {
            "fps" => "frames a second",
            "loss_ratio" => "packets lost",
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
        // A value that rounds to 0 has no sign.
        let is_nothing = !text.contains(|c| ('1'..='9').contains(&c));
        if value < 0.0 && !is_nothing { format!("-{text}") } else { text }
    }
}

impl CanarySummary {
    /// Whether they agree, in words.
    pub(crate) fn verdict(&self) -> String {
        let reasons = self.reasons.join("; ");
        match self.judgement {
            CanaryJudgement::Agrees if self.seconds_starved > 0 => format!(
                "they agree with the crowd; {} s are left out, in which this machine had no CPU \
                 for them",
                self.seconds_starved
            ),
            CanaryJudgement::Agrees => "they agree with the crowd".into(),
            CanaryJudgement::Disputed => format!("DISPUTED: {reasons}"),
            CanaryJudgement::CannotTell => {
                format!("whether they agree with the crowd cannot be determined: {reasons}")
            }
        }
    }
}

/// The lines of the terminal's summary.
pub(crate) fn lines(canary: &CanarySummary) -> Vec<String> {
    let (count, seconds) = (canary.browsers.len(), canary.seconds);
    let cpu = canary
        .cpu_cores
        .map_or_else(String::new, |cores| format!(", {cores:.2} cores of this machine"));
    let mut lines = vec![format!(
        "{} of {count} browsers showed a picture{cpu}; over {seconds} s, browser / virtual \
         (difference):",
        canary.playing
    )];
    let one = |row: &Agreement| {
        let [browser, virtual_, difference] =
            [row.browser, row.virtual_, row.difference].map(|v| row.shown(v));
        let disputed = if row.disputed { " DISPUTED" } else { "" };
        format!("{} {browser} / {virtual_} ({difference}){disputed}", row.name())
    };
    lines.extend(
        canary.agreement.chunks(2).map(|rows| rows.iter().map(one).collect::<Vec<_>>().join(", ")),
    );
    let failures = canary
        .browsers
        .iter()
        .filter_map(|browser| Some((browser.browser, browser.failure.as_ref()?)));
    lines.extend(failures.map(|(number, failure)| format!("browser {number} failed: {failure}")));
    lines.push(canary.verdict());
    lines
}

#[cfg(test)]
mod tests;
