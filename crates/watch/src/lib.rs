//! What a media server's host does while the crowd is in: counters of the machine, its processes and threads,
//! profiles, logs and endpoints, as rows of the run.

mod target;
pub use target::{Target, TargetError};

mod charge;
mod rows;
pub use rows::{RowReceiver, RowSender, rows};

mod local;
pub use local::{Local, Processes, WatchConfig, WatchError, WatchedProcess, Watching};

pub mod remote;

pub mod proc;

mod commands;
mod find;
mod sampler;

pub mod profiler;

mod seen;
pub use seen::{Clock, Seen, SeenWriter, Value, clock_from};

pub mod logs;
pub mod packs;
pub mod scrape;

mod told;
pub use told::{Beside, Listened, Told, ToldConfig, endpoint};
