//! Whatever a server, a process, a log, a room or a person is called: it stays text, in the
//! terminal, on the page, in tables and in JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_observation::canary::{BrowserId, CanaryBrowserRow};
use throng_observation::host::{HostEvent, HostEventKind, HostId};
use throng_observation::run::{EventRow, RunData};
use throng_observation::untrusted::is_harmful;
use throng_observation::{Failure, FailureReason, Outcome, RunTime};

use crate::{conference, csv, example, html, oven_rtc_tester, profile, server, summarise, text};

pub(crate) const HOSTILE: [&str; 12] = [
    "\x1b[2J\x1b[1;1H\x1b]0;title\x07",
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b]52;c;Y3VybCBldmls\x07",
    "\u{9b}31m\u{90}q\u{9c}",
    "\r\nFORGED: all objectives met\n\x0b\x0c\u{2028}FORGED",
    "\u{202e}gpj.exe\u{2066}\u{200f}",
    "</script></style></title></svg><img src=x onerror=alert(1)><script>alert(1)</script>",
    "=cmd|' /C calc'!A1",
    "]]>\"'`\" onmouseover=\"alert(1)",
    "\0\x08\x7f\u{feff}",
    "| a \\| b |\n\n# c\n/close @me #1 ![d](http://e.example) `f ``g",
    "</td><!-- --> www.h.example i@j.example [k]: deadbeef **l** $m$ :n:",
];

/// A run in which everything that others can name is called `name`.
pub(crate) fn called(name: &str) -> RunData {
    let own = |text: &mut String| name.clone_into(text);
    let mut run = server::tests::watched();
    let conference = conference::tests::lesson(4, 60, |_| 1.0);
    run.tracks = conference.tracks;
    for track in run.tracks.iter_mut().take(5) {
        track.from = Some(name.to_owned());
    }
    own(&mut run.info.target);
    own(&mut run.info.scenario);
    own(&mut run.info.clock.basis);
    run.info.warnings = vec![name.to_owned()];
    run.info.cohorts = vec![name.to_owned()];
    run.info.generator_host = BTreeMap::from([(name.to_owned(), name.to_owned())]);
    for row in run.participants.iter_mut().take(3) {
        row.outcome = Some(Outcome::Failed(Failure::new(FailureReason::Refused, name)));
        row.local_address = Some(name.to_owned());
    }
    for kind in [name, "abort", "canary_refused"] {
        let (kind, detail) = (kind.to_owned(), name.into());
        run.events.push(EventRow {
            at: RunTime(5_000_000),
            participant: None,
            kind,
            count: 1,
            detail,
        });
    }
    for host in &mut run.host.hosts {
        own(&mut host.name);
        host.facts.insert(name.to_owned(), name.to_owned());
        host.facts.values_mut().for_each(own);
    }
    for series in &mut run.host.series {
        let chosen = ["process", "thread", "interface", "device", "log", "pattern"];
        series
            .labels
            .iter_mut()
            .filter(|(key, _)| chosen.contains(&key.as_str()))
            .for_each(|(_, value)| own(value));
        series.labels.insert(name.to_owned(), name.to_owned());
    }
    let event = |kind| HostEvent::new(HostId(0), RunTime(9_000_000), kind, name);
    run.host.events.extend(
        [HostEventKind::ProcessEnded, HostEventKind::Unreadable, HostEventKind::Watcher].map(event),
    );
    for profile in &mut run.host.profiles {
        own(&mut profile.moment);
        profile.limits = vec![name.to_owned()];
        profile.stacks.iter_mut().for_each(|stack| own(&mut stack.thread));
        for frame in &mut profile.frames {
            own(&mut frame.symbol);
            own(&mut frame.module);
        }
    }
    let (version, failure) = (name.to_owned(), Some(name.to_owned()));
    run.canary.browsers = vec![CanaryBrowserRow {
        browser: BrowserId(0),
        version,
        failure,
        ..CanaryBrowserRow::default()
    }];
    run
}

