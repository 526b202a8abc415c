//! Runs as Markdown: the order of what is said, and that names stay text.

use std::time::Duration;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
use throng_observation::run::{Ending, RunData};

use super::escape::tests::is_text;
use super::of_run;
use crate::hostile_tests::{HOSTILE, called};
use crate::{RunOutcome, Summary, example, server, summarise};

/// The most that GitHub takes as a comment.
const COMMENT_CHARS_MAX: usize = 65_536;

fn said(run: &RunData) -> String {
    of_run(run, &summarise(run, &example::objectives(), Duration::ZERO))
}

/// That a document has throng's own structure and no other one.
#[track_caller]
pub(crate) fn is_well_formed(document: &str) {
    assert!(document.starts_with("### throng"), "{document}");
    assert!(document.chars().count() < COMMENT_CHARS_MAX && document.ends_with('\n'));
    let (mut is_block, mut columns) = (false, None);
    for line in document.lines().skip(1) {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if let Some(row) = line.strip_prefix('|') {
            let row = row.replace("\\|", "│");
            let cells: Vec<&str> = row.split_terminator('|').collect();
            assert_eq!(*columns.get_or_insert(cells.len()), cells.len(), "{line}");
            cells.iter().for_each(|cell| is_text(cell));
            continue;
        } else if let Some(item) = line.strip_prefix("- **") {
            let (label, text) = item.split_once(":** ").expect("a label");
            assert!(label.chars().all(|c| c.is_ascii_alphabetic() || c == ' '), "{line}");
            is_text(text);
        } else {
            let is_own = line.is_empty() || is_block || line.starts_with("The report has ");
            assert!(is_own, "{line:?} in\n{document}");
        }
        columns = None;
    }
    assert!(!is_block, "{document}");
    a_parser_finds_the_same(document);
}

/// That a parser of Markdown with what GitHub adds to it finds one heading, the labels, the tables
/// and the blocks, and no link, HTML or other element that a name has made.
#[track_caller]
fn a_parser_finds_the_same(document: &str) {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_MATH;
    let [mut headings, mut labels, mut tables, mut blocks] = [0; 4];
    for event in Parser::new_ext(document, options) {
        let is_own = match &event {
            Event::Start(Tag::Heading { level, .. }) => {
                headings += 1;
                *level == HeadingLevel::H3
            }
            Event::Start(Tag::Strong) => {
                labels += 1;
                true
            }
            Event::Start(Tag::Table(_)) => {
                tables += 1;
                true
            }
            Event::Start(Tag::CodeBlock(_)) => {
                blocks += 1;
                true
            }
            Event::Start(tag) => matches!(
                tag,
                Tag::Paragraph
                    | Tag::List(None)
                    | Tag::Item
                    | Tag::TableHead
                    | Tag::TableRow
                    | Tag::TableCell
            ),
            Event::End(_) | Event::Text(_) | Event::Code(_) | Event::SoftBreak => true,
            Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => false,
        };
        assert!(is_own, "{event:?} in\n{document}");
    }
    let lines = |begin: &str| document.lines().filter(|line| line.starts_with(begin)).count();
    let written = [1, lines("- **"), lines("|---"), lines("```text")];
    assert_eq!([headings, labels, tables, blocks], written, "{document}");
}

/// That parts follow each other in a document.
#[track_caller]
fn follow_each_other(document: &str, parts: &[&str]) {
    let mut rest = document;
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part}: {document}")).1;
    }
}

#[test]
fn a_run_is_told_by_its_answer_its_objectives_its_crowd_and_its_time() {
    let text = said(&example::degraded());
    follow_each_other(
        &text,
        &[
            "### throng: missed\n\n- **Answer:** Objective",
            "\n\n| Objective | Measured | Result |\n|---|---|---|\n",
            "| connect p99 &lt; 3s | never, because too many failed | ✗ missed |\n",
            "\n- **Crowd:** 100 intended, ",
            "\n- **Failures:** ice 3\n- **Failed:** ice: viewer ",
            "\n- **Played:** `ws://media.example:3333/app/stream` for 60 s from 2026-11-2",
            "\n\n```text\nserved  █",
        ],
    );
    is_well_formed(&text);
    let met = said(&example::healthy(10, 20));
    assert!(met.starts_with("### throng: met\n\n- **Answer:** 10 viewers played cleanly"), "{met}");
    assert!(!met.contains("No verdict"), "{met}");
}

#[test]
fn what_makes_a_run_doubtful_is_said_first_and_nothing_of_it_counts() {
    let limited = said(&example::limited());
    let parts =
        ["### throng: invalid\n\n- **No verdict:** ", "- **Answer:** Invalid: the generator"];
    follow_each_other(&limited, &[parts[0], parts[1], " | – does not count |"]);
    assert!(!limited.contains("✓"), "{limited}");
    let mut unfinished = example::healthy(10, 20);
    (unfinished.ending, unfinished.ended_at) = (Ending::Unfinished, None);
    let parts =
        ["### throng: invalid\n\n- **Partial:** no ending", "- **No verdict:** ", "- **Answer:**"];
    follow_each_other(&said(&unfinished), &parts);
    let in_progress = said(&RunData { in_progress: true, ..unfinished });
    let parts = ["- **So far:** the run is in progress; ", "- **Answer:** In progress, 20 of "];
    follow_each_other(&in_progress, &parts);
    let run = example::healthy(10, 20);
    let summary = summarise(&run, &[], Duration::ZERO);
    let disputed = of_run(&run, &Summary { outcome: RunOutcome::Disputed, ..summary });
    follow_each_other(
        &disputed,
        &["### throng: disputed\n\n- **No verdict:** real browsers", "Answer"],
    );
    let error = said(&example::all_failed());
    follow_each_other(
        &error,
        &["### throng: error\n\n- **No verdict:** ", "20 failed with `http_404`"],
    );
}

#[test]
fn a_search_is_told_by_its_number_cause_and_change() {
    let text = said(&server::tests::searched());
    follow_each_other(
        &text,
        &[
            "### throng: met\n\n- **Answer:** Good service for 40 ",
            "\n- **Measured:** 40 viewers (",
            "\n- **Goal:** acceptable: ",
            "\n- **Cause:** Thread hloop 1 of janus is full",
            "\n- **Change:** `event_loops` (`janus.jcfg`",
            "\n- **Then:** about ",
            "\n- **Evidence:** ",
            "\n- **Crowd:** at most ",
        ],
    );
    assert!(!text.contains("| Objective |"), "{text}");
    is_well_formed(&text);
}

#[test]
fn names_stay_text() {
    for name in HOSTILE {
        let run = called(name);
        is_well_formed(&said(&run));
        is_well_formed(&said(&RunData { info: run.info, ..example::all_failed() }));
    }
    let long = "a long name ".repeat(2_000);
    is_well_formed(&said(&called(&long)));
}

#[test]
fn every_shape_of_run_is_told() {
    for run in [RunData::default(), example::audio_only(), example::healthy(1, 1)] {
        is_well_formed(&said(&run));
    }
}
