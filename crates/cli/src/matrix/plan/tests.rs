use std::path::{Path, PathBuf};

use throng_scenario::matrix::{Measure, PlannedRun};

use super::super::options::{HiddenOfCopies, Kind, Options};
use super::{HoldTimes, MatrixPlan};
use crate::find;
use crate::kept::Hidden;

fn plan(file: &Path) -> MatrixPlan {
    MatrixPlan::read(file, Options { kind: Kind::Proof, is_sequential: true, ..Options::default() })
        .unwrap_or_else(|stop| panic!("{}: {:#}", file.display(), stop.error))
}

/// With its scenario and all templates.
#[test]
fn every_proof_among_the_examples_can_be_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prove");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_proof = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "toml")
            && std::fs::read_to_string(path).unwrap().contains("[[variant]]")
    };
    let proofs: Vec<PathBuf> = files.filter(is_proof).collect();
    assert!(proofs.len() >= 7, "{proofs:?}");
    for file in proofs {
        plan(&file).check().unwrap_or_else(|stop| panic!("{}: {:#}", file.display(), stop.error));
    }
}

#[test]
fn a_hold_begins_when_the_cohort_that_comes_last_has_come() {
    let place = tempfile::tempdir().unwrap();
    let (file, scenario) = (place.path().join("proof.toml"), place.path().join("viewers.toml"));
    let cohort = |name: &str, more: &str| {
        format!(
            "[[crowd]]\nname = \"{name}\"\nsize = 5\narrival = {{ every = \"1s\", jitter = false }}\n{more}\n"
        )
    };
    let text = format!(
        "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n{}{}",
        cohort("first", ""),
        cohort("second", "starts_at = \"20s\"")
    );
    std::fs::write(&scenario, text).unwrap();
    std::fs::write(
        &file,
        "scenario = \"viewers.toml\"\nhold = \"5s\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n",
    )
    .unwrap();
    let plan = plan(&file);
    let config = plan.config(&plan.cells[0], Path::new("/dir"));
    let (_, times) = plan.overrides(&config).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    // The last of five comes 4 s after the first, and has 3 s to begin.
    assert_eq!(times, Some(HoldTimes { from_s: 27, until_s: 32 }));
}

#[test]
fn what_is_announced_has_room_for_all_searches_that_choose() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prove/srs-cpus.toml");
    let plan = plan(Path::new(file));
    let Measure::Auto { search, .. } = &plan.matrix.measure else {
        panic!("{:?}", plan.matrix.measure)
    };
    // An invalid one, the same again, and one between its ends.
    let without = plan.takes_with(0, find::stops_after);
    assert_eq!(plan.takes()[1] - without, find::stops_after(search.budget) * 3);
}

#[test]
fn a_look_is_before_the_first_run_of_the_next_round() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prove/stage-workers.toml");
    // Four pairs of each of two variants: rounds of eight runs.
    let plan = plan(Path::new(file));
    let looks = |plan: &MatrixPlan| {
        (0..=16).filter_map(|index| Some((index, plan.look_before(index)?))).collect::<Vec<_>>()
    };
    assert_eq!((plan.runs().len(), looks(&plan)), (16, vec![(8, 2), (16, 4)]));
    let ended = plan.ending_after(2);
    assert_eq!((ended.runs().len(), looks(&ended), ended.looks.len()), (8, vec![(8, 2)], 2));
}

#[test]
fn a_run_is_said_with_its_pair_and_the_next_look_is_known() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("proof.toml");
    let variants = ["one", "two", "four"].map(|name| format!("[[variant]]\nname = \"{name}\"\n"));
    let text =
        format!("scenario = \"viewers.toml\"\nhold = \"5s\"\npairs = 4\n{}", variants.concat());
    std::fs::write(&file, text).unwrap();
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";
    std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
    let plan = plan(&file);
    let runs = plan.runs();
    assert_eq!(runs.len(), 16);
    let of = |index: usize| {
        let label = plan.label_with_pair(&runs[index]);
        label.split_once("; ").unwrap().1.to_owned()
    };
    for (index, expect) in [
        (0, "pair 1 of 4 of two"),
        (1, "pair 1 of 4 of two"),
        (2, "pair 2 of 4 of two"),
        (4, "pair 1 of 4 of four"),
        (7, "pair 2 of 4 of four"),
        (8, "pair 3 of 4 of two"),
        (15, "pair 4 of 4 of four"),
    ] {
        assert_eq!(of(index), expect, "{index}");
    }
    let again = PlannedRun { cell: 1, repeat: 5 };
    assert!(plan.label_with_pair(&again).ends_with("; a pair that is made once more"));
    let looks = [0, 7, 8, 15, 16].map(|index| plan.next_look(index));
    assert_eq!(looks, [Some(2), Some(2), Some(4), Some(4), None]);
}

#[test]
fn what_completes_a_copy_is_overridden_by_what_overrides_the_file() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("matrix.toml");
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\ntoken = \"…\"\n\
        [crowd]\nsize = 5\n";
    std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
    let text = "scenario = \"viewers.toml\"\nhold = \"5s\"\n\
        [set]\n\"target.turn_password\" = \"…\"\n\
        [[factor]]\nname = \"token\"\nset = \"target.token\"\nlevels = [\"one\", \"two\"]\n";
    std::fs::write(&file, text).unwrap();
    let set: toml::Table = "\"target.turn_password\" = \"…\"".parse().unwrap();
    let hidden =
        HiddenOfCopies { scenario: Hidden::of_file(scenario), set: Hidden::of_table(&set) };
    let given = ["target.token=a", "target.turn_password=b"].map(str::to_owned);
    let options = Options::default()
        .with_secrets(&given, &hidden)
        .unwrap_or_else(|stop| panic!("{:#}", stop.error));
    let plan = MatrixPlan::read(&file, options).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    let config = plan.config(&plan.cells[0], Path::new("/dir"));
    let (sets, _) = plan.crowd(&config, None).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    let expect = [
        "target.token=a",
        "target.turn_password=\"…\"",
        "target.turn_password=b",
        "target.token=\"one\"",
    ];
    assert_eq!(sets, expect);
}

#[test]
fn a_finding_that_does_not_exist_is_an_error_at_once() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("proof.toml");
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";
    std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
    for (finding, is_known) in [("one_thread_full", true), ("one_thread_ful", false)] {
        let text = format!(
            "scenario = \"viewers.toml\"\nhold = \"5s\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nrelieves = {{ finding = \"{finding}\" }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let checked = plan(&file).check();
        assert_eq!(checked.is_ok(), is_known, "{finding}");
    }
}
