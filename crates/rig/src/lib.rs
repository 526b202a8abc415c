//! The media server of an experiment: started in a given configuration, waited for, stopped, and
//! nothing of it left.
//!
//! ```text
//! journal: what to undo -> setup commands -> server (group, CPUs, limits) -> ready -> the crowd
//! nothing left          <- undo commands  <- SIGTERM, SIGKILL, leftovers  <- stop  <-
//! ```
//! Whatever changes the machine is written to a [`Journal`] before it happens, so that a later
//! start can undo it even after `kill -9`. I/O, and unsafe for what a child does between fork and
//! exec.

mod cpus;
pub use cpus::{CpuListError, parse_cpus};

mod control_group;
pub use control_group::{ControlGroup, GroupError, Limits};

mod spawn;

mod processes;
pub use processes::{Marker, end_process, signal_process};

mod journal;
pub use journal::{Change, Journal, JournalError, Undo};

mod setup;
pub use setup::{SetupError, run_step, run_to_end};

mod ready;
pub use ready::{Readiness, Sign, pattern};

mod server;
pub use server::{RunningServer, ServerSpec, StartError, Stopped};

mod shrink;
pub use shrink::{ShrinkStep, cpus_allowed, line_rate_step, open_files, receive_buffers_step};

mod machine;
pub use machine::{MachineError, MachineLock, MachineResource};

mod unfinished;
pub use unfinished::{LeftBehind, Unfinished};

mod environment;
pub use environment::{CpuTimes, governor, load_average};

mod output;
pub use output::last_lines;
