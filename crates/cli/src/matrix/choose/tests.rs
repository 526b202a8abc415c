use throng_analysis::demand::Resource;
use throng_analysis::experiment::{Choice, SearchReason};
use throng_report::matrix::{CellVerdict, RunFigures};

use super::super::chosen::Chosen;
use super::super::folder::MatrixFolder;
use super::super::options::{Kind, Options};
use super::*;

struct Fixture {
    place: tempfile::TempDir,
    plan: MatrixPlan,
    folder: MatrixFolder,
}

/// A proof that leaves open what is measured; `every`: between two joins.
fn fixture(every: &str, keys: &str) -> Fixture {
    let place = tempfile::tempdir().unwrap();
    let proof = format!(
        "scenario = \"viewers.toml\"\npairs = 2\n{keys}[[variant]]\nname = \"one\"\n[[variant]]\nname = \"two\"\nrelieves = \"cpu\"\n"
    );
    let scenario = format!(
        "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 4\narrival = {{ every = \"{every}\", jitter = false }}\n"
    );
    std::fs::write(place.path().join("proof.toml"), proof).unwrap();
    std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
    let options = Options { kind: Kind::Proof, is_sequential: true, ..Options::default() };
    let plan = MatrixPlan::read(&place.path().join("proof.toml"), options)
        .unwrap_or_else(|stop| panic!("{:#}", stop.error));
    let folder = MatrixFolder::create(&place.path().join("out"), &plan)
        .unwrap_or_else(|_| panic!("a folder"));
    Fixture { place, plan, folder }
}

fn search(passing: u32, failing: Option<u32>) -> MatrixRun {
    MatrixRun {
        status: RunStatus::Valid,
        figures: Some(RunFigures {
            capacity: Some(passing),
            first_failing: failing,
            capacity_verdict: Some(if failing.is_some() { "found" } else { "at_least" }.into()),
            verdict: CellVerdict::Bottleneck,
            finding: Some("one_thread_full".into()),
            title: "Thread SW-WebRTC is full".into(),
            score: Some(97.0),
            ..RunFigures::default()
        }),
        ..MatrixRun::default()
    }
}

fn of(fixture: &Fixture, run: &MatrixRun) -> Chosen {
    of_demands(fixture, run, &[])
}

fn of_demands(fixture: &Fixture, run: &MatrixRun, demands: &[Demand]) -> Chosen {
    let Measure::Auto { hold, search } = &fixture.plan.matrix.measure else {
        panic!("{:?}", fixture.plan.matrix.measure)
    };
    choice(&fixture.plan, run, demands, *hold, search)
}

#[test]
fn a_crowd_beyond_the_limit_is_held_by_every_run_and_the_next_start_knows_it() {
    let fixture = fixture("100ms", "");
    let chosen = of(&fixture, &search(20, Some(22)));
    assert_eq!(chosen.choice, Choice::Hold { users: 26, passing: 20 });
    // 26 come in 2.5 s, have 3 s, and are held for 10 s; the server is not started by throng.
    assert_eq!(
        chosen.why,
        "held: 26 users; one serves 20 well and 22 not: Thread SW-WebRTC is full (one_thread_full, 97); a pair takes 32s"
    );
    assert!(fixture.plan.describe().contains("held for 10s or searched: a search of one"));
    fixture.folder.choose(&chosen).unwrap_or_else(|_| panic!("a file"));
    let plan = fixture.folder.plan(&[]).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    assert_eq!((&plan.chosen, plan.matrix.first_search()), (&Some(chosen.clone()), None));
    assert!(plan.describe().contains(&chosen.why), "{}", plan.describe());
    for cell in &plan.cells {
        let config = plan.config(cell, fixture.place.path());
        let (sets, times) =
            plan.overrides(&config).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        assert!(sets.contains(&"crowd.size=26".to_owned()), "{sets:?}");
        assert_eq!(times.map(|times| times.until_s - times.from_s), Some(10));
    }
    assert_eq!(plan.runs().len(), 4);
}

