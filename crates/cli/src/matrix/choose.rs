//! What the pairs of a proof measure, where the file leaves it open: a search of the baseline, made
//! before them and kept as a run of its own, tells which crowd is held, or that each pair searches.
//! One that was cut off with its ends far apart is continued by another one between them.

use std::time::Duration;

use throng_analysis::demand::Demand;
use throng_analysis::experiment::{
    CapacityPrediction, Choice, FoundLimit, NextLimit, SearchReason, predict_known,
};
use throng_report::matrix::{MatrixRun, RunFigures, RunStatus, text};
use throng_scenario::matrix::{Measure, PlannedRun, SearchKeys};
use throng_scenario::units::write_duration;

use super::chosen::{Chosen, TRIES};
use super::plan::MatrixPlan;
use super::run::CellRunner;
use super::{Cut, answer, cut};
use crate::console::{CliError, say};
use crate::find;

/// The verdict of a search in which no load failed for certain.
const NO_LIMIT: &str = "at_least";

/// The plan with what its pairs measure, after the search that chooses it if one is needed; why it
/// was cut off.
pub(super) fn measured(
    runner: &mut CellRunner<'_>,
    is_quiet: bool,
) -> Result<Result<MatrixPlan, Cut>, CliError> {
    let (plan, folder) = (runner.plan, runner.folder);
    let (Measure::Auto { hold, search }, Some(first)) =
        (&plan.matrix.measure, plan.matrix.first_search())
    else {
        return Ok(Ok(plan.clone()));
    };
    // One that failed or was not possible may be so now; one that chose is not looked at again.
    if folder.record(&first, plan).is_none_or(|run| run.status != RunStatus::Valid) {
        made(|| search_once(runner, &first, is_quiet))?;
    }
    let (run, demands) = answer::measured(&first, plan, folder);
    match run.status {
        RunStatus::Valid | RunStatus::Invalid => {}
        RunStatus::Pending => return Ok(Err(cut(runner, run.reason))),
        RunStatus::Failed | RunStatus::Skipped => {
            return Ok(Err(Cut::NoSearch(not_made(plan.baseline(), &run))));
        }
    }
    let wide = found_by(plan, &run, search);
    let chosen = match wide.and_then(FoundLimit::to_narrow) {
        None => choice(plan, &run, &demands, *hold, search),
        Some(ends) => {
            let first = (&run, demands.as_slice());
            match narrowed(runner, ends, is_quiet)? {
                Err(cut) => return Ok(Err(cut)),
                Ok((run, demands)) => of_both(plan, first, (&run, &demands), *hold, search),
            }
        }
    };
    folder.choose(&chosen)?;
    let plan = plan.clone().measuring(chosen);
    if !is_quiet {
        plan.chosen.iter().for_each(|chosen| say(&chosen.why));
        if !plan.runs().is_empty() {
            say(&plan.needs());
        }
    }
    Ok(Ok(plan))
}

/// The search that continues the first one between its `ends`, beside it: until something is chosen
/// the next start makes it if this one did not; why it was cut off.
fn narrowed(
    runner: &mut CellRunner<'_>,
    ends: [u32; 2],
    is_quiet: bool,
) -> Result<Result<(MatrixRun, Vec<Demand>), Cut>, CliError> {
    let (plan, folder) = (runner.plan, runner.folder);
    let second = PlannedRun { cell: 0, repeat: PlannedRun::NARROWED };
    if folder.record(&second, plan).is_none_or(|run| run.status != RunStatus::Valid) {
        if !is_quiet {
            say(&format!("searched once more, between {} and {} users", ends[0], ends[1]));
        }
        runner.between = Some(ends);
        let made = search_once(runner, &second, is_quiet);
        runner.between = None;
        made?;
    }
    let (run, demands) = answer::measured(&second, plan, folder);
    if run.status == RunStatus::Pending {
        return Ok(Err(cut(runner, run.reason)));
    }
    Ok(Ok((run, demands)))
}

/// Makes the search and keeps it.
fn search_once(
    runner: &mut CellRunner<'_>,
    first: &PlannedRun,
    is_quiet: bool,
) -> Result<RunStatus, CliError> {
    let (plan, folder) = (runner.plan, runner.folder);
    let run = runner.run(first);
    let run = MatrixRun { repeat: first.repeat, ..run };
    folder.keep(first, plan, &run)?;
    if !is_quiet {
        say(&format!("[search of {}] {}", plan.baseline(), text::run_line(&run)));
        run.notes.iter().for_each(|note| say(&format!("  {note}")));
    }
    Ok(run.status)
}

