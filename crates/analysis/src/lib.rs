//! Finds the capacity of a server, names its bottleneck, and says what to change. Pure: it reads
//! seconds and rows and uses no sockets, clocks or files.
//!
//! ```text
//! seconds of experience -> search -> holds                   (during the run)
//! rows of the run, holds -> demand, findings -> bottleneck   (from the run folder, at any time)
//! ```

pub mod search;

pub mod capacity;

pub mod disturbance;

mod late_joins;
pub use late_joins::late_joins;

pub mod knowledge;

pub mod windows;

mod pattern;

mod without_load;
pub use without_load::WithoutLoad;

pub mod reasons;

pub mod demand;

pub mod sizing;

pub mod findings;

mod context;

pub mod experiment;

pub mod comparison;

pub mod bottleneck;

#[cfg(test)]
mod planted_tests;
