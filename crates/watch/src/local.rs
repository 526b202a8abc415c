//! Watching the host that this process runs on.

use std::io;
use std::sync::PoisonError;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, HostId};
use throng_observation::units;

use crate::commands::Commands;
use crate::discovery::Finder;
use crate::logs::Output;
use crate::rows::RowSender;
use crate::sampler::cost::Pace;
use crate::sampler::meter::Sink;
use crate::sampler::{Sampler, Settings, SharedProcesses};
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
    /// Whether this process does nothing but watch this host, so that all its CPU time is the cost.
    pub is_exclusive: bool,
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
            is_exclusive: false,
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
    #[error("a watcher cannot read every {}; 10 ms is the least", every(.0))]
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

/// This host, ready to be watched: commands are started, nothing is read yet.
#[derive(Debug)]
pub struct LocalHost {
    config: WatchConfig,
    finder: Finder,
    commands: Commands,
}

impl LocalHost {
    /// Starts the commands among the targets and gets ready to watch. The processes of other targets may come later.
    ///
    /// # Errors
    /// When a command cannot be started, or a PID is not there.
    pub fn open(config: WatchConfig) -> Result<Self, WatchError> {
        let commands = Commands::start(&config.targets)?;
        Self::open_with(config, &commands)
    }

    /// As [`Self::open`], with commands that run already; they go on until the last who knows them is gone.
    pub(crate) fn open_with(config: WatchConfig, commands: &Commands) -> Result<Self, WatchError> {
        let periods = [Some(config.period), config.fast_period];
        if let Some(period) = periods.into_iter().flatten().find(|period| *period < PERIOD_MIN) {
            return Err(WatchError::Period(period));
        }
        let mut finder = Finder::new(config.targets.clone())?;
        for (place, target) in config.targets.iter().enumerate() {
            if let Target::Pid(pid) = target
                && !std::path::Path::new(&format!("/proc/{pid}")).exists()
            {
                return Err(WatchError::NoProcess(*pid));
            }
            if let Some(group) = commands.group(place) {
                finder.started(place, group);
            }
        }
        Ok(Self { config, finder, commands: commands.clone() })
    }

    /// Begins to read on a thread of its own. Rows are of `host`, their times count from `zero`.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub fn begin(self, host: HostId, zero: Instant, rows: RowSender) -> Result<LocalWatch, WatchError> {
        let Self { config, finder, commands } = self;
        let shown = SharedProcesses::default();
        let out = Sink { rows, host, zero, netns: None };
        let name = config.name.unwrap_or_else(host_name);
        let pace =
            Pace { slow: config.period, fast: config.fast_period.filter(|fast| *fast < config.period) };
        let settings = Settings {
            name,
            pace,
            hot_threads: config.hot_threads,
            cpu_max: config.cpu_ratio_max,
            is_exclusive: config.is_exclusive,
        };
        let (stop, stopped) = mpsc::channel::<()>();
        let (its_out, its_shown) = (out.clone(), shown.clone());
        let mut told = Vec::new();
        let its_commands = commands.clone();
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || {
            let mut sampler = Sampler::new(settings, its_out.clone(), finder, its_shown);
            sampler.run(|wait| {
                its_commands.tell_ends(&its_out, &mut told);
                !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
            });
        })?;
        Ok(LocalWatch { out, shown, stop: Some(stop), thread: Some(thread), commands: Some(commands) })
    }
}

/// A host that is being watched. Dropping it ends that, and the commands that were started for it.
#[derive(Debug)]
pub struct LocalWatch {
    out: Sink,
    shown: SharedProcesses,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    commands: Option<Commands>,
}

/// Tells which processes are watched at the moment, and what those write that were started for it; good on any thread.
#[derive(Clone, Debug, Default)]
pub struct WatchedProcesses {
    shown: SharedProcesses,
    outputs: Vec<Output>,
}

impl WatchedProcesses {
    /// Those of this moment.
    #[must_use]
    pub fn now(&self) -> Vec<WatchedProcess> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Standard output and error of the commands that were started because they are to be watched.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }
}

impl LocalWatch {
    /// The processes watched at the moment.
    #[must_use]
    pub fn processes(&self) -> Vec<WatchedProcess> {
        self.watched_processes().now()
    }

    /// Something by which others can ask [`Self::processes`].
    #[must_use]
    pub fn watched_processes(&self) -> WatchedProcesses {
        let outputs = self.commands.as_ref().map(Commands::outputs).unwrap_or_default();
        WatchedProcesses { shown: self.shown.clone(), outputs }
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
        self.commands = None;
    }
}

impl Drop for LocalWatch {
    fn drop(&mut self) {
        self.end();
    }
}

/// This host's name.
pub(crate) fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn every(period: &Duration) -> String {
    units::duration(*period)
}
