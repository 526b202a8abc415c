//! Matroska (RFC 9559) with one video track: the input of a decoder process, and the file of a
//! stored tapped stream. Each frame is written as a cluster of its own, so that none waits for the
//! next one; only such files are read back.
//!
//! H.264 and H.265 are stored as Annex B without a configuration record, which FFmpeg and players
//! based on it accept.

use throng_observation::Codec;

const EBML: u32 = 0x1a45_dfa3;
const DOC_TYPE: u32 = 0x4282;
const SEGMENT: u32 = 0x1853_8067;
const INFO: u32 = 0x1549_a966;
const TIMESTAMP_SCALE: u32 = 0x2a_d7b1;
const MUXING_APP: u32 = 0x4d80;
const WRITING_APP: u32 = 0x5741;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK_ENTRY: u32 = 0xae;
const TRACK_NUMBER: u32 = 0xd7;
const TRACK_UID: u32 = 0x73c5;
const TRACK_TYPE: u32 = 0x83;
const CODEC_ID: u32 = 0x86;
const VIDEO: u32 = 0xe0;
const PIXEL_WIDTH: u32 = 0xb0;
const PIXEL_HEIGHT: u32 = 0xba;
const CLUSTER: u32 = 0x1f43_b675;
const TIMESTAMP: u32 = 0xe7;
const SIMPLE_BLOCK: u32 = 0xa3;

/// An unknown size: a segment that is still being written.
const UNKNOWN: u64 = 0x00ff_ffff_ffff_ffff;
/// Track number 1 as a variable-length number, a relative timestamp of 0.
const BLOCK_HEAD: [u8; 3] = [0x81, 0, 0];
const KEY: u8 = 0x80;

/// Why bytes are not a file that this module wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatroskaError {
    /// It does not begin with a Matroska header, or ends within it.
    #[error("no Matroska header")]
    Header,
    /// The track's codec is not supported.
    #[error("a codec that is not read; VP8, VP9, AV1, H.264 and H.265 are")]
    Codec,
    /// An element runs past the end of the file, or is no cluster with a timestamp and a block.
    #[error("cut off or damaged at offset {offset}")]
    Damaged {
        /// Its offset.
        offset: usize,
    },
}

fn codec_id(codec: Codec) -> Option<&'static str> {
    Some(match codec {
        Codec::Vp8 => "V_VP8",
        Codec::Vp9 => "V_VP9",
        Codec::Av1 => "V_AV1",
        Codec::H264 => "V_MPEG4/ISO/AVC",
        Codec::H265 => "V_MPEGH/ISO/HEVC",
        _ => return None,
    })
}

fn element(id: u32, body: &[u8], out: &mut Vec<u8>) {
    head(id, body.len() as u64, out);
    out.extend_from_slice(body);
}

/// An id, and a size in eight bytes.
fn head(id: u32, len: u64, out: &mut Vec<u8>) {
    let bytes = id.to_be_bytes();
    out.extend(bytes.iter().skip_while(|byte| **byte == 0));
    out.extend_from_slice(&(1 << 56 | len).to_be_bytes());
}

fn number(id: u32, value: u64, out: &mut Vec<u8>) {
    element(id, &value.to_be_bytes(), out);
}

/// The beginning of a file of `codec`; frames follow it. `size` is a first guess of width and
/// height, pixels: decoders read the real one from the stream. `None` for audio codecs.
#[must_use]
pub fn header(codec: Codec, size: (u16, u16)) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    element(
        EBML,
        &{
            let mut ebml = Vec::new();
            element(DOC_TYPE, b"matroska", &mut ebml);
            ebml
        },
        &mut out,
    );
    head(SEGMENT, UNKNOWN, &mut out);
    let mut info = Vec::new();
    number(TIMESTAMP_SCALE, 1_000_000, &mut info);
    element(MUXING_APP, b"throng", &mut info);
    element(WRITING_APP, b"throng", &mut info);
    element(INFO, &info, &mut out);
    let (mut video, mut track, mut tracks) = (Vec::new(), Vec::new(), Vec::new());
    number(PIXEL_WIDTH, u64::from(size.0.max(1)), &mut video);
    number(PIXEL_HEIGHT, u64::from(size.1.max(1)), &mut video);
    number(TRACK_NUMBER, 1, &mut track);
    number(TRACK_UID, 1, &mut track);
    number(TRACK_TYPE, 1, &mut track);
    element(CODEC_ID, codec_id(codec)?.as_bytes(), &mut track);
    element(VIDEO, &video, &mut track);
    element(TRACK_ENTRY, &track, &mut tracks);
    element(TRACKS, &tracks, &mut out);
    Some(out)
}

/// Appends a frame at `at_ms`, milliseconds after the file's beginning.
pub fn frame(at_ms: u64, key_frame: bool, bytes: &[u8], out: &mut Vec<u8>) {
    let block_len = BLOCK_HEAD.len() + 1 + bytes.len();
    // Heads of 1 + 8 bytes before the timestamp's eight and before the block.
    head(CLUSTER, (9 + 8 + 9 + block_len) as u64, out);
    number(TIMESTAMP, at_ms, out);
    head(SIMPLE_BLOCK, block_len as u64, out);
    out.extend_from_slice(&BLOCK_HEAD);
    out.push(if key_frame { KEY } else { 0 });
    out.extend_from_slice(bytes);
}

/// A frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatroskaFrame<'a> {
    /// Milliseconds after the file's beginning.
    pub at_ms: u64,
    /// It can be decoded without others.
    pub key_frame: bool,
    /// The coded frame.
    pub data: &'a [u8],
}

