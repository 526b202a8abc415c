//! TLS between a run and an agent: a self-signed certificate, pinned by its fingerprint.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::{constant_time, digest};
use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ServerConfig, version};
use throng_net::tls::{Trust, client_config};

/// The SHA-256 of an agent's certificate, by which a run identifies it. Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// The text is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 hexadecimal digits, as the agent prints them when it starts")]
pub struct FingerprintError;

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
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

/// Compares two texts in constant time.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    // Digests have the same length whatever the texts' lengths are.
    let [a, b] = [a, b].map(|text| digest::digest(&digest::SHA256, text.as_bytes()));
    constant_time::verify_slices_are_equal(a.as_ref(), b.as_ref()).is_ok()
}

/// Creates a certificate and the agent's TLS configuration.
pub(crate) fn server() -> Result<(Arc<ServerConfig>, Fingerprint), String> {
    let made =
        rcgen::generate_simple_self_signed(vec!["throng-watch".to_owned()]).map_err(|e| e.to_string())?;
    let certificate = made.cert.der().clone();
    let fingerprint = Fingerprint::of(&certificate);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(|e| e.to_string())?;
    Ok((Arc::new(config), fingerprint))
}

/// The run's TLS configuration: it accepts only the certificate with this fingerprint, whatever else the certificate
/// says.
pub(crate) fn client(fingerprint: Fingerprint) -> Result<Arc<ClientConfig>, String> {
    let trust = Trust::Fingerprint(fingerprint.0);
    client_config(trust, &[&version::TLS13]).map(Arc::new).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_as_it_is_written() {
        let (_, fingerprint) = server().unwrap();
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        let with_colons: Vec<_> = fingerprint.0.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(with_colons.join(":").parse(), Ok(fingerprint));
        for text in ["", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(65), &"ä".repeat(32)] {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text}");
        }
    }

    #[test]
    fn tokens_are_the_same_only_when_they_are() {
        assert!(is_same("secret", "secret"));
        assert!(!is_same("secret", "secret "));
        assert!(!is_same("", "x"));
    }
}
