//! Chats over server-sent events: what is heard comes on an event stream that stays open, and what
//! is said is sent by `POST`.
//!
//! ```text
//! link    ── one member's requests: the stream, opened again as an EventSource does,
//!   │        and what is posted
//!   └─ parser  the events in the stream's bytes
//! ```

mod link;
mod parser;

#[cfg(test)]
mod tests;

pub(super) use link::{EventLink, LinkEvent};
pub use parser::{EventParser, EventTooLong, StreamEvent};
