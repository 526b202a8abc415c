//! The chunk stream of RTMP: messages cut into pieces, so that a large one does not hold up the
//! others ("Adobe's Real Time Messaging Protocol", 1.0, section 5.3).

use std::collections::BTreeMap;

/// Most bytes of a piece until the sender says otherwise (section 5.4.1).
const CHUNK_BYTES: usize = 128;

/// Most bytes of a message to a publisher: commands and acknowledgements.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Most chunk streams that a server may use at a time.
const STREAMS_MAX: usize = 64;

/// A timestamp that does not fit 24 bits follows the header.
const EXTENDED: u32 = 0xff_ffff;

/// Types of messages (sections 5.4 and 7.1).
pub(super) mod kind {
    pub(crate) const SET_CHUNK_SIZE: u8 = 1;
    pub(crate) const ACKNOWLEDGEMENT: u8 = 3;
    pub(crate) const USER_CONTROL: u8 = 4;
    pub(crate) const WINDOW_SIZE: u8 = 5;
    pub(crate) const SET_PEER_BANDWIDTH: u8 = 6;
    pub(crate) const AUDIO: u8 = 8;
    pub(crate) const VIDEO: u8 = 9;
    pub(crate) const DATA: u8 = 18;
    pub(crate) const COMMAND: u8 = 20;
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u8,
    /// The message stream; 0 is the connection.
    pub(super) stream: u32,
    /// Milliseconds, wrapping.
    pub(super) timestamp_ms: u32,
    pub(super) body: Vec<u8>,
}

/// The bytes are no chunk stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChunkError {
    #[error("a message of {0} bytes, more than {MESSAGE_BYTES_MAX}")]
    Long(usize),
    #[error("chunk stream {0} goes on before it has begun")]
    NotBegun(u32),
    #[error("more than {STREAMS_MAX} chunk streams")]
    Streams,
    #[error("a chunk size of {0}")]
    Size(u32),
}

/// Writes messages.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    chunk_bytes: usize,
    /// Timestamp of the last message of each chunk stream.
    last_ms: BTreeMap<u8, u32>,
}

impl ChunkWriter {
    pub(super) fn new() -> Self {
        Self { chunk_bytes: CHUNK_BYTES, last_ms: BTreeMap::new() }
    }

    /// The size of pieces from now on; the server has to be told.
    pub(super) fn set_chunk_bytes(&mut self, bytes: u32) {
        self.chunk_bytes = bytes as usize;
    }

    /// Appends `message` on chunk stream `id` (3 to 63). Timestamps of one chunk stream do not
    /// decrease.
    pub(super) fn write(&mut self, id: u8, message: &Message, out: &mut Vec<u8>) {
        let delta = self.last_ms.insert(id, message.timestamp_ms);
        let delta = delta.map(|last| message.timestamp_ms.wrapping_sub(last));
        let (format, time) = match delta {
            Some(delta) if delta < EXTENDED => (1 << 6, delta),
            _ => (0, message.timestamp_ms),
        };
        let is_extended = time >= EXTENDED;
        out.push(format | id);
        out.extend_from_slice(&time.min(EXTENDED).to_be_bytes()[1..]);
        out.extend_from_slice(&(message.body.len() as u32).to_be_bytes()[1..]);
        out.push(message.kind);
        if format == 0 {
            out.extend_from_slice(&message.stream.to_le_bytes());
        }
        let extended = is_extended.then(|| time.to_be_bytes());
        out.extend_from_slice(extended.as_ref().map_or(&[][..], |bytes| bytes));
        for (at, piece) in message.body.chunks(self.chunk_bytes).enumerate() {
            if at > 0 {
                out.push(3 << 6 | id);
                out.extend_from_slice(extended.as_ref().map_or(&[][..], |bytes| bytes));
            }
            out.extend_from_slice(piece);
        }
    }
}

/// Reads messages from pieces of any length.
#[derive(Debug)]
pub(super) struct ChunkReader {
    bytes: Vec<u8>,
    chunk_bytes: usize,
    /// With the message that each is sending.
    streams: BTreeMap<u32, (Incoming, Vec<u8>)>,
}

