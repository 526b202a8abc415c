//! throng with capabilities of its file (`setcap`), which a user runs who is not root. The kernel
//! hides the environment of such a process from its own user, and takes from it what its parent
//! asked for: the signal at the parent's death.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use throng_sim::namespace::Namespace;
use throng_sim::priority::BeforeOthers as _;
use throng_sim::{requires_root, skipped};
use throng_store::RunFolder;

use crate::matrix::{commands_with, said, signal, wait_until};
use crate::profile::Busy;
use crate::throng::{Stage, THRONG, figure, plain};

/// A copy of the binary under test with such a file, in a folder of a user who is not root. Each
/// test has a user of its own: processes of another one would be its leftovers.
struct Capable {
    folder: TempDir,
    user: u32,
}

impl Capable {
    /// `None` where only root could try, or where the file system or the container gives nobody
    /// these capabilities.
    fn new(user: u32, capabilities: &str) -> Option<Self> {
        if !requires_root() {
            return None;
        }
        let capable = Self { folder: tempfile::tempdir().unwrap(), user };
        chown(capable.folder.path(), Some(user), Some(user)).unwrap();
        for (program, name) in [("/bin/cat", "cat"), (THRONG, "throng")] {
            let copy = capable.path(name);
            fs::copy(program, &copy).unwrap();
            fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
            let given = Command::new("setcap").arg(capabilities).arg(&copy).output();
            if !given.is_ok_and(|given| given.status.success()) {
                skipped(&format!("setcap {capabilities} is not possible here (libcap2-bin)"));
                return None;
            }
        }
        let status = capable.command("cat").arg("/proc/self/status").output();
        let has_some = status.is_ok_and(|status| has_capabilities(&said(&status)));
        if !has_some {
            skipped(&format!("a file with {capabilities} gives nobody capabilities here"));
        }
        has_some.then_some(capable)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program of the folder, as the user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.path(program));
        command.uid(self.user).gid(self.user).current_dir(self.folder.path());
        command.env("XDG_STATE_HOME", self.path("state")).stdin(Stdio::null());
        command
    }

    fn throng(&self, arguments: &[&str]) -> Output {
        self.command("throng").args(arguments).output().unwrap()
    }
}

/// Whether a process with this `/proc/PID/status` has effective capabilities.
fn has_capabilities(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.is_some_and(|mask| mask.trim().contains(|digit: char| digit != '0'))
}

/// The run folders of a matrix in which somebody plays.
fn playing(output: &Path) -> Vec<PathBuf> {
    let below = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let runs = below(&output.join("cells")).into_iter().flat_map(|cell| below(&cell));
    let plays = |run: &PathBuf| {
        RunFolder::read(run).is_ok_and(|run| run.crowd.iter().any(|row| row.playing > 0))
    };
    runs.filter(plays).collect()
}

#[test]
fn with_cap_net_raw_a_user_receives_by_a_ring_and_reads_the_folder() {
    let Some(capable) = Capable::new(64_001, "cap_net_raw+ep") else { return };
    let namespace = Namespace::new("setcap").unwrap();
    let stage = Stage::start(Some(&namespace), "127.0.0.1:0", &[]);
    let (user, target) = (capable.user.to_string(), stage.target());
    let (program, run) = (capable.path("throng"), capable.path("run"));
    let mut command = namespace.command("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(program);
    command.args(["view", &target, "-n", "4", "--every", "100ms", "--for", "8s"]);
    command.args(["--receive", "ring", "--quiet", "--output"]).arg(&run);
    let ran = command.current_dir(capable.folder.path()).output_before_others().unwrap();
    // On a busy machine the generator may have been the limit; that it ran is what counts here.
    assert!([Some(0), Some(4)].contains(&ran.status.code()), "{}", said(&ran));
    let report = capable.throng(&["report", run.to_str().unwrap(), "--json"]);
    assert_eq!(report.status.code(), ran.status.code(), "{}", said(&report));
    let summary: Value = serde_json::from_slice(&report.stdout).unwrap();
    let ways = summary["generator"]["receive"].to_string();
    assert!(ways.contains("memory-mapped ring"), "{ways}");
    assert!(figure(&summary, "generator.ring_datagrams") > 100.0, "{ways}");
    assert_eq!(figure(&summary, "participants.connected"), 4.0, "{}", said(&report));
}

/// Both kinds of children: the crowd is a throng with such a file, the server has none.
#[test]
fn what_a_killed_throng_with_capabilities_has_started_ends_with_it() {
    let Some(capable) = Capable::new(64_002, "cap_net_raw+ep") else { return };
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let output = capable.path("out");
    let shown = output.to_str().unwrap();
    let scenario = format!(
        "[target]\nurl = \"{}\"\n[crowd]\nsize = 2\narrival = {{ every = \"50ms\" }}\n",
        stage.target()
    );
    fs::write(capable.path("viewers.toml"), scenario).unwrap();
    // Longer than what is waited for; the stand-in for a server has the folder in its arguments.
    let text = "scenario = \"viewers.toml\"\nhold = \"10m\"\n\
                [server]\ncommand = [\"tail\", \"-F\", \"{{dir}}/nothing\"]\nwatch = \"none\"\n\
                [[factor]]\nname = \"viewers\"\nset = \"crowd.size\"\nlevels = [2]\n";
    fs::write(capable.path("matrix.toml"), text).unwrap();
    let mut command = capable.command("throng");
    command.args(["matrix", "matrix.toml", "--quiet", "--output", shown]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn_before_others().unwrap();
    wait_until("the crowd plays", || !playing(&output).is_empty());
    assert!(commands_with(shown) >= 3, "the matrix, its crowd and its server");
    signal(&child, "KILL");
    let ended = child.wait_with_output().unwrap();
    wait_until("all end with it", || commands_with(shown) == 0);

    let runs = playing(&output);
    assert_eq!(runs.len(), 1, "{}", said(&ended));
    let report = capable.throng(&["report", runs[0].to_str().unwrap()]);
    // The crowd was asked to end, and has put its run in order.
    assert!([Some(4), Some(130)].contains(&report.status.code()), "{}", said(&report));
    let undone = capable.throng(&["matrix", "--undo", shown]);
    assert_eq!(undone.status.code(), Some(0), "{}", said(&undone));
    assert!(said(&undone).contains("nothing is left changed"), "{}", said(&undone));
}

#[test]
fn with_cap_perfmon_a_user_profiles_a_process_of_root() {
    let busy = Busy::start();
    let pid = busy.pid();
    let arguments = ["profile", &pid, "--for", "2s", "--method", "clock", "--json"];
    let of_root = plain(&arguments);
    if !of_root.status.success() {
        skipped(&format!("no user has a sampling clock here: {}", said(&of_root)));
        return;
    }
    let capabilities = "cap_perfmon,cap_sys_ptrace,cap_syslog=ep";
    let Some(capable) = Capable::new(64_003, capabilities) else { return };
    let profiled = capable.throng(&arguments);
    assert_eq!(profiled.status.code(), Some(0), "{}", said(&profiled));
    let parsed: Value = serde_json::from_slice(&profiled.stdout).unwrap();
    assert_eq!(parsed["profile"]["method"], "cpu_clock", "{}", said(&profiled));
    assert_eq!(parsed["self_time"]["threads"][0]["thread"], "sh", "{}", said(&profiled));
}
