//! Runs the `throng` under test and reads what it left.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use throng_sim::namespace::Namespace;
use throng_sim::stolen::CpuTime;

/// Holds every other test back; a test that failed does not poison the rest.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The binary under test.
pub(crate) const THRONG: &str = env!("CARGO_BIN_EXE_throng");

/// The program that carries packets between namespaces; `cargo test --workspace` builds it beside ours.
pub(crate) fn throng_link() -> PathBuf {
    Path::new(THRONG).with_file_name("throng-link")
}

/// A run of `throng` that is over.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    folder: TempDir,
}

impl Ran {
    /// The run folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// `summary.json`.
    pub(crate) fn summary(&self) -> Value {
        let file = self.folder().join("summary.json");
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}\n{self}", file.display()));
        serde_json::from_str(&text).unwrap()
    }

    /// Whether the generator was the limit, as on a busy machine.
    fn is_invalid(&self) -> bool {
        let is_run = self.code == Some(4) && self.stdout.starts_with("Invalid: the generator was the limit");
        is_run || self.is_disturbed()
    }

    /// Whether the generator was the limit in holds of a search, which then had less time for its answer.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.stdout.contains("in some holds the generator was the limit")
    }

    /// Fails the test with everything that was said unless the exit code is `code`. A run is invalid, and says so, while a
    /// hypervisor takes the CPU away; where that did not end in all tries, what else the test asks must hold all the same.
    pub(crate) fn expect_code(self, code: i32) -> Self {
        let stolen = |ran: &Self| figure(&ran.summary(), "generator.steal_ratio_max");
        let is_robbed = self.code == Some(4) && self.is_invalid() && stolen(&self) > STOLEN_MAX;
        assert!(self.code == Some(code) || is_robbed, "not {code}\n{self}");
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// A number of a summary, by its dotted path.
pub(crate) fn figure(summary: &Value, path: &str) -> f64 {
    let value = path.split('.').fold(summary, |value, key| match key.parse::<usize>() {
        Ok(index) if value.is_array() => &value[index],
        _ => &value[key],
    });
    value.as_f64().unwrap_or_else(|| panic!("{path} is {value} in {summary:#}"))
}

/// A run of `throng` that goes on.
pub(crate) struct Running {
    child: Child,
    folder: TempDir,
}

impl Running {
    /// Starts `throng ARGS --output FOLDER`, in `namespace` if there is one. `ip netns exec` becomes the program, so
    /// signals reach it.
    pub(crate) fn start(namespace: Option<&Namespace>, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = match namespace {
            Some(namespace) => namespace.command(THRONG),
            None => Command::new(THRONG),
        };
        command.args(args).arg("--output").arg(folder.path().join("run"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), folder }
    }

    pub(crate) fn run_folder(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// Sends a signal, by the name that `kill` knows.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end.
    pub(crate) fn wait(self) -> Ran {
        let Output { status, stdout, stderr } = self.child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr), folder: self.folder }
    }
}

/// How often a measurement is tried again when the machine did not let the generator do its work. An invalid run is no
/// verdict on anything; one that stays invalid fails the test.
const TRIES: usize = 3;

/// How long a test waits for a hypervisor to leave the machine its CPU before it measures again.
const ROBBED_MAX: Duration = Duration::from_secs(60);
/// Share of the CPU time that a hypervisor may take from a valid run (`docs/limits.md`).
const STOLEN_MAX: f64 = 0.05;

/// Measures until the run is valid. What `measure` gives beside the run belongs to that run.
#[expect(clippy::print_stderr, reason = "a repeated measurement must say so where the test runner shows it")]
pub(crate) fn valid<T>(mut measure: impl FnMut() -> (Ran, T)) -> (Ran, T) {
    for _ in 1..TRIES {
        let (ran, beside) = measure();
        if !ran.is_invalid() {
            return (ran, beside);
        }
        eprintln!("AGAIN: the machine was too busy for a valid run");
        let began = Instant::now();
        while stolen_ratio(Duration::from_secs(3)) > STOLEN_MAX && began.elapsed() < ROBBED_MAX {}
    }
    measure()
}

/// The share of the CPU time that a hypervisor takes meanwhile.
fn stolen_ratio(meanwhile: Duration) -> f64 {
    let before = CpuTime::so_far();
    std::thread::sleep(meanwhile);
    CpuTime::so_far().stolen_ratio_since(before)
}

/// Runs `throng ARGS --output FOLDER` to its end, again if the run was invalid.
pub(crate) fn run(namespace: Option<&Namespace>, args: &[&str]) -> Ran {
    valid(|| (Running::start(namespace, args).wait(), ())).0
}

/// Runs `throng ARGS` as they are: for commands that make no run.
pub(crate) fn plain(args: &[&str]) -> Output {
    Command::new(THRONG).args(args).stdin(Stdio::null()).output().unwrap()
}

/// A `throng stage` of the binary under test; ends when dropped.
pub(crate) struct Stage {
    child: Child,
    /// The WHEP endpoint, `http://…/whep`.
    pub(crate) whep: String,
}

impl Stage {
    /// Starts `throng stage ARGS` on `listen`, in `namespace` if there is one, and waits until it listens.
    pub(crate) fn start(namespace: Option<&Namespace>, listen: &str, args: &[&str]) -> Self {
        let mut command = match namespace {
            Some(namespace) => namespace.command(THRONG),
            None => Command::new(THRONG),
        };
        command.args(["stage", "--listen", listen]).args(args);
        let said = tempfile::NamedTempFile::new().unwrap();
        command.stdin(Stdio::null()).stdout(said.reopen().unwrap()).stderr(Stdio::inherit());
        // Held from the start, so that a stage that does not come up is ended as well.
        let mut stage = Self { child: command.spawn().unwrap(), whep: String::new() };
        let given_up_at = Instant::now() + Duration::from_secs(10);
        while Instant::now() < given_up_at {
            let text = std::fs::read_to_string(said.path()).unwrap();
            if let Some(url) = text.lines().find_map(|line| line.trim().strip_prefix("watch")) {
                url.trim().clone_into(&mut stage.whep);
                return stage;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the stage did not start");
    }

    /// The URL for `throng view`.
    pub(crate) fn target(&self) -> String {
        format!("whep+{}", self.whep)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