/// What a chunk stream has said last.
#[derive(Clone, Copy, Debug, Default)]
struct Incoming {
    timestamp_ms: u32,
    delta_ms: u32,
    is_extended: bool,
    length: usize,
    kind: u8,
    stream: u32,
}

/// The header of a chunk.
struct Header {
    id: u32,
    incoming: Incoming,
    /// It begins a message.
    is_first: bool,
    /// Its length.
    bytes: usize,
}

impl ChunkReader {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), chunk_bytes: CHUNK_BYTES, streams: BTreeMap::new() }
    }

    /// Takes the next bytes of the connection.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message.
    pub(super) fn next(&mut self) -> Result<Option<Message>, ChunkError> {
        let mut at = 0;
        let message = loop {
            match self.chunk(at)? {
                Some((length, message)) => {
                    at += length;
                    if let Some(message) = message {
                        break Some(message);
                    }
                }
                None => break None,
            }
        };
        self.bytes.drain(..at);
        Ok(message)
    }

    /// Reads the chunk at `at`, if all of it is there: its length, and the message that it
    /// completes.
    fn chunk(&mut self, at: usize) -> Result<Option<(usize, Option<Message>)>, ChunkError> {
        let bytes = self.bytes.get(at..).unwrap_or_default();
        let Some(header) = self.header(bytes)? else { return Ok(None) };
        let Header { id, mut incoming, is_first, bytes: header_bytes } = header;
        let received = if is_first { 0 } else { self.received(id) };
        let length = incoming.length.saturating_sub(received).min(self.chunk_bytes);
        let Some(piece) = bytes.get(header_bytes..header_bytes + length) else { return Ok(None) };
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&id) {
            return Err(ChunkError::Streams);
        }
        let (known, body) = self.streams.entry(id).or_default();
        if is_first {
            body.clear();
            incoming.timestamp_ms = incoming.timestamp_ms.wrapping_add(incoming.delta_ms);
        }
        body.extend_from_slice(piece);
        *known = incoming;
        let is_complete = body.len() >= incoming.length;
        let message = is_complete.then(|| Message {
            kind: incoming.kind,
            stream: incoming.stream,
            timestamp_ms: incoming.timestamp_ms,
            body: std::mem::take(body),
        });
        if let Some(Message { kind: kind::SET_CHUNK_SIZE, body, .. }) = &message
            && let Some(size) = body.first_chunk::<4>()
        {
            let size = u32::from_be_bytes(*size);
            if !(1..=0x7fff_ffff).contains(&size) {
                return Err(ChunkError::Size(size));
            }
            self.chunk_bytes = size as usize;
        }
        Ok(Some((header_bytes + length, message)))
    }

    /// Bytes of the message that chunk stream `id` is sending.
    fn received(&self, id: u32) -> usize {
        self.streams.get(&id).map_or(0, |(_, body)| body.len())
    }

    /// The header at the beginning of `bytes`, if all of it is there.
    fn header(&self, bytes: &[u8]) -> Result<Option<Header>, ChunkError> {
        let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
        let (id, id_bytes) = match (first & 0x3f, rest) {
            (0, [low, ..]) => (64 + u32::from(*low), 2),
            (1, [low, high, ..]) => (64 + u32::from(*low) + (u32::from(*high) << 8), 3),
            (0 | 1, _) => return Ok(None),
            (id, _) => (u32::from(id), 1),
        };
        let format = first >> 6;
        let known = self.streams.get(&id);
        if format != 0 && known.is_none() {
            return Err(ChunkError::NotBegun(id));
        }
        let mut incoming = known.map(|(known, _)| *known).unwrap_or_default();
        // A full header in the middle of a message begins another one.
        let is_first = format < 2 || self.received(id) == 0;
        let fields_bytes = [11, 7, 3, 0][usize::from(format)];
        let Some(fields) = bytes.get(id_bytes..id_bytes + fields_bytes) else { return Ok(None) };
        let u24 = |at: usize| {
            fields.get(at..at + 3).map_or(0, |b| u32::from_be_bytes([0, b[0], b[1], b[2]]))
        };
        if format < 3 {
            incoming.is_extended = u24(0) == EXTENDED;
        }
        if format < 2 {
            incoming.length = u24(3) as usize;
            incoming.kind = fields.get(6).copied().unwrap_or(0);
        }
        if let Some(stream) = fields.get(7..11).and_then(|bytes| bytes.first_chunk::<4>()) {
            incoming.stream = u32::from_le_bytes(*stream);
        }
        let mut length = id_bytes + fields_bytes;
        let mut time = u24(0);
        if incoming.is_extended {
            let Some(extended) = bytes.get(length..).and_then(|rest| rest.first_chunk::<4>())
            else {
                return Ok(None);
            };
            time = u32::from_be_bytes(*extended);
            length += 4;
        }
        match format {
            0 => (incoming.timestamp_ms, incoming.delta_ms) = (time, 0),
            1 | 2 => incoming.delta_ms = time,
            _ => {}
        }
        if incoming.length > MESSAGE_BYTES_MAX {
            return Err(ChunkError::Long(incoming.length));
        }
        Ok(Some(Header { id, incoming, is_first, bytes: length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, timestamp_ms: u32, length: usize) -> Message {
        let body = (0..length).map(|at| (at % 251) as u8).collect();
        Message { kind, stream: 1, timestamp_ms, body }
    }

    fn read_in_pieces(bytes: &[u8], piece: usize) -> Vec<Message> {
        let mut reader = ChunkReader::new();
        let mut messages = Vec::new();
        for piece in bytes.chunks(piece) {
            reader.feed(piece);
            while let Some(message) = reader.next().unwrap() {
                messages.push(message);
            }
        }
        messages
    }

    #[test]
    fn what_is_written_reads_back_from_pieces_of_any_length() {
        let messages = [
            message(kind::VIDEO, 0, 1_000),
            message(kind::VIDEO, 33, 1),
            message(kind::VIDEO, 33, 0),
            message(kind::VIDEO, 0x0100_0000, 300),
            message(kind::VIDEO, 0x0100_0021, 129),
        ];
        let mut writer = ChunkWriter::new();
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| writer.write(6, message, &mut bytes));
        for piece in [1, 7, 128, bytes.len()] {
            assert_eq!(read_in_pieces(&bytes, piece), messages, "pieces of {piece}");
        }
    }

    #[test]
    fn chunk_streams_interleave_and_sizes_change() {
        let mut bytes = vec![2, 0, 0, 0, 0, 0, 4, kind::SET_CHUNK_SIZE, 0, 0, 0, 0, 0, 0, 0, 3];
        bytes.extend([3, 0, 0, 9, 0, 0, 5, kind::COMMAND, 1, 0, 0, 0, b'a', b'b', b'c']);
        bytes.extend([0, 10, 0, 0, 7, 0, 0, 2, kind::DATA, 0, 0, 0, 0, b'x', b'y']);
        bytes.extend([3 << 6 | 3, b'd', b'e']);
        let read = read_in_pieces(&bytes, 5);
        let brief: Vec<_> = read.iter().map(|m| (m.kind, m.timestamp_ms, m.body.clone())).collect();
        let expect = [
            (kind::SET_CHUNK_SIZE, 0, vec![0, 0, 0, 3]),
            (kind::DATA, 7, b"xy".to_vec()),
            (kind::COMMAND, 9, b"abcde".to_vec()),
        ];
        assert_eq!(brief, expect);
    }

    #[test]
    fn damage_is_an_error() {
        for (bytes, expect) in [
            (vec![3 << 6 | 5], ChunkError::NotBegun(5)),
            (vec![5, 0, 0, 0, 255, 255, 255, 20, 0, 0, 0, 0], ChunkError::Long(0xff_ffff)),
            (vec![2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0], ChunkError::Size(0)),
        ] {
            let mut reader = ChunkReader::new();
            reader.feed(&bytes);
            assert_eq!(reader.next(), Err(expect));
        }
        let mut reader = ChunkReader::new();
        for id in 3..=80 {
            let id: &[u8] = if id < 64 { &[id] } else { &[0, id - 64] };
            reader.feed(&[id, &[0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0]].concat());
        }
        let result = std::iter::from_fn(|| reader.next().transpose()).find_map(Result::err);
        assert_eq!(result, Some(ChunkError::Streams));
    }
}
