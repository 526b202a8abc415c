//! Timing of files: how the bytes are cut into pieces, and which of them are dropped, changes
//! nothing.

use throng_media::timing::{
    IndexCache, InitSegment, SegmentIndex, TimedFrame, TimingError, TimingReader, Want,
};

/// More frames than a file of a few kilobytes has.
const FRAMES_MAX: usize = 1 << 20;

/// Jumps of a file that is not played to its end.
const JUMPS_MAX: usize = 20;

/// Timing: the same bytes as a file, as an initialisation segment, a segment, and an index.
pub(crate) fn timing(file: &[u8]) {
    let indexes = IndexCache::default();
    let whole = fed(file, file.len().max(1), &indexes);
    assert_eq!(fed(file, 7, &indexes), whole, "in pieces");
    assert_eq!(fed(file, 1_000, &IndexCache::default()), whole, "in larger pieces");
    let mut reader = TimingReader::new(indexes.clone(), Some(file.len() as u64));
    let mut driven = Vec::new();
    let result = drive(file, &mut reader, &mut driven);
    // Who jumps needs not all of the file, and is told less of its damage.
    if result.is_ok() && whole.1.is_ok() {
        assert_eq!(driven, whole.0, "driven");
    }
    assert!(driven.len() <= FRAMES_MAX);
    for time_us in [0, 300_000, u64::MAX] {
        if let Some((offset, _)) = reader.offset_for(time_us) {
            reader.jumped(offset);
            let _ = drive(file, &mut reader, &mut Vec::new());
        }
    }
    let _ = SegmentIndex::parse(&indexes, file, u64::MAX).map(|index| index.segments().count());
    if let Ok(init) = InitSegment::parse(file) {
        assert!(!format!("{:?}", init.tracks()).is_empty());
        let mut segment = TimingReader::segment(indexes, Some(&init));
        let _ = segment.feed(file);
        while segment.next_frame().is_some() {}
    }
}

fn drain(reader: &mut TimingReader, frames: &mut Vec<TimedFrame>) {
    while let Some(frame) = reader.next_frame() {
        assert!(usize::from(frame.track) < reader.tracks().expect("tracks before frames").len());
        frames.push(frame);
        assert!(frames.len() <= FRAMES_MAX, "more frames than bytes");
    }
}

/// The frames of each track, as all bytes are delivered in order, and how that ended.
fn fed(
    file: &[u8],
    piece: usize,
    indexes: &IndexCache,
) -> (Vec<Vec<TimedFrame>>, Result<(), TimingError>) {
    let mut reader = TimingReader::new(indexes.clone(), Some(file.len() as u64));
    let mut frames = Vec::new();
    let mut result = Ok(());
    for piece in file.chunks(piece) {
        let before = reader.position();
        result = reader.feed(piece);
        drain(&mut reader, &mut frames);
        if result.is_err() {
            break;
        }
        assert_eq!(reader.position(), before + piece.len() as u64);
    }
    if result.is_ok() {
        result = reader.finish();
        drain(&mut reader, &mut frames);
    }
    (by_track(frames), result)
}

fn by_track(frames: Vec<TimedFrame>) -> Vec<Vec<TimedFrame>> {
    let mut tracks: Vec<Vec<TimedFrame>> = Vec::new();
    for frame in frames {
        let track = usize::from(frame.track);
        tracks.resize(tracks.len().max(track + 1), Vec::new());
        tracks[track].push(frame);
    }
    tracks
}

/// As a player does: delivers what is wanted, drops the rest, jumps.
fn drive(
    file: &[u8],
    reader: &mut TimingReader,
    tracks: &mut Vec<Vec<TimedFrame>>,
) -> Result<(), TimingError> {
    let (mut frames, mut jumps) = (Vec::new(), 0);
    loop {
        let position = reader.position();
        let left = (file.len() as u64).saturating_sub(position);
        match reader.want() {
            Want::Done => break,
            Want::Jump(offset) => {
                jumps += 1;
                if jumps > JUMPS_MAX {
                    break;
                }
                reader.jumped(offset);
                continue;
            }
            _ if left == 0 => break,
            Want::Ignore(count) => {
                assert!(count > 0);
                reader.ignored(count.min(left));
            }
            Want::Deliver(count) => {
                assert!(count > 0);
                let piece =
                    &file[position as usize..(position + count.min(left).min(500)) as usize];
                reader.feed(piece)?;
            }
        }
        assert!(reader.position() > position, "progress");
        drain(reader, &mut frames);
    }
    let result = reader.finish();
    drain(reader, &mut frames);
    *tracks = by_track(frames);
    result
}
