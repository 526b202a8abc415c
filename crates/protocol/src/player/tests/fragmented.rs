//! Segments of fragmented MP4 (ISO/IEC 14496-12 section 8.8) with one track of H.264.

use std::ops::Range;

use super::movie::{TrackPlan, boxed, track, words};

/// Frames a second.
pub(super) const FPS: u32 = 25;

const FRAME_MS: u32 = 1_000 / FPS;
const FRAME_BYTES: u32 = 1_800;
/// Not a sync sample, and depends on others.
const NOT_KEY: u32 = 0x0101_0000;

/// The initialisation segment of pictures of this width and height.
pub(super) fn init(size: (u16, u16)) -> Vec<u8> {
    let video = TrackPlan {
        handler: b"vide",
        entry: b"avc1",
        size,
        frames: 0,
        frame_ms: FRAME_MS,
        frame_bytes: FRAME_BYTES,
        chunks: Vec::new(),
        key_every: 1,
    };
    let mut mvhd = words(&[0, 0, 0, 1_000, 0]);
    mvhd.resize(100, 0);
    let defaults = boxed(b"trex", &words(&[0, 1, 1, FRAME_MS, FRAME_BYTES, NOT_KEY]));
    let moov = [boxed(b"mvhd", &mvhd), track(1, &video), boxed(b"mvex", &defaults)];
    [boxed(b"ftyp", b"iso5\0\0\x02\0iso5avc1"), boxed(b"moov", &moov.concat())].concat()
}

/// A fragment of these frames, of which the first is a key frame.
pub(super) fn fragment(frames: Range<u32>) -> Vec<u8> {
    let count = frames.end - frames.start;
    let head = |data_at: u32| {
        // Data are counted from the beginning of the fragment.
        let header = boxed(b"tfhd", &words(&[0x02_0000, 1]));
        let begins = boxed(b"tfdt", &words(&[0, frames.start * FRAME_MS]));
        // The run says where its data are, and the flags of its first frame.
        let run = boxed(b"trun", &words(&[0x05, count, data_at, 0]));
        let of_track = boxed(b"traf", &[header, begins, run].concat());
        boxed(b"moof", &[boxed(b"mfhd", &words(&[0, 1])), of_track].concat())
    };
    let data_at = head(0).len() as u32 + 8;
    [head(data_at), boxed(b"mdat", &vec![0x55; (count * FRAME_BYTES) as usize])].concat()
}

/// A fragment of so many seconds from there on.
pub(super) fn seconds(seconds: Range<u32>) -> Vec<u8> {
    fragment(seconds.start * FPS..seconds.end * FPS)
}
