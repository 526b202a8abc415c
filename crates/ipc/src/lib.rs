//! Benchmark of passing media frames from one process to another, on this machine and with the
//! user's frame sizes: each transport, between real processes, in CPU, latency, system calls and
//! cost per year.
//!
//! [`Plan`] says what to measure; [`measure`] starts the processes through a [`Launcher`], one
//! transport after the other, and returns an [`IpcReport`]; a started process calls [`run_role`].

mod workload;
pub use workload::{
    FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameSize, FrameSizes, Workload, WorkloadError,
};

mod frame;

mod transport;
pub use transport::{Transport, TransportError, load_gstreamer};

mod role;
pub use role::run_role;

mod plan;
pub use plan::{Assumptions, Launcher, Plan, ReadMode};

mod harness;
pub use harness::measure;

mod result;
pub use result::{
    IPC_VERSION, IpcReport, Latency, Measured, Outcome, Row, SystemCalls, json_schema,
};

mod cpu_profile;
pub use cpu_profile::{CpuProfile, FunctionShare};

mod cost;

mod table;

mod page;
