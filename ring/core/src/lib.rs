//! Media frames between processes without copies: a lock-free ring in sealed shared memory, many
//! producers, one consumer. A producer claims room, writes in place and commits; the consumer peeks
//! as many frames ahead as it likes, uses them in place and releases them in any order.
//!
//! # Shape
//! Each producer process has a *lane*: a ring of its own, in a memfd of its own, which its threads
//! share ([`Producer::try_clone`]). A [`Consumer`] reads all lanes, fairly by bytes. A process that
//! dies, or writes wildly, or fills its ring, costs its own lane and no other. Processes that trust
//! each other can share a lane ([`Consumer::invite`]).
//!
//! The memory is passed over a Unix socket (inherited, through fork, or by SCM_RIGHTS), which stays
//! open for liveness. Nothing has a name in a file system, so it works inside a sandbox, between
//! users and between containers.
//!
//! # Example
//! ```
//! use std::time::Duration;
//! use throng_ring::{Consumer, Flags, FrameInfo, Policy, Producer, RingOptions};
//!
//! # fn main() -> Result<(), throng_ring::RingError> {
//! let mut consumer = Consumer::new()?;
//! let (_lane, invitation) = consumer.add_lane(&RingOptions::for_frames(1920 * 1080 * 3 / 2, 4))?;
//!
//! // Usually in another process: invitation.give_to(&mut command) here,
//! // Producer::join_inherited() there.
//! let mut producer = Producer::join(invitation)?;
//! producer.set_policy(Policy::Wait { timeout: Duration::from_millis(20) });
//! let info = FrameInfo {
//!     stream: 7,
//!     flags: Flags::KEYFRAME,
//!     timestamp_ns: 33_366_667,
//!     ..FrameInfo::default()
//! };
//! if let Some(mut claim) = producer.claim(4096, &info)? {
//!     claim.bytes_mut().fill(0x80); // decode or render straight into the ring
//!     claim.commit()?;
//! }
//!
//! while consumer.wait(Duration::from_secs(1))? {
//!     let Some(frame) = consumer.peek() else { break };
//!     let mut first = [0; 16];
//!     consumer.payload(frame.id)?.copy_to(0, &mut first);
//!     assert_eq!((frame.info.stream, frame.len, first), (7, 4096, [0x80; 16]));
//!     consumer.release(frame.id)?;
//!     # break;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - A producer killed at any instruction blocks no other process: its committed frames are
//!   delivered, its open claims are skipped and counted as soon as the kernel closes its socket.
//! - A hostile producer cannot make the consumer read outside the mapping: the consumer keeps its
//!   own positions, loads each shared field once, and closes the lane at the first contradiction.
//!   Payload may still change while it is read, which cannot be prevented cheaply; hence
//!   [`Payload`] copies by default.
//! - No frame is lost without a count: by producer and [`DropReason`], and as a gap in
//!   [`Frame::sequence`].
//! - No system call while the other side is awake.
//!
//! What it needs: Linux 3.17 or later (memfd), `/proc` on the consumer's side. The memory layout is
//! specified in `ring/docs/layout.md`.

#![cfg_attr(
    loom,
    allow(
        dead_code,
        unused_imports,
        unreachable_pub,
        reason = "for the model checker only the protocol is built"
    )
)]

#[cfg(not(target_endian = "little"))]
compile_error!("the layout is little endian");

mod claim;
#[cfg(not(loom))]
mod consumer;
mod cursor;
mod drop_reason;
mod error;
#[cfg(not(loom))]
mod event;
mod frame;
mod handshake;
#[cfg(not(loom))]
mod lane;
mod layout;
mod memory;
mod options;
mod packed;
#[cfg(not(loom))]
mod policy;
#[cfg(not(loom))]
mod producer;
mod producer_wakeup;
mod release_batch;
#[cfg(not(loom))]
mod stats;
#[cfg(not(loom))]
mod streams;
mod sync;
#[cfg(not(loom))]
mod token;
mod wake;

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod model_tests;
#[cfg(all(test, not(loom)))]
mod protocol_tests;

#[cfg(not(loom))]
pub use consumer::Consumer;
pub use drop_reason::DropReason;
pub use error::RingError;
#[cfg(not(loom))]
pub use event::Event;
pub use frame::{Flags, Frame, FrameId, FrameInfo, LaneId, Payload};
pub use handshake::Invitation;
#[cfg(not(loom))]
pub use lane::LaneFds;
pub use options::RingOptions;
#[cfg(not(loom))]
pub use policy::Policy;
#[cfg(not(loom))]
pub use producer::{Claim, Producer};
#[cfg(not(loom))]
pub use stats::{LaneStats, ProducerStats, rings_of_process};
#[cfg(not(loom))]
pub use token::ClaimToken;
