//! What a publisher sends: media that is encoded once and packetised once, and shared by all who send it.
//!
//! A [`Clip`] holds the payloads of a loop; a [`Player`] is one sender's place in it. What differs from sender to sender
//! and from turn to turn (timestamps, picture ids, in-media marks) is filled in while a packet is written, so that a
//! thousand publishers of one clip keep one copy of it, and a packet can be written again for a retransmission without
//! having been kept.

mod clip;
pub use clip::{Clip, ClipError, PAYLOAD_MAX, PlayedFrame};

mod frame_files;

mod read;
pub use read::{Format, read};

mod packet_files;

mod reorder;

mod player;
pub use player::Player;

#[cfg(test)]
mod mutation_tests;
