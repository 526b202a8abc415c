//! IVF, the file of the VPx and AV1 tools: a 32-byte header, then frames with a 12-byte header
//! each; little-endian.

const MAGIC: [u8; 4] = *b"DKIF";
/// Bytes of the file header; the header's own length field may be larger.
const FILE_HEADER_LEN: usize = 32;

/// Why bytes are not an IVF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IvfError {
    /// It does not begin with `DKIF`, or ends within its header.
    #[error("no IVF header")]
    Header,
    /// A frame runs past the end of the file.
    #[error("frame {frame} at offset {offset} needs {needed} bytes, {len} are left")]
    Truncated {
        /// Number of the frame, from 0.
        frame: u32,
        /// Offset of its header.
        offset: usize,
        /// Bytes that it needs, its header included.
        needed: usize,
        /// Bytes from there to the end of the file.
        len: usize,
    },
}

/// Reads the frames of an IVF file in order; ends after the first error.
#[derive(Clone, Debug)]
pub struct IvfReader<'a> {
    /// `VP80`, `VP90`, `AV01` …
    pub fourcc: [u8; 4],
    /// Width, pixels.
    pub width: u16,
    /// Height, pixels.
    pub height: u16,
    /// Units of [`IvfFrame::pts`] per second: numerator.
    pub rate: u32,
    /// Units of [`IvfFrame::pts`] per second: denominator.
    pub scale: u32,
    file: &'a [u8],
    offset: usize,
    frame: u32,
}

/// A frame of an IVF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IvfFrame<'a> {
    /// Presentation time in units of scale / rate seconds.
    pub pts: u64,
    /// The coded frame.
    pub data: &'a [u8],
}

impl<'a> IvfReader<'a> {
    /// Reads the file header.
    ///
    /// # Errors
    /// [`IvfError::Header`].
    pub fn new(file: &'a [u8]) -> Result<Self, IvfError> {
        let header = file.first_chunk::<FILE_HEADER_LEN>().ok_or(IvfError::Header)?;
        let header_len = usize::from(u16::from_le_bytes([header[6], header[7]]));
        if header[..4] != MAGIC || header_len < FILE_HEADER_LEN || header_len > file.len() {
            return Err(IvfError::Header);
        }
        let u32_le = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        Ok(Self {
            fourcc: [header[8], header[9], header[10], header[11]],
            width: u16::from_le_bytes([header[12], header[13]]),
            height: u16::from_le_bytes([header[14], header[15]]),
            rate: u32_le(16),
            scale: u32_le(20),
            file,
            offset: header_len,
            frame: 0,
        })
    }
}

impl<'a> Iterator for IvfReader<'a> {
    type Item = Result<IvfFrame<'a>, IvfError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.file.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let (frame, offset) = (self.frame, self.offset);
        let (result, step) = match read_frame(rest) {
            Ok(read) => (Ok(read), 12 + read.data.len()),
            Err(needed) => {
                (Err(IvfError::Truncated { frame, offset, needed, len: rest.len() }), rest.len())
            }
        };
        self.offset = self.offset.saturating_add(step);
        self.frame = self.frame.saturating_add(1);
        Some(result)
    }
}

/// The frame at the start of `rest`, or how many bytes it would need.
fn read_frame(rest: &[u8]) -> Result<IvfFrame<'_>, usize> {
    let Some((&[s0, s1, s2, s3, p0, p1, p2, p3, p4, p5, p6, p7], body)) =
        rest.split_first_chunk::<12>()
    else {
        return Err(12);
    };
    let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
    let data = body.get(..size).ok_or(size.saturating_add(12))?;
    Ok(IvfFrame { pts: u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]), data })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn file(frames: &[&[u8]]) -> Vec<u8> {
        let mut file = b"DKIF\0\0\x20\0VP80".to_vec();
        file.extend([0x80, 2, 0x68, 1]); // 640 × 360
        file.extend([30, 0, 0, 0, 1, 0, 0, 0]);
        file.extend((frames.len() as u32).to_le_bytes());
        file.extend([0; 4]);
        for (pts, frame) in frames.iter().enumerate() {
            file.extend((frame.len() as u32).to_le_bytes());
            file.extend((pts as u64).to_le_bytes());
            file.extend_from_slice(frame);
        }
        file
    }

    #[test]
    fn frames_come_back_in_order() {
        let frames: [&[u8]; 3] = [&[1, 2], &[], &[3; 300]];
        let file = file(&frames);
        let reader = IvfReader::new(&file).unwrap();
        assert_eq!((&reader.fourcc, reader.width, reader.height), (b"VP80", 640, 360));
        assert_eq!((reader.rate, reader.scale), (30, 1));
        let read: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(read.iter().map(|frame| frame.data).collect::<Vec<_>>(), frames);
        assert_eq!(read.iter().map(|frame| frame.pts).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_cut_file_says_where() {
        let whole = file(&[&[1, 2], &[3, 4, 5]]);
        let mut reader = IvfReader::new(&whole[..whole.len() - 1]).unwrap();
        assert!(reader.next().unwrap().is_ok());
        let error = reader.next().unwrap().unwrap_err();
        assert_eq!(error, IvfError::Truncated { frame: 1, offset: 46, needed: 15, len: 14 });
        assert!(reader.next().is_none());
        assert_eq!(IvfReader::new(&whole[..31]).unwrap_err(), IvfError::Header);
        assert_eq!(
            IvfReader::new(b"RIFF............................").unwrap_err(),
            IvfError::Header
        );
    }
}