#[test]
fn without_a_crowd_to_hold_the_pairs_search_or_nothing_is_compared() {
    let at_once = fixture("100ms", "");
    let slow = fixture("5s", "");
    let capped = fixture("100ms", "hold = \"10s\"\n[find]\nbudget = \"1m\"\nceiling = 80\n");
    let invalid = MatrixRun {
        status: RunStatus::Invalid,
        reason: Some("the generator was the limit".into()),
        ..search(20, Some(22))
    };
    for (fixture, run, choice, why) in [
        (&slow, search(20, Some(22)), Choice::Search(SearchReason::Slow), "takes longer"),
        (
            &at_once,
            search(0, Some(1)),
            Choice::Search(SearchReason::NotFound),
            "nobody was served well",
        ),
        (
            &at_once,
            invalid,
            Choice::Search(SearchReason::NotFound),
            "(the generator was the limit)",
        ),
        (&capped, search(80, None), Choice::NoLimit { users: 80 }, "serves 80 users well"),
        (&at_once, search(2_000, None), Choice::NoLimit { users: 2_000 }, "2000 users well"),
        // The budget was used up below the largest crowd.
        (
            &at_once,
            search(591, None),
            Choice::Search(SearchReason::NotFound),
            "ran out of time: 591 users",
        ),
        (
            &capped,
            search(79, None),
            Choice::Search(SearchReason::NotFound),
            "ran out of time: 79 users",
        ),
    ] {
        let chosen = of(fixture, &run);
        assert_eq!(chosen.choice, choice, "{chosen:?}");
        assert!(chosen.why.contains(why), "{chosen:?}");
        let plan = fixture.plan.clone().measuring(chosen);
        assert!(matches!(plan.matrix.measure, Measure::Find(_)));
        let runs = if let Choice::NoLimit { .. } = choice { 0 } else { 4 };
        assert_eq!((plan.runs().len(), plan.matrix.first_search()), (runs, None));
    }
}

/// A line that is full at 130 users, of which nothing is relieved.
fn line() -> Demand {
    Demand {
        resource: Resource::NicSent,
        instance: "v0".into(),
        group: None,
        setting: None,
        unit: "B/s".into(),
        per_user: 1e5,
        per_user_error: 1e3,
        idle: 0.0,
        curve: None,
        used: 1e7,
        limit: Some(1.37e7),
        users: Some(130.0),
        users_low: Some(120.0),
        users_high: Some(140.0),
        extrapolated: false,
        loads: 6,
        fit: None,
    }
}

#[test]
fn the_limit_that_comes_next_is_said_before_the_first_pair() {
    let fixture = fixture("10ms", "");
    let chosen = of_demands(&fixture, &search(100, Some(110)), &[line()]);
    assert_eq!(chosen.choice, Choice::Hold { users: 120, passing: 100 });
    let next = "a variant is expected to have its next limit at about 130 users (bytes sent by v0)";
    assert!(chosen.why.ends_with(&format!("; {next}")), "{chosen:?}");
    // A search that was cut off: the crowd that failed is beyond that line too.
    let chosen = of_demands(&fixture, &search(101, Some(182)), &[line()]);
    assert_eq!(chosen.choice, Choice::Search(SearchReason::NextLimit));
    assert_eq!(
        chosen.why,
        format!(
            "searched: {next}, below 182 users, which one does not serve well: Thread SW-WebRTC is full (one_thread_full, 97)"
        )
    );
}

#[test]
fn what_is_not_known_of_a_resource_does_not_hide_the_limit_that_comes_next() {
    let fixture = fixture("10ms", "");
    let unknown = Demand {
        resource: Resource::Memory,
        users: Some(125.0),
        users_low: None,
        users_high: None,
        ..line()
    };
    let chosen = |demands: &[Demand]| of_demands(&fixture, &search(101, Some(182)), demands);
    assert_eq!(chosen(&[line(), unknown.clone()]), chosen(&[line()]));
    assert_eq!(chosen(&[unknown]).choice, Choice::Hold { users: 182, passing: 101 });
}

#[test]
fn an_invalid_search_is_made_once_more_and_a_failed_one_chooses_nothing() {
    use RunStatus::{Failed, Invalid, Pending, Skipped, Valid};
    for (statuses, expect) in [
        (vec![Valid], 1),
        (vec![Invalid, Valid], 2),
        (vec![Invalid, Invalid], 2),
        (vec![Invalid, Failed], 2),
        (vec![Failed], 1),
        (vec![Skipped], 1),
        (vec![Pending], 1),
    ] {
        let mut count = 0;
        made(|| {
            count += 1;
            Ok(statuses[count - 1])
        })
        .unwrap_or_else(|_| panic!("no error"));
        assert_eq!(count, expect, "{statuses:?}");
    }
    let reason = Some("the server did not start".to_owned());
    let run = |status| MatrixRun { status, reason: reason.clone(), ..MatrixRun::default() };
    assert_eq!(
        not_made("one", &run(Failed)),
        "the search of one, which chooses what the pairs measure, failed: the server did not start"
    );
    assert!(not_made("one", &run(Skipped)).contains("is not possible here: the server"));
}

