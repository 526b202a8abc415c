//! The quick plants: limits that are known, and whether `throng find` names them.

use std::path::Path;
use std::process::Command;

/// With the binaries that the tests of the whole workspace were built with: `cargo test --workspace`.
#[test]
fn the_quick_plants_are_found_and_named() {
    let lab = Path::new(env!("CARGO_BIN_EXE_lab"));
    let throng = lab.with_file_name("throng");
    assert!(throng.exists(), "no {}: build the workspace first (cargo build --workspace)", throng.display());
    let status = Command::new(lab).arg("--short").arg("--throng").arg(throng).status().unwrap();
    assert!(status.success(), "lab --short: {status}");
}
