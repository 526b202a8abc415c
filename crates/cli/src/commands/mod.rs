//! A file for each command that is made of what other modules do.

mod rerun;

pub(crate) use rerun::rerun;
