//! A file for each command that is made of what other modules do.

mod check;
mod report;
mod rerun;
mod tap;

pub(crate) use check::check;
pub(crate) use report::remake;
pub(crate) use rerun::rerun;
pub(crate) use tap::tap;