/// Makes the search, and again if it is invalid.
fn made(mut search: impl FnMut() -> Result<RunStatus, CliError>) -> Result<(), CliError> {
    for _ in 0..TRIES {
        if search()? != RunStatus::Invalid {
            break;
        }
    }
    Ok(())
}

/// Why nothing is chosen: without a search it is not known what pairs are to measure.
fn not_made(baseline: &str, run: &MatrixRun) -> String {
    let what = if run.status == RunStatus::Skipped { "is not possible here" } else { "failed" };
    let reason = run.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the search of {baseline}, which chooses what the pairs measure, {what}{reason}")
}

/// The limit that the search of the baseline found; `None` if it is not valid.
fn found_by(plan: &MatrixPlan, run: &MatrixRun, search: &SearchKeys) -> Option<FoundLimit> {
    let figures = run.figures.as_ref().filter(|_| run.status == RunStatus::Valid)?;
    found(figures, plan.ceiling(search))
}

/// The choice by the first search and the one between its ends, each with the demand of a user: by
/// the narrower one, unless it says nothing. Where it served a crowd well that the first did not,
/// the limit is not known.
fn of_both(
    plan: &MatrixPlan,
    (first, first_demands): (&MatrixRun, &[Demand]),
    (second, second_demands): (&MatrixRun, &[Demand]),
    hold: Duration,
    search: &SearchKeys,
) -> Chosen {
    let found = |run| found_by(plan, run, search);
    match (found(first), found(second)) {
        (Some(wide), Some(found)) if found.contradicts(wide) => Chosen {
            choice: Choice::Search(SearchReason::NotFound),
            why: format!(
                "searched: two searches of {} contradict each other: {} users were not served well in the first, and {} were in the second",
                plan.baseline(),
                wide.failing.unwrap_or(0),
                found.passing
            ),
        },
        (Some(wide), Some(found)) if found.narrows(wide) => {
            choice(plan, second, second_demands, hold, search)
        }
        (Some(_) | None, Some(_) | None) => choice(plan, first, first_demands, hold, search),
    }
}

/// The choice by the search of the baseline, of which the demand of a user is known, and why.
fn choice(
    plan: &MatrixPlan,
    run: &MatrixRun,
    demands: &[Demand],
    hold: Duration,
    search: &SearchKeys,
) -> Chosen {
    let figures = run.figures.as_ref().filter(|_| run.status == RunStatus::Valid);
    let takes = |users: u32| {
        let baseline = plan.cells.first();
        baseline.map_or(Duration::ZERO, |cell| plan.hold_takes(cell, hold, Some(users)))
    };
    let most = plan.cells.first().map_or(u32::MAX, |cell| plan.users_max(cell, search));
    let next = figures.and_then(|figures| next_limit(plan, figures, demands));
    let choice = Choice::of(
        found_by(plan, run, search),
        plan.matrix.least_more(),
        next.as_ref().map(|next| NextLimit { users: next.users, users_low: next.users_low }),
        most,
        takes,
        search.budget.max(find::BUDGET_MIN),
    );
    let baseline = plan.baseline();
    let fails = |figures: &RunFigures| {
        let failing = figures.first_failing.unwrap_or(0);
        format!("{failing} users, which {baseline} does not serve well{}", cause(figures))
    };
    let why = match (choice, figures) {
        (Choice::Hold { users, passing }, Some(figures)) => format!(
            "held: {users} users; {baseline} serves {passing} well and {} not{}; a pair takes {}{}",
            figures.first_failing.unwrap_or(users),
            cause(figures),
            write_duration(takes(users) * 2),
            next.as_ref().map_or_else(String::new, |next| format!("; {}", expected(next)))
        ),
        (Choice::Search(SearchReason::Slow), Some(figures)) => {
            format!("searched: a run that holds {}, takes longer than a search", fails(figures))
        }
        (Choice::Search(SearchReason::TooLittle), Some(figures)) => format!(
            "searched: a variant has too little more of the limit to serve {}",
            fails(figures)
        ),
        (Choice::Search(SearchReason::NextLimit), Some(figures)) => format!(
            "searched: {}, below {}",
            next.as_ref().map_or_else(String::new, expected),
            fails(figures)
        ),
        (Choice::NoLimit { users }, _) => format!(
            "{baseline} serves {users} users well, the largest crowd that may be tried: nothing is compared; raise the `ceiling` of \
             [find]"
        ),
        (Choice::Search(_) | Choice::Hold { .. }, _) => {
            let reason = run.reason.clone().or_else(|| figures.map(no_limit));
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("searched: the search of {baseline} found no crowd to hold{reason}")
        }
    };
    Chosen { choice, why }
}

