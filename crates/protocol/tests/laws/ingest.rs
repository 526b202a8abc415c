//! Publishing by RTMP: what a server says, in pieces of any length.

use throng_protocol::ingest::{read_any_bytes, values_survive};

/// S0 to S2, after which the chunk stream begins.
const HANDSHAKE_BYTES: usize = 1 + 2 * 1_536;

/// What is sent for a handshake, and for each byte of the server at most: the shortest message that
/// is answered has one byte, its answer 16, and an acknowledgement too.
const SENT_BYTES: (usize, usize) = (20_000, 40);

/// The chunk stream behind a handshake; also as the values of a command. What is written reads
/// back, and no few bytes make it say much.
pub(crate) fn rtmp(bytes: &[u8]) {
    let mut stream = vec![0; HANDSHAKE_BYTES];
    stream[0] = 3;
    stream.extend_from_slice(bytes);
    for piece in [stream.len(), 1_000, 7] {
        let sent = read_any_bytes(&stream, piece);
        assert!(sent <= SENT_BYTES.0 + SENT_BYTES.1 * bytes.len(), "{sent} bytes in answer");
    }
    assert!(values_survive(bytes));
    let _ = read_any_bytes(bytes, bytes.len());
}
