//! WebRTC: a viewer that negotiates, connects, receives and reports as a browser does. str0m
//! implements ICE, DTLS and SDP; the media path (SRTP, feedback, meters) is implemented here,
//! because it runs for every packet of every viewer.

mod options;
pub use options::{MayReach, ParticipantOptions, StepTimeouts};

pub mod viewer;

pub mod session;

pub(crate) mod data_link;

mod candidates;

mod local_addresses;

mod reflexive;

mod checks;

mod peer_addresses;

pub mod relay;

pub mod sdp;

pub mod receiver;

pub mod sender;

mod send_plans;

mod connection;
pub use connection::Outgoing;

pub mod member;

mod layer_switches;

mod behaviour;
pub use behaviour::{Behaviour, Weights};

mod payload;

mod feedback;

pub mod srtp;

pub mod crypto;
pub use crypto::CryptoSetupError;

#[cfg(test)]
mod loopback_tests;

#[cfg(test)]
mod member_tests;
