//! Messages of peers over data channels.

use throng_protocol::player::peer_message_survives;
use throng_scenario::PeerEngine;

/// What is read of a message says the same when it is written and read again.
pub(crate) fn peers(bytes: &[u8]) {
    for engine in [PeerEngine::V22, PeerEngine::V06] {
        assert!(peer_message_survives(engine, bytes), "{engine:?}: {bytes:?}");
    }
}
