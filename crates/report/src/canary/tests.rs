use super::*;
use crate::{example, text};
use std::time::Duration;
use throng_observation::canary::BrowserId;

/// A healthy run with two browsers, one of which sees 28 frames a second from second 3 on, the
/// other nothing.
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
    run.series
        .iter_mut()
        .filter(|row| row.second < 3)
        .for_each(|row| row.counters.frames_decodable = 0);
    assert_eq!(figure(&super::summarise(&run, 0.0).unwrap(), "fps").virtual_, Some(30.0));
}

#[test]
fn a_repeat_leaves_its_packet_lost_by_rtx_and_takes_it_back_on_the_own_ssrc() {
    for (rtx, expect) in [(0, 0.01), (1, 0.02)] {
        let mut run = with_browsers();
        run.series.iter_mut().for_each(|row| {
            row.counters.packets_original = 98;
            (row.counters.packets_lost, row.counters.packets_recovered) = (1, 1);
            row.counters.rtx_packets_received = rtx;
        });
        let canary = super::summarise(&run, 0.0).unwrap();
        assert_eq!(figure(&canary, "loss_ratio").virtual_, Some(expect));
    }
    // A browser counts it as received too, when it came on an RTX stream.
    let mut run = with_browsers();
    run.canary.seconds.iter_mut().filter(|row| row.second > 2).for_each(|row| {
        (row.video_packets_received, row.video_packets_repeated) = (103, 4);
    });
    assert_eq!(figure(&super::summarise(&run, 0.0).unwrap(), "loss_ratio").browser, Some(0.01));
}

/// What is counted lost in one second and comes in the next was expected once.
#[test]
fn packets_that_come_a_second_late_are_expected_once() {
    let mut run = with_browsers();
    let virtual_loss = [(6, 10), (7, 2), (8, -2)];
    run.series.iter_mut().for_each(|row| {
        let found = virtual_loss.iter().find(|(second, _)| *second == row.second);
        let lost: i64 = found.map_or(0, |(_, lost)| *lost);
        row.counters = TrackCounters {
            packets_original: 100_u64.saturating_add_signed(-lost),
            packets_lost: lost,
            active_us: 1_000_000,
            ..TrackCounters::default()
        };
    });
    // In a browser four repeats on the own SSRC take back what was lost, and nothing else comes.
    for row in &mut run.canary.seconds {
        if row.second == 6 {
            row.video_packets_lost = 5;
        } else if row.second == 7 {
            (row.video_packets_received, row.video_packets_repeated) = (4, 4);
            row.video_packets_lost = -4;
        }
    }
    let canary = super::summarise(&run, 0.0).unwrap();
    let loss = figure(&canary, "loss_ratio");
    let expect = 10.0 / (100.0 * canary.seconds as f64);
    assert!(loss.virtual_.is_some_and(|ratio| (ratio - expect).abs() < 1e-9), "{loss:?}");
    assert_eq!(loss.browser, Some(0.01));
}

/// A healthy run of a minute with one browser that is frozen for this share of each second.
fn frozen(us: u64) -> RunData {
    let mut run = with_browsers();
    run = RunData { canary: run.canary, ..example::healthy(5, 60) };
    run.canary.browsers.truncate(1);
    let second = run.canary.seconds.pop().unwrap_or_default();
    run.canary.seconds = (3..60)
        .map(|number| CanarySecondRow {
            second: number,
            freeze_us: us,
            frames_decoded: 30,
            ..second.clone()
        })
        .collect();
    run
}

fn judged(run: &RunData) -> (CanaryJudgement, String, crate::RunOutcome) {
    let summary = crate::summarise(run, &[], Duration::from_secs(5));
    (
        summary.canary.map(|canary| canary.judgement).unwrap_or_default(),
        summary.headline,
        summary.outcome,
    )
}

#[test]
fn a_browser_that_is_frozen_in_a_crowd_that_plays_cleanly_disputes_the_answer() {
    let (judgement, headline, outcome) = judged(&frozen(430_000));
    assert_eq!((judgement, outcome), (CanaryJudgement::Disputed, crate::RunOutcome::Disputed));
    let expect = "Disputed by a browser: time frozen 43.0 % in a browser, 0 % in the crowd; the crowd alone: \
                  5 viewers played cleanly for 60 s";
    assert_eq!(headline, expect);
    let (judgement, headline, outcome) = judged(&frozen(20_000));
    assert_eq!((judgement, outcome), (CanaryJudgement::Agrees, crate::RunOutcome::Met));
    assert!(headline.starts_with("5 viewers played cleanly"), "{headline}");
}

