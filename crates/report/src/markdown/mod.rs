//! The answer as Markdown, for where CI shows it: the step summary of GitHub Actions, comments of
//! pull and merge requests.
//!
//! ```text
//! RunData, Summary -> of_run    CompareReport -> of_comparison    MatrixReport -> of_matrix
//! ```
//! Those places take GitHub's Markdown (GFM) and leave pictures, styles and scripts of a document
//! out: what changes over time is drawn in characters.

mod compare;
pub use compare::of_comparison;
mod document;
mod escape;
mod matrix;
pub use matrix::of_matrix;
mod over_time;
mod run;
pub use run::of_run;

#[cfg(test)]
pub(crate) mod tests;
