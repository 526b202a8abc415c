//! Server logs: lines counted by pattern, values read from lines, and requests and bytes by URI
//! group from access logs. The counting gets bytes and the time from outside; [`Tail`] reads files,
//! outputs and journals.

pub mod access;
mod counter;
mod file;
mod lines;
mod output;
mod patterns;
mod redact;
mod source;
mod tail;

pub use counter::{LineCounter, SEARCHED_LINES_MAX};
pub use file::{Chunk, FileTail, Progress};
pub use lines::{LINE_BYTES_MAX, Line, Lines};
pub use output::{Drain, Output};
pub use patterns::{PATTERNS_MAX, PatternError, Patterns};
pub use redact::redacted;
pub(crate) use source::is_unit;
pub use source::{LogSource, SourceError};
pub use tail::{LogKind, Tail};
