//! TLS clients: which server certificates they accept.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, aws_lc_rs as provider, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

/// The server certificates that a client accepts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Certificates for the server's name, issued by one of these authorities; [`system_roots`] has
    /// the system's.
    Authorities(RootCertStore),
    /// The one certificate with this SHA-256 fingerprint, with any name and dates.
    Fingerprint([u8; 32]),
    /// Any certificate.
    Any,
}

/// A client configuration without client certificate. Always checks that the server holds the key
/// of its certificate.
///
/// # Errors
/// When the cryptography does not support `versions`.
pub fn client_config(
    trust: Trust,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConfig, Error> {
    let crypto = Arc::new(provider::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&crypto))
        .with_protocol_versions(versions)?;
    let fingerprint = match trust {
        Trust::Authorities(roots) => {
            return Ok(builder.with_root_certificates(roots).with_no_client_auth());
        }
        Trust::Fingerprint(fingerprint) => Some(fingerprint),
        Trust::Any => None,
    };
    let verifier = Arc::new(WithoutAuthority { fingerprint, crypto });
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// The certificate authorities of the system.
#[must_use]
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // A root that cannot be read does not affect the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The SHA-256 fingerprint of a certificate.
#[must_use]
pub fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    digest(&SHA256, certificate).as_ref().try_into().unwrap_or_default()
}

/// Accepts the certificate with the fingerprint; without a fingerprint, any certificate.
#[derive(Debug)]
struct WithoutAuthority {
    fingerprint: Option<[u8; 32]>,
    crypto: Arc<CryptoProvider>,
}

impl ServerCertVerifier for WithoutAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let theirs = fingerprint(end_entity);
        if self.fingerprint.is_none_or(|expected| expected == theirs) {
            return Ok(ServerCertVerified::assertion());
        }
        let digits: String = theirs.iter().map(|byte| format!("{byte:02x}")).collect();
        Err(Error::General(format!("its certificate has the fingerprint {digits}")))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            signature,
            &self.crypto.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            signature,
            &self.crypto.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.crypto.signature_verification_algorithms.supported_schemes()
    }
}
