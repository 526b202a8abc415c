//! Who gets a CPU first. Tests share the machine with the browsers, encoders and scripts of other
//! tests: what measures, and servers that must not be late, go before them, as on a machine of
//! their own.

use std::io;
use std::process::{Child, Command, Output, Stdio};

/// Nine times the share of a process without priority (`sched_prio_to_weight` in the kernel's
/// kernel/sched/core.c).
const NICE: libc::c_int = -10;

/// Processes that go before those of other tests; without the right to that (CAP_SYS_NICE) they
/// are like all.
pub trait BeforeOthers {
    /// Starts the process.
    ///
    /// # Errors
    /// Those of [`Command::spawn`].
    fn spawn_before_others(&mut self) -> io::Result<Child>;

    /// Waits for its end and what it wrote.
    ///
    /// # Errors
    /// Those of [`Command::output`].
    fn output_before_others(&mut self) -> io::Result<Output>;
}

impl BeforeOthers for Command {
    fn spawn_before_others(&mut self) -> io::Result<Child> {
        let child = self.spawn()?;
        // SAFETY: setpriority has no preconditions. The only thread of the process passes the value
        // on to those that it starts.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, child.id(), NICE) };
        Ok(child)
    }

    fn output_before_others(&mut self) -> io::Result<Output> {
        self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn_before_others()?.wait_with_output()
    }
}
