//! `.mjr`, the recordings of Janus: the RTP packets of one stream as received, after a JSON header.
//!
//! Layout of the present format (`record.c` of Janus): `MJR00002`, a 16-bit length, JSON; then for
//! each packet `MEET`, the milliseconds since the recording began (32 bits), a 16-bit length, the
//! RTP packet. The format before it begins with `MEETECHO`, a 16-bit length, JSON or the word
//! `audio` or `video`; then for each packet `MEETECHO`, a 16-bit length, the packet. Numbers are
//! big-endian.

use serde_json::Value;
use throng_observation::{Codec, untrusted};

use crate::octets::{u16_at, u32_at};

const MAGIC: &[u8] = b"MJR00002";
const PACKET: &[u8] = b"MEET";
const OLD: &[u8] = b"MEETECHO";

/// Why bytes are not a recording that can be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MjrError {
    /// It begins with neither of the two magic words.
    #[error("not a Janus recording: it begins with neither MJR00002 nor MEETECHO")]
    Magic,
    /// The header is truncated or not JSON.
    #[error("the header at offset {offset} cannot be read: {detail}")]
    Header {
        /// Where the header's text begins.
        offset: usize,
        /// What is wrong.
        detail: String,
    },
    /// It holds data channel messages, not media.
    #[error("it is a recording of a data channel, which holds no media")]
    Data,
    /// It was recorded with end-to-end encryption.
    #[error("its media is end-to-end encrypted and cannot be played")]
    Encrypted,
    /// A packet does not begin where it should, or runs past the end of the file.
    #[error("packet {packet} at offset {offset}: {what}")]
    Packet {
        /// Number of the packet, from 0.
        packet: u32,
        /// Where it should begin.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
}

/// Reads the packets of a recording in file order; ends after the first error.
#[derive(Clone, Debug)]
pub struct MjrReader<'a> {
    /// The codec of the stream; the old header has only audio or video, for which Janus used Opus
    /// and VP8.
    pub codec: Codec,
    file: &'a [u8],
    offset: usize,
    packet: u32,
    is_old: bool,
}

/// A packet of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MjrPacket<'a> {
    /// When it was received, milliseconds since the recording began; `None` in the old format.
    pub received_ms: Option<u32>,
    /// RTP header and payload.
    pub rtp: &'a [u8],
}

impl<'a> MjrReader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// All of [`MjrError`] but [`MjrError::Packet`].
    pub fn new(file: &'a [u8]) -> Result<Self, MjrError> {
        let is_new = file.starts_with(MAGIC);
        if !is_new && !file.starts_with(OLD) {
            return Err(MjrError::Magic);
        }
        let offset = MAGIC.len() + 2;
        let cut = || MjrError::Header { offset, detail: "the file ends within it".into() };
        let len = usize::from(u16_at(file, MAGIC.len()).ok_or_else(cut)?);
        let text = file.get(offset..).and_then(|rest| rest.get(..len)).ok_or_else(cut)?;
        let codec = match text {
            b"audio" => Codec::Opus,
            b"video" => Codec::Vp8,
            b"data" => return Err(MjrError::Data),
            json => codec(json, offset)?,
        };
        Ok(Self { codec, file, offset: offset + len, packet: 0, is_old: !is_new })
    }

    fn read(&self, rest: &'a [u8]) -> Result<(MjrPacket<'a>, usize), &'static str> {
        let (magic, received_ms, at) = if self.is_old {
            (OLD, None, OLD.len())
        } else {
            (PACKET, u32_at(rest, PACKET.len()), PACKET.len() + 4)
        };
        if !rest.starts_with(magic) {
            return Err("no packet begins here");
        }
        let len = u16_at(rest, at).ok_or("the file ends within its header")?;
        let end = at + 2 + usize::from(len);
        let rtp = rest.get(at + 2..end).ok_or("the file ends within it")?;
        Ok((MjrPacket { received_ms, rtp }, end))
    }
}

/// The codec that the header contains.
fn codec(json: &[u8], offset: usize) -> Result<Codec, MjrError> {
    let header: Value = serde_json::from_slice(json)
        .map_err(|error| MjrError::Header { offset, detail: error.to_string() })?;
    if header["t"] == "d" {
        return Err(MjrError::Data);
    }
    if header["e"] == true {
        return Err(MjrError::Encrypted);
    }
    let name = header["c"].as_str().unwrap_or_default();
    match Codec::from_name(name) {
        Codec::Other
        | Codec::MpegVideo
        | Codec::Mpeg4Visual
        | Codec::Jpeg
        | Codec::Mp2t
        | Codec::Aac
        | Codec::MpegAudio => Err(MjrError::Header {
            offset,
            detail: format!("throng cannot send codec `{}`", untrusted::name(name)),
        }),
        codec => Ok(codec),
    }
}

impl<'a> Iterator for MjrReader<'a> {
    type Item = Result<MjrPacket<'a>, MjrError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.file.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let (packet, offset) = (self.packet, self.offset);
        self.packet = packet.saturating_add(1);
        match self.read(rest) {
            Ok((packet, len)) => {
                self.offset += len;
                Some(Ok(packet))
            }
            Err(what) => {
                self.offset = self.file.len();
                Some(Err(MjrError::Packet { packet, offset, what }))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn file(header: &str, packets: &[&[u8]]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend((header.len() as u16).to_be_bytes());
        file.extend(header.as_bytes());
        for (index, packet) in packets.iter().enumerate() {
            file.extend(PACKET);
            file.extend((index as u32 * 20).to_be_bytes());
            file.extend((packet.len() as u16).to_be_bytes());
            file.extend_from_slice(packet);
        }
        file
    }

    #[test]
    fn packets_come_back_with_their_times() {
        let file = file(r#"{"t":"v","c":"h264","s":1,"u":2}"#, &[&[1, 2, 3], &[4]]);
        let reader = MjrReader::new(&file).unwrap();
        assert_eq!(reader.codec, Codec::H264);
        let packets: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(
            packets,
            [
                MjrPacket { received_ms: Some(0), rtp: &[1, 2, 3] },
                MjrPacket { received_ms: Some(20), rtp: &[4] }
            ]
        );
    }

    #[test]
    fn the_old_format_is_read_too() {
        let file = [&b"MEETECHO\0\x05videoMEETECHO\0\x02"[..], &[7, 8]].concat();
        let reader = MjrReader::new(&file).unwrap();
        assert_eq!(reader.codec, Codec::Vp8);
        assert_eq!(reader.map(|packet| packet.unwrap().rtp).collect::<Vec<_>>(), [&[7, 8]]);
    }

    #[test]
    fn what_cannot_be_played_says_why() {
        for (bytes, expect) in [
            (b"RIFF".to_vec(), "neither MJR00002 nor MEETECHO"),
            (b"MJR00002\0\x09{}".to_vec(), "ends within it"),
            (file("{", &[]), "EOF"),
            (file(r#"{"t":"d","c":"text"}"#, &[]), "data channel"),
            (file(r#"{"t":"v","c":"vp8","e":true}"#, &[]), "encrypted"),
            (file(r#"{"t":"v","c":"theora"}"#, &[]), "cannot send codec `theora`"),
        ] {
            let error = MjrReader::new(&bytes).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
        let mut cut = file(r#"{"t":"a","c":"opus"}"#, &[&[1; 20], &[2; 20]]);
        cut.pop();
        let read: Vec<_> = MjrReader::new(&cut).unwrap().collect();
        assert_eq!(read.len(), 2);
        assert_eq!(
            read[1].as_ref().unwrap_err().to_string(),
            "packet 1 at offset 60: the file ends within it"
        );
    }
}
