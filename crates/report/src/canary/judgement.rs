//! Whether browsers and crowd agree. A virtual participant judges from headers and timing; a
//! browser decodes. Where the two differ by more than noise explains, the crowd's figures are not
//! to be relied on, whatever they say: the answer is disputed. Where the browser had no CPU, or
//! failed by itself, nothing can be concluded.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::canary::{BrowserId, CanaryBrowserRow, CanarySecondRow};
use throng_observation::run::{ParticipantRow, RunData};
use throng_observation::{Goal, HoldOutcome, HoldRow, RunTime};

use super::{Agreement, Side};
use crate::planned;

/// Least compared seconds: with fewer, one bad second would be more than a fifth of them.
pub(super) const SECONDS_MIN: usize = 5;

/// Length of a stall that one side may have and the other not, seconds: the wait for a requested
/// key frame.
const STALL_S: f64 = 2.0;
/// Difference of the frame rate that rounding and the ends of readings explain, of the source's
/// rate.
const FPS_RATIO: f64 = 0.10;
/// Difference of the time frozen: both smooth arrival times before they detect a freeze, in
/// different ways.
const FREEZE_RATIO: f64 = 0.05;
/// Difference of loss that is of no consequence.
const LOSS_RATIO: f64 = 0.01;
/// Packets lost together, about a frame: the factor by which the variance exceeds that of
/// independent losses.
const BURST_PACKETS: f64 = 10.0;
/// Standard errors that chance explains: exceeded in one run of ten thousand.
const SIGMAS: f64 = 4.0;
/// A share of failed browsers that the crowd's own share explains with less than this probability
/// is a dispute.
const CHANCE_MIN: f64 = 0.05;

/// Lateness of a timer in the page that shows that the browser waited for a CPU, microseconds:
/// three frames at 30 fps.
const LATE_MAX_US: u64 = 100_000;
/// CPU utilisation of the machine from which no CPU is left for a decoder.
const HOST_CPU_MAX: f64 = 0.95;
/// Readings after such a second that may still be affected by it.
const READINGS_AFTER: usize = 2;
/// The failure of a browser that had no CPU for more than this share of its time is not the
/// server's.
const STARVED_RATIO_MAX: f64 = 0.25;
/// Longest time from the end of media to the browser's report of a failed connection: ICE consent
/// lasts 30 s (RFC 7675 5.1).
const FAILS_AFTER_S: i64 = 30;

/// Whether the browsers agree with the crowd's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CanaryJudgement {
    /// They differ by no more than noise explains.
    Agrees,
    /// They differ by more, or browsers failed where the crowd did not.
    Disputed,
    /// Too little could be compared, or the browsers were themselves the limit.
    #[default]
    CannotTell,
}

/// The seconds in which a comparison counts: in a search those of loads that passed, on which its
/// answer rests; under a load that is too large all have bad service, each in its own way.
pub(super) struct Times {
    from_second: i64,
    /// Of a search: passing and failing holds, whole seconds.
    holds: Option<[Vec<(i64, i64)>; 2]>,
}

impl Times {
    pub(super) fn of(run: &RunData, warm_up_s: f64) -> Self {
        let spans = |passed: HoldOutcome| {
            let judged = HoldRow::judged_alike(&run.holds)
                .filter(|hold| hold.passed(Goal::Acceptable) == passed);
            let whole = |from: RunTime, until: RunTime| {
                (
                    from.0.div_euclid(1_000_000) + i64::from(from.0.rem_euclid(1_000_000) > 0),
                    until.0.div_euclid(1_000_000),
                )
            };
            judged.filter_map(|hold| Some(whole(hold.judged_from?, hold.until?))).collect()
        };
        let holds =
            (!run.holds.is_empty()).then(|| [spans(HoldOutcome::Yes), spans(HoldOutcome::No)]);
        Self { from_second: planned::counted_from(warm_up_s), holds }
    }

    pub(super) fn count(&self, second: i64) -> bool {
        let within = |spans: &Vec<(i64, i64)>| {
            spans.iter().any(|(from, until)| (*from..*until).contains(&second))
        };
        second >= self.from_second && self.holds.as_ref().is_none_or(|[passing, _]| within(passing))
    }

