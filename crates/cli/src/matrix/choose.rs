//! What the pairs of a proof measure, where the file leaves it open: a search of the baseline, made
//! before them and kept as a run of its own, tells which crowd is held, or that each pair searches.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_analysis::experiment::{Choice, FoundLimit, SearchReason};
use throng_report::matrix::{MatrixRun, RunFigures, RunStatus, text};
use throng_scenario::matrix::{Measure, SearchKeys};
use throng_scenario::units::write_duration;

use super::plan::MatrixPlan;
use super::run::CellRunner;
use super::{Cut, answer, cut};
use crate::{CliError, say};

/// A search takes at least this long, whatever its budget (docs/find.md).
const SEARCH_MIN: Duration = Duration::from_secs(60);

/// What the pairs measure, as the folder keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Chosen {
    pub(super) choice: Choice,
    /// The choice and what it is from, in a sentence.
    pub(super) why: String,
}

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
    let is_made = |run: &MatrixRun| run.status != RunStatus::Pending;
    if !folder.record(&first, plan).as_ref().is_some_and(is_made) {
        let run = runner.run(&first);
        let run = MatrixRun { repeat: first.repeat, ..run };
        folder.keep(&first, plan, &run)?;
        if !is_quiet {
            say(&format!("[search of {}] {}", plan.baseline(), text::run_line(&run)));
            run.notes.iter().for_each(|note| say(&format!("  {note}")));
        }
        if !is_made(&run) {
            return Ok(Err(cut(runner, run.reason)));
        }
    }
    let (run, _) = answer::measured(&first, plan, folder);
    let chosen = choice(plan, &run, *hold, search);
    folder.choose(&chosen)?;
    if !is_quiet {
        say(&chosen.why);
    }
    Ok(Ok(plan.clone().measuring(chosen)))
}

/// The choice by the search of the baseline, and why.
fn choice(plan: &MatrixPlan, run: &MatrixRun, hold: Duration, search: &SearchKeys) -> Chosen {
    let figures = run.figures.as_ref().filter(|_| run.status == RunStatus::Valid);
    let takes = |users: u32| {
        let baseline = plan.cells.first();
        baseline.map_or(Duration::ZERO, |cell| plan.hold_takes(cell, hold, Some(users)))
    };
    let most = plan.cells.first().map_or(u32::MAX, |cell| plan.users_max(cell, search));
    let choice = Choice::of(
        figures.and_then(found),
        plan.matrix.least_more(),
        most,
        takes,
        search.budget.max(SEARCH_MIN),
    );
    let baseline = plan.baseline();
    let why = match (choice, figures) {
        (Choice::Hold { users, passing }, Some(figures)) => format!(
            "held: {users} users; {baseline} serves {passing} well and {} not{}; a pair takes {}",
            figures.first_failing.unwrap_or(users),
            cause(figures),
            write_duration(takes(users) * 2)
        ),
        (Choice::Search(SearchReason::Slow), Some(figures)) => format!(
            "searched: a run that holds {} users, which {baseline} does not serve well{}, takes longer than a search",
            figures.first_failing.unwrap_or(0),
            cause(figures)
        ),
        (Choice::NoLimit { users }, _) => format!(
            "{baseline} serves {users} users well, the largest crowd that may be tried: nothing is compared; raise the `ceiling` of \
             [find]"
        ),
        (Choice::Search(_) | Choice::Hold { .. }, _) => {
            let reason = run.reason.clone().or_else(|| {
                run.figures.as_ref().map(|_| "nobody was served well, or no load failed".to_owned())
            });
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("searched: the search of {baseline} found no crowd to hold{reason}")
        }
    };
    Chosen { choice, why }
}

/// The limit that a search found.
fn found(figures: &RunFigures) -> Option<FoundLimit> {
    Some(FoundLimit {
        passing: figures.capacity?,
        failing: figures.first_failing,
        is_at_ceiling: figures.capacity_verdict.as_deref() == Some("at_least"),
    })
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
    use throng_report::matrix::CellVerdict;

    use super::super::folder::MatrixFolder;
    use super::super::plan::{Kind, Options};
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
        let Measure::Auto { hold, search } = &stand.plan.matrix.measure else {
            panic!("{:?}", stand.plan.matrix.measure)
        };
        choice(&stand.plan, run, *hold, search)
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
        let plan = stand.folder.plan().unwrap_or_else(|stop| panic!("{:#}", stop.error));
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
            (&at_once, search(80, None), Choice::NoLimit { users: 80 }, "serves 80 users well"),
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

    /// The search is a run of its own, beside those of the pairs.
    #[test]
    fn a_search_that_was_made_is_not_made_again() {
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
        let chosen = of(&stand, &kept);
        assert!(chosen.why.contains("(the server did not start)"), "{chosen:?}");
        let all = super::super::repeats::runs(&stand.plan, &stand.folder);
        assert!(all.iter().all(|run| run.repeat > 0), "{all:?}");
    }
}
