//! The media of publishers: encoded once, packetised once, and shared by all senders.
//!
//! A [`Clip`] holds the payloads of a loop; a [`Player`] is one sender's position in it. What
//! differs between senders and turns (timestamps, picture ids, in-media marks) is filled in while a
//! packet is written, so that a thousand publishers of one clip share one copy of it, and a packet
//! can be written again for a retransmission without being stored.

mod clip;
pub use clip::{Clip, ClipError, PAYLOAD_MAX, PlayedFrame};

mod frame_files;

mod parameter_sets;

mod read;
pub use read::{Format, read};

mod packet_files;

mod reorder;

mod player;
pub use player::Player;

#[cfg(test)]
mod mutation_tests;
