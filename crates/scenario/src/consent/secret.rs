//! The secret of a tester: it shows that a proof was made for the tester of this run.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::hmac;

use crate::secret::HIDDEN;

/// Bytes of a secret: as many as an HMAC-SHA-256 has, so that it cannot be guessed from what is
/// published.
const SECRET_BYTES: usize = 32;

/// The secret of a tester. The published proof has an HMAC over its terms with this key: without
/// the secret, the proof can neither be used nor changed.
#[derive(Clone, PartialEq, Eq)]
pub struct ConsentSecret([u8; SECRET_BYTES]);

/// The error for a text that is not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a consent secret is 64 hexadecimal digits, as `throng consent HOST:PORT` makes it together \
     with the file that the owner publishes; tokens of earlier versions are invalid \
     (docs/consent.md)"
)]
pub struct ConsentSecretError;

impl ConsentSecret {
    /// A secret of these bytes, from the system's random number generator.
    #[must_use]
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its 64 digits, for the tester's file only.
    #[must_use]
    pub fn expose(&self) -> String {
        digits(&self.0)
    }

    /// The HMAC-SHA-256 over `terms`.
    pub(super) fn seal(&self, terms: &str) -> [u8; 32] {
        let mut seal = [0; 32];
        let tag = hmac::sign(&self.key(), terms.as_bytes());
        seal.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        seal
    }

    /// Whether `seal` was made with this secret over `terms`.
    pub(super) fn has_sealed(&self, terms: &str, seal: &[u8; 32]) -> bool {
        hmac::verify(&self.key(), terms.as_bytes(), seal).is_ok()
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl FromStr for ConsentSecret {
    type Err = ConsentSecretError;

    fn from_str(text: &str) -> Result<Self, ConsentSecretError> {
        bytes(text).map(Self).ok_or(ConsentSecretError)
    }
}

impl fmt::Debug for ConsentSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// 32 bytes as 64 hexadecimal digits.
pub(super) fn digits(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of 64 hexadecimal digits.
pub(super) fn bytes(digits: &str) -> Option<[u8; 32]> {
    let nibbles: Vec<u8> = digits
        .chars()
        .map(|c| c.to_digit(16).and_then(|n| u8::try_from(n).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        nibbles.chunks_exact(2).map(|pair| pair.iter().fold(0, |a, n| a << 4 | n)).collect();
    bytes.try_into().ok().filter(|_| nibbles.len() == 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_reads_as_it_is_written_and_never_shows_itself() {
        let secret = ConsentSecret::new([0xa7; 32]);
        assert_eq!(secret.expose().parse(), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), HIDDEN);
        for text in [
            "",
            "0123456789abcdef",
            &"g".repeat(64),
            &"a".repeat(63),
            &"a".repeat(65),
            &"ä".repeat(64),
        ] {
            assert_eq!(text.parse::<ConsentSecret>(), Err(ConsentSecretError), "{text}");
        }
    }
}
