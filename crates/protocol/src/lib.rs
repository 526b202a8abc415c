//! Participants: sans-IO state machines, each of which implements one simulated client.
//!
//! [`participant`] is the interface that the engine drives; each protocol has a folder.

pub mod participant;

pub mod chat;
pub mod composite;
pub mod ingest;
pub mod peertube;
pub mod player;
pub mod recognition;
pub mod rtsp;
pub mod signalling;
pub mod webrtc;

pub mod factory;

mod published;
pub use published::PublishedMedia;
mod traced;
pub use traced::traced;

mod excerpt;
pub use excerpt::without as without_secrets;
mod life;
mod reports;
mod shown_size;
