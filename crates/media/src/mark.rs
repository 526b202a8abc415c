//! An in-media mark: frame number and capture time inside the coded stream, where every server that
//! does not transcode forwards them, with any protocol.
//!
//! In H.264 and H.265 it is an SEI message "user data unregistered" (payload type 5 of both
//! codecs). The two numbers are written seven bits to a byte with the top bit set: no byte is ever
//! 0–3, so the NAL unit needs no emulation prevention and any tool can remove or insert it.

/// The frame number and capture time that a throng source wrote into the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the frame since the source started.
    pub frame: u32,
    /// Capture time, nanoseconds since the Unix epoch on the clock of the source.
    pub captured_unix_ns: u64,
}

/// Identifies throng's user data: a version 4 UUID that begins with "throng" and has no byte
/// below 4.
pub const MARK_UUID: [u8; 16] = [
    b't', b'h', b'r', b'o', b'n', b'g', 0x4d, 0x61, 0xb2, 0xc5, 0x3e, 0x91, 0xf7, 0x4a, 0xd8, 0x6b,
];

const PAYLOAD_LEN: usize = MARK_UUID.len() + Mark::NUMBERS_LEN;
/// SEI payload type "user data unregistered".
const USER_DATA_UNREGISTERED: u8 = 5;
/// RBSP trailing bits.
const TRAILING: u8 = 0x80;
/// How far into an SEI NAL unit a mark is searched: other messages may precede it, and a hostile
/// server must not make the search expensive.
const SCAN_MAX: usize = 1024;

const H264_SEI: u8 = 6;
const H265_PREFIX_SEI: u8 = 39;

impl Mark {
    /// Length of [`Self::numbers`]: 96 bits, seven to a byte.
    pub const NUMBERS_LEN: usize = 14;
    /// Bytes of a complete H.264 NAL unit with a mark.
    pub const H264_NAL_LEN: usize = 1 + 2 + PAYLOAD_LEN + 1;
    /// Bytes of a complete H.265 NAL unit with a mark.
    pub const H265_NAL_LEN: usize = Self::H264_NAL_LEN + 1;

    /// Appends a complete H.264 SEI NAL unit without start code or length. It belongs before the
    /// first slice of its access unit.
    pub fn write_h264(&self, out: &mut Vec<u8>) {
        out.push(H264_SEI);
        self.write_message(out);
    }

    /// Appends a complete H.265 prefix SEI NAL unit (layer 0, temporal id 0) without start code or
    /// length. It belongs before the first slice of its access unit.
    pub fn write_h265(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[H265_PREFIX_SEI << 1, 1]);
        self.write_message(out);
    }

    fn write_message(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[USER_DATA_UNREGISTERED, PAYLOAD_LEN as u8]);
        out.extend_from_slice(&MARK_UUID);
        out.extend_from_slice(&self.numbers());
        out.push(TRAILING);
    }

    /// The bytes that differ from mark to mark; they directly follow [`MARK_UUID`], so that media
    /// that is packetised once can be marked again each time it is sent.
    #[must_use]
    pub fn numbers(&self) -> [u8; Self::NUMBERS_LEN] {
        let bits = u128::from(self.frame) << 64 | u128::from(self.captured_unix_ns);
        std::array::from_fn(|index| 0x80 | (bits >> (7 * (Self::NUMBERS_LEN - 1 - index))) as u8)
    }

    /// The mark in an H.264 NAL unit; `None` at the cost of one comparison when it is not SEI.
    #[inline]
    #[must_use]
    pub fn find_h264(nal: &[u8]) -> Option<Self> {
        match nal {
            [head, messages @ ..] if head & 0x1f == H264_SEI => find(messages),
            _ => None,
        }
    }

    /// The mark in an H.265 NAL unit; `None` at the cost of one comparison when it is not prefix
    /// SEI.
    #[inline]
    #[must_use]
    pub fn find_h265(nal: &[u8]) -> Option<Self> {
        match nal {
            [head, _, messages @ ..] if head >> 1 & 0x3f == H265_PREFIX_SEI => find(messages),
            _ => None,
        }
    }
}

/// Searches the message by its type, length and UUID. The messages before it are not parsed: their
/// lengths do not include the emulation prevention bytes that they may contain.
fn find(messages: &[u8]) -> Option<Mark> {
    let messages = messages.get(..SCAN_MAX).unwrap_or(messages);
    let head = [USER_DATA_UNREGISTERED, PAYLOAD_LEN as u8];
    messages.windows(head.len() + PAYLOAD_LEN).find_map(|message| {
        let numbers = message.strip_prefix(&head)?.strip_prefix(&MARK_UUID)?;
        let bits = numbers.iter().try_fold(0_u128, |bits, &byte| {
            (byte & 0x80 != 0).then_some(bits << 7 | u128::from(byte & 0x7f))
        })?;
        // 98 bits were read, 96 were written.
        let frame = u32::try_from(bits >> 64).ok()?;
        Some(Mark { frame, captured_unix_ns: bits as u64 })
    })
}

