//! A real lesson on Janus behind a line of 20 Mbit/s, and of 40: the files of `examples/prove`.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use throng_sim::requires_root;

use super::decided;
use crate::matrix::said;
use crate::throng::{THRONG, started};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prove");

/// The proof with `measure` in place of its search; its namespace and network are those of
/// `number`.
fn prove(number: u8, measure: &str, more: &[(&str, &str)]) -> (TempDir, Output) {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(EXAMPLES).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let proof = folder.path().join("janus-line.toml");
    let text = std::fs::read_to_string(&proof).unwrap();
    let (before, search) = text.split_once("[find]").unwrap();
    let (_, after) = search.split_once("[variables]").unwrap();
    let mut text = format!("{before}{measure}\n[variables]{after}");
    let namespace = format!("thr-{number}-{}", std::process::id());
    let net = format!("10.79.{number}");
    for (from, to) in [("throng-line", namespace.as_str()), ("10.79.0", &net)].iter().chain(more) {
        assert!(text.contains(from), "{from}: {text}");
        text = text.replace(from, to);
    }
    std::fs::write(&proof, text).unwrap();
    let output = folder.path().join("out");
    let mut command = Command::new(THRONG);
    command.args(["prove", proof.to_str().unwrap(), "--output", output.to_str().unwrap()]);
    let ended = started(&mut command).wait_with_output().unwrap();
    let left = Command::new("ip").args(["netns", "list"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&left.stdout).contains(&namespace), "the namespace is left");
    (folder, ended)
}

fn answer(folder: &TempDir) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.path().join("out/matrix.json")).unwrap())
        .unwrap()
}

/// What [`super`] decides on the stage and on files, on a real lesson.
mod long {
    use super::*;

    /// A lesson of ten sends 27 Mbit/s.
    /// A minute: four runs, one after the other, each after 5 s of an idle server.
    #[test]
    #[ignore = "a minute of half the machine: scripts/proof.sh long, make proof"]
    fn twice_the_line_confirms_the_line_of_a_lesson() {
        if !requires_root() {
            return;
        }
        let (folder, ended) = prove(
            1,
            "hold = \"4s\"\n",
            &[
                ("pairs = 4", "pairs = 2\nbusy_difference = 1"),
                ("[set]", "[set]\n\"crowd.size\" = 10"),
            ],
        );
        let answer = decided(&ended, answer(&folder));
        let proof = &answer["proofs"][0];
        let text = said(&ended);
        assert_eq!(
            (&proof["outcome"], &proof["relieves"]),
            (&"confirmed".into(), &"network".into()),
            "{text}"
        );
        assert_eq!(proof["baseline_finding"], "line_rate", "{proof:#}\n{text}");
        assert_ne!(proof["finding"], "line_rate", "{proof:#}\n{text}");
    }

    #[test]
    #[ignore = "eight searches on Janus: scripts/proof.sh long"]
    fn the_demand_of_a_lesson_predicts_how_many_twice_the_line_carries() {
        if !requires_root() {
            return;
        }
        let measure = "[find]\nbudget = \"1m\"\nstart = 5\nceiling = 24\n";
        let (folder, ended) = prove(2, measure, &[]);
        let answer = decided(&ended, answer(&folder));
        let (proof, text) = (&answer["proofs"][0], said(&ended));
        assert_eq!(proof["outcome"], "confirmed", "{text}");
        assert_eq!(proof["baseline_finding"], "line_rate", "{proof:#}\n{text}");
        assert_eq!(proof["prediction"]["held"], true, "{proof:#}\n{text}");
    }
}
