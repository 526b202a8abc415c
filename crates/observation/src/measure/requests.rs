//! HTTP requests of players.

use super::counters;

counters! {
    /// Sums over requests.
    HttpRequestCounters {
        /// Requests; each redirect and each repetition is one.
        requests: u64 = Count;
        /// Bytes of bodies that players received.
        body_bytes: u64 = Bytes;
        /// Requests that the player ended before the end of their response: it left, sought, or had
        /// no use for the body.
        cut_off: u64 = Count;
        /// Responses that ended early or broke on the way.
        broken_off: u64 = Count;
    }
}