/// Reads the frames of a file that [`header`] and [`frame`] wrote; ends after the first error.
#[derive(Clone, Debug)]
pub struct MatroskaReader<'a> {
    /// The codec of its track.
    pub codec: Codec,
    file: &'a [u8],
    offset: usize,
}

impl<'a> MatroskaReader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`MatroskaError::Header`] and [`MatroskaError::Codec`].
    pub fn new(file: &'a [u8]) -> Result<Self, MatroskaError> {
        let mut at = 0;
        let (id, ebml) = next(file, &mut at).ok_or(MatroskaError::Header)?;
        if id != EBML || find(ebml, DOC_TYPE) != Some(b"matroska") {
            return Err(MatroskaError::Header);
        }
        let (segment, len) = read_head(file, &mut at).ok_or(MatroskaError::Header)?;
        if segment != SEGMENT || len != UNKNOWN {
            return Err(MatroskaError::Header);
        }
        loop {
            let (id, body) = next(file, &mut at).ok_or(MatroskaError::Header)?;
            if id == TRACKS {
                let named = find(body, TRACK_ENTRY).and_then(|track| find(track, CODEC_ID));
                let codecs = [Codec::Vp8, Codec::Vp9, Codec::Av1, Codec::H264, Codec::H265];
                let known = |codec: &Codec| codec_id(*codec).map(str::as_bytes) == named;
                let codec = codecs.into_iter().find(known).ok_or(MatroskaError::Codec)?;
                return Ok(Self { codec, file, offset: at });
            }
        }
    }
}

impl<'a> Iterator for MatroskaReader<'a> {
    type Item = Result<MatroskaFrame<'a>, MatroskaError>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        if offset >= self.file.len() {
            return None;
        }
        let read = next(self.file, &mut self.offset).filter(|(id, _)| *id == CLUSTER).and_then(
            |(_, cluster)| {
                let at_ms =
                    <[u8; 8]>::try_from(find(cluster, TIMESTAMP)?).ok().map(u64::from_be_bytes)?;
                let (head, data) = find(cluster, SIMPLE_BLOCK)?.split_first_chunk::<4>()?;
                Some(MatroskaFrame { at_ms, key_frame: head[3] & KEY != 0, data })
            },
        );
        if read.is_none() {
            self.offset = self.file.len();
        }
        Some(read.ok_or(MatroskaError::Damaged { offset }))
    }
}

/// The element at `at`, its id and body; moves `at` after it.
fn next<'a>(bytes: &'a [u8], at: &mut usize) -> Option<(u32, &'a [u8])> {
    let (id, len) = read_head(bytes, at)?;
    let end = at.checked_add(usize::try_from(len).ok()?)?;
    let body = bytes.get(*at..end)?;
    *at = end;
    Some((id, body))
}

fn read_head(bytes: &[u8], at: &mut usize) -> Option<(u32, u64)> {
    let id_len = bytes.get(*at)?.leading_zeros() as usize + 1;
    let id_bytes = bytes.get(*at..at.checked_add(id_len)?).filter(|id| id.len() <= 4)?;
    let id = id_bytes.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
    let len_at = *at + id_len;
    let first = *bytes.get(len_at)?;
    let len_len = first.leading_zeros() as usize + 1;
    let len_bytes = bytes.get(len_at..len_at.checked_add(len_len)?).filter(|len| len.len() <= 8)?;
    let marked = len_bytes.iter().fold(0, |len, byte| len << 8 | u64::from(*byte));
    *at = len_at + len_len;
    Some((id, marked & !(1 << (7 * len_len))))
}

fn find(bytes: &[u8], wanted: u32) -> Option<&[u8]> {
    let mut at = 0;
    while let Some((id, body)) = next(bytes, &mut at) {
        if id == wanted {
            return Some(body);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(frames: &[(u64, bool, &[u8])]) -> Vec<u8> {
        let mut file = header(Codec::H264, (640, 360)).unwrap();
        frames.iter().for_each(|(at_ms, key, bytes)| frame(*at_ms, *key, bytes, &mut file));
        file
    }

    #[test]
    fn frames_come_back_as_they_were_written() {
        let frames: [(u64, bool, &[u8]); 3] =
            [(0, true, &[1; 70_000]), (33, false, &[]), (1 << 40, false, &[9])];
        let file = file(&frames);
        let reader = MatroskaReader::new(&file).unwrap();
        assert_eq!(reader.codec, Codec::H264);
        let read: Vec<_> =
            reader.map(Result::unwrap).map(|f| (f.at_ms, f.key_frame, f.data)).collect();
        assert_eq!(read, frames);
    }

    #[test]
    fn a_file_that_is_cut_says_where_and_ends() {
        let whole = file(&[(0, true, &[1, 2, 3]), (40, false, &[4, 5, 6])]);
        let second = MatroskaReader::new(&whole).unwrap();
        let mut second = second.skip(1);
        assert!(second.next().unwrap().is_ok());
        let mut cut = MatroskaReader::new(&whole[..whole.len() - 1]).unwrap();
        assert!(cut.next().unwrap().is_ok());
        assert!(matches!(cut.next(), Some(Err(MatroskaError::Damaged { .. }))));
        assert_eq!(cut.next(), None);
        assert_eq!(MatroskaReader::new(&whole[..20]).unwrap_err(), MatroskaError::Header);
        assert_eq!(MatroskaReader::new(b"DKIF").unwrap_err(), MatroskaError::Header);
        assert!(header(Codec::Opus, (1, 1)).is_none());
    }
}
