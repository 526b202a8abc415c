//! Decryption of segments: AES-128 in CBC mode with PKCS #7 padding (RFC 8216 section 4.3.2.4).

use aws_lc_rs::cipher::{AES_128, DecryptionContext, StreamingDecryptingKey, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;

/// Length of a key, bytes.
pub(in crate::player) const KEY_LEN: usize = 16;

/// Length of a block.
const BLOCK_LEN: usize = 16;

/// A segment that is being decrypted.
pub(in crate::player) struct Decryption(StreamingDecryptingKey);

impl Decryption {
    /// `None` where the cryptography refuses, which it does not for a key of the right length.
    pub(in crate::player) fn new(key: [u8; KEY_LEN], iv: u128) -> Option<Self> {
        let key = UnboundCipherKey::new(&AES_128, &key).ok()?;
        let context = DecryptionContext::Iv128(FixedLength::from(iv.to_be_bytes()));
        StreamingDecryptingKey::cbc_pkcs7(key, context).ok().map(Self)
    }

    /// Decrypts the next bytes, as far as their blocks are complete.
    pub(in crate::player) fn update(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut clear = vec![0; bytes.len() + BLOCK_LEN];
        let written = self.0.update(bytes, &mut clear).ok()?.written().len();
        clear.truncate(written);
        Some(clear)
    }

    /// The rest, without the padding; `None` where the padding is wrong, as with a wrong key or a
    /// truncated segment.
    pub(in crate::player) fn finish(self) -> Option<Vec<u8>> {
        let mut clear = vec![0; BLOCK_LEN];
        let written = self.0.finish(&mut clear).ok()?.written().len();
        clear.truncate(written);
        Some(clear)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf 'throng plays segments' | openssl enc -aes-128-cbc -K 000102…0f -iv 00…07`.
    const ENCRYPTED: [u8; 32] = [
        0xdc, 0x75, 0xd7, 0x3a, 0xa0, 0x0c, 0x87, 0x4f, 0xe6, 0xd2, 0xf6, 0x4f, 0xb9, 0x7d, 0xe2,
        0xd7, 0xcc, 0xbe, 0x98, 0x15, 0xaa, 0xc3, 0xb4, 0x56, 0x30, 0xe6, 0x3f, 0x2d, 0xe3, 0x2f,
        0xbf, 0x53,
    ];

    #[test]
    fn a_segment_is_decrypted_in_pieces_and_a_wrong_key_is_noticed() {
        let key = std::array::from_fn(|at| at as u8);
        let mut whole = Decryption::new(key, 7).unwrap();
        let mut clear = Vec::new();
        for piece in ENCRYPTED.chunks(5) {
            clear.extend(whole.update(piece).unwrap());
        }
        clear.extend(whole.finish().unwrap());
        assert_eq!(clear, b"throng plays segments");
        let mut wrong = Decryption::new([9; KEY_LEN], 7).unwrap();
        wrong.update(&ENCRYPTED).unwrap();
        assert!(wrong.finish().is_none());
    }
}
