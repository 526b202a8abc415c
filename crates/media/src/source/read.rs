//! A media file of any supported format.

use throng_observation::Codec;

use super::clip::{Clip, ClipError};
use super::{frame_files, packet_files};
use crate::container::annexb::nal_units;

/// Properties that some files do not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Format {
    /// The codec of a byte stream or a capture; the default is H.264 for a byte stream, VP8 for a
    /// capture.
    pub codec: Option<Codec>,
    /// Frames per second of a byte stream; 30 by default.
    pub fps: Option<f64>,
    /// Which stream of a capture to play; the largest by default.
    pub ssrc: Option<u32>,
}

/// Default frame rate of a byte stream.
const FPS: f64 = 30.0;

/// Makes a clip of a media file. The format is recognised by the first bytes, not by the name.
///
/// # Errors
/// [`ClipError`].
pub fn read(file: &[u8], format: &Format) -> Result<Clip, ClipError> {
    let fps = format.fps.filter(|fps| (0.1..=1_000.0).contains(fps)).unwrap_or(FPS);
    match file {
        [b'D', b'K', b'I', b'F', ..] => frame_files::ivf(file),
        [b'O', b'g', b'g', b'S', ..] => frame_files::opus(file),
        [0xff, sync, ..] if sync & 0xf6 == 0xf0 => frame_files::aac(file),
        _ if file.starts_with(b"MJR0") || file.starts_with(b"MEETECHO") => packet_files::mjr(file),
        [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..] => {
            packet_files::pcap(file, format.codec.unwrap_or(Codec::Vp8), format.ssrc)
        }
        [0, 0, 1, ..] | [0, 0, 0, 1, ..] if nal_units(file).next().is_some() => {
            match format.codec {
                Some(Codec::H265) => frame_files::h265(file, fps),
                None | Some(Codec::H264) => frame_files::h264(file, fps),
                Some(other) => Err(ClipError::Codec {
                    codec: other.name().into(),
                    format: "an Annex-B byte stream",
                }),
            }
        }
        _ => Err(ClipError::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_beginning() {
        let none = Format::default();
        for (bytes, expect) in [
            (&b"DKIF"[..], "no IVF header"),
            (b"OggS", "Ogg page at offset 0 is cut off"),
            (b"\xff\xf1\x50", "the frame at offset 0 is cut off"),
            (b"MJR00002", "the header at offset 10 cannot be read: the file ends within it"),
            (
                b"\xd4\xc3\xb2\xa1",
                "not a pcap file; a pcapng file becomes one with `tshark -F pcap -r FILE -w OUT`",
            ),
            (
                b"\0\0\x01\x41\x9a",
                "it holds no key frame: encode it with one at its start at least",
            ),
            (
                b"",
                "no media file that throng reads: it is neither IVF, Ogg, ADTS, Janus .mjr, pcap nor an Annex-B byte stream",
            ),
        ] {
            assert_eq!(read(bytes, &none).unwrap_err().to_string(), expect);
        }
        let vp8 = Format { codec: Some(Codec::Vp8), ..none };
        let error = read(b"\0\0\x01\x65", &vp8).unwrap_err().to_string();
        assert_eq!(error, "VP8 from an Annex-B byte stream cannot be sent");
    }
}
