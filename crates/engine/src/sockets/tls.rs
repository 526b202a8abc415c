//! TLS for participants: trusts the system's certificate authorities, additional ones, or any
//! certificate.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, DEFAULT_VERSIONS, RootCertStore};
use throng_net::tls::{Trust, client_config, system_roots};

use crate::config::TlsOptions;

/// The client configuration that `options` describe, offering `alpn`.
pub(crate) fn tls_config(options: &TlsOptions, alpn: &[&[u8]]) -> Result<ClientConfig, String> {
    let trust = if options.insecure { Trust::Any } else { Trust::Authorities(roots(options)?) };
    let mut config = client_config(trust, DEFAULT_VERSIONS).map_err(|e| e.to_string())?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// The words of a failed handshake, with what a user can do who trusts the server.
pub(crate) fn in_words(error: &dyn std::fmt::Display) -> String {
    let said = error.to_string();
    if said.contains(UNKNOWN_ISSUER) {
        return format!(
            "the issuer of the server's certificate is unknown; trust it with --tls-ca FILE \
             ({said})"
        );
    }
    said
}

/// How the TLS library names a certificate of an authority that is not trusted.
const UNKNOWN_ISSUER: &str = "UnknownIssuer";

fn roots(options: &TlsOptions) -> Result<RootCertStore, String> {
    let mut roots = system_roots();
    if let Some(pem) = &options.extra_ca_pem {
        let mut added = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|e| format!("extra CA: {e}"))?;
            roots.add(certificate).map_err(|e| format!("extra CA: {e}"))?;
            added += 1;
        }
        if added == 0 {
            return Err("extra CA: no certificate in the file".into());
        }
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_issuer_is_named_with_what_to_do() {
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let said = in_words(&std::io::Error::new(std::io::ErrorKind::InvalidData, unknown));
        assert!(said.contains("issuer") && said.contains("--tls-ca FILE"), "{said}");
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        assert_eq!(in_words(&expired), expired.to_string());
    }

    #[test]
    fn an_extra_ca_without_a_certificate_is_an_error() {
        for pem in [
            &b""[..],
            b"rubbish",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let options = TlsOptions { insecure: false, extra_ca_pem: Some(pem.to_vec()) };
            assert!(tls_config(&options, &[]).is_err());
        }
    }
}
