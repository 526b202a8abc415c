//! Events of a consumer: producers that leave, lanes that end.

use crate::error::RingError;
use crate::frame::LaneId;
use crate::stats::LaneStats;

/// An event of a lane, other than a frame.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// All processes of a session have ended. Their committed frames are still delivered.
    ProducerLeft {
        /// Their lane.
        lane: LaneId,
        /// Their session within the lane.
        session: u32,
        /// They closed their producers first; else they died, and their open claims are skipped.
        clean: bool,
    },
    /// A producer corrupted the ring's words. The lane is closed; its frames that are held stay
    /// valid.
    LaneCorrupt {
        /// The lane.
        lane: LaneId,
        /// Which rule was broken.
        error: RingError,
    },
    /// No producer is left on the lane, and all its frames were released; its memory is freed.
    LaneEnded {
        /// The lane.
        lane: LaneId,
        /// Its final statistics, with every committed, dropped and abandoned frame.
        stats: LaneStats,
    },
}
