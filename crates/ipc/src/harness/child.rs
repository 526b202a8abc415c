//! A role's process from its parent's side: starts it, sends commands, waits with a time limit, and
//! always ends it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_process::{Ended, Started, end_throng_with_this_thread};

use crate::role::{RoleCommand, RoleMessage, SystemCalls, Task};
use crate::transport::{IoContext, TransportError, gstreamer};

/// Longest line from a role.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Lines of stderr kept for error messages.
const STDERR_LINES: usize = 8;
/// How often a wait checks whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Why a wait for a role failed.
pub(super) enum WaitError {
    /// The user or a signal asked to stop.
    Stopped,
    /// The role failed, or did not answer.
    Failed(TransportError),
}

impl From<TransportError> for WaitError {
    fn from(error: TransportError) -> Self {
        Self::Failed(error)
    }
}

pub(super) struct Child {
    role: String,
    process: std::process::Child,
    _registered: Started,
    orders: Option<ChildStdin>,
    said: Receiver<RoleMessage>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    calls: Option<Result<SystemCalls, String>>,
}

impl Child {
    /// Starts `command` as a role that inherits `fds`, and sends its task.
    pub(super) fn start(
        mut command: Command,
        role: String,
        fds: Vec<RawFd>,
        task: &Task,
    ) -> Result<Self, TransportError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal goes to the parent alone, which then ends its roles.
        command.process_group(0);
        // SAFETY: between fork and exec only async-signal-safe system calls are made; nothing is
        // allocated.
        unsafe {
            command.pre_exec(move || {
                for fd in &fds {
                    // Keep this descriptor open at exec; every other one closes.
                    if libc::fcntl(*fd, libc::F_SETFD, 0) == -1 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        end_throng_with_this_thread(&mut command, Ended::AtOnce);
        let mut process = command.spawn().context("starting a process")?;
        let registered = Started::group(process.id());
        let (to, said) = sync_channel(16);
        if let Some(stdout) = process.stdout.take() {
            std::thread::spawn(move || read_messages(stdout, &to));
        }
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(from) = process.stderr.take() {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || keep_last_lines(from, &kept));
        }
        let mut orders = process.stdin.take();
        let mut line = serde_json::to_vec(task).unwrap_or_default();
        line.push(b'\n');
        let sent = orders.as_mut().map_or(Ok(()), |orders| orders.write_all(&line));
        let calls = None;
        let child = Self { role, process, _registered: registered, orders, said, stderr, calls };
        // From here on dropping `child` ends the process.
        match sent {
            // It has ended already; the wait for its answer reports how, with its last stderr line.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(child),
            sent => sent.context("sending a process its task").map(|()| child),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Counts the role's system calls from the parent, for a role that cannot do so itself.
    pub(super) fn count_system_calls(&mut self) {
        self.calls = Some(SystemCalls::of(self.pid()));
    }

    pub(super) fn order(&mut self, order: &RoleCommand) -> Result<(), TransportError> {
        let mut line = serde_json::to_vec(order).unwrap_or_default();
        line.push(b'\n');
        let sent = self.orders.as_mut().map_or(Ok(()), |orders| orders.write_all(&line));
        sent.map_err(|error| self.failed(format!("did not accept a command: {error}")))
    }

    /// Waits until the role is ready; returns the address it listens at, if it sent one.
    pub(super) fn ready(
        &mut self,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<String>, WaitError> {
        loop {
            if let RoleMessage::Ready { address } = self.next(limit, stop)? {
                return Ok(address);
            }
        }
    }

    /// Waits until the role is done.
    pub(super) fn done(
        &mut self,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<crate::role::SideReport, WaitError> {
        let until = Instant::now() + limit;
        loop {
            match self.next(until.saturating_duration_since(Instant::now()), stop)? {
                RoleMessage::Done(mut report) => {
                    if let Some(calls) = &self.calls {
                        report.system_calls =
                            Some(calls.as_ref().map_err(Clone::clone).and_then(SystemCalls::count));
                    }
                    return Ok(report);
                }
                RoleMessage::Measuring => {
                    if let Some(Ok(calls)) = &self.calls {
                        calls.start();
                    }
                }
                RoleMessage::Ready { .. } | RoleMessage::Failed { .. } => {}
            }
        }
    }

    fn next(&mut self, limit: Duration, stop: &dyn Fn() -> bool) -> Result<RoleMessage, WaitError> {
        let until = Instant::now() + limit;
        loop {
            match self.said.recv_timeout(LOOK.min(until.saturating_duration_since(Instant::now())))
            {
                Ok(RoleMessage::Failed { missing: true, reason }) => {
                    return Err(TransportError::Missing(reason).into());
                }
                Ok(RoleMessage::Failed { missing: false, reason }) => {
                    return Err(self.failed(format!("reports {reason}")).into());
                }
                Ok(said) => return Ok(said),
                Err(RecvTimeoutError::Disconnected) => return Err(self.died().into()),
                Err(RecvTimeoutError::Timeout) if stop() => return Err(WaitError::Stopped),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                    return Err(self
                        .failed(format!("did not answer within {:.0} s", limit.as_secs_f64()))
                        .into());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn died(&mut self) -> TransportError {
        let how =
            self.process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        self.failed(format!("ended early ({how})"))
    }

    fn failed(&self, mut reason: String) -> TransportError {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = stderr.iter().rev().find(|line| !line.trim().is_empty()) {
            reason = format!("{reason}; the last line of its stderr: {}", last.trim());
        }
        TransportError::Role { role: self.role.clone(), reason }
    }

    /// Asks the role to close, and waits up to `limit` for it to end.
    pub(super) fn end(&mut self, limit: Duration) {
        let _ = self.order(&RoleCommand::End);
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if let Ok(Some(_)) = self.process.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.orders = None;
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
            gstreamer::clean_after(self.process.id());
        }
    }
}

fn read_messages(stdout: impl Read, to: &SyncSender<RoleMessage>) {
    let mut lines = BufReader::new(stdout);
    loop {
        let mut line = String::new();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        // Other output, such as what a library prints, is skipped.
        if let Ok(message) = serde_json::from_str(&line)
            && to.send(message).is_err()
        {
            return;
        }
    }
}

fn keep_last_lines(from: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut lines = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == STDERR_LINES {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).into_owned());
    }
}
