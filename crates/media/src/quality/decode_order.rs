//! Frames in the order in which they are shown, for meters that compare arrival with RTP time.
//!
//! RTP timestamps are presentation times, and frames are sent in decoding order. With B-frames the
//! two differ: a P-frame is sent before the B-frames that are shown before it, so its timestamp is
//! ahead of its turn. A sender that keeps its pace sends the n-th frame when the n-th smallest
//! timestamp is due, less a constant. So the n-th arrival is paired with the n-th smallest
//! timestamp. That is known once as many frames follow as the stream is ever reordered by: its
//! depth, 0 without B-frames, where each frame is paired with itself at once.

use super::timestamp;

/// Largest depth. H.264 allows 16 frames, encoders use up to 4; a longer way back is another
/// timeline.
const DEPTH_MAX: usize = 8;

/// Puts the frames of one stream into order.
#[derive(Clone, Debug, Default)]
pub(super) struct DecodeOrder {
    depth: usize,
    /// Timestamps of the last frames, newest last.
    recent: Ring<u32>,
    /// Timestamps and arrivals that wait for their counterpart. A frame that was dropped has no
    /// arrival.
    timestamps: Ring<u32>,
    arrivals: Ring<Option<i64>>,
    /// Pairs not to be told: they belong to frames around a gap.
    skip: usize,
}

/// What a frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordered {
    /// This arrival (ns) and timestamp belong together.
    Pair(i64, u32),
    /// Frames are reordered by more than was known: pairs so far were wrong by some frame
    /// intervals.
    Deeper,
    /// Nothing yet.
    Waiting,
}

impl DecodeOrder {
    /// A frame in decoding order, with the arrival of its last packet when it is complete.
    pub(super) fn frame(&mut self, timestamp: u32, arrived_ns: Option<i64>) -> Ordered {
        let later =
            self.recent.iter().filter(|&before| timestamp::step(timestamp, before) > 0).count();
        if later >= DEPTH_MAX {
            self.restart(); // another timeline
        }
        self.recent.push(timestamp, DEPTH_MAX);
        let is_deeper = (self.depth + 1..DEPTH_MAX).contains(&later);
        if is_deeper {
            (self.depth, self.skip) = (later, 2 * later);
            (self.timestamps, self.arrivals) = (Ring::default(), Ring::default());
        }
        self.timestamps.push(timestamp, DEPTH_MAX);
        self.arrivals.push(arrived_ns, DEPTH_MAX);
        if is_deeper {
            return Ordered::Deeper;
        }
        if self.timestamps.len() <= self.depth {
            return Ordered::Waiting;
        }
        let earliest = self.timestamps.take_first_by(|a, b| timestamp::step(a, b) > 0);
        let arrived_ns = self.arrivals.take_first_by(|_, _| false).flatten();
        match (arrived_ns, earliest) {
            _ if self.skip > 0 => {
                self.skip -= 1;
                Ordered::Waiting
            }
            (Some(arrived_ns), Some(timestamp)) => Ordered::Pair(arrived_ns, timestamp),
            _ => Ordered::Waiting,
        }
    }

    /// Frames are missing of which not even the timestamp is known, so that arrivals do not match
    /// timestamps.
    pub(super) fn gap(&mut self) {
        self.skip = 2 * self.depth;
        (self.timestamps, self.arrivals) = (Ring::default(), Ring::default());
    }

    /// The next frame belongs to another timeline.
    pub(super) fn restart(&mut self) {
        self.gap();
        self.recent = Ring::default();
    }
}

/// A few values in the order in which they came.
#[derive(Clone, Copy, Debug, Default)]
struct Ring<T> {
    values: [T; DEPTH_MAX],
    len: usize,
}

impl<T: Copy + Default> Ring<T> {
    fn len(&self) -> usize {
        self.len
    }

    fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.values.iter().take(self.len).copied()
    }

    /// Adds a value; above `most` the first leaves.
    fn push(&mut self, value: T, most: usize) {
        if self.len >= most.min(DEPTH_MAX) {
            self.take_first_by(|_, _| false);
        }
        if let Some(slot) = self.values.get_mut(self.len) {
            *slot = value;
            self.len += 1;
        }
    }

    /// Removes the value that is before all others; the first one where none is.
    fn take_first_by(&mut self, is_before: impl Fn(T, T) -> bool) -> Option<T> {
        let (at, value) = self
            .iter()
            .enumerate()
            .reduce(|best, next| if is_before(next.1, best.1) { next } else { best })?;
        if let Some(rest) = self.values.get_mut(at..self.len) {
            rest.rotate_left(1);
        }
        self.len -= 1;
        Some(value)
    }
}

#[cfg(test)]
#[path = "decode_order_tests.rs"]
mod tests;