/// The first limit that any variant surely meets after that of the baseline, where the demand of a
/// user tells it. A resource that is known to be enough for some users, and no more is known of it,
/// is no limit.
fn next_limit(
    plan: &MatrixPlan,
    figures: &RunFigures,
    demands: &[Demand],
) -> Option<CapacityPrediction> {
    let (passing, failing) = (f64::from(figures.capacity?), f64::from(figures.first_failing?));
    let named = figures.finding.as_deref().filter(|_| figures.verdict.names_a_cause());
    let runs = [demands.to_vec()];
    let levels = plan.matrix.factors.iter().flat_map(|factor| &factor.levels);
    let of_variants = levels.filter_map(|level| {
        let relief = level.relieves.as_ref()?;
        predict_known(&runs, named, relief, level.more, [passing, failing])
    });
    of_variants.min_by(|a, b| a.users.total_cmp(&b.users))
}

/// `a variant is expected to have its next limit at about 140 users (CPU of the host)`.
fn expected(next: &CapacityPrediction) -> String {
    let CapacityPrediction { users, resource, .. } = next;
    format!("a variant is expected to have its next limit at about {users:.0} users ({resource})")
}

/// The limit that a search found whose largest crowd is `ceiling`. That no load failed is also said
/// of a search that ran out of time.
fn found(figures: &RunFigures, ceiling: Option<u32>) -> Option<FoundLimit> {
    let passing = figures.capacity?;
    let has_no_limit = figures.capacity_verdict.as_deref() == Some(NO_LIMIT);
    let is_at_ceiling = has_no_limit && ceiling.is_some_and(|ceiling| passing >= ceiling);
    Some(FoundLimit { passing, failing: figures.first_failing, is_at_ceiling })
}

/// Why a valid search found no limit.
fn no_limit(figures: &RunFigures) -> String {
    match (figures.capacity, figures.capacity_verdict.as_deref()) {
        (Some(users), Some(NO_LIMIT)) => format!(
            "the search ran out of time: {users} users were served well; give it more `budget` in [find], or a larger `start`"
        ),
        _ => "nobody was served well, or no load failed".to_owned(),
    }
}

