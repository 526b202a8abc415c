//! The server of a cell: started, waited for, stopped, and nothing of it left.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use throng_process::Started;

use crate::control_group::{ControlGroup, GroupError, Limits};
use crate::cpus::{parse_cpus, set_of};
use crate::journal::{Journal, JournalError, Undo};
use crate::output::last_lines;
use crate::processes::{Marker, end_process};
use crate::ready::{Readiness, is_free};
use crate::shrink::open_files_max;
use crate::spawn::confine;

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Lines of the server's output in messages.
const LINES: usize = 5;
/// How long killed processes may take to be gone, and a port to be free again.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// How much longer than their parent the processes of a server may take to end.
const CHILDREN_WITHIN: Duration = Duration::from_millis(500);

/// A server to start.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables in addition to those of this process.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// When it is ready; `None`: when it was started.
    pub ready: Option<Readiness>,
    /// The signal that stops it: `SIGTERM`, `SIGINT` or `SIGQUIT`.
    pub stop_signal: String,
    /// How long it may take to stop; then it is killed.
    pub stop_within: Duration,
    /// A list of CPUs, such as `0-1`.
    pub cpus: Option<String>,
    /// How many files it may have open (`RLIMIT_NOFILE`).
    pub nofile: Option<u64>,
    /// Limits of its control group.
    pub limits: Limits,
    /// Where its output goes.
    pub log: PathBuf,
    /// Unique on this machine: the mark of its processes, and the name of its control group.
    /// Letters, digits, `-`, `.`.
    pub name: String,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It cannot be run here with these limits.
    #[error("{0}")]
    NotPossibleHere(String),
    /// Something listens on its port.
    #[error("port {0} is taken: another process listens on it (`ss -ltnp sport = :{0}` names it)")]
    PortTaken(u16),
    /// There is no such working directory: the error of the program would name the program.
    #[error("there is no folder {} to start the server in (server.cwd)", .0.display())]
    NoFolder(PathBuf),
    /// The program could not be started.
    #[error("`{program}` cannot be started: {error}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        error: std::io::Error,
    },
    /// It ended before it was ready.
    #[error("the server ended before it was ready ({status}){said}")]
    Ended {
        /// How.
        status: ExitStatus,
        /// What it wrote last.
        said: String,
    },
    /// It was not ready in time.
    #[error("the server was not ready within {within_s} s: {sign} never held{said}")]
    NotReady {
        /// The time limit, seconds.
        within_s: f64,
        /// What was waited for.
        sign: String,
        /// What it wrote last.
        said: String,
    },
    /// The person or a signal ended the wait.
    #[error("interrupted while the server started")]
    Interrupted,
    /// A control group of its name is there.
    #[error("{0}")]
    GroupIsThere(String),
    /// What it would leave could not be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<GroupError> for StartError {
    fn from(error: GroupError) -> Self {
        let said = error.to_string();
        match error {
            // Not so the next time: cells that are not possible here are not tried again.
            GroupError::IsThere(_) => Self::GroupIsThere(said),
            GroupError::NoController(_) | GroupError::Denied { .. } | GroupError::NoDisk(_) => {
                Self::NotPossibleHere(said)
            }
        }
    }
}

/// A server that was started. Killed when dropped without [`Self::stop`].
#[derive(Debug)]
pub struct RunningServer {
    child: Child,
    _registered: Started,
    group: Option<ControlGroup>,
    marker: Marker,
    spec: ServerSpec,
    status: Option<ExitStatus>,
    is_stopped: bool,
}

/// How a server ended.
#[derive(Debug, Default)]
pub struct Stopped {
    /// Its exit status.
    pub status: Option<ExitStatus>,
    /// What a reader should know, in sentences: that it was killed, what it left.
    pub notes: Vec<String>,
}

