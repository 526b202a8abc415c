//! Watching the host that this process runs on.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};
use throng_observation::host::{HostEventKind, HostId};

use crate::find::Finder;
use crate::rows::RowSender;
use crate::sampler::cost::Pace;
use crate::sampler::meter::Out;
use crate::sampler::{Sampler, Settings, Shown};
use crate::target::Target;

/// How a host is watched.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// Its name for people; `None`: the host's own.
    pub name: Option<String>,
    /// Whose processes and threads are read; none: the machine alone.
    pub targets: Vec<Target>,
    /// How often everything is read.
    pub period: Duration,
    /// How often the machine's main figures and the hot threads are read in between; `None`: not.
    pub fast_period: Option<Duration>,
    /// How many threads are hot.
    pub hot_threads: usize,
    /// The share of one core that watching may cost before it reads less often.
    pub cpu_ratio_max: f64,
}

impl Default for WatchConfig {
    /// Everything each second, 64 threads and the machine's main figures each 100 ms, 2 % of a core.
    fn default() -> Self {
        Self {
            name: None,
            targets: Vec::new(),
            period: Duration::from_secs(1),
            fast_period: Some(Duration::from_millis(100)),
            hot_threads: 64,
            cpu_ratio_max: 0.02,
        }
    }
}

/// Why watching could not begin.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A command to be watched could not be started.
    #[error("cannot start `{command}`: {error}")]
    Start {
        /// Its program.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// A PID to be watched is not there; it is not waited for.
    #[error("there is no process with PID {0}")]
    NoProcess(u32),
    /// A period of zero, or shorter than can be kept.
    #[error("a watcher cannot read every {0:?}; 10 ms is the least")]
    Period(Duration),
    /// The machine did not give a thread, or has no `/proc`.
    #[error("cannot watch this host: {0}")]
    Host(#[from] io::Error),
}

/// A process that is watched at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Its PID as this process sees it.
    pub pid: u32,
    /// The kernel's name of it.
    pub name: String,
    /// For which of [`WatchConfig::targets`].
    pub target: usize,
}

/// The shortest period that is accepted.
const PERIOD_MIN: Duration = Duration::from_millis(10);
/// How long a command may take to end after it was asked to.
const COMMAND_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// This host, ready to be watched: commands are started, nothing is read yet.
#[derive(Debug)]
pub struct Local {
    config: WatchConfig,
    finder: Finder,
    commands: Vec<Started>,
}

impl Local {
    /// Starts the commands among the targets and gets ready to watch. The processes of other targets may come later.
    ///
    /// # Errors
    /// When a command cannot be started, or a PID is not there.
    pub fn open(config: WatchConfig) -> Result<Self, WatchError> {
        if let Some(period) =
            [Some(config.period), config.fast_period].into_iter().flatten().find(|p| *p < PERIOD_MIN)
        {
            return Err(WatchError::Period(period));
        }
        let mut finder = Finder::new(config.targets.clone())?;
        let mut commands = Vec::new();
        for (place, target) in config.targets.iter().enumerate() {
            match target {
                Target::Pid(pid) if !std::path::Path::new(&format!("/proc/{pid}")).exists() => {
                    return Err(WatchError::NoProcess(*pid));
                }
                Target::Command(words) => {
                    let started = Started::start(words)?;
                    finder.started(place, started.child.id());
                    commands.push(started);
                }
                _ => {}
            }
        }
        Ok(Self { config, finder, commands })
    }

    /// Begins to read on a thread of its own. Rows are of `host`, their times count from `zero`.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub fn begin(self, host: HostId, zero: Instant, rows: RowSender) -> Result<Watching, WatchError> {
        let Self { config, finder, commands } = self;
        let shown = Shown::default();
        let out = Out { rows, host, zero };
        let name = config.name.unwrap_or_else(|| {
            std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
        });
        let pace =
            Pace { slow: config.period, fast: config.fast_period.filter(|fast| *fast < config.period) };
        let settings =
            Settings { name, pace, hot_threads: config.hot_threads, cpu_max: config.cpu_ratio_max };
        let (stop, stopped) = mpsc::channel::<()>();
        let (its_out, its_shown) = (out.clone(), shown.clone());
        let commands = Arc::new(Mutex::new(commands));
        let its_commands = commands.clone();
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || {
            let mut sampler = Sampler::new(settings, its_out.clone(), finder, its_shown);
            sampler.run(|wait| {
                let mut commands = its_commands.lock().unwrap_or_else(PoisonError::into_inner);
                commands.iter_mut().for_each(|command| command.tell_end(&its_out));
                drop(commands);
                !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
            });
        })?;
        Ok(Watching { out, shown, stop: Some(stop), thread: Some(thread), commands })
    }
}

/// A host that is being watched. Dropping it ends that, and the commands that were started for it.
#[derive(Debug)]
pub struct Watching {
    out: Out,
    shown: Shown,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    commands: Arc<Mutex<Vec<Started>>>,
}

impl Watching {
    /// The processes watched at the moment.
    #[must_use]
    pub fn processes(&self) -> Vec<WatchedProcess> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes a mark of the run among the host's happenings.
    pub fn mark(&self, text: &str) {
        self.out.event(Instant::now(), HostEventKind::Mark, text);
    }

    /// Ends watching, and the commands.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command that was started in a process group of its own; the whole group ends when this is dropped.
#[derive(Debug)]
struct Started {
    name: String,
    child: Child,
    has_ended: bool,
}

impl Started {
    fn start(words: &[String]) -> Result<Self, WatchError> {
        let fail = |error| WatchError::Start { command: words.join(" "), error };
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| fail(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty")))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).process_group(0);
        Ok(Self { name: program.clone(), child: command.spawn().map_err(fail)?, has_ended: false })
    }

    /// Says once how the command ended.
    fn tell_end(&mut self, out: &Out) {
        let Some(status) = self.status().filter(|_| !self.has_ended) else { return };
        self.has_ended = true;
        let how = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("with exit code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "for no known reason".into(),
        };
        let detail = format!("the command {} (PID {}) ended {how}", self.name, self.child.id());
        out.event(Instant::now(), HostEventKind::ProcessEnded, detail);
    }

    /// How it ended, if it has. It is left to be waited for, so that its PID, which names the group, stays its own.
    fn status(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()?), options).ok().flatten()
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.pid() {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Also when the command itself is over: what it left behind in its group ends as well.
        self.signal(Signal::TERM);
        let until = Instant::now() + COMMAND_ENDS_WITHIN;
        while self.status().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}
