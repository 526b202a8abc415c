//! What peers say to each other over a data channel, by the version of p2p-media-loader.
//!
//! ```text
//! announcement ─▶   what it has, and what it loads from the server
//! request ─▶        ◀─ segment follows, its bytes in pieces, [end]      or  ◀─ absent
//! cancel ─▶
//! ```
//! Engine 2.2 writes commands in a binary form ([`binary`]), 0.6 in JSON ([`json`]); pieces of
//! segments are messages without any frame, so that what looks like a command is one.

use throng_scenario::PeerEngine;

mod binary;
mod json;

use binary::Joiner;

/// Most bytes of a message (`webRtcMaxMessageSize`).
pub(super) const MESSAGE_LEN_MAX: usize = 64 * 1024 - 1;

/// Segments that one announcement may name; those of recordings can be thousands.
const ANNOUNCED_MAX: usize = 16_384;

/// What a peer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PeerCommand {
    /// All that it has, and all that it loads from the server.
    Announcement { loaded: Vec<u64>, loading: Vec<u64> },
    /// Asks for a segment from this byte on. `request` names the request; 0.6 has no such names.
    Request { segment: u64, request: u64, from_byte: u64 },
    /// So many bytes of a segment follow.
    Segment { segment: u64, request: u64, bytes: u64 },
    /// The segment was sent; 0.6 does not say so.
    Sent { segment: u64, request: u64 },
    /// It does not have the segment.
    Absent { segment: u64, request: u64 },
    /// Asks no more for it.
    Cancel { segment: u64, request: u64 },
}

/// A message of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PeerMessage<'a> {
    Command(PeerCommand),
    /// The next bytes of the segment that it sends.
    Piece(&'a [u8]),
    /// Nothing yet: the rest of the command follows; or nothing that concerns this swarm.
    Nothing,
}

/// Why a message cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    #[error("a command breaks off")]
    Truncated,
    #[error("a command has no type {0}")]
    Command(u64),
    #[error("a command has a field of unknown type {0}")]
    Field(u8),
    #[error("a number of a command is negative, or too large")]
    Number,
    #[error("a command names more than {ANNOUNCED_MAX} segments")]
    TooMany,
    #[error("parts of commands are out of order")]
    Order,
    #[error("a command is not as the engine writes it: {0}")]
    Json(&'static str),
}

/// One side of the conversation with one peer.
#[derive(Debug)]
pub(super) enum Wire {
    Binary(Joiner),
    /// With the name of the swarm, which is in all names of segments.
    Json(String),
}

impl Wire {
    /// `swarm` names the swarm of the rendition.
    pub(super) fn new(engine: PeerEngine, swarm: &str) -> Self {
        match engine {
            // Engine 4 has no data channels here: what it says was not seen.
            PeerEngine::V22 | PeerEngine::V23 | PeerEngine::V4 => Self::Binary(Joiner::default()),
            PeerEngine::V06 => Self::Json(swarm.to_owned()),
        }
    }

    /// The messages that say it.
    pub(super) fn write(&self, said: &PeerCommand) -> Vec<Vec<u8>> {
        match self {
            Self::Binary(_) => binary::write(said),
            Self::Json(swarm) => json::write(said, swarm).into_iter().collect(),
        }
    }

    /// Reads a message.
    pub(super) fn read<'a>(&mut self, message: &'a [u8]) -> Result<PeerMessage<'a>, WireError> {
        match self {
            Self::Binary(joiner) => joiner.read(message),
            Self::Json(swarm) => json::read(message, swarm),
        }
    }

    /// Whether requests have names and their ends are said, so that a sender can be asked to stop.
    pub(super) fn has_ends(&self) -> bool {
        matches!(self, Self::Binary(_))
    }
}

