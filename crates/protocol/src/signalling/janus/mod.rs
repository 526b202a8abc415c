//! Janus WebRTC server over its WebSocket API: [`session`] is the core (transactions, handles, keepalive),
//! [`streaming`] the viewer of a Streaming mountpoint.

pub mod session;
pub mod streaming;

pub use session::SessionConfig;
pub use streaming::{Config, MountpointId, Streaming};