impl RunningServer {
    /// Starts it and waits until it is ready. Its processes and control groups are in `journal`
    /// before there are any.
    ///
    /// # Errors
    /// If it cannot be started or is not ready in time; nothing of it is left then.
    pub fn start(
        spec: ServerSpec,
        journal: &mut Journal,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, StartError> {
        let port = spec.ready.as_ref().and_then(|ready| ready.sign.port());
        if let Some(port) = port.filter(|port| !is_free(*port)) {
            return Err(StartError::PortTaken(port));
        }
        if !spec.cwd.is_dir() {
            return Err(StartError::NoFolder(spec.cwd));
        }
        let cpus = spec.cpus.as_deref().map(parse_cpus).transpose();
        let cpus = cpus.map_err(|error| StartError::NotPossibleHere(error.to_string()))?;
        if let Some(nofile) = spec.nofile.filter(|nofile| *nofile > open_files_max()) {
            let why = format!(
                "the server cannot have {nofile} open files: this process may have {}",
                open_files_max()
            );
            return Err(StartError::NotPossibleHere(why));
        }
        journal.before(Undo::Processes(spec.name.clone()))?;
        let group = group(&spec, journal)?;
        let doors = group.as_ref().map(ControlGroup::doors).transpose()?.unwrap_or_default();
        let (program, arguments) =
            spec.command.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
        let not_started = |error| StartError::NotStarted { program: program.to_owned(), error };
        let log = throng_folder::append(&spec.log).map_err(not_started)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&spec.cwd).envs(spec.env.iter().cloned());
        command.env(Marker::VARIABLE, &spec.name).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(not_started)?).stderr(log);
        confine(&mut command, doors, cpus.as_deref().map(set_of), spec.nofile);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                if let Some(group) = &group {
                    group.remove();
                }
                return Err(not_started(error));
            }
        };
        let (marker, registered) = (Marker::new(spec.name.as_str()), Started::group(child.id()));
        let mut server = Self {
            child,
            _registered: registered,
            group,
            marker,
            spec,
            status: None,
            is_stopped: false,
        };
        // On an error it is dropped, and with that killed.
        server.wait_until_ready(is_over)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), StartError> {
        let Some(ready) = self.spec.ready.clone() else { return Ok(()) };
        let give_up_at = Instant::now() + ready.within;
        loop {
            if let Some(status) = self.ended() {
                return Err(StartError::Ended { status, said: self.said() });
            }
            if ready.sign.is_there(&self.spec.log) {
                return Ok(());
            }
            if is_over() {
                return Err(StartError::Interrupted);
            }
            if Instant::now() >= give_up_at {
                let (within_s, sign) = (ready.within.as_secs_f64(), ready.sign.to_string());
                return Err(StartError::NotReady { within_s, sign, said: self.said() });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The process that was started.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its control group below the root of the hierarchy; `None` where this process may not make
    /// groups.
    #[must_use]
    pub fn control_group(&self) -> Option<String> {
        self.group.as_ref().map(ControlGroup::path)
    }

    /// Its processes that live: what it started, by whatever way, unless others did that for it, as
    /// a container's daemon or an init system does.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let marked = self.marker.processes().into_iter().map(|(pid, _)| pid);
        let of_group = self.group.as_ref().map(ControlGroup::members).unwrap_or_default();
        marked.chain(of_group).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// The TCP port by which it is known to be ready.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.spec.ready.as_ref().and_then(|ready| ready.sign.port())
    }

    /// Whether the process that was started has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// What it wrote last, as the end of a sentence.
    #[must_use]
    pub fn said(&self) -> String {
        let lines = last_lines(&self.spec.log, LINES);
        if lines.is_empty() { String::new() } else { format!(": {}", lines.join("; ")) }
    }

    /// Stops it: the signal, SIGKILL if it does not end, then whatever it left; waits until its
    /// port is free.
    pub fn stop(mut self) -> Stopped {
        self.end()
    }

    fn end(&mut self) -> Stopped {
        self.is_stopped = true;
        let mut notes = Vec::new();
        let (signal, within) = (self.spec.stop_signal.clone(), self.spec.stop_within);
        let (status, was_killed) = match self.status {
            Some(status) => (Some(status), false),
            None => end_process(&mut self.child, &signal, within),
        };
        if was_killed {
            notes.push(format!(
                "the server ignored {signal} for {} s: SIGKILL",
                within.as_secs_f64()
            ));
        }
        // Children that got the signal too may need a moment longer than their parent.
        self.marker.wait_until_gone(CHILDREN_WITHIN);
        let left = self.marker.kill_all(GONE_WITHIN);
        if !left.is_empty() {
            let names: Vec<String> =
                left.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
            notes.push(format!(
                "the server left processes behind, which were killed: {}",
                names.join(", ")
            ));
        }
        if self.group.as_ref().is_some_and(|group| !group.remove()) {
            notes.push("its control group could not be removed".to_owned());
        }
        if let Some(port) = self.port().filter(|port| !becomes_free(*port)) {
            notes.push(format!("port {port} is still taken after the server was stopped"));
        }
        Stopped { status, notes }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if !self.is_stopped {
            self.spec.stop_within = Duration::ZERO;
            self.end();
        }
    }
}

/// The control group of `spec`: needed for limits; without any, an advantage where it is allowed.
fn group(spec: &ServerSpec, journal: &mut Journal) -> Result<Option<ControlGroup>, StartError> {
    let change = journal.before(Undo::ControlGroups(ControlGroup::planned(&spec.name)))?;
    match ControlGroup::create(&spec.name, &spec.limits) {
        Ok(group) => Ok(Some(group)),
        Err(error) => {
            journal.undone(change)?;
            if spec.limits == Limits::default() { Ok(None) } else { Err(error.into()) }
        }
    }
}

fn becomes_free(port: u16) -> bool {
    let give_up_at = Instant::now() + GONE_WITHIN;
    while !is_free(port) {
        if Instant::now() >= give_up_at {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    true
}
