//! Recordings of pages (HAR 1.2): what a browser requested around a player, as a plan that viewers
//! repeat.
//!
//! ```text
//! file -> document (what is read of it) -> kind (repeated or left out)
//!      -> order (what waits for what) -> cache (what a warm cache has) -> PagePlan
//! ```
//! The format is that of <http://www.softwareishard.com/blog/har-12-spec/>, with the fields that
//! Chromium adds (`_resourceType`, `_fromCache`).

use std::fmt;

use throng_observation::masked::masked_beginning;

use crate::masked::masked_text;

mod cache;
mod document;
mod kind;
mod left_out;
mod order;
mod plan;
mod read;
mod told;

pub use cache::when_warm;
pub use left_out::LeftOut;
pub use plan::{After, PagePlan, PageRequest, PlayerStart, WhenWarm};
pub use read::PageOrigins;

/// Largest HAR file, bytes.
pub const FILE_BYTES_MAX: u64 = 200 << 20;

/// Most entries of a HAR file.
pub const ENTRIES_MAX: usize = 10_000;

/// Why a HAR file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarError {
    /// The entry, counted from 1, and its field.
    pub place: Option<(usize, &'static str)>,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

impl HarError {
    fn of_file(problem: impl Into<String>) -> Self {
        Self { place: None, problem: problem.into() }
    }
}

impl fmt::Display for HarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((number, field)) => write!(f, "entry {number}: `{field}` {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for HarError {}

/// The beginning of a text of the file as a message shows it: in one line, without its secrets.
fn beginning(text: &str, chars_max: usize) -> String {
    // Readers of URLs pass over line ends.
    let line: String = text.chars().filter(|c| !c.is_control()).collect();
    masked_text(&masked_beginning(&line)).chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests;
