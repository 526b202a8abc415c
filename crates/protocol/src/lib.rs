//! Participants: sans-IO state machines, each of which implements one simulated client.
//!
//! [`participant`] is the interface that the engine drives; each protocol has a folder.

pub mod participant;

pub mod player;
pub mod rtsp;
pub mod signalling;
pub mod webrtc;

pub mod factory;

mod excerpt;
mod reports;
