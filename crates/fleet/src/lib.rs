//! One run on many machines: workers play shares of one plan, and their rows become the rows of one run.
//!
//! The arithmetic of it: no sockets, clocks, threads or runtimes. Times are arguments, and bytes come from the caller.

pub mod shares;

pub mod clock;

pub mod wire;

pub mod inbox;

pub mod merge;

pub mod spool;
pub mod spool_file;

#[cfg(test)]
mod rows_tests;
