//! Janus's admin API (sessions, handles and their traffic) and the events that it posts.

mod events;
mod round;

pub use events::{EventCounter, EventListener, ListenError};
pub use round::JanusRound;
