use super::*;
use crate::server::tests::{searched, watched};
use crate::{example, html, summarise, text};
use std::time::Duration;
use throng_analysis::demand::EXTRAPOLATED_BELOW;
use throng_observation::run::RunData;
use throng_observation::{Failure, FailureReason, Outcome, Phase, Unloaded};

fn summary(run: &RunData) -> Summary {
    summarise(run, &[], Duration::ZERO)
}

/// Kept for people to look at in the folder that they ask for, which is there already:
/// `THRONG_KEEP_PAGES=$PWD/target/pages cargo test -p throng-report` (tests run in the folder of
/// their crate).
fn page(run: &RunData, name: &str) -> String {
    let page = html::render(run, &summary(run));
    if let Some(folder) = std::env::var_os("THRONG_KEEP_PAGES") {
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.html")), &page).unwrap();
    }
    page
}

#[test]
fn what_is_so_without_load_is_a_warning_and_no_cause() {
    let mut summary = summary(&example::healthy(2, 5));
    let media = Unloaded { delay_us: 290_000, ..Unloaded::default() };
    let seen = WithoutLoad { users: 1, media, is_of_all: true };
    let explanation = Explanation { without_load: Some(seen), ..Explanation::default() };
    explain(explanation, &mut summary);
    assert!(summary.bottleneck.is_none(), "{:#?}", summary.bottleneck);
    let expected = "with 1 viewer already, from the path, the source or the server itself: delay \
                    290 ms; so it is without load, and says nothing of how many the server takes";
    assert_eq!(summary.warnings, [expected]);
}

#[test]
fn a_search_prints_the_answer_the_cause_and_the_fix_in_ten_lines() {
    let run = searched();
    let summary = summary(&run);
    let found = summary.bottleneck.as_ref().expect("a cause");
    assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{found:#?}");
    assert_eq!(summary.capacity.as_ref().and_then(|capacity| capacity.users), Some(40));
    let text = text::summary(&summary);
    let story: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("  cause"))
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(text.starts_with("40 viewers (") && (5..=9).contains(&story.len()), "{text}");
    for part in [
        "  cause        Thread hloop 1 of janus is full",
        "crossed at",
        "  change       event_loops (janus.jcfg",
        "  then         about",
        "  a user costs 2.",
    ] {
        assert!(story.iter().any(|line| line.contains(part)), "{part}:\n{text}");
    }
}

#[test]
fn a_join_is_compared_with_the_time_of_a_viewer_unless_its_error_is_as_large() {
    let joins = |cpu_ms_error| Summary {
        join_cost: Some(throng_analysis::demand::JoinCost {
            cpu_ms: 40.0,
            cpu_ms_error,
            seconds: 30,
        }),
        ..summary(&searched())
    };
    let text = text::summary(&joins(5.0));
    assert!(
        text.contains("  a join costs 40.0 ms of the server's CPU (± 5.0), as much as "),
        "{text}"
    );
    assert!(!text::summary(&joins(50.0)).contains("a join costs"));
    let without = Summary { demand: Vec::new(), ..joins(5.0) };
    let text = text::summary(&without);
    assert!(text.contains("(± 5.0)\n"), "no demand of a viewer to compare with: {text}");
}

#[test]
fn the_first_screen_shows_the_cause_with_its_chart_and_the_page_what_a_user_costs() {
    let page = page(&searched(), "search");
    let first = page.split(">What a user costs</a></h2>").next().unwrap_or_default();
    for part in [
        "is full: it has one core and no more",
        "<b>Change</b> event_loops",
        "<b>Would give</b> about",
        "class=\"band fail\"",
        "class=\"band pass\"",
        "first bad second:",
        "crossed at",
    ] {
        assert!(first.contains(part), "{part}");
    }
    assert!(
        page.contains("CPU of the host") && page.contains("extrapolated") && !page.contains("NaN")
    );
}

