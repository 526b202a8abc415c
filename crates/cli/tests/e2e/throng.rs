//! Runs the `throng` under test and reads its output.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use throng_observation::run::CrowdRow;
use throng_sim::cpu_steal::CpuTime;
use throng_sim::namespace::Namespace;
use throng_sim::not_tested;
use throng_sim::priority::BeforeOthers as _;
use throng_store::RunFolder;

/// The binary under test.
pub(crate) const THRONG: &str = env!("CARGO_BIN_EXE_throng");

/// The program that carries packets between namespaces; `cargo test --workspace` builds it next to
/// `throng`.
pub(crate) fn throng_link() -> PathBuf {
    Path::new(THRONG).with_file_name("throng-link")
}

/// A finished run of `throng`.
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
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|e| panic!("{}: {e}\n{self}", file.display()));
        serde_json::from_str(&text).unwrap()
    }

    /// Why the run allows no conclusion: the generator was the limit, or its browsers had no CPU.
    /// Holds of a search in which the generator was the limit do not count, and are repeated: an
    /// answer in spite of them is one.
    pub(crate) fn spoiled_by(&self) -> Option<String> {
        if self.stdout.contains("whether they agree with the crowd cannot be determined")
            && let Some(seconds) =
                self.summary()["canary"]["seconds_starved"].as_f64().filter(|s| *s > 0.0)
        {
            return Some(format!("the browsers had to wait for a CPU in {seconds} s"));
        }
        let is_spoiled =
            self.code == Some(4) && self.stdout.contains("the generator was the limit");
        is_spoiled.then(|| {
            let stolen = self.summary()["generator"]["steal_ratio_max"].as_f64().unwrap_or(0.0);
            let first =
                self.stdout.lines().find(|line| line.contains("the generator was the limit"));
            format!(
                "{} (the hypervisor took up to {:.0} % of the CPU)",
                first.unwrap_or_default().trim(),
                stolen * 1e2
            )
        })
    }

    /// Fails the test with all output unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        if self.code != Some(code) {
            if let Some(reason) = self.spoiled_by() {
                not_tested(&reason);
            }
            panic!("not {code}\n{self}");
        }
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

/// A run of `throng` in progress; ended when dropped before it was waited for, as in a test that
/// fails.
pub(crate) struct Running {
    child: Option<Child>,
    folder: Option<TempDir>,
    /// What was read of its standard error so far.
    said: Vec<u8>,
}

/// How long a crowd may take to join on a busy machine.
const IN_WITHIN: Duration = Duration::from_secs(40);

impl Running {
    /// Starts `throng ARGS --output FOLDER`, in `namespace` if there is one. `ip netns exec`
    /// becomes the program, so signals reach it.
    pub(crate) fn start(namespace: Option<&Namespace>, args: &[&str]) -> Self {
        let command = match namespace {
            Some(namespace) => namespace.command(THRONG),
            None => Command::new(THRONG),
        };
        Self::spawn(command, args)
    }

    /// By a command that starts throng.
    pub(crate) fn spawn(mut command: Command, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        command.args(args).arg("--output").arg(folder.path().join("run"));
        Self { child: Some(started(&mut command)), folder: Some(folder), said: Vec::new() }
    }

    /// Waits for a line of standard error that begins with `start`; the rest of it.
    pub(crate) fn says(&mut self, start: &str) -> String {
        let child = self.child.as_mut().expect("not waited for");
        let stderr = child.stderr.as_mut().expect("it is piped");
        let (mut line, mut byte) = (Vec::new(), [0]);
        loop {
            stderr.read_exact(&mut byte).unwrap_or_else(|e| panic!("no {start}: {e}"));
            line.extend(byte);
            if byte == *b"\n" {
                self.said.extend(&line);
                if let Some(rest) = String::from_utf8_lossy(&line).strip_prefix(start) {
                    return rest.trim().to_owned();
                }
                line.clear();
            }
        }
    }

    pub(crate) fn run_folder(&self) -> PathBuf {
        self.folder.as_ref().expect("not waited for").path().join("run")
    }

    /// Waits until `count` participants received media in a second, by its stored rows; at most
    /// until its end.
    pub(crate) fn when_playing(&mut self, count: u32) {
        self.when(&format!("{count} play"), |rows| {
            rows.iter().map(|row| row.playing).sum::<u32>() >= count
        });
    }