/// Reads what a peer of `engine` may say, writes it, and reads it again: `false` if that differs.
/// For hunts for inputs that break the reader.
#[must_use]
pub fn peer_message_survives(engine: PeerEngine, message: &[u8]) -> bool {
    let mut wire = Wire::new(engine, "swarm+V0");
    let Ok(PeerMessage::Command(said)) = wire.read(message) else { return true };
    let written = wire.write(&said);
    let mut again = Ok(PeerMessage::Nothing);
    for message in &written {
        again = wire.read(message);
    }
    let Ok(PeerMessage::Command(again)) = again else { return written.is_empty() };
    in_order(again) == in_order(said)
}

/// An announcement with its segments in order, which has no meaning.
fn in_order(mut said: PeerCommand) -> PeerCommand {
    if let PeerCommand::Announcement { loaded, loading } = &mut said {
        loaded.sort_unstable();
        loading.sort_unstable();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_in_both_forms() {
        let all = [
            PeerCommand::Announcement { loaded: vec![1, 255, 256, 70_000], loading: vec![3] },
            PeerCommand::Announcement { loaded: Vec::new(), loading: Vec::new() },
            PeerCommand::Request { segment: 1_234_567_890, request: 999, from_byte: 0 },
            PeerCommand::Request { segment: 7, request: 0, from_byte: 65_536 },
            PeerCommand::Segment { segment: 0, request: 128, bytes: 1_000_000 },
            PeerCommand::Sent { segment: 3, request: 5 },
            PeerCommand::Absent { segment: 3, request: 5 },
            PeerCommand::Cancel { segment: 3, request: 5 },
        ];
        for engine in [PeerEngine::V22, PeerEngine::V06] {
            let mut wire = Wire::new(engine, "https://example.com/master.m3u8+V0");
            for said in &all {
                let messages = wire.write(said);
                let [message] = &messages[..] else {
                    assert!(
                        engine == PeerEngine::V06 && matches!(said, PeerCommand::Sent { .. }),
                        "{said:?}"
                    );
                    continue;
                };
                let mut expected = said.clone();
                if engine == PeerEngine::V06 {
                    // It names no requests, and always asks for all of it.
                    match &mut expected {
                        PeerCommand::Request { request, from_byte, .. } => {
                            (*request, *from_byte) = (0, 0);
                        }
                        PeerCommand::Segment { request, .. }
                        | PeerCommand::Absent { request, .. }
                        | PeerCommand::Cancel { request, .. } => *request = 0,
                        PeerCommand::Announcement { .. } | PeerCommand::Sent { .. } => {}
                    }
                }
                assert_eq!(wire.read(message), Ok(PeerMessage::Command(expected)), "{engine:?}");
            }
            assert_eq!(wire.read(b"\x47\0\x11 media"), Ok(PeerMessage::Piece(b"\x47\0\x11 media")));
            assert_eq!(wire.read(b""), Ok(PeerMessage::Piece(b"")));
        }
    }

    /// Whatever a peer sends is read without a panic, and within bounds.
    #[test]
    fn hostile_messages_are_refused() {
        let mut rng = fastrand::Rng::with_seed(7);
        for engine in [PeerEngine::V22, PeerEngine::V06] {
            let mut wire = Wire::new(engine, "swarm");
            let seed = PeerCommand::Announcement { loaded: (0..300).collect(), loading: vec![301] };
            let seeds = [
                wire.write(&seed),
                wire.write(&PeerCommand::Segment { segment: 1, request: 2, bytes: 3 }),
            ];
            for _ in 0..20_000 {
                let mut message = seeds[rng.usize(..2)][0].clone();
                for _ in 0..rng.usize(1..6) {
                    let at = rng.usize(..message.len());
                    match rng.u8(..3) {
                        0 => message[at] = rng.u8(..),
                        1 => drop(message.remove(at)),
                        _ => message.insert(at, rng.u8(..)),
                    }
                }
                assert!(peer_message_survives(engine, &message), "{message:?}");
                let _ = wire.read(&message);
            }
        }
    }
}