    /// Whether a browser that failed at `at` says something about the loads that the answer rests
    /// on: in a search one was held when media must have stopped, and none that failed.
    fn failure_counts(&self, at: RunTime) -> bool {
        let (since, until) =
            (at.0.div_euclid(1_000_000) - FAILS_AFTER_S, at.0.div_euclid(1_000_000));
        let met =
            |spans: &Vec<(i64, i64)>| spans.iter().any(|(from, to)| *from <= until && since < *to);
        self.holds.as_ref().is_none_or(|[passing, failing]| met(passing) && !met(failing))
    }
}

/// The seconds in which a browser had to wait for a CPU, each with the two readings after it: a
/// freeze is counted when it ends, which may take a key frame. `rows` are in order of time.
pub(super) fn starved(rows: &[CanarySecondRow]) -> BTreeSet<(BrowserId, i64)> {
    let mut since: BTreeMap<BrowserId, usize> = BTreeMap::new();
    let mut starved = BTreeSet::new();
    for row in rows {
        let is_starved = row.late_max_us >= LATE_MAX_US
            || row.host_cpu_ratio.is_some_and(|ratio| ratio >= HOST_CPU_MAX);
        let since = since.entry(row.browser).or_insert(READINGS_AFTER + 1);
        *since = if is_starved { 0 } else { since.saturating_add(1) };
        if *since <= READINGS_AFTER {
            starved.insert((row.browser, row.second));
        }
    }
    starved
}

/// The largest difference of `figure` that noise explains; `None` for those in which the two differ
/// by nature.
pub(super) fn bound(figure: &str, browser: &Side, virtual_: &Side, joins: u64) -> Option<f64> {
    let seconds = |side: &Side| side.active_us as f64 / 1e6;
    let (of_browsers, of_crowd) = (seconds(browser), seconds(virtual_));
    if of_browsers <= 0.0 || of_crowd <= 0.0 {
        return None;
    }
    // One stall on either side, and one for each participant that joins meanwhile and waits for its
    // first key frame.
    let stalls = STALL_S * (1.0 / of_browsers + (1.0 + joins as f64) / of_crowd);
    // Two impaired sides differ more: the bound grows by the figure of the better one.
    match figure {
        "fps" => {
            let (fps, virtual_fps) = (browser.fps()?, virtual_.fps()?);
            let source = virtual_.source_fps.mean().unwrap_or_else(|| fps.max(virtual_fps));
            let both_lack = (source - fps).min(source - virtual_fps).max(0.0);
            Some(source * (FPS_RATIO + stalls) + both_lack)
        }
        "freeze_ratio" => {
            let both_froze = browser.freeze_ratio()?.min(virtual_.freeze_ratio()?);
            Some(FREEZE_RATIO + stalls + both_froze)
        }
        "loss_ratio" => {
            let both_lost = browser.loss_ratio()?.min(virtual_.loss_ratio()?);
            let expected = browser.expected.saturating_add(virtual_.expected);
            let lost = browser.lost.max(0).saturating_add(virtual_.lost.max(0));
            let p = (lost as f64 / expected.max(1) as f64).clamp(0.0, 1.0);
            let samples =
                1.0 / browser.expected.max(1) as f64 + 1.0 / virtual_.expected.max(1) as f64;
            Some(LOSS_RATIO + SIGMAS * (BURST_PACKETS * p * (1.0 - p) * samples).sqrt() + both_lost)
        }
        _ => None,
    }
}

/// How `row` is disputed, in words.
pub(super) fn sentence(row: &Agreement) -> String {
    let name = row.name();
    format!(
        "{name} {} in a browser, {} in the crowd",
        row.shown(row.browser),
        row.shown(row.virtual_)
    )
}

