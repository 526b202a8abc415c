use super::HostId;
use crate::RunTime;
use serde::{Deserialize, Serialize};

/// How stacks were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileMethod {
    /// `perf_event_open` with the software clock `cpu-clock`: samples of what runs.
    #[default]
    CpuClock,
    /// Thread state, `wchan` and `syscall` of `/proc`: what threads wait in; needs no privileges.
    ThreadState,
}

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function's name, demangled; an address in hexadecimal where no symbol was found.
    pub symbol: String,
    /// The file it was mapped from, without folders; `[kernel]`, `[jit]`, `[vdso]`.
    pub module: String,
}

/// A stack of a thread and how often it was sampled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread's name.
    pub thread: String,
    /// Indices into [`Profile::frames`], the innermost (running) function first.
    pub frames: Vec<u32>,
    /// Samples.
    pub count: u32,
}

/// Stacks sampled over an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// On which host.
    pub host: HostId,
    /// What moment of the run it shows: `baseline`, `pass`, `fail`, or what the user called it.
    pub moment: String,
    /// When sampling began.
    pub started_at: RunTime,
    /// For how long, microseconds.
    pub duration_us: u64,
    /// Requested samples per second, on each CPU (cpu-clock) or of each thread (thread state).
    pub frequency_hz: u32,
    /// How.
    pub method: ProfileMethod,
    /// The places that stacks refer to.
    pub frames: Vec<Frame>,
    /// The stacks.
    pub stacks: Vec<Stack>,
    /// Samples that the kernel or the reader dropped.
    pub samples_lost: u64,
    /// What was not possible, and which permission is missing; empty when everything was.
    pub limits: Vec<String>,
}
