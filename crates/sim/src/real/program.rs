//! Where the programs of real servers are on this machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outcome::skipped;
use crate::support::cache_folder;

/// Names the folder of the programs, or of their packed forms and `unpack.sh`.
const FOLDER: &str = "THRONG_REAL_SERVERS";

/// Whether the server of this name can run here; otherwise the test is skipped.
#[must_use]
pub fn is_installed(name: &str) -> bool {
    let Some(program) = find(name) else {
        skipped(&format!(
            "{name} is not here ({FOLDER}=FOLDER, or scripts/real-servers.sh {name})"
        ));
        return false;
    };
    let lacks = missing_libraries(&program);
    if !lacks.is_empty() {
        skipped(&format!("{name} lacks libraries: {}", lacks.join(", ")));
    }
    lacks.is_empty()
}

/// The program of this name, unpacked where only its packed form is here.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/servers");
    let folder = std::env::var_os(FOLDER).map_or(beside, PathBuf::from);
    let kept = cache_folder().join("servers");
    let there = || [folder.join(name), kept.join(name)].into_iter().find(|path| path.is_file());
    there().or_else(|| {
        unpack(&folder, &kept)?;
        there()
    })
}

/// Unpacks all programs of `folder` into `kept`.
fn unpack(folder: &Path, kept: &Path) -> Option<()> {
    let script = folder.join("unpack.sh");
    if !script.is_file() {
        return None;
    }
    std::fs::create_dir_all(kept).ok()?;
    // Tests are processes of their own, and several may want the programs at the same time.
    let lock = File::create(kept.join("lock")).ok()?;
    lock.lock().ok()?;
    let mut command = Command::new("bash");
    command.arg(script).arg(kept).stdout(Stdio::null());
    command.status().ok()?.success().then_some(())
}

/// The shared libraries that a program needs and that this machine lacks.
fn missing_libraries(program: &Path) -> Vec<String> {
    let said = Command::new("ldd").arg(program).output();
    let said =
        said.map_or_else(|_| String::new(), |out| String::from_utf8_lossy(&out.stdout).into());
    let missing = said.lines().filter(|line| line.contains("not found"));
    missing.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}
