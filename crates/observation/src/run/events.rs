//! Events, and the kinds of those that others look for.

use serde::{Deserialize, Serialize};

use super::ParticipantId;
use crate::{Detail, RunTime};

/// The event of a run that ended as [`Aborted`](super::Ending::Aborted); its detail says why.
pub const ABORT_EVENT: &str = "abort";

/// The event of a moment that a person marked while the run went on; its detail says what.
pub const MARK_EVENT: &str = "mark";

/// What the kind of an event begins with that counts the participants at one address of the
/// server's name, where it has several; then the address follows.
pub const ADDRESS_EVENT: &str = "address_";

/// The event of datagrams that come by a memory-mapped ring from now on.
pub const RECEIVE_RING_EVENT: &str = "receive_ring";

/// The event of datagrams that come by sockets from now on, though rings are used or were to be
/// used.
pub const RECEIVE_SOCKETS_EVENT: &str = "receive_sockets";

/// An event: something that happened at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// When.
    pub at: RunTime,
    /// The participant, if it concerns one.
    pub participant: Option<ParticipantId>,
    /// A stable key: `failed`, `refused_ice_candidate`, `protocol_anomaly_rtcp`, `abort`,
    /// `generator_limited`, …
    pub kind: String,
    /// Number of events of this kind that the row represents; more than 1 where there were too many
    /// to write each.
    pub count: u32,
    /// What happened, in a sentence.
    pub detail: Detail,
}