    /// Waits until `count` participants are connected; otherwise like [`Self::when_playing`].
    pub(crate) fn when_connected(&mut self, count: u32) {
        self.when(&format!("{count} connected"), |rows| {
            rows.iter().map(|row| row.connected).sum::<u32>() >= count
        });
    }

    /// Waits until the rows of a second, one a cohort, satisfy `is_it`.
    fn when(&mut self, what: &str, is_it: impl Fn(&[CrowdRow]) -> bool) {
        let given_up_at = Instant::now() + IN_WITHIN;
        loop {
            let rows =
                RunFolder::read(self.run_folder()).map_or_else(|_| Vec::new(), |run| run.crowd);
            if rows.chunk_by(|a, b| a.second == b.second).any(&is_it) || self.has_ended() {
                return;
            }
            assert!(
                Instant::now() < given_up_at,
                "not within {IN_WITHIN:?}: {what}; {:?}",
                rows.last()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().expect("not waited for").id()
    }

    /// Sends a signal, by the name that `kill` knows.
    pub(crate) fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Ran {
        let (child, folder) = self.child.take().zip(self.folder.take()).expect("waited for once");
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let stderr = [std::mem::take(&mut self.said), stderr].concat();
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr), folder }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How often a measurement is made until a run is valid. An invalid run has no verdict.
const TRIES: usize = 2;

/// How long a test waits until a hypervisor takes less CPU before it measures again.
const STEAL_WAIT_MAX: Duration = Duration::from_secs(30);
/// Share of the CPU time that a hypervisor may take in a valid run (`docs/limits.md`).
const STEAL_MAX: f64 = 0.05;

/// Measures until the run is valid, or ends the test as not tested. Other results of `measure`
/// belong to that run.
#[expect(
    clippy::print_stderr,
    reason = "a repeated measurement is reported where the test runner shows it"
)]
pub(crate) fn valid<T>(mut measure: impl FnMut() -> (Ran, T)) -> (Ran, T) {
    let mut tries = 0;
    loop {
        let (ran, peer) = measure();
        let Some(reason) = ran.spoiled_by() else { return (ran, peer) };
        tries += 1;
        if tries == TRIES {
            not_tested(&reason);
        }
        eprintln!("REPEATED: {reason}");
        let began = Instant::now();
        while steal_ratio(Duration::from_secs(3)) > STEAL_MAX && began.elapsed() < STEAL_WAIT_MAX {}
    }
}

/// The share of the CPU time that a hypervisor takes in `meanwhile`.
fn steal_ratio(meanwhile: Duration) -> f64 {
    let before = CpuTime::so_far();
    std::thread::sleep(meanwhile);
    CpuTime::so_far().steal_ratio_since(before)
}

/// Runs `throng ARGS --output FOLDER` to its end, again if the run was invalid.
pub(crate) fn run(namespace: Option<&Namespace>, args: &[&str]) -> Ran {
    valid(|| (Running::start(namespace, args).wait(), ())).0
}

/// Starts a command of throng, whose output is read at its end.
pub(crate) fn started(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Experiments that tests kill are no news for those of this machine's user.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command.spawn_before_others().unwrap()
}

/// Runs `throng ARGS` as they are: for commands that make no run.
pub(crate) fn plain(args: &[&str]) -> Output {
    started(Command::new(THRONG).args(args)).wait_with_output().unwrap()
}

/// A `throng stage` of the binary under test; ends when dropped.
pub(crate) struct Stage {
    child: Child,
    /// The WHEP endpoint, `http://…/whep`.
    pub(crate) whep: String,
}

impl Stage {
    /// Starts `throng stage ARGS` on `listen`, in `namespace` if there is one, and waits until it
    /// listens.
    pub(crate) fn start(namespace: Option<&Namespace>, listen: &str, args: &[&str]) -> Self {
        let mut command = match namespace {
            Some(namespace) => namespace.command(THRONG),
            None => Command::new(THRONG),
        };
        command.args(["stage", "--listen", listen]).args(args);
        let said = tempfile::NamedTempFile::new().unwrap();
        command.stdin(Stdio::null()).stdout(said.reopen().unwrap()).stderr(Stdio::inherit());
        // The process is owned from the start, so that a stage that does not come up is ended as
        // well.
        let mut stage = Self { child: command.spawn_before_others().unwrap(), whep: String::new() };
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

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
