//! A run's summary, tables and the self-contained page: rows of a run in, text out.
//!
//! ```text
//! RunData -> summarise -> Summary -> text, JSON, HTML        RunData -> CSV
//! ```
//! Pure: no sockets, no clock, no paths. Everything can be made again from the run's rows alone.

mod summary;
pub use summary::{
    ClockSummary, FailureExample, Generator, HottestThread, Media, NetworkInterface, ObjectiveResult,
    Participants, PhaseTime, RunOutcome, SUMMARY_VERSION, Summary, TimeTo, WatchedHost, WatchedProcess,
    json_schema,
};

mod summarise;
pub use summarise::summarise;

mod role_counts;

mod sent;
pub use sent::{LayerSwitches, Sent};

mod figures;

mod survival;

mod health;

mod judge;

mod capacity;

mod cause;
mod headline;

mod canary;
pub use canary::{Agreement, CanaryBrowser, CanaryJudgement, CanarySummary};
mod decoded;
pub use decoded::Decoded;

mod conference;
pub use conference::{Conference, ConferenceMedia, ConferencePair, FlowSummary};

mod server;

mod report_rows;
pub use report_rows::ReportRows;

pub mod text;

pub mod oven_rtc_tester;

pub mod csv;

pub mod html;

pub mod profile;

#[cfg(test)]
mod example;

#[cfg(test)]
mod hostile_tests;