/// Looks for a mark in the first bytes of coded media that come in pieces of any length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkFinder {
    bytes: Vec<u8>,
    is_over: bool,
}

impl MarkFinder {
    /// Bytes that are looked at: parameter sets and other messages may precede a mark.
    pub const BYTES_MAX: usize = SCAN_MAX;

    /// Whether further bytes are of no use.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The bytes so far, which are forgotten when it has finished.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the next bytes.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) {
        if !self.is_over && self.bytes.len() < SCAN_MAX {
            let taken = bytes.len().min(SCAN_MAX - self.bytes.len());
            self.bytes.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        }
    }

    /// What was there; nothing is looked at any more.
    pub fn finish(&mut self) -> Option<Mark> {
        self.is_over = true;
        find(&std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MARK: Mark = Mark { frame: 0x0102_0304, captured_unix_ns: 1_700_000_000_123_456_789 };

    #[test]
    fn the_nal_units_are_complete_sei() {
        let mut h264 = Vec::new();
        MARK.write_h264(&mut h264);
        assert_eq!(
            (h264.len(), &h264[..3], h264.last()),
            (Mark::H264_NAL_LEN, &[6, 5, 30][..], Some(&0x80))
        );
        let mut h265 = Vec::new();
        MARK.write_h265(&mut h265);
        assert_eq!((h265.len(), &h265[..4]), (Mark::H265_NAL_LEN, &[0x4e, 1, 5, 30][..]));
        assert_eq!(Mark::find_h264(&h264), Some(MARK));
        assert_eq!(Mark::find_h265(&h265), Some(MARK));
        // Neither is mistaken for the other.
        assert_eq!((Mark::find_h264(&h265), Mark::find_h265(&h264)), (None, None));
    }

    #[test]
    fn a_mark_is_found_behind_other_messages_and_nowhere_else() {
        let mut nal = vec![];
        MARK.write_h264(&mut nal);
        let mut behind = vec![6, 1, 4, 0, 0, 3, 1, 9, 9]; // a message with an emulation prevention byte in it
        behind.extend(&nal[1..]);
        assert_eq!(Mark::find_h264(&behind), Some(MARK));
        let mut far = vec![6];
        far.resize(SCAN_MAX, 0xff);
        far.extend(&nal[1..]);
        assert_eq!(Mark::find_h264(&far), None);
        let mut slice = nal.clone();
        slice[0] = 0x65;
        assert_eq!(Mark::find_h264(&slice), None);
        for at in 0..nal.len() - 1 {
            assert_eq!(Mark::find_h264(&nal[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn damage_is_no_mark() {
        let mut nal = vec![];
        MARK.write_h264(&mut nal);
        for at in [1, 2, 3, 18] {
            let mut damaged = nal.clone();
            damaged[at] ^= 1;
            assert_eq!(Mark::find_h264(&damaged), None, "{at}");
        }
        let mut without_top_bit = nal.clone();
        without_top_bit[25] &= 0x7f;
        assert_eq!(Mark::find_h264(&without_top_bit), None);
        let mut too_many_bits = nal;
        too_many_bits[19] = 0xff;
        assert_eq!(Mark::find_h264(&too_many_bits), None);
    }

    proptest! {
        #[test]
        fn every_mark_survives_and_needs_no_emulation_prevention(frame: u32, captured_unix_ns: u64) {
            let mark = Mark { frame, captured_unix_ns };
            let mut nal = Vec::new();
            mark.write_h265(&mut nal);
            prop_assert!(nal[2..].iter().all(|&byte| byte > 3));
            prop_assert_eq!(Mark::find_h265(&nal), Some(mark));
        }
    }

    #[test]
    fn a_mark_is_found_in_pieces_of_any_length_behind_parameter_sets_and_not_too_far() {
        let mark = Mark { frame: 7, captured_unix_ns: 1_700_000_000_123_456_789 };
        let mut stream = [&[0, 0, 0, 1, 0x67][..], &[9; 300], &[0, 0, 1]].concat();
        mark.write_h264(&mut stream);
        stream.extend([0, 0, 1, 0x65, 1, 2]);
        for piece in [1, 50, 188, 5_000] {
            let mut finder = MarkFinder::default();
            stream.chunks(piece).for_each(|piece| finder.feed(piece));
            assert_eq!((finder.finish(), finder.is_over()), (Some(mark), true));
            finder.feed(&stream);
            assert_eq!(finder.finish(), None, "looked at once");
        }
        let mut far = MarkFinder::default();
        far.feed(&[5; SCAN_MAX]);
        far.feed(&stream);
        assert_eq!(far.finish(), None);
    }
}
