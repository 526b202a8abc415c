//! Pairs of a proof that did not count are made once more: what was made decides which.

use throng_report::matrix::is_lost;
use throng_scenario::matrix::{Pair, PlannedRun};

use super::folder::MatrixFolder;
use super::plan::MatrixPlan;

/// The pairs to make once more, made or not; none of a matrix.
pub(super) fn repeated(plan: &MatrixPlan, folder: &MatrixFolder) -> Vec<Pair> {
    // What is decided needs no more.
    if folder.decided().is_some_and(|pairs| plan.looks.contains(&pairs)) {
        return Vec::new();
    }
    plan.matrix.repeated(&|pair| {
        let [a, b] = pair.runs.each_ref().map(|run| folder.record(run, plan));
        let made = a.zip(b);
        made.is_some_and(|(a, b)| is_lost([&a, &b], plan.matrix.busy_difference))
    })
}

/// All runs in the order in which they are made, as far as that is known: those planned, and those
/// of repeated pairs.
pub(super) fn runs(plan: &MatrixPlan, folder: &MatrixFolder) -> Vec<PlannedRun> {
    let again = repeated(plan, folder).into_iter().flat_map(|pair| pair.runs);
    plan.runs().into_iter().chain(again).collect()
}

#[cfg(test)]
mod tests {
    use throng_report::matrix::{MatrixRun, RunStatus};

    use super::super::options::{Kind, Options};
    use super::*;

    #[test]
    fn a_pair_whose_machine_changed_is_made_again_and_the_next_start_knows_it() {
        let place = tempfile::tempdir().unwrap();
        let proof = "scenario = \"viewers.toml\"\nhold = \"5s\"\npairs = 2\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
        let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 2\n";
        std::fs::write(place.path().join("proof.toml"), proof).unwrap();
        std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
        let options = Options { kind: Kind::Proof, is_sequential: true, ..Options::default() };
        let plan = MatrixPlan::read(&place.path().join("proof.toml"), options)
            .unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let folder = MatrixFolder::create(&place.path().join("out"), &plan)
            .unwrap_or_else(|_| panic!("a folder"));
        let keep = |planned: &PlannedRun, steal: &str| {
            let environment = [("steal_ratio".to_owned(), steal.to_owned())].into();
            let run = MatrixRun {
                repeat: planned.repeat,
                status: RunStatus::Valid,
                environment,
                ..MatrixRun::default()
            };
            folder.keep(planned, &plan, &run).unwrap_or_else(|_| panic!("a record"));
        };
        let planned = plan.runs();
        assert_eq!(
            (planned.len(), runs(&plan, &folder).len()),
            (4, 4),
            "nothing is lost before it is made"
        );
        for (planned, steal) in planned.iter().zip(["0.00", "0.30", "0.00", "0.00"]) {
            keep(planned, steal);
        }
        let all = runs(&plan, &folder);
        assert_eq!(all.len(), 6, "{all:?}");
        // Lost again, and once more: two pairs more are the most.
        keep(&all[4], "0.30");
        keep(&all[5], "0.00");
        let more = runs(&plan, &folder);
        assert_eq!((more.len(), &more[..6]), (8, &all[..]), "what was made keeps its place");
        keep(&more[6], "0.30");
        keep(&more[7], "0.00");
        assert_eq!(runs(&plan, &folder).len(), 8);
    }
}
