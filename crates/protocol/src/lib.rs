//! Participants: sans-IO state machines that play one member of the crowd on the wire.
//!
//! [`participant`] is the contract that the engine drives; each protocol is a folder.

pub mod participant;

pub mod signalling;
pub mod webrtc;

pub mod factory;

mod excerpt;
