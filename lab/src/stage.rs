//! The stage as a server with a planted limit, and its cost of a viewer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use throng_sim::namespace::Namespace;

use crate::cgroup::Group;
use crate::search::Lab;

/// The join interval of the crowds that measure the cost of a viewer, and the time of the
/// measurement.
const JOINS_EVERY: Duration = Duration::from_millis(50);
const LOOKS_FOR: Duration = Duration::from_secs(8);

/// A running stage; it ends when dropped.
pub(crate) struct Stage {
    process: Child,
    pub(crate) url: String,
}

impl Stage {
    /// Starts one on loopback, or on `address` inside of a namespace.
    pub(crate) fn start(
        lab: &Lab,
        at: Option<(&Namespace, &str)>,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        let address =
            at.map_or_else(|| "127.0.0.1:0".to_owned(), |(_, address)| format!("{address}:7080"));
        let mut command = lab.command(at.map(|(namespace, _)| namespace));
        command.args(["stage", "--listen", &address]).args(arguments);
        if at.is_some() {
            command.arg("--listen-any");
        }
        Self::of(&mut command)
    }

    /// Starts one on loopback that is restarted whenever it ends, as by a service manager; in
    /// `group`, if there is one. [`Self::pid`] is then that of the supervising shell.
    pub(crate) fn kept_alive(
        lab: &Lab,
        group: Option<&Group>,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        // The port of every restart: it was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let shell = Path::new("sh");
        let mut command = group.map_or_else(|| Command::new(shell), |group| group.command(shell));
        command.args(["-c", "while :; do \"$0\" \"$@\"; sleep 0.2; done"]).arg(&lab.throng);
        Self::of(command.args(["stage", "--listen", &address]).args(arguments))
    }

    /// Starts the stage that `command` runs.
    pub(crate) fn of(command: &mut Command) -> anyhow::Result<Self> {
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::inherit()).stdin(Stdio::null()).spawn()?;
        let stdout = process.stdout.take().context("no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let url = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_whitespace().find(|word| word.starts_with("whep+")).map(str::to_owned)
        });
        // Its output must be read, or it would block.
        std::thread::spawn(move || lines.for_each(drop));
        match url {
            Some(url) => Ok(Self { process, url }),
            None => {
                let _ = process.kill();
                anyhow::bail!("the stage did not start")
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The TCP port of its HTTP.
    pub(crate) fn port(&self) -> &str {
        let host = self.url.split('/').nth(2).unwrap_or_default();
        host.rsplit(':').next().unwrap_or_default()
    }

    /// One of its counters, from `/stats`.
    pub(crate) fn counter(&self, name: &str) -> anyhow::Result<f64> {
        let address = self.url.split('/').nth(2).context("no host in the URL")?;
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /stats HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer of /stats")?;
        let counters: serde_json::Value = serde_json::from_str(body)?;
        counters[name].as_f64().with_context(|| format!("no counter {name}"))
    }

    /// The crowd at which a count grows by `whole` a second: a straight line through the use of a
    /// few viewers, which includes the shared cost, and of four fifths of that crowd. Far from the
    /// limit each viewer seems to cost more, because a busy server batches work.
    pub(crate) fn limit(
        &self,
        lab: &Lab,
        whole: f64,
        count: impl Fn(&Self) -> anyhow::Result<f64>,
    ) -> anyhow::Result<f64> {
        const FEW: u32 = 4;
        const MORE: u32 = 10;
        let few = (FEW, self.growth(lab, FEW, &count)?);
        let rough = Line::through(few, (MORE, self.growth(lab, MORE, &count)?)).limit(whole);
        let many = (rough * 0.8).clamp(f64::from(MORE), 200.0) as u32;
        Ok(Line::through(few, (many, self.growth(lab, many, &count)?)).limit(whole))
    }

    /// The growth of a count under this number of viewers, per second.
    fn growth(
        &self,
        lab: &Lab,
        viewers: u32,
        count: &impl Fn(&Self) -> anyhow::Result<f64>,
    ) -> anyhow::Result<f64> {
        let mut crowd = lab.command(None);
        let folder = tempfile::tempdir()?;
        let settled = Duration::from_secs(5) + JOINS_EVERY * viewers;
        let lasts = format!("{}s", (settled + LOOKS_FOR).as_secs() + 2);
        crowd.args([
            "view",
            &self.url,
            "-n",
            &viewers.to_string(),
            "--every",
            "50ms",
            "--for",
            &lasts,
        ]);
        crowd.args(["--quiet", "--output"]).arg(folder.path().join("run"));
        let mut crowd = crowd.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(settled);
        let (before, began) = (count(self)?, Instant::now());
        std::thread::sleep(LOOKS_FOR);
        let grown = (count(self)? - before) / began.elapsed().as_secs_f64();
        crowd.wait()?;
        Ok(grown)
    }

    /// The crowd that uses `cores`: of the whole process, or of its busiest thread alone.
    pub(crate) fn cpu_limit(&self, lab: &Lab, of: CpuOf, cores: f64) -> anyhow::Result<f64> {
        self.limit(lab, cores, |stage| of.on_cpu_s(stage.pid()))
    }

    /// Bytes that it has read from files (`/proc/P/io`: rchar).
    pub(crate) fn bytes_read(&self) -> anyhow::Result<f64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.pid()))?;
        let bytes = io.lines().find_map(|line| line.strip_prefix("rchar:")).context("no rchar")?;
        Ok(bytes.trim().parse()?)
    }
}

/// The threads whose CPU time counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CpuOf {
    /// All threads.
    Process,
    /// The one that has used most.
    BusiestThread,
}

impl CpuOf {
    /// CPU seconds so far (`/proc/P/task/T/schedstat` field 1).
    pub(crate) fn on_cpu_s(self, pid: u32) -> anyhow::Result<f64> {
        let (mut sum_ns, mut most_ns) = (0_u64, 0);
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            let ns =
                text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0);
            (sum_ns, most_ns) = (sum_ns + ns, most_ns.max(ns));
        }
        let ns = match self {
            Self::Process => sum_ns,
            Self::BusiestThread => most_ns,
        };
        Ok(ns as f64 / 1e9)
    }
}

/// A linear function of the crowd.
struct Line {
    shared: f64,
    each: f64,
}

impl Line {
    /// Through the use of two crowds.
    fn through((few, by_few): (u32, f64), (many, by_many): (u32, f64)) -> Self {
        let each = (by_many - by_few) / f64::from(many - few);
        Self { shared: by_few - each * f64::from(few), each }
    }

    /// The crowd that uses `whole`.
    fn limit(&self, whole: f64) -> f64 {
        (whole - self.shared) / self.each
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // For a supervised stage, the shell ends first.
        let pid = self.pid();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let _ = self.process.kill();
        if !children.trim().is_empty() {
            let _ = Command::new("kill").arg("-KILL").args(children.split_whitespace()).status();
        }
        let _ = self.process.wait();
    }
}
