//! Watch pages of PeerTube, with socket.io and the tracker of their players.

use std::time::Instant;

use throng_protocol::peertube::read_any_bytes;
use throng_protocol::player::read_any_tracker;

/// What an instance says, in parts with zero bytes between them: a part makes a request or two,
/// each with a session id that is not long.
pub(crate) fn peertube(bytes: &[u8]) {
    let parts = bytes.split(|byte| *byte == 0).count();
    let requests = read_any_bytes(bytes);
    assert!(requests <= 6_000 + 3_000 * parts + 4 * bytes.len(), "{requests} bytes of requests");
}

/// What a tracker says, a message a line: for each there is an answer of one description, and an
/// announcement of five at most.
pub(crate) fn tracker(bytes: &[u8]) {
    let messages = String::from_utf8_lossy(bytes).lines().count();
    let sent = read_any_tracker(bytes, Instant::now());
    assert!(sent <= 20_000 + 12_000 * messages + 20 * bytes.len(), "{sent} bytes in answer");
}