/// Browsers that failed where the crowd did not, in a sentence; `None` where that is in line with
/// the crowd's own failures, or says nothing.
pub(super) fn failed(
    run: &RunData,
    times: &Times,
    starved: &BTreeSet<(BrowserId, i64)>,
) -> Option<String> {
    let was_starved = |row: &CanaryBrowserRow| {
        let own = || run.canary.seconds.iter().filter(|second| second.browser == row.browser);
        let without_cpu =
            own().filter(|second| starved.contains(&(second.browser, second.second))).count();
        without_cpu as f64 > STARVED_RATIO_MAX * own().count() as f64
    };
    let can_tell = |row: &&CanaryBrowserRow| !row.failure_is_own && !was_starved(row);
    let able: Vec<_> = run.canary.browsers.iter().filter(can_tell).collect();
    let counts = |row: &&&CanaryBrowserRow| {
        row.failure.is_some()
            && row.failed_at.or(row.ended_at).is_none_or(|at| times.failure_counts(at))
    };
    let failed: Vec<_> = able.iter().filter(counts).collect();
    let first = failed.first()?;
    let others = run.participants.iter().filter(|row| row.failure().is_some());
    let crowd_failed = others
        .filter(|row: &&ParticipantRow| row.ended_at.is_none_or(|at| times.failure_counts(at)))
        .count();
    let crowd = run.participants.len();
    let ratio = crowd_failed as f64 / crowd.max(1) as f64;
    (chance(failed.len(), able.len(), ratio) < CHANCE_MIN).then(|| {
        format!(
            "{} of {} browsers failed ({}), {crowd_failed} of {crowd} of the crowd",
            failed.len(),
            able.len(),
            first.failure.as_deref().unwrap_or_default()
        )
    })
}

/// The probability that of `all` at least `count` fail of which each does with probability `ratio`.
fn chance(count: usize, all: usize, ratio: f64) -> f64 {
    let mut fewer = 0.0;
    let mut ways = 1.0;
    for failed in 0..count.min(all + 1) {
        fewer += ways * ratio.powi(failed as i32) * (1.0 - ratio).powi((all - failed) as i32);
        ways *= (all - failed) as f64 / (failed + 1) as f64;
    }
    1.0 - fewer
}