#[test]
fn a_search_between_the_ends_of_the_first_is_believed_where_both_can_be_true() {
    let fixture = fixture("10ms", "");
    let Measure::Auto { hold, search: keys } = &fixture.plan.matrix.measure else {
        panic!("{:?}", fixture.plan.matrix.measure)
    };
    let wide = search(101, Some(182));
    let of = |second: &MatrixRun| {
        let chosen = of_both(&fixture.plan, (&wide, &[]), (second, &[]), *hold, keys);
        (chosen.choice, chosen.why)
    };
    let held = Choice::Hold { users: 182, passing: 101 };
    let failed = MatrixRun { status: RunStatus::Failed, ..MatrixRun::default() };
    let invalid = MatrixRun { status: RunStatus::Invalid, ..search(118, Some(137)) };
    for (second, expect) in [
        (search(118, Some(137)), Choice::Hold { users: 158, passing: 118 }),
        // It is cut off as well, or says nothing.
        (search(101, Some(182)), held),
        (search(150, None), held),
        (failed, held),
        (invalid, held),
        // 90 failed, of which 101 were served well before.
        (search(80, Some(90)), held),
        (search(182, None), Choice::Search(SearchReason::NotFound)),
        (search(190, Some(200)), Choice::Search(SearchReason::NotFound)),
    ] {
        assert_eq!(of(&second).0, expect, "{second:?}");
    }
    assert_eq!(
        of(&search(182, None)).1,
        "searched: two searches of one contradict each other: 182 users were not served well in the first, and 182 were in the second"
    );
}

/// What chose is not made again, and the search that continues it has a folder of its own.
#[test]
fn a_search_that_is_continued_is_kept_and_until_it_is_nothing_is_chosen() {
    let fixture =
        fixture("100ms", "hold = \"10s\"\n[find]\nbudget = \"2m\"\nstart = 40\nceiling = 80\n");
    let words = |between| super::super::run::command(&fixture.plan, between)[2..].join(" ");
    assert_eq!(words(None), "--budget 2m --start 40 --ceiling 80");
    assert_eq!(words(Some([50, 70])), "--budget 2m --start 50 --ceiling 70");

    let first = fixture.plan.matrix.first_search().unwrap();
    let second = PlannedRun { cell: 0, repeat: PlannedRun::NARROWED };
    let run = |status| MatrixRun { status, ..MatrixRun::default() };
    let keep = |planned: &PlannedRun, status| {
        let kept = fixture.folder.keep(planned, &fixture.plan, &run(status));
        kept.unwrap_or_else(|_| panic!("a record"));
    };
    keep(&first, RunStatus::Valid);
    keep(&second, RunStatus::Pending);
    let status = |planned: &PlannedRun| {
        fixture.folder.record(planned, &fixture.plan).map(|record| record.status)
    };
    assert_eq!(
        (status(&first), status(&second)),
        (Some(RunStatus::Valid), Some(RunStatus::Pending))
    );
    let path = fixture.folder.run_folder(&second, &fixture.plan);
    assert!(path.ends_with("cells/01_variant=one/0-narrowed"), "{path:?}");
    let plan = fixture.folder.plan(&[]).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    assert!(plan.matrix.first_search().is_some(), "the next start continues it");
}

/// The search is a run of its own, beside those of the pairs.
#[test]
fn a_search_is_kept_beside_the_pairs() {
    let fixture = fixture("100ms", "");
    let first = fixture.plan.matrix.first_search().unwrap();
    let failed = MatrixRun {
        status: RunStatus::Failed,
        reason: Some("the server did not start".into()),
        ..MatrixRun::default()
    };
    fixture.folder.keep(&first, &fixture.plan, &failed).unwrap_or_else(|_| panic!("a record"));
    let path = fixture.folder.run_folder(&first, &fixture.plan);
    assert!(path.ends_with("cells/01_variant=one/0"), "{path:?}");
    let (kept, _) = answer::measured(&first, &fixture.plan, &fixture.folder);
    assert_eq!(kept.reason.as_deref(), Some("the server did not start"));
    let plan = fixture.folder.plan(&[]).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    assert!(plan.matrix.first_search().is_some(), "it is made again");
    let all = super::super::repeats::runs(&fixture.plan, &fixture.folder);
    assert!(all.iter().all(|run| run.repeat > 0), "{all:?}");
}
