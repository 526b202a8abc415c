//! TLS between a run and an agent: a self-signed certificate, pinned by its fingerprint.

use std::sync::Arc;

use aws_lc_rs::{constant_time, digest};
use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ServerConfig, version};
use throng_net::tls::{Trust, client_config};

use crate::fingerprint::Fingerprint;

/// Compares two texts in constant time.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    // Digests have the same length whatever the texts' lengths are.
    let [a, b] = [a, b].map(|text| digest::digest(&digest::SHA256, text.as_bytes()));
    constant_time::verify_slices_are_equal(a.as_ref(), b.as_ref()).is_ok()
}

/// Creates a certificate and the agent's TLS configuration.
pub(crate) fn server() -> Result<(Arc<ServerConfig>, Fingerprint), String> {
    let made = rcgen::generate_simple_self_signed(vec!["throng-watch".to_owned()])
        .map_err(|e| e.to_string())?;
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

/// The run's TLS configuration: it accepts only the certificate with this fingerprint, whatever its
/// other fields.
pub(crate) fn client(fingerprint: Fingerprint) -> Result<Arc<ClientConfig>, String> {
    let trust = Trust::Fingerprint(fingerprint.bytes());
    client_config(trust, &[&version::TLS13]).map(Arc::new).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_tokens_match() {
        assert!(is_same("secret", "secret"));
        assert!(!is_same("secret", "secret "));
        assert!(!is_same("", "x"));
    }
}