/// Why no comparison was possible.
pub(super) fn unknown(run: &RunData, compared: usize, left_out: usize) -> Vec<String> {
    let mut reasons = Vec::new();
    if left_out > 0 {
        reasons.push(format!(
            "this machine had no CPU for the browsers in {left_out} of {compared} s"
        ));
    }
    let own = run.canary.browsers.iter().filter(|row| row.failure_is_own);
    reasons.extend(own.filter_map(|row| {
        Some(format!("browser {} failed by itself: {}", row.browser.0, row.failure.as_ref()?))
    }));
    if reasons.is_empty() {
        reasons.push(format!("{compared} s could be compared, and {SECONDS_MIN} are needed"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use throng_observation::run::SourceFps;

    use super::*;

    /// A side that was seen for so many seconds at 30 fps and 100 packets a second.
    fn side(seconds: u64, fps: f64, frozen_s: f64, lost: i64) -> Side {
        Side {
            frames: (fps * seconds as f64) as u64,
            expected: 100 * seconds,
            lost,
            freeze_us: (frozen_s * 1e6) as u64,
            active_us: seconds * 1_000_000,
            source_fps: SourceFps { tracks: 1, sum_milli: 30_000 },
            ..Side::default()
        }
    }

    /// Whether the two differ by more than noise explains.
    fn is_beyond(figure: &str, browser: &Side, crowd: &Side) -> bool {
        let of = |side: &Side| match figure {
            "fps" => side.fps(),
            "freeze_ratio" => side.freeze_ratio(),
            _ => side.loss_ratio(),
        };
        (of(browser).unwrap() - of(crowd).unwrap()).abs()
            > bound(figure, browser, crowd, 0).unwrap()
    }

    #[test]
    fn what_noise_explains_shrinks_with_the_time_that_was_seen() {
        let crowd = |seconds| side(3 * seconds, 30.0, 0.0, 0);
        // Frozen 43 % of ten seconds, and of a minute; one stall of 1.5 s in each.
        for (seconds, frozen_s, expect) in
            [(10, 4.3, true), (60, 25.8, true), (10, 1.5, false), (60, 1.5, false)]
        {
            let browser = side(seconds, 30.0, frozen_s, 0);
            assert_eq!(
                is_beyond("freeze_ratio", &browser, &crowd(seconds)),
                expect,
                "{frozen_s} of {seconds} s"
            );
        }
        assert!(is_beyond("freeze_ratio", &side(60, 30.0, 7.0, 0), &crowd(60)), "12 % of a minute");
        assert!(!is_beyond("fps", &side(10, 25.0, 0.0, 0), &crowd(10)), "as one stall makes it");
        assert!(is_beyond("fps", &side(60, 25.0, 0.0, 0), &crowd(60)));
        assert!(is_beyond("fps", &side(10, 0.0, 0.0, 0), &crowd(10)), "it never moved again");
        assert_eq!(
            bound("jitter_ms", &side(10, 30.0, 0.0, 0), &crowd(10), 0),
            None,
            "they differ by nature"
        );
        assert_eq!(bound("fps", &side(0, 0.0, 0.0, 0), &crowd(10), 0), None);
    }

    #[test]
    fn loss_is_held_to_what_chance_makes_of_so_many_packets() {
        // 3 % on both sides, in bursts: 10 s of a browser see from 1 % to 6 %.
        let crowd = side(30, 30.0, 0.0, 90);
        assert!(!is_beyond("loss_ratio", &side(10, 30.0, 0.0, 10), &crowd));
        assert!(!is_beyond("loss_ratio", &side(10, 30.0, 0.0, 60), &crowd));
        assert!(is_beyond("loss_ratio", &side(10, 30.0, 0.0, 300), &crowd));
        // An hour distinguishes 3 % from none.
        assert!(is_beyond(
            "loss_ratio",
            &side(3_600, 30.0, 0.0, 10_800),
            &side(10_800, 30.0, 0.0, 0)
        ));
    }

    #[test]
    fn two_that_both_fare_badly_need_not_fare_alike() {
        assert!(
            !is_beyond("freeze_ratio", &side(10, 10.0, 3.0, 0), &side(30, 15.0, 18.0, 0)),
            "30 % and 60 %"
        );
        assert!(!is_beyond("fps", &side(10, 8.0, 0.0, 0), &side(30, 16.0, 0.0, 0)));
    }

    #[test]
    fn a_late_join_waits_for_its_first_key_frame() {
        let (browser, crowd) = (side(60, 30.0, 0.0, 0), side(180, 26.0, 0.0, 0));
        let of = |joins| bound("fps", &browser, &crowd, joins).unwrap();
        assert!(of(0) < 4.5 && of(20) > 10.0, "{} and {}", of(0), of(20));
    }

    #[test]
    fn failed_browsers_are_held_against_the_crowds_own_share() {
        for (count, all, ratio, expect) in [
            (1, 1, 0.0, 0.0),
            (1, 1, 0.5, 0.5),
            (1, 2, 0.5, 0.75),
            (2, 2, 0.5, 0.25),
            (1, 16, 0.001, 0.0159),
        ] {
            assert!(
                (chance(count, all, ratio) - expect).abs() < 1e-3,
                "{count} of {all}: {}",
                chance(count, all, ratio)
            );
        }
    }

    #[test]
    fn a_second_without_a_cpu_takes_the_next_readings_with_it() {
        let row = |second, late_max_us, host| CanarySecondRow {
            second,
            late_max_us,
            host_cpu_ratio: host,
            ..CanarySecondRow::default()
        };
        // The reading of second 4 came when the browser had a CPU again, at 9.
        let rows = [
            row(1, 20_000, Some(0.8)),
            row(4, 5_150_000, None),
            row(9, 0, None),
            row(10, 0, None),
            row(11, 0, None),
            row(12, 0, Some(0.97)),
        ];
        let seconds: Vec<_> = starved(&rows).into_iter().map(|(_, second)| second).collect();
        assert_eq!(seconds, [4, 9, 10, 12]);
    }
}