#[test]
fn a_browser_without_a_cpu_has_no_say() {
    let mut run = frozen(430_000);
    run.canary.seconds.iter_mut().for_each(|row| row.host_cpu_ratio = Some(0.99));
    let (judgement, headline, outcome) = judged(&run);
    assert_eq!(
        (judgement, outcome),
        (CanaryJudgement::CannotTell, crate::RunOutcome::Met),
        "{headline}"
    );
    let words = text::summary(&crate::summarise(&run, &[], Duration::from_secs(5)));
    assert!(
        words.contains(
            "cannot be determined: this machine had no CPU for the browsers in 55 of 55 s"
        ),
        "{words}"
    );
    // Frozen only while it had none: the rest agrees.
    let mut run = frozen(0);
    run.canary.seconds.iter_mut().take(20).for_each(|row| {
        (row.late_max_us, row.freeze_us, row.frames_decoded) = (400_000, 1_000_000, 0);
    });
    let summary = crate::summarise(&run, &[], Duration::from_secs(5)).canary.unwrap();
    assert_eq!((summary.judgement, summary.seconds_starved), (CanaryJudgement::Agrees, 20));
}

#[test]
fn a_failed_browser_disputes_unless_it_failed_by_itself_or_the_crowd_fails_too() {
    let failed = |is_own, at| {
        let mut run = frozen(0);
        run.canary.seconds.retain(|row| row.second < at);
        let browser = &mut run.canary.browsers[0];
        browser.failure = Some("its peer connection failed".into());
        (browser.failed_at, browser.failure_is_own) = (Some(RunTime(at * 1_000_000)), is_own);
        run
    };
    let (judgement, headline, _) = judged(&failed(false, 8));
    assert_eq!(judgement, CanaryJudgement::Disputed);
    assert!(
        headline
            .contains("1 of 1 browsers failed (its peer connection failed), 0 of 5 of the crowd")
    );
    assert_eq!(judged(&failed(true, 8)).0, CanaryJudgement::CannotTell);
    assert_eq!(judged(&failed(true, 50)).0, CanaryJudgement::Agrees, "what it saw before");
    let mut run = failed(false, 8);
    run.participants[0].outcome = Some(throng_observation::Outcome::Failed(
        throng_observation::Failure::new(throng_observation::FailureReason::Ice, "x"),
    ));
    assert_eq!(judged(&run).0, CanaryJudgement::CannotTell, "one of five of the crowd did");
}

#[test]
fn in_a_search_only_loads_that_passed_are_compared() {
    use throng_observation::{HoldOutcome, HoldRow};
    let hold = |from: i64, until: i64, passed| HoldRow {
        users: 5,
        from: RunTime(from * 1_000_000),
        judged_from: Some(RunTime(from * 1_000_000)),
        until: Some(RunTime(until * 1_000_000)),
        seconds: 20,
        passed: [passed; 3],
        ..HoldRow::default()
    };
    let mut run = frozen(0);
    run.holds = vec![hold(5, 30, HoldOutcome::Yes), hold(30, 60, HoldOutcome::No)];
    run.canary.seconds.iter_mut().for_each(|row| {
        if row.second >= 30 {
            (row.freeze_us, row.frames_decoded) = (1_000_000, 0);
        }
    });
    let judgement = |run: &RunData| super::summarise(run, 0.0).unwrap().judgement;
    assert_eq!(judgement(&run), CanaryJudgement::Agrees);
    run.canary.seconds.iter_mut().for_each(|row| row.freeze_us = 430_000);
    assert_eq!(judgement(&run), CanaryJudgement::Disputed);
    run = RunData { canary: frozen(0).canary, ..run };
    run.canary.browsers[0].failure = Some("its peer connection failed".into());
    run.canary.browsers[0].failed_at = Some(RunTime(50_000_000));
    assert_eq!(judgement(&run), CanaryJudgement::Agrees, "under a load that failed");
    run.canary.browsers[0].failed_at = Some(RunTime(29_000_000));
    assert_eq!(judgement(&run), CanaryJudgement::Disputed);
}

#[test]
fn words_and_page_show_both_and_only_where_there_were_browsers() {
    let run = with_browsers();
    let summary = crate::summarise(&run, &[], Duration::ZERO);
    let words = text::summary(&summary);
    assert!(words.contains("1 of 2 browsers showed a picture, 0.50 cores"), "{words}");
    assert!(words.contains("frames a second 28.0 / 30.0 (-2.0)"), "{words}");
    assert!(words.contains("browser 1 failed: its page"), "{words}");
    assert!(words.contains("DISPUTED: 1 of 2 browsers failed"), "{words}");
    let page = crate::html::render(&run, &summary);
    assert!(
        page.contains(">Browsers compared with the crowd</a></h2>")
            && page.contains("&lt;b&gt;crashed")
    );
    assert!(!page.contains("<b>crashed"));
    let none = crate::summarise(&example::healthy(5, 10), &[], Duration::ZERO);
    assert!(
        none.canary.is_none() && !crate::html::render(&run, &none).contains("Browsers compared")
    );
}

#[test]
fn browsers_that_saw_nothing_leave_figures_absent() {
    let mut run = with_browsers();
    run.canary.seconds.clear();
    let canary = super::summarise(&run, 0.0).unwrap();
    assert_eq!(
        (canary.seconds, canary.cpu_cores, figure(&canary, "fps").difference),
        (0, None, None)
    );
    assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), Some(2.5));
    assert_eq!(median(Vec::new()), None);
}
