//! A run's summary, tables and the self-contained page: rows of a run in, text out.
//!
//! ```text
//! RunData -> summarise -> Summary -> text, JSON, HTML        RunData -> CSV
//! ```
//! Pure: no sockets, no clock, no paths. Everything can be made again from the run's rows alone.

mod summary;
pub use summary::{
    ClockSummary, FailureExample, Generator, HottestThread, Media, NetworkInterface, ObjectiveResult,
    Participants, PhaseTime, RunOutcome, SUMMARY_VERSION, Server, ServerProcess, Summary, TimeTo,
    json_schema,
};

mod summarise;
pub use summarise::summarise;

mod who;

mod sent;
pub use sent::{LayerSwitches, Sent};

mod figures;

mod waits;

mod health;

mod judge;

mod capacity;

mod cause;
mod headline;

mod canary;
pub use canary::{Agreement, CanaryBrowser, CanaryJudgement, CanarySummary};
mod decoded;
pub use decoded::Decoded;

mod pairs;
pub use pairs::{FlowSummary, Pair, PairMedia, Pairs};

mod server;

mod shown;
pub use shown::Shown;

pub mod text;

pub mod oven;

pub mod csv;

pub mod html;

pub mod profile;

#[cfg(test)]
mod example;

#[cfg(test)]
mod hostile_tests;
