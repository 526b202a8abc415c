//! What a consumer is told beside frames.

use crate::error::RingError;
use crate::frame::LaneId;
use crate::stats::LaneStats;

/// What happened beside frames.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// All processes of a session are gone. What they had committed is still delivered.
    ProducerLeft {
        /// Their lane.
        lane: LaneId,
        /// Their session within the lane.
        session: u32,
        /// They closed their producers; else they died, and what they had claimed is put aside.
        clean: bool,
    },
    /// A producer wrote nonsense over the ring's words. The lane is closed; frames of it that are held stay valid.
    LaneCorrupt {
        /// The lane.
        lane: LaneId,
        /// Which rule was broken.
        error: RingError,
    },
    /// Nobody is left on the lane, and all of it was read and released; its memory is given back.
    LaneEnded {
        /// The lane.
        lane: LaneId,
        /// Its last statistics, in which every committed, dropped and abandoned frame is counted.
        stats: LaneStats,
    },
}
