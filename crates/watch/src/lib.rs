//! Monitors a media server's host during a run: counters of the machine, its processes and threads,
//! profiles, logs and metrics endpoints. Everything becomes rows of the run.

mod target;
pub use target::{Target, TargetError};

mod background;
mod cpu_accounting;
mod fingerprint;
mod rows;
pub use rows::{RowReceiver, RowSender, rows};

mod config;
pub use config::{WatchConfig, WatchError, WatchedProcess};

mod local;
pub use local::{LocalHost, LocalWatch, WatchedProcesses, host_name, listeners};

pub mod remote;

pub mod proc;

mod commands;
mod discovery;
mod sampler;

pub mod profiler;

mod reading;
pub use reading::{Clock, Reading, ReadingWriter, SeriesValue, clock_from};

pub mod logs;
pub mod packs;
pub mod scrape;

mod sources;
pub use sources::{SourceConfig, SourceWatch, endpoint};
