//! A player's driver without a network: passes the bytes of a file in pieces of random sizes, drops
//! what may be ignored, and jumps where it is told to.

use throng_media::timing::{TimedFrame, TimingReader, Want};

use crate::ffmpeg::Probed;

/// What came of a whole file.
#[derive(Debug)]
pub(crate) struct Played {
    /// The frames of each track.
    pub(crate) tracks: Vec<Vec<TimedFrame>>,
    /// Bytes that were delivered, and that were only counted.
    pub(crate) delivered: u64,
    pub(crate) ignored: u64,
    pub(crate) jumps: Vec<u64>,
}

/// Plays a file to its end.
pub(crate) fn play(file: &[u8], reader: &mut TimingReader, seed: u64, piece_max: u64) -> Played {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut played = Played { tracks: Vec::new(), delivered: 0, ignored: 0, jumps: Vec::new() };
    loop {
        let position = reader.position();
        let left = (file.len() as u64).saturating_sub(position);
        let piece = random.u64(1..=piece_max);
        match reader.want() {
            Want::Done => break,
            Want::Jump(offset) => {
                reader.jumped(offset);
                played.jumps.push(offset);
                assert_eq!(reader.position(), offset);
                assert!(played.jumps.len() < 20, "{:?}", played.jumps);
                continue;
            }
            _ if left == 0 => break,
            Want::Ignore(count) => {
                let count = count.min(left).min(piece);
                reader.ignored(count);
                played.ignored += count;
            }
            Want::Deliver(count) => {
                // Sometimes more comes than was asked for.
                let count = if random.u8(0..4) == 0 { piece } else { count.min(piece) }.min(left);
                let start = position as usize;
                reader.feed(&file[start..start + count as usize]).unwrap();
                played.delivered += count;
            }
        }
        assert!(reader.position() > position, "no progress at {position}: {:?}", reader.want());
        drain(reader, &mut played.tracks);
    }
    reader.finish().unwrap();
    drain(reader, &mut played.tracks);
    played
}

pub(crate) fn drain(reader: &mut TimingReader, tracks: &mut Vec<Vec<TimedFrame>>) {
    while let Some(frame) = reader.next_frame() {
        let track = usize::from(frame.track);
        assert!(track < reader.tracks().expect("tracks are known before frames").len());
        tracks.resize(tracks.len().max(track + 1), Vec::new());
        tracks[track].push(frame);
    }
}

/// How exactly times must agree, and what ffprobe does not know or counts in another way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exactness {
    pub(crate) time_us: i64,
    pub(crate) duration: bool,
    pub(crate) decode: bool,
    pub(crate) size: bool,
}

pub(crate) const EXACT: Exactness =
    Exactness { time_us: 1, duration: true, decode: true, size: true };

/// Compares the frames of one track.
pub(crate) fn compare(what: &str, frames: &[TimedFrame], probed: &[Probed], exact: Exactness) {
    let count = probed.len();
    for (i, (frame, probed)) in frames.iter().zip(probed).enumerate() {
        let near = |a: i64, b: Option<i64>| {
            b.is_none_or(|b| a.abs_diff(b) <= exact.time_us.unsigned_abs())
        };
        let equal = near(frame.presentation_us, probed.presentation_us)
            && (!exact.decode || near(frame.decode_us, probed.decode_us))
            // FFmpeg prefers the codec's duration to the file's, which cuts the last frame of
            // sound.
            && (!exact.duration || i + 1 == count || near(frame.duration_us.into(), probed.duration_us))
            && (!exact.size || frame.bytes == probed.bytes)
            && frame.is_key == probed.is_key;
        assert!(equal, "{what}: frame {i} of {count}: {frame:?}, ffprobe: {probed:?}");
    }
    assert_eq!(frames.len(), count, "{what}: frames");
}
