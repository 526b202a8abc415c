//! What is said and how: results and messages, the full-screen view of a terminal, the keys and
//! signals that ask for the end, and the exit code with which a command ends.

mod exit;
mod interrupt;
mod keys;
mod messages;
mod screen;
mod style;
mod writer;

pub(crate) use exit::{CliError, Exit};
pub(crate) use interrupt::{BY_PARENT, Interrupt};
pub(crate) use messages::{LogWriter, print, print_json, say, say_lines};
pub(crate) use screen::{Screen, can_be_drawn_on, is_dumb};
pub(crate) use style::{
    ACCENT, BAD, FULL_THREAD_RATIO, GOOD, QUIET, head_line, no_rows, sparkline, titled,
};
pub(crate) use writer::{Frames, Stream, wait};
