//! A WHEP server on pion/webrtc, in Go: another implementation and another runtime than the stage.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::search::{Lab, Outcome};
use crate::stage::Stage;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pion-whep");

/// Runs a search on the server with these arguments and this number of cores (`GOMAXPROCS`).
pub(crate) fn find(
    lab: &Lab,
    name: &str,
    parallelism: u32,
    arguments: &[&str],
) -> anyhow::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("pion-whep");
    build(&program)?;
    let mut command = Command::new(&program);
    command.env("GOMAXPROCS", parallelism.to_string()).args(arguments);
    let server = Stage::of(&mut command)?;
    let watch = format!("pid={}", server.pid());
    let answer = lab.find(None, name, &server.url, &watch, &["--ceiling", "100"])?;
    Ok(Outcome { answer, truth: None })
}

fn build(program: &Path) -> anyhow::Result<()> {
    let go = Command::new("go").args(["build", "-C", SOURCE, "-o"]).arg(program).arg(".").output();
    let go = go.context(
        "Go is needed to build lab/pion-whep: https://go.dev/dl, or apt-get install golang",
    )?;
    ensure!(go.status.success(), "go build: {}", String::from_utf8_lossy(&go.stderr));
    Ok(())
}
