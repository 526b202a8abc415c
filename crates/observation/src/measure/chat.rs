//! Participants of a chat.

use super::{counters, ratio};

counters! {
    /// Sums over an interval; all add up over time and over participants.
    ChatCounters {
        /// Messages of this run that were due to a participant and settled, once for each: they
        /// came, or count as missing.
        messages_due: u64 = Count;
        /// Of them, those that did not come in time to count (10 s).
        messages_missing: u64 = Count;
        /// Messages that came more than once.
        duplicates: u64 = Count;
        /// Messages that came before one that the same participant had said earlier.
        out_of_order: u64 = Count;
        /// Messages received, those of others than this run and of the archive included.
        messages_received: u64 = Count;
        /// Messages said.
        messages_sent: u64 = Count;
        /// Messages that were to be said by a participant that was not in the room.
        messages_unsent: u64 = Count;
        /// Frames received.
        frames_received: u64 = Count was "stanzas_received";
        /// Frames sent.
        frames_sent: u64 = Count was "stanzas_sent";
        /// Of those received, presences.
        presences_received: u64 = Count;
        /// vCards received.
        vcards_received: u64 = Count;
        /// Bytes of the frames received, without those of WebSocket and below.
        bytes_received: u64 = Bytes;
        /// Bytes of the frames sent.
        bytes_sent: u64 = Bytes;
        /// Times that a participant connected again after a connection broke, or did not come up.
        reconnects: u64 = Count;
        /// Of them, those after which the stream went on: the server delivered what it had kept.
        resumes: u64 = Count as "XEP-0198" since "resumed streams";
        /// Times that a nickname changed in the room.
        nick_changes: u64 = Count since "resumed streams";
    }
}

impl ChatCounters {
    /// Messages that did not come ÷ messages that were due; `None` when none was.
    #[must_use]
    pub fn missing_ratio(&self) -> Option<f64> {
        ratio(self.messages_missing, self.messages_due)
    }
}
