//! Monitoring the host that this process runs on.

use std::sync::PoisonError;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, HostId};

use crate::background::BackgroundThread;
use crate::commands::Commands;
use crate::config::{WatchConfig, WatchError, WatchedProcess};
use crate::discovery::{Finder, holders};
use crate::logs::Output;
use crate::rows::RowSender;
use crate::sampler::cost::Pace;
use crate::sampler::files::Reader;
use crate::sampler::meter::Sink;
use crate::sampler::{Sampler, Settings, SharedProcesses};
use crate::target::Target;

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
    /// Starts the target commands, which end with the calling thread. The processes of other
    /// targets may appear later.
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

    /// Starts reading on a thread of its own. Rows carry the id `host` and times relative to
    /// `zero`.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn begin(
        self,
        host: HostId,
        zero: Instant,
        rows: RowSender,
    ) -> Result<LocalWatch, WatchError> {
        let Self { config, finder, commands } = self;
        let processes = SharedProcesses::default();
        let sink = Sink { rows, host, zero, netns: None };
        let name = config.name.unwrap_or_else(host_name);
        let pace = Pace {
            slow: config.period,
            fast: config.fast_period.filter(|fast| *fast < config.period),
        };
        let settings = Settings {
            name,
            pace,
            hot_threads: config.hot_threads,
            cpu_max: config.cpu_ratio_max,
            is_exclusive: config.is_exclusive,
        };
        let (stop, stopped) = mpsc::channel::<()>();
        let (its_sink, its_processes, its_commands) =
            (sink.clone(), processes.clone(), commands.clone());
        let of_sampler = commands.clone();
        let mut reported = Vec::new();
        let thread = BackgroundThread::spawn("watch", move || {
            let mut sampler =
                Sampler::new(settings, its_sink.clone(), finder, of_sampler, its_processes);
            sampler.run(|wait| {
                its_commands.report_exits(&its_sink, &mut reported, false);
                !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
            });
            its_commands.report_exits(&its_sink, &mut reported, true);
        })?;
        Ok(LocalWatch { sink, processes, _stop: stop, _thread: thread, commands })
    }
}

/// The handle of a monitored host. Dropping it ends monitoring and the target commands.
#[derive(Debug)]
pub struct LocalWatch {
    sink: Sink,
    processes: SharedProcesses,
    // Dropped in this order: the thread ends when the sender is gone.
    _stop: Sender<()>,
    _thread: BackgroundThread,
    commands: Commands,
}

/// The currently watched processes, and the outputs of the target commands; usable on any thread.
#[derive(Clone, Debug, Default)]
pub struct WatchedProcesses {
    processes: SharedProcesses,
    outputs: Vec<Output>,
}

impl WatchedProcesses {
    /// The current processes.
    #[must_use]
    pub fn now(&self) -> Vec<WatchedProcess> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        WatchedProcesses { processes: self.processes.clone(), outputs: self.commands.outputs() }
    }

    /// Writes a mark of the run among the host's events.
    pub fn mark(&self, text: &str) {
        self.sink.event(Instant::now(), HostEventKind::Mark, text);
    }

    /// Ends monitoring and the target commands.
    pub fn stop(self) {
        drop(self);
    }
}

/// PID and name (`comm`) of the processes of this host that listen on TCP `port`, or are bound to
/// UDP `port`. Those of other users only root sees.
#[must_use]
pub fn listeners(port: u16) -> Vec<(u32, String)> {
    let named = |pid: u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some((pid, name.trim_end().to_owned()))
    };
    holders(&mut Reader::new(), port).into_iter().filter_map(named).collect()
}

/// This host's name, as the kernel has it; empty if it cannot be read.
#[must_use]
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}
