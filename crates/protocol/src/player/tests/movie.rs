//! A small MP4 file (ISO/IEC 14496-12) with a track of video and one of audio.

/// A file, and what is in it.
#[derive(Clone)]
pub(super) struct Movie {
    pub(super) bytes: Vec<u8>,
    pub(super) video_frames: u64,
    pub(super) audio_frames: u64,
    /// Of the media.
    pub(super) bytes_per_s: u64,
}

/// Coded size of a frame of video (25 a second) and of audio (50 a second).
const VIDEO_BYTES: u32 = 4_000;
const AUDIO_BYTES: u32 = 200;

pub(super) fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut all = (content.len() as u32 + 8).to_be_bytes().to_vec();
    all.extend_from_slice(kind);
    all.extend_from_slice(content);
    all
}

pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Width and height of the pictures.
pub(super) const SIZE: (u16, u16) = (640, 360);

pub(super) struct TrackPlan {
    pub(super) handler: &'static [u8; 4],
    pub(super) entry: &'static [u8; 4],
    /// Width and height of pictures.
    pub(super) size: (u16, u16),
    pub(super) frames: u32,
    pub(super) frame_ms: u32,
    pub(super) frame_bytes: u32,
    /// Offset of each fifth of a second of the track.
    pub(super) chunks: Vec<u32>,
    pub(super) key_every: u32,
}

pub(super) fn track(number: u32, plan: &TrackPlan) -> Vec<u8> {
    let per_chunk = 200 / plan.frame_ms;
    let length = plan.frames * plan.frame_ms;
    let keys: Vec<u32> =
        (0..plan.frames).step_by(plan.key_every as usize).map(|frame| frame + 1).collect();
    let mut entry = [0; 78];
    entry[24..26].copy_from_slice(&plan.size.0.to_be_bytes());
    entry[26..28].copy_from_slice(&plan.size.1.to_be_bytes());
    let entry = boxed(plan.entry, &entry);
    let mut stbl = boxed(b"stsd", &[words(&[0, 1]), entry].concat());
    stbl.extend(boxed(b"stts", &words(&[0, 1, plan.frames, plan.frame_ms])));
    stbl.extend(boxed(b"stsz", &words(&[0, plan.frame_bytes, plan.frames])));
    stbl.extend(boxed(b"stsc", &words(&[0, 1, 1, per_chunk, 1])));
    stbl.extend(boxed(
        b"stco",
        &[words(&[0, plan.chunks.len() as u32]), words(&plan.chunks)].concat(),
    ));
    if plan.key_every > 1 {
        stbl.extend(boxed(b"stss", &[words(&[0, keys.len() as u32]), words(&keys)].concat()));
    }
    let minf = boxed(b"minf", &boxed(b"stbl", &stbl));
    let hdlr = boxed(b"hdlr", &[&[0; 8][..], plan.handler, &[0; 13]].concat());
    let mdhd = boxed(b"mdhd", &words(&[0, 0, 0, 1_000, length, 0]));
    let mut tkhd = words(&[7, 0, 0, number, 0, length]);
    tkhd.resize(84, 0);
    boxed(b"trak", &[boxed(b"tkhd", &tkhd), boxed(b"mdia", &[mdhd, hdlr, minf].concat())].concat())
}

/// A file of so many seconds, its index before or behind the media.
pub(super) fn movie(seconds: u32, index_first: bool) -> Movie {
    make(seconds, seconds, index_first)
}

/// A file whose pictures end before its sound.
pub(super) fn with_pictures(seconds: u32, pictures_s: u32) -> Movie {
    make(seconds, pictures_s, true)
}

fn make(seconds: u32, pictures_s: u32, index_first: bool) -> Movie {
    let second_bytes = 25 * VIDEO_BYTES + 50 * AUDIO_BYTES;
    let ftyp = boxed(b"ftyp", b"isom\0\0\x02\0isomavc1");
    let index = |media_at: u32| {
        let chunk_bytes = second_bytes / 5;
        let chunk = |seconds: u32, at: u32| {
            (0..5 * seconds).map(|chunk| media_at + chunk * chunk_bytes + at).collect()
        };
        let video = TrackPlan {
            handler: b"vide",
            entry: b"avc1",
            size: SIZE,
            frames: 25 * pictures_s,
            frame_ms: 40,
            frame_bytes: VIDEO_BYTES,
            chunks: chunk(pictures_s, 0),
            key_every: 50,
        };
        let audio = TrackPlan {
            handler: b"soun",
            entry: b"mp4a",
            size: (0, 0),
            frames: 50 * seconds,
            frame_ms: 20,
            frame_bytes: AUDIO_BYTES,
            chunks: chunk(seconds, 5 * VIDEO_BYTES),
            key_every: 1,
        };
        let mut mvhd = words(&[0, 0, 0, 1_000, seconds * 1_000]);
        mvhd.resize(100, 0);
        boxed(b"moov", &[boxed(b"mvhd", &mvhd), track(1, &video), track(2, &audio)].concat())
    };
    let media = boxed(b"mdat", &vec![0x55; (seconds * second_bytes) as usize]);
    let media_at = ftyp.len() + 8 + if index_first { index(0).len() } else { 0 };
    let index = index(media_at as u32);
    let bytes =
        if index_first { [ftyp, index, media].concat() } else { [ftyp, media, index].concat() };
    Movie {
        bytes,
        video_frames: u64::from(25 * pictures_s),
        audio_frames: u64::from(50 * seconds),
        bytes_per_s: u64::from(second_bytes),
    }
}
