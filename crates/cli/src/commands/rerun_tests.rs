use std::fs;

use throng_observation::RunTime;
use throng_observation::run::{Ending, RunInfo};

use super::*;

/// The scenario of a run folder, as a rerun reads it.
fn again(folder: &Path, scenario: &str, sets: &[Override]) -> Scenario {
    let asked_for = Scenario::parse_with(scenario, sets).unwrap_or_else(|error| panic!("{error}"));
    let info = RunInfo { scenario: asked_for.to_toml(), ..RunInfo::default() };
    RunFolder::create(folder, &info).unwrap().finish(Ending::Complete, RunTime(1)).unwrap();
    KeptCommand::view(&Common::default()).of(&asked_for, &asked_for.plan()).keep(folder);
    let earlier = Earlier::read(folder).unwrap();
    let kept = Scenario::parse_with(&earlier.asked.scenario, &[])
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(kept.plan(), asked_for.plan(), "the same seeds give the same plan");
    kept
}

#[test]
fn the_plan_of_a_rerun_is_the_plan_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let random = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n\
        [[crowd]]\nname = \"a\"\nsize = 30\narrival = { poisson = { rate = \"5/s\", seed = 77 } }\n\
        stay = { mean = \"20s\", seed = 5, rejoin = true }\n\
        [[crowd]]\nname = \"b\"\nsize = 20\narrival = { burst = { size = 5, every = \"2s\" } }\n";
    let set = Override::parse("crowd.a.size=12").unwrap();
    let kept = again(&folder.path().join("random"), random, &[set]);
    assert_eq!(kept.crowd[0].size, 12);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for entry in fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            again(&folder.path().join(path.file_stem().unwrap()), &text, &[]);
        }
    }
}