/// What is shown as lines: nothing harmful, and no line that the text began.
fn is_plain(what: &str, shown: &str) {
    let harmful = shown.chars().find(|c| is_harmful(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(harmful, None, "{what}: {shown:?}");
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("FORGED")), "{what}: {shown}");
}

#[test]
fn the_terminal_shows_names_as_text() {
    for name in HOSTILE {
        let run = called(name);
        let summary = summarise(&run, &example::objectives(), Duration::ZERO);
        let said = text::summary(&summary);
        is_plain("summary", &said);
        is_plain("details", &details(&run));
        run.host.profiles.iter().for_each(|taken| is_plain("profile", &profile::text(taken)));
        assert!(!run.host.profiles.is_empty() && said.contains("hottest thread"), "{said}");
        let failed = text::summary(&summarise(
            &RunData { info: run.info, ..example::all_failed() },
            &[],
            Duration::ZERO,
        ));
        is_plain("headline", &failed);
    }
}

#[test]
fn the_page_shows_names_as_text() {
    let page =
        |run: &RunData| html::render(run, &summarise(run, &example::objectives(), Duration::ZERO));
    let scripts = |page: &str| page.matches("<script").count();
    let own = scripts(&page(&called("janus")));
    for name in HOSTILE {
        let run = called(name);
        let page = page(&run);
        assert!(!page.contains("<img") && !page.contains("\" onmouseover=\""), "{name:?}");
        assert_eq!(scripts(&page), own, "{name:?}");
        assert_eq!(page.chars().find(|c| is_harmful(*c) && *c != '\n'), None, "{name:?}");
        let profiles = html::profile_page(name, &run.host.profiles);
        assert!(!profiles.contains("<img") && !profiles.contains("\" onmouseover=\""), "{name:?}");
        assert_eq!(profiles.chars().find(|c| is_harmful(*c) && *c != '\n'), None, "{name:?}");
    }
}

fn details(run: &RunData) -> String {
    let (mut details, begin) = oven_rtc_tester::Details::of(run);
    let printed: String = run.tracks.iter().map(|track| details.up_to(track)).collect();
    oven_rtc_tester::summary(run) + begin + &printed + &details.rest()
}

/// Every table, and how many columns it has.
fn tables(run: &RunData) -> [(String, usize); 4] {
    let series: String =
        run.series.iter().map(|row| csv::line(&csv::series_row(run, row))).collect();
    let participants: String =
        run.participants.iter().map(|row| csv::line(&csv::participant_row(run, row))).collect();
    let columns = csv::participant_columns();
    [
        (csv::header(&csv::series_columns()) + &series, csv::series_columns().len()),
        (csv::header(&columns) + &participants, columns.len()),
        (csv::hosts(run), csv::host_columns().len()),
        (csv::conference(run).unwrap_or_default(), csv::pair_columns().len()),
    ]
}

/// The cells of RFC 4180.
fn cells(csv: &str) -> Vec<String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in csv.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' | '\n' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            '\r' => {}
            c => cell.push(c),
        }
    }
    cells
}

#[test]
fn tables_hold_names_as_text_a_row_a_line() {
    for name in HOSTILE {
        for (table, columns) in tables(&called(name)) {
            let all = cells(&table);
            assert_eq!(all.len(), columns * table.lines().count(), "{name:?}");
            let is_formula = |cell: &&String| {
                cell.trim_start().starts_with(['=', '+', '@'])
                    || cell.starts_with('-') && cell.parse::<f64>().is_err()
            };
            assert_eq!(all.iter().find(is_formula), None, "{name:?}");
            let harmful = table.chars().find(|c| is_harmful(*c) && !matches!(c, '\r' | '\n'));
            assert_eq!(harmful, None, "{name:?}");
        }
    }
}

#[test]
fn json_holds_names_as_they_are_and_may_be_shown() {
    for name in HOSTILE {
        let run = called(name);
        let json = summarise(&run, &example::objectives(), Duration::ZERO).to_json();
        is_plain("summary.json", &json);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["target"], name, "what was, is read again");
    }
}