/// What the search named as the limit: `: Thread SW-WebRTC is full (one_thread_full, 97)`.
fn cause(figures: &RunFigures) -> String {
    match (&figures.finding, figures.score) {
        (Some(finding), Some(score)) if figures.verdict.names_a_cause() => {
            format!(": {} ({finding}, {score:.0})", figures.title)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use throng_analysis::demand::Resource;
    use throng_report::matrix::CellVerdict;

    use super::super::folder::MatrixFolder;
    use super::super::options::{Kind, Options};
    use super::*;

    struct Stand {
        place: tempfile::TempDir,
        plan: MatrixPlan,
        folder: MatrixFolder,
    }

    /// A proof that leaves open what is measured; `every`: between two joins.
    fn stand(every: &str, keys: &str) -> Stand {
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
        Stand { place, plan, folder }
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

    fn of(stand: &Stand, run: &MatrixRun) -> Chosen {
        of_demands(stand, run, &[])
    }

    fn of_demands(stand: &Stand, run: &MatrixRun, demands: &[Demand]) -> Chosen {
        let Measure::Auto { hold, search } = &stand.plan.matrix.measure else {
            panic!("{:?}", stand.plan.matrix.measure)
        };
        choice(&stand.plan, run, demands, *hold, search)
    }

    #[test]
    fn a_crowd_beyond_the_limit_is_held_by_every_run_and_the_next_start_knows_it() {
        let stand = stand("100ms", "");
        let chosen = of(&stand, &search(20, Some(22)));
        assert_eq!(chosen.choice, Choice::Hold { users: 26, passing: 20 });
        // 26 come in 2.5 s, have 3 s, and are held for 10 s; the server is not started by throng.
        assert_eq!(
            chosen.why,
            "held: 26 users; one serves 20 well and 22 not: Thread SW-WebRTC is full (one_thread_full, 97); a pair takes 32s"
        );
        assert!(stand.plan.describe().contains("held for 10s or searched: a search of one"));
        stand.folder.choose(&chosen).unwrap_or_else(|_| panic!("a file"));
        let plan = stand.folder.plan(&[]).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        assert_eq!((&plan.chosen, plan.matrix.first_search()), (&Some(chosen.clone()), None));
        assert!(plan.describe().contains(&chosen.why), "{}", plan.describe());
        for cell in &plan.cells {
            let config = plan.config(cell, stand.place.path());
            let (sets, times) =
                plan.overrides(&config).unwrap_or_else(|stop| panic!("{:#}", stop.error));
            assert!(sets.contains(&"crowd.size=26".to_owned()), "{sets:?}");
            assert_eq!(times.map(|times| times.until_s - times.from_s), Some(10));
        }
        assert_eq!(plan.runs().len(), 4);
    }

    #[test]
    fn without_a_crowd_to_hold_the_pairs_search_or_nothing_is_compared() {
        let at_once = stand("100ms", "");
        let slow = stand("5s", "");
        let capped = stand("100ms", "hold = \"10s\"\n[find]\nbudget = \"1m\"\nceiling = 80\n");
        let invalid = MatrixRun {
            status: RunStatus::Invalid,
            reason: Some("the generator was the limit".into()),
            ..search(20, Some(22))
        };
        for (stand, run, choice, why) in [
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
            let chosen = of(stand, &run);
            assert_eq!(chosen.choice, choice, "{chosen:?}");
            assert!(chosen.why.contains(why), "{chosen:?}");
            let plan = stand.plan.clone().measuring(chosen);
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
        let stand = stand("10ms", "");
        let chosen = of_demands(&stand, &search(100, Some(110)), &[line()]);
        assert_eq!(chosen.choice, Choice::Hold { users: 120, passing: 100 });
        let next = "a variant is expected to have its next limit at about 130 users (sent by v0)";
        assert!(chosen.why.ends_with(&format!("; {next}")), "{chosen:?}");
        // A search that was cut off: the crowd that failed is beyond that line too.
        let chosen = of_demands(&stand, &search(101, Some(182)), &[line()]);
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
        let stand = stand("10ms", "");
        let unknown = Demand {
            resource: Resource::Memory,
            users: Some(125.0),
            users_low: None,
            users_high: None,
            ..line()
        };
        let chosen = |demands: &[Demand]| of_demands(&stand, &search(101, Some(182)), demands);
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
        let stand = stand("10ms", "");
        let Measure::Auto { hold, search: keys } = &stand.plan.matrix.measure else {
            panic!("{:?}", stand.plan.matrix.measure)
        };
        let wide = search(101, Some(182));
        let of = |second: &MatrixRun| {
            let chosen = of_both(&stand.plan, (&wide, &[]), (second, &[]), *hold, keys);
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
        let stand =
            stand("100ms", "hold = \"10s\"\n[find]\nbudget = \"2m\"\nstart = 40\nceiling = 80\n");
        let words = |between| super::super::run::command(&stand.plan, between)[2..].join(" ");
        assert_eq!(words(None), "--budget 2m --start 40 --ceiling 80");
        assert_eq!(words(Some([50, 70])), "--budget 2m --start 50 --ceiling 70");

        let first = stand.plan.matrix.first_search().unwrap();
        let second = PlannedRun { cell: 0, repeat: PlannedRun::NARROWED };
        let run = |status| MatrixRun { status, ..MatrixRun::default() };
        let keep = |planned: &PlannedRun, status| {
            let kept = stand.folder.keep(planned, &stand.plan, &run(status));
            kept.unwrap_or_else(|_| panic!("a record"));
        };
        keep(&first, RunStatus::Valid);
        keep(&second, RunStatus::Pending);
        let status = |planned: &PlannedRun| {
            stand.folder.record(planned, &stand.plan).map(|record| record.status)
        };
        assert_eq!(
            (status(&first), status(&second)),
            (Some(RunStatus::Valid), Some(RunStatus::Pending))
        );
        let path = stand.folder.run_folder(&second, &stand.plan);
        assert!(path.ends_with("cells/01_variant=one/0-narrowed"), "{path:?}");
        let plan = stand.folder.plan(&[]).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        assert!(plan.matrix.first_search().is_some(), "the next start continues it");
    }

    /// The search is a run of its own, beside those of the pairs.
    #[test]
    fn a_search_is_kept_beside_the_pairs() {
        let stand = stand("100ms", "");
        let first = stand.plan.matrix.first_search().unwrap();
        let failed = MatrixRun {
            status: RunStatus::Failed,
            reason: Some("the server did not start".into()),
            ..MatrixRun::default()
        };
        stand.folder.keep(&first, &stand.plan, &failed).unwrap_or_else(|_| panic!("a record"));
        let path = stand.folder.run_folder(&first, &stand.plan);
        assert!(path.ends_with("cells/01_variant=one/0"), "{path:?}");
        let (kept, _) = answer::measured(&first, &stand.plan, &stand.folder);
        assert_eq!(kept.reason.as_deref(), Some("the server did not start"));
        let plan = stand.folder.plan(&[]).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        assert!(plan.matrix.first_search().is_some(), "it is made again");
        let all = super::super::repeats::runs(&stand.plan, &stand.folder);
        assert!(all.iter().all(|run| run.repeat > 0), "{all:?}");
    }
}
