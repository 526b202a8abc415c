//! What the terminal shows of example runs.

use std::time::Duration;

use throng_observation::run::EventRow;
use throng_observation::{MediaPath, RunTime};

use crate::{example, summarise};

#[test]
fn the_terminal_shows_the_answer_first_and_about_fifteen_lines() {
    let text =
        super::summary(&summarise(&example::degraded(), &example::objectives(), Duration::ZERO));
    assert!(text.starts_with("Objectives missed: video.loss p95 < 1%"), "{text}");
    assert!(text.contains(" by in-media mark; clock error at most 2.0 ms"), "{text}");
    assert!(text.lines().count() <= 23 && text.contains("100 intended, 97 connected"), "{text}");
    assert!(text.contains("\n  bad seconds  mostly delay (100 %), fps "), "{text}");
}

#[test]
fn the_line_of_a_goal_says_which_clauses_made_its_load_fail() {
    let text = super::summary(&summarise(&example::searched(), &[], Duration::ZERO));
    let expect = "acceptable   40 passed, 42 failed (at most 1.00 % of users with a bad second); 42 failed: mostly \
                  delay (100 %), fps 10 %";
    assert!(text.contains(expect), "{text}");
    assert!(!text.contains("bad seconds  "), "it has been said: {text}");
}

#[test]
fn an_answer_that_is_no_capacity_says_what_was_bad() {
    let headline = |run: &_| summarise(run, &[], Duration::ZERO).headline;
    let mut never = example::searched();
    never.holds.retain(|hold| hold.users == 42);
    assert_eq!(
        headline(&never),
        "None: a crowd of 42 had bad service, mostly delay (100 %), fps 10 %"
    );
    let mut soaked = example::searched();
    let last = soaked.holds.iter().rfind(|hold| hold.users == 42).cloned().expect("a failing load");
    let soak = throng_observation::HoldRow {
        purpose: throng_observation::Purpose::Soak,
        users: 36,
        ..last
    };
    soaked.holds.push(throng_observation::HoldRow {
        number: 99,
        broke_at: soak.judged_from,
        ..soak
    });
    let said = headline(&soaked);
    assert!(
        said.contains("not sustained") && said.ends_with(", mostly delay (100 %), fps 10 %"),
        "{said}"
    );
}

#[test]
fn a_search_distinguishes_joins_from_the_crowd_at_once() {
    let mut search = example::searched();
    search.participants = example::healthy(58, 10).participants;
    let summary = summarise(&search, &[], Duration::ZERO);
    let text = super::summary(&summary);
    let expect =
        "viewers      at most 48 at once; 58 joins in all: 58 connected, 58 playing, 0 failed";
    assert!(text.contains(expect), "{text}");
    let page = crate::html::render(&search, &summary);
    assert!(page.contains("at most 48 at once") && !page.contains("58 of 58"));
}

#[test]
fn caveats_stand_below_the_answer_and_not_in_it() {
    let mut summary = summarise(&example::searched(), &[], Duration::ZERO);
    let capacity = summary.capacity.as_mut().expect("a search");
    capacity.caveats = vec!["36 failed in 2 of 3 holds".into()];
    let text = super::summary(&summary);
    let mut lines = text.lines();
    let (answer, caveat) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(answer, summary.headline);
    assert!(!answer.contains("2 of 3 holds"), "{answer}");
    assert_eq!(caveat.trim(), "caveat       36 failed in 2 of 3 holds");
    let page = crate::html::render(&example::searched(), &summary);
    let heading = page.find("</h1>").expect("a heading");
    let place = page.find("36 failed in 2 of 3 holds").expect("the caveat");
    assert!(heading < place, "the caveat is below the heading");
    assert_eq!(page.matches("36 failed in 2 of 3 holds").count(), 1, "once on the page");
}

