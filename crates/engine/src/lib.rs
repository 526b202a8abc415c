//! Drives participants with sockets and clocks, and collects what they observe.
//!
//! ```text
//! cli -> run(config, factory, rows) -> threads (driver, each with its signalling)
//!     -> collector -> rows, LiveSnapshot
//! ```

mod config;
pub use config::{
    Consent, ConsentCheck, EngineError, Guards, Join, NewParticipant, ParticipantFactory, Reach,
    Receive, RunConfig, TlsOptions,
};

mod run;
pub use run::{RunHandle, run};

pub mod live;
pub use live::LiveSnapshot;

mod memory;
pub use memory::share_one_arena;
pub mod control_groups;
mod memory_use;
pub use memory_use::{MemoryShare, memory_share};

mod clock;
mod control;
pub use control::RunEnd;
mod crowd;
mod driver;
mod requests;
mod signalling;
mod sockets;
mod upgrades;

mod collector;
pub use collector::MergedLive;
mod guards;

mod tap;
pub use tap::{TAP_SOCKET, Tap, TapCounts, TapError, stream_number};

pub mod consent;
mod consent_lost;
pub use consent_lost::{ConsentEnd, ConsentLost};
pub mod health;
pub mod host;
pub mod preflight;