#[test]
fn a_plain_run_that_degraded_names_its_cause_too() {
    let run = watched();
    let found = summary(&run).bottleneck.expect("a cause");
    assert_eq!(found.resource.as_deref(), Some("thread hloop 1 (4012)"), "{found:#?}");
    assert!(page(&run, "plain").contains("What stopped it"));
}

#[test]
fn nothing_is_said_about_a_server_that_was_not_watched_or_not_loaded() {
    let unwatched = summary(&example::degraded()).bottleneck.expect("a verdict");
    assert_eq!(unwatched.verdict, BottleneckVerdict::NotMonitored);
    let unwatched = page(&example::degraded(), "unwatched");
    assert!(unwatched.contains("the server was not monitored"));
    assert!(
        unwatched.contains("Bad seconds: mostly delay (100 %), fps "),
        "what the users had is known"
    );
    let mut run = watched();
    run.generator = example::limited().generator;
    let invalid = summary(&run).bottleneck.expect("a verdict");
    assert_eq!(invalid.verdict, BottleneckVerdict::GeneratorLimited);
    assert_eq!(summary(&example::healthy(10, 20)).bottleneck, None);
    let mut never_offered = searched();
    never_offered.holds.truncate(1);
    never_offered.holds.iter_mut().for_each(|hold| {
        (hold.passed, hold.limited_seconds) = ([throng_observation::HoldOutcome::Undecided; 3], 9);
    });
    let invalid = summary(&never_offered).bottleneck.expect("a verdict");
    assert_eq!(invalid.verdict, BottleneckVerdict::GeneratorLimited);
}

/// The crowd's line counts who was connected and played at any time.
#[test]
fn a_sentence_of_the_cause_never_contradicts_the_crowds_line() {
    let lost = Failure::new(FailureReason::SignallingClosed, "the server closed the connection");
    for phases in [&[Phase::DtlsConnected, Phase::FirstPacket][..], &[Phase::DtlsConnected], &[]] {
        let mut run = example::healthy(10, 20);
        run.crowd.iter_mut().for_each(|row| (row.connected, row.playing) = (0, 0));
        for row in &mut run.participants {
            row.reached.retain(|phase, _| *phase < Phase::DtlsConnected);
            let at = row.intended_at;
            row.reached.extend(phases.iter().map(|phase| (*phase, at)));
            row.outcome = Some(Outcome::Failed(lost.clone()));
        }
        let summary = summary(&run);
        let (crowd, found) = (&summary.participants, summary.bottleneck.as_ref().expect("a cause"));
        let is_said = found.title.starts_with("No participant could connect");
        assert_eq!(is_said, crowd.connected == 0, "{} connected: {}", crowd.connected, found.title);
        if crowd.connected > 0 {
            let words =
                format!("{} connected and {} received media", crowd.connected, crowd.playing);
            assert!(found.title.contains(&words), "{words}: {}", found.title);
        }
    }
}

#[test]
fn extrapolations_are_marked_by_one_rule() {
    for demand in summary(&searched()).demand {
        let Some(limit) = demand.limit else { continue };
        assert_eq!(demand.extrapolated, demand.used < EXTRAPOLATED_BELOW * limit, "{demand:?}");
    }
}

#[test]
fn what_a_prediction_cannot_know_is_a_clause_for_any_number_of_resources() {
    let names = ["bytes sent by lo", "memory of w", "UDP sockets", "local ports", "CPU quota"];
    for (known, expect) in [
        (0, ""),
        (1, "; not known: the limit of bytes sent by lo"),
        (2, "; not known: the limits of bytes sent by lo and memory of w"),
        (3, "; not known: the limits of bytes sent by lo, memory of w and UDP sockets"),
        (5, "; not known: the limits of bytes sent by lo, memory of w, UDP sockets and 2 more"),
    ] {
        let names: Vec<String> = names.iter().take(known).map(|&name| name.to_owned()).collect();
        assert_eq!(unknown(&names), expect);
    }
}