#[test]
fn a_search_that_left_seconds_out_reports_it_and_keeps_its_answer() {
    let line = |run| {
        let text = super::summary(&summarise(&run, &[], Duration::ZERO));
        text.lines()
            .find(|line| line.contains("generator    "))
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let mut search = example::searched();
    assert!(line(search.clone()).contains("generator    was not the limit; "));
    // In so few seconds that bad seconds without it remain.
    search.generator.iter_mut().step_by(8).for_each(|row| row.cpu_us = 930_000);
    let said = line(search.clone());
    assert!(
        said.contains("was the limit at times, which were not judged: an engine thread used"),
        "{said}"
    );
    assert!(line(example::limited()).contains("generator    WAS THE LIMIT; "));
    search
        .holds
        .iter_mut()
        .for_each(|hold| (hold.passed, hold.limited_seconds) = (Default::default(), 9));
    assert!(line(search).contains("generator    WAS THE LIMIT; "), "no load came through");
}

#[test]
fn a_load_that_failed_at_the_generators_limits_did_not_fail() {
    let mut search = example::searched();
    search
        .generator
        .iter_mut()
        .filter(|row| row.cpu_us >= 160_000)
        .for_each(|row| row.cpu_us = 930_000);
    let summary = summarise(&search, &[], Duration::ZERO);
    let verdict = summary.bottleneck.as_ref().map(|found| found.verdict);
    assert_eq!(verdict, Some(throng_analysis::bottleneck::BottleneckVerdict::GeneratorLimited));
    assert_eq!(summary.outcome, crate::summary::RunOutcome::Invalid, "{}", summary.headline);
    let capacity = summary.capacity.as_ref().expect("a search");
    assert_eq!((capacity.verdict.as_str(), capacity.first_failing), ("invalid", None));
    let text = super::summary(&summary);
    let expect = "Invalid: the generator was the limit above 40 viewers: an engine thread used up to 93 % of its \
                  core, more than 70 % (120 of 120 s over the limit)";
    assert!(text.starts_with(expect), "{text}");
    assert!(
        !text.contains(" failed (at most") && text.contains("40 passed, 42 not decided"),
        "{text}"
    );
}

#[test]
fn a_conference_takes_a_line_and_one_more_when_its_server_is_full() {
    let said = |run| super::summary(&summarise(&run, &[], Duration::ZERO));
    let text = said(crate::conference::tests::lesson(6, 30, |_| 1.0));
    let expect = "conference   video 30 of 30 play; audio 30 of 30 play; in 96.0 kbit/s, out 480 kbit/s; 100.0 % of the expected 480 kbit/s";
    assert!(text.contains(expect), "{text}");
    let mut short = crate::conference::tests::lesson(25, 30, |_| 1.0);
    crate::conference::tests::fail_to_join(&mut short, 20);
    let short = said(short);
    let expect = "video 380 of 600 play; audio 380 of 600 play; 20 of 25 connected; in ";
    assert!(short.contains(expect), "{short}");
    let full = said(crate::conference::tests::lesson(
        30,
        60,
        |second| if second < 25 { 1.0 } else { 0.5 },
    ));
    assert!(full.contains("in rises, out falls"), "{full}");
}

#[test]
fn the_media_path_is_reported_with_its_count() {
    let mut run = example::healthy(10, 20);
    assert!(!super::summary(&summarise(&run, &[], Duration::ZERO)).contains("  path "));
    for (path, count) in [(MediaPath::Host, 3), (MediaPath::RelayTcp, 7)] {
        let kind = format!("{}{}", MediaPath::EVENT, path.key());
        let (at, detail) = (RunTime(20_000_000), "".into());
        run.events.push(EventRow { at, participant: None, kind, count, detail });
    }
    let summary = summarise(&run, &[], Duration::ZERO);
    assert!(summary.events.is_empty(), "{:?}", summary.events);
    let text = super::summary(&summary);
    assert!(text.contains("path         7 through a relay over TCP, 3 directly (host)"), "{text}");
}

#[test]
fn addresses_are_reported_with_their_counts_but_a_name_of_this_machine_alone() {
    let said = |addresses: &[(&str, u32)]| {
        let mut run = example::healthy(10, 20);
        for (address, count) in addresses {
            let kind = format!("{}{address}", throng_observation::run::ADDRESS_EVENT);
            let (at, count, detail) = (RunTime(20_000_000), *count, "".into());
            run.events.push(EventRow { at, participant: None, kind, count, detail });
        }
        let summary = summarise(&run, &[], Duration::ZERO);
        assert!(summary.events.is_empty(), "{:?}", summary.events);
        assert_eq!(summary.addresses.len(), addresses.len());
        let text = super::summary(&summary);
        let line = text.lines().find_map(|line| line.trim().strip_prefix("addresses"));
        line.map(|counts| counts.trim().to_owned())
    };
    let two = said(&[("192.0.2.1", 3), ("192.0.2.2", 7)]);
    assert_eq!(two.as_deref(), Some("192.0.2.1 3, 192.0.2.2 7"));
    let one = said(&[("192.0.2.1", 10)]);
    assert_eq!(one.as_deref(), Some("192.0.2.1 10"), "it may be the wrong one");
    assert_eq!(said(&[("127.0.0.1", 10)]), None);
}

#[test]
fn a_watched_server_takes_three_to_six_lines() {
    let run = crate::server::tests::watched();
    let lines = |run| {
        let without_cause =
            crate::Summary { bottleneck: None, ..summarise(run, &[], Duration::ZERO) };
        super::summary(&crate::Summary { demand: Vec::new(), ..without_cause }).lines().count()
    };
    let text = super::summary(&summarise(&run, &[], Duration::ZERO));
    let more = lines(&run) - lines(&example::degraded());
    assert!((3..=6).contains(&more), "{text}");
    assert!(text.contains("hottest thread hloop 1 (tid 4012)"), "{text}");
    assert!(text.contains("to give it room: event_loops"), "{text}");
    assert!(text.contains("168 UDP receive buffer errors"), "{text}");
}

#[test]
fn reports_without_a_wall_clock_are_called_so_and_no_clock_is_said_to_disagree() {
    use throng_observation::run::EventRow;
    use throng_observation::{OneWayDelay, RunTime, SENDER_CLOCK_EVENT};
    let mut run = example::healthy(10, 20);
    run.series.iter_mut().for_each(|row| row.absolute_delay = OneWayDelay::default());
    let said = |run: &_| super::summary(&summarise(run, &[], Duration::ZERO));
    assert!(!said(&run).contains("one-way"), "{}", said(&run));
    let (at, kind) = (RunTime(1), SENDER_CLOCK_EVENT.to_owned());
    run.events.push(EventRow { at, participant: None, kind, count: 10, detail: "".into() });
    let text = said(&run);
    assert!(text.contains("one-way      not known: sender reports have no wall clock"), "{text}");
    assert!(!text.contains("disagree"), "{text}");
}

#[test]
fn the_servers_own_clock_is_named_and_clocks_that_disagree_are_counted() {
    use throng_observation::{CaptureBasis, MediaKind, OneWayDelay};
    let with_early = |delay_us| {
        let mut run = example::healthy(10, 20);
        for row in run.series.iter_mut().filter(|row| row.kind == Some(MediaKind::Video)) {
            row.absolute_delay = OneWayDelay::default();
            (0..60).for_each(|_| row.absolute_delay.record(CaptureBasis::SenderReport, delay_us));
            (0..40).for_each(|_| row.absolute_delay.record(CaptureBasis::SenderReport, 3_000));
        }
        run
    };
    // The clocks of the example are known to 2 ms.
    let within = super::summary(&summarise(&with_early(-400), &[], Duration::ZERO));
    assert!(within.contains("p50 within the clock error, p95 3.0 ms by RTCP SR"), "{within}");
    assert!(!within.contains("seem to arrive") && !within.contains("below zero"), "{within}");
    let run = with_early(-5_000);
    let goal = ["video.one_way_delay p95 < 400ms".parse().unwrap()];
    let summary = summarise(&run, &goal, Duration::ZERO);
    assert_eq!(summary.video.one_way_delay_basis.as_deref(), Some("sender_report"));
    assert_eq!(
        (summary.video.one_way_delay_ms_p50, summary.video.clock_disagrees_ratio),
        (None, Some(0.6))
    );
    assert_eq!(summary.objectives[0].result, "not_measured");
    let text = super::summary(&summary);
    assert!(
        text.contains("p50 below zero, p95 3.0 ms by RTCP SR (the server's own clock"),
        "{text}"
    );
    let early = "; 60.0 % of frames seem to arrive before they were sent, by up to 5.0 ms (p95)";
    assert!(text.contains(early), "{text}");
    let page = crate::html::render(&run, &summary);
    assert!(
        page.contains("By RTCP SR (the server&#39;s own clock")
            || page.contains("By RTCP SR (the server's own clock")
    );
}
