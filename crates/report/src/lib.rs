//! A run's summary, tables and the self-contained page, and the live figures for Prometheus: rows
//! of a run in, text out.
//!
//! ```text
//! RunData -> summarise -> Summary -> text, JSON, HTML, Markdown, JUnit        RunData -> CSV
//! ```
//! Pure: no sockets, no clock, no paths. All output can be regenerated from the run's rows alone.

mod summary;
pub use summary::{
    ClockSummary, FailureExample, Generator, Media, ObjectiveResult, Participants, PhaseTime,
    RunOutcome, SUMMARY_VERSION, Summary, json_schema,
};

mod summarise;
pub use summarise::{partial_reasons, summarise};

mod answer;
mod figures;
mod planned;
pub use planned::planned_objectives;
mod role_counts;
mod sums;
mod survival;
pub use survival::TimeTo;

mod chat;
mod media_sums;
pub use media_sums::MediaSums;
mod playback;
pub use playback::Playback;
mod sent;
pub use sent::{LayerSwitches, Sent};
mod conference;
pub use conference::{Conference, ConferenceMedia, ConferencePair, FlowSummary};
mod server;
pub use server::{
    EndedProcess, HottestThread, NetworkInterface, ServerErrors, UriTraffic, WatchedHost,
    WatchedProcess,
};
mod canary;
pub use canary::{Agreement, CanaryBrowser, CanaryJudgement, CanarySummary};
mod decoded;
pub use decoded::Decoded;

mod capacity;
mod cause;
mod headline;
mod health;
mod judge;

mod json;
pub use json::to_json;
mod quantity;
pub use quantity::Quantity;

mod workers;
pub use workers::WorkerHealth;

mod report_rows;
pub use report_rows::ReportRows;

pub mod columns;
pub mod compare;
pub mod csv;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod matrix;
pub mod openmetrics;
pub mod otlp;
pub mod oven_rtc_tester;
pub mod price;
pub mod profile;
pub mod requests;
pub mod text;
pub mod trend;

#[cfg(test)]
mod example;
#[cfg(test)]
mod hostile_tests;
