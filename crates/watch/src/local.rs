//! Monitoring the host that this process runs on.

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

/// What to monitor on a host, and how often.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// Display name; `None` means the host name.
    pub name: Option<String>,
    /// Targets whose processes and threads are read; empty means the machine alone.
    pub targets: Vec<Target>,
    /// Interval of a full pass.
    pub period: Duration,
    /// Interval at which the machine's main figures and the hot threads are read in between; `None` disables it.
    pub fast_period: Option<Duration>,
    /// Maximum number of hot threads.
    pub hot_threads: usize,
    /// CPU budget of monitoring, share of one core; above it the intervals grow.
    pub cpu_ratio_max: f64,
    /// Whether this process does nothing else, so that all its CPU time counts as cost.
    pub is_exclusive: bool,
}

impl Default for WatchConfig {
    /// A full pass each second, 64 hot threads and the main figures each 100 ms, 2 % of a core.
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

/// Why monitoring cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A target command could not be started.
    #[error("cannot start `{command}`: {error}")]
    Start {
        /// Its program.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// The PID does not exist. PIDs are not waited for.
    #[error("there is no process with PID {0}")]
    NoProcess(u32),
    /// The interval is shorter than the minimum.
    #[error("a watcher cannot read every {}; 10 ms is the least", every(.0))]
    Period(Duration),
    /// The system refused a thread, or has no `/proc`.
    #[error("cannot watch this host: {0}")]
    Host(#[from] io::Error),
}

/// A process that is currently watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Its PID in this process's namespace.
    pub pid: u32,
    /// Its name in the kernel (`comm`).
    pub name: String,
    /// Index in [`WatchConfig::targets`].
    pub target: usize,
}

/// The shortest interval that is accepted.
const PERIOD_MIN: Duration = Duration::from_millis(10);

/// This host, ready to be monitored: target commands run, nothing is read yet.
#[derive(Debug)]
pub struct LocalHost {
    config: WatchConfig,
    finder: Finder,
    commands: Commands,
}

impl LocalHost {
    /// Starts the target commands. The processes of other targets may appear later.
    ///
    /// # Errors
    /// When a command cannot be started, or a PID does not exist.
    pub fn open(config: WatchConfig) -> Result<Self, WatchError> {
        let commands = Commands::start(&config.targets)?;
        Self::open_with(config, &commands)
    }

    /// As [`Self::open`], with commands that already run; they end when the last handle is dropped.
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

    /// Starts reading on a thread of its own. Rows carry the id `host` and times relative to `zero`.
    ///
    /// # Errors
    /// When the system refuses a thread.
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

/// The handle of a monitored host. Dropping it ends monitoring and the target commands.
#[derive(Debug)]
pub struct LocalWatch {
    out: Sink,
    shown: SharedProcesses,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    commands: Option<Commands>,
}

/// The currently watched processes, and the outputs of the target commands; usable on any thread.
#[derive(Clone, Debug, Default)]
pub struct WatchedProcesses {
    shown: SharedProcesses,
    outputs: Vec<Output>,
}

impl WatchedProcesses {
    /// The current processes.
    #[must_use]
    pub fn now(&self) -> Vec<WatchedProcess> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Standard output and error of the target commands.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }
}

impl LocalWatch {
    /// The currently watched processes.
    #[must_use]
    pub fn processes(&self) -> Vec<WatchedProcess> {
        self.watched_processes().now()
    }

    /// A handle for [`Self::processes`] that can be used on any thread.
    #[must_use]
    pub fn watched_processes(&self) -> WatchedProcesses {
        let outputs = self.commands.as_ref().map(Commands::outputs).unwrap_or_default();
        WatchedProcesses { shown: self.shown.clone(), outputs }
    }

    /// Writes a mark of the run among the host's events.
    pub fn mark(&self, text: &str) {
        self.out.event(Instant::now(), HostEventKind::Mark, text);
    }

    /// Ends monitoring and the target commands.
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
