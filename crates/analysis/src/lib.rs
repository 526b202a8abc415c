//! What throng exists for: how many, because of what, and what to change. Pure: it is given seconds and rows, and knows no
//! sockets, clocks or files.
//!
//! ```text
//! seconds of experience -> search -> holds          (while the run goes on)
//! rows of the run, holds -> demand, findings -> verdict  (from the run folder, at any time)
//! ```

pub mod search;

pub mod capacity;

pub mod disturbance;

mod late_joins;
pub use late_joins::late_joins;

pub mod knowledge;

pub mod windows;

pub mod demand;

pub mod findings;

mod context;

pub mod bottleneck;

#[cfg(test)]
mod planted_tests;
