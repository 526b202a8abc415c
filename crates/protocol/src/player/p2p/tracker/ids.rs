//! What names a swarm and a viewer at the tracker, by the version of p2p-media-loader.

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use throng_scenario::PeerEngine;

/// Length of both, bytes.
pub(super) const ID_LEN: usize = 20;

/// A name at the tracker.
pub(in crate::player) type Id = [u8; ID_LEN];

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// What the swarm of rendition `index` of the stream `swarm` is called at the tracker. The first
/// rendition of the manifest is 0; with [`PeerEngine::V4`] a rendition is named by its resolution,
/// such as 720.
pub(super) fn info_hash(engine: PeerEngine, swarm: &str, index: usize) -> Id {
    let mut id = Id::default();
    match engine {
        // `getStreamHash` of utils/peer.ts.
        PeerEngine::V22 | PeerEngine::V23 => {
            let hash = Md5::digest(format!("v2-{swarm}-main-{index}"));
            let text = STANDARD.encode(hash.get(1..).unwrap_or_default());
            id.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        }
        // `generateSwarmId` of PeerTube's core-utils/src/videos/p2p.ts, its
        // P2P_MEDIA_LOADER_PEER_VERSION, and `computeInfoHash` of stream-identity.ts. Sound without
        // a picture has the resolution 0.
        PeerEngine::V4 => {
            let resolution = if index == 0 { "default".to_owned() } else { index.to_string() };
            id = of_swarm_id(&format!("pt-v2-{swarm}-main-default-{resolution}"));
        }
        // `setStreamSwarmId` of p2p-media-manager.js.
        PeerEngine::V06 => {
            let text = format!("2{swarm}+V{index}");
            let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
            id.iter_mut().zip(hash.as_ref()).for_each(|(to, from)| *to = *from);
        }
    }
    id
}

/// The first 15 bytes of its SHA-1 in base64, which are 20 characters.
fn of_swarm_id(swarm_id: &str) -> Id {
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, swarm_id.as_bytes());
    let text = STANDARD.encode(hash.as_ref().get(..15).unwrap_or_default());
    let mut id = Id::default();
    id.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    id
}

/// A name for a viewer.
pub(super) fn peer_id(engine: PeerEngine, rng: &mut fastrand::Rng) -> Id {
    let prefix: &[u8] = match engine {
        PeerEngine::V22 => b"-PM0202-",
        PeerEngine::V23 => b"-PM0203-",
        // `formatVersion` of 4.0.0.
        PeerEngine::V4 => b"-PM0400-",
        PeerEngine::V06 => b"-WW0006-",
    };
    let mut id = Id::default();
    for (at, byte) in id.iter_mut().enumerate() {
        let letter = LETTERS.get(rng.usize(..LETTERS.len())).copied().unwrap_or(b'A');
        *byte = prefix.get(at).copied().unwrap_or(letter);
    }
    id
}

/// Bytes as trackers write them: a string with a character for each byte (Latin-1).
pub(super) fn text(id: &Id) -> String {
    id.iter().copied().map(char::from).collect()
}

/// What [`text`] was made of.
pub(super) fn of_text(text: &str) -> Option<Id> {
    let mut id = Id::default();
    let mut letters = text.chars();
    for byte in &mut id {
        *byte = u8::try_from(letters.next()?).ok()?;
    }
    letters.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swarms_are_named_as_by_the_engines() {
        let url = "https://example.com/static/streaming-playlists/hls/u/master.m3u8";
        assert_eq!(
            &info_hash(PeerEngine::V22, url, 0),
            b"2moHvk6b80pe3t/OcxsX",
            "of the package itself"
        );
        // A vector of the engine's own tests, and one that Python's hashlib made.
        let swarm_id = "v3-https://example.com/hls/master.m3u8-main-mskAojmI+F5YyLLvSP3sdMO5nII=";
        assert_eq!(&of_swarm_id(swarm_id), b"fvh4iuUKMgvVHaqNX5Fs");
        let uuid = "9c9de5e8-0a1e-484a-b099-e80766180a6d";
        assert_eq!(&info_hash(PeerEngine::V4, uuid, 720), b"FuGEr478XuVjbIYvey2c");
        assert_ne!(info_hash(PeerEngine::V4, uuid, 0), info_hash(PeerEngine::V4, uuid, 720));
        assert_ne!(info_hash(PeerEngine::V06, url, 0), info_hash(PeerEngine::V06, url, 1));
    }

    #[test]
    fn bytes_become_text_and_bytes_again() {
        let id = *b"\x00\xff\x80abcdefghijklmnopq";
        assert_eq!(of_text(&text(&id)), Some(id));
        for broken in ["", "short", "aaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaa\u{100}"] {
            assert_eq!(of_text(broken), None, "{broken}");
        }
        let id = peer_id(PeerEngine::V22, &mut fastrand::Rng::with_seed(1));
        assert!(id.starts_with(b"-PM0202-"));
    }
}
