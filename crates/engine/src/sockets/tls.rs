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
