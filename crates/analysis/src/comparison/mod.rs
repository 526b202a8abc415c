//! The arithmetic of comparisons: whether one set of runs is better or worse than another, and
//! where a long row of runs changed.
//!
//! Method, in one place. Each side has one figure of a quantity for each run.
//! - *Several runs on both sides*: the runs are the samples, and the interval is Welch's (unequal
//!   variances). It covers all that differs between runs.
//! - *Several runs on one side*: the single run of the other side is taken to vary as much as they
//!   do (pooled Student).
//! - *One run against one*: the interval comes from within the runs, by sectioning (batch means
//!   around the figure of the whole, Asmussen and Glynn, Stochastic Simulation, III.5): seconds in
//!   parts of at least [`blocks::PART_S_MIN`] seconds, so long that neighbours are nearly
//!   independent. It does not contain what differs from run to run, so it is too narrow for a
//!   statement about the server in general. What hangs on the joins of a run has no such parts: all
//!   of them meet one phase of what the server repeats (key frames, segments), so that they are one
//!   sample and not many.
//!
//! A difference is *worse* or *better* if it is significant after Holm's correction for the number
//! of quantities (Holm 1979) and larger than the margin; *the same* if its 95 % interval lies
//! within the margin; otherwise it is not decided.

pub mod blocks;
mod difference;
pub mod machines;
mod student;
pub mod trend;
mod verdict;

pub use difference::{Basis, Difference, Figure, difference};
pub use verdict::{ComparisonVerdict, Direction, Judged, Question, Tolerance, judge};

#[cfg(test)]
mod tests;
