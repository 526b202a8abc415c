//! The quick plants: known limits, and whether `throng find` names them.

use std::path::Path;
use std::process::Command;

use throng_sim::not_tested;

/// Uses the binaries that were built for the tests of the whole workspace.
fn is_found_and_named(plant: &str) {
    let lab = Path::new(env!("CARGO_BIN_EXE_lab"));
    let throng = lab.with_file_name("throng");
    assert!(
        throng.exists(),
        "no {}: build the workspace first (cargo build --workspace)",
        throng.display()
    );
    let status = Command::new(lab)
        .args(["--short", "--only", plant, "--throng"])
        .arg(throng)
        .status()
        .unwrap();
    match status.code() {
        Some(0) => {}
        Some(4) => not_tested("the search could not decide, twice, on this machine"),
        _ => panic!("lab --short --only {plant}: {status}"),
    }
}

/// Two minutes: a search, in which the server starts again after each load that crashes it.
#[test]
fn a_crash() {
    is_found_and_named("crash");
}

/// 50 s: the idle server for 5 s, and a search that holds its largest crowd twice.
#[test]
fn no_limit() {
    is_found_and_named("no limit");
}

/// It needs a core for two minutes, and another one that other tests leave alone.
mod long {
    #[test]
    #[ignore = "minutes: scripts/proof.sh long, make proof"]
    fn one_hot_thread() {
        super::is_found_and_named("one hot thread");
    }
}
