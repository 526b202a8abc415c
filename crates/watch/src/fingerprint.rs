//! Certificate fingerprints as users write them.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;

/// The SHA-256 of a certificate, by which its server is identified. Written as 64 hexadecimal
/// digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// The text is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 64 hexadecimal digits; the agent prints it when it starts")]
pub struct FingerprintError;

impl Fingerprint {
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(throng_net::tls::fingerprint(certificate))
    }

    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let digits: Vec<u8> = text
            .chars()
            .filter(|c| *c != ':')
            .map(|c| c.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()
            .ok_or(FingerprintError)?;
        let bytes: Vec<u8> =
            digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |a, d| a << 4 | d)).collect();
        let is_whole = digits.len() == 64;
        bytes.try_into().ok().filter(|_| is_whole).map(Self).ok_or(FingerprintError)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_as_it_is_written() {
        let fingerprint = Fingerprint([0xa7; 32]);
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        let with_colons: Vec<_> = fingerprint.0.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(with_colons.join(":").parse(), Ok(fingerprint));
        for text in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(65), &"ä".repeat(32)]
        {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text}");
        }
    }
}
