//! Janus WebRTC server over its WebSocket API: [`session`] is the core (transactions, handles,
//! keepalive), [`streaming`] the viewer of a Streaming mountpoint, [`videoroom`] the conference
//! participant.

pub mod session;
pub mod streaming;
pub mod videoroom;

pub use session::SessionConfig;
pub use streaming::{Config, MountpointId, Streaming};
pub use videoroom::{Config as VideoRoomConfig, NewRoom, SubscriberMode, VideoRoom};
