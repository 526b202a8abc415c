//! DTLS for str0m with one configuration for all sessions, and a way to get at the SRTP keys it agrees on.
//!
//! The stock provider builds and self-tests a configuration per session, which costs more than the rest of a join; and
//! str0m keeps the exported keys to itself, while the stage encrypts media by its own means.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use str0m_proto::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, ProtocolVersion, SrtpProfile,
};
use str0m_proto::crypto::{CryptoError, CryptoProvider, DtlsVersion};
use throng_protocol::webrtc::srtp::{Profile, SessionKeys};

thread_local! {
    /// The keys that a handshake on this thread has just agreed on, until [`take_keys`].
    static AGREED: RefCell<Option<SessionKeys>> = const { RefCell::new(None) };
}

/// The keys that came up in the last `poll_output` of a session on this thread, if any did. To be called after each.
pub(super) fn take_keys() -> Option<SessionKeys> {
    AGREED.with(|agreed| agreed.borrow_mut().take())
}

#[derive(Debug)]
struct SharedDtls {
    stock: &'static dyn DtlsProvider,
    config: Arc<dimpl::Config>,
}

/// The cryptography of all sessions of this process.
///
/// # Errors
/// When the DTLS library refuses its configuration.
pub(super) fn provider() -> Result<Arc<CryptoProvider>, String> {
    static SHARED: OnceLock<Result<SharedDtls, String>> = OnceLock::new();
    let stock = str0m_aws_lc_rs::default_provider();
    let shared = SHARED
        .get_or_init(|| {
            // ICE verifies return routability before DTLS, so that the cookie exchange is a round trip for nothing.
            let config = dimpl::Config::builder()
                .use_server_cookie(false)
                .with_crypto_provider(str0m_aws_lc_rs::dimpl_crypto_provider())
                .build()
                .map_err(|error| error.to_string())?;
            Ok(SharedDtls {
                stock: str0m_aws_lc_rs::default_provider().dtls_provider,
                config: Arc::new(config),
            })
        })
        .as_ref()
        .map_err(Clone::clone)?;
    Ok(Arc::new(CryptoProvider { dtls_provider: shared, ..stock }))
}

impl DtlsProvider for SharedDtls {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        self.stock.generate_certificate()
    }

    fn new_dtls(
        &self,
        certificate: &DtlsCert,
        now: Instant,
        version: DtlsVersion,
        _mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let certificate = DtlsCert {
            certificate: certificate.certificate.clone(),
            private_key: certificate.private_key.clone(),
        };
        let config = Arc::clone(&self.config);
        Ok(Box::new(Instance(match version {
            DtlsVersion::Dtls12 => dimpl::Dtls::new_12(config, certificate, now),
            _ => dimpl::Dtls::new_auto(config, certificate, now),
        })))
    }
}

struct Instance(dimpl::Dtls);

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Instance")
    }
}

impl DtlsInstance for Instance {
    fn set_active(&mut self, active: bool) {
        self.0.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.0.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buffer: &'a mut [u8]) -> DtlsOutput<'a> {
        let active = self.0.is_active();
        let output = self.0.poll_output(buffer);
        if let DtlsOutput::KeyingMaterial(material, profile) = &output {
            let keys = profile_of(*profile)
                .and_then(|profile| SessionKeys::new(profile, material.as_ref(), active).ok());
            AGREED.with(|agreed| *agreed.borrow_mut() = keys);
        }
        output
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.0.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        self.0.send_application_data(data)
    }

    fn is_active(&self) -> bool {
        self.0.is_active()
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.0.protocol_version()
    }

    fn is_closing(&self) -> bool {
        self.0.is_closing()
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.0.close()
    }
}

fn profile_of(profile: SrtpProfile) -> Option<Profile> {
    match profile {
        SrtpProfile::AES128_CM_SHA1_80 => Some(Profile::AesCm128HmacSha1_80),
        SrtpProfile::AEAD_AES_128_GCM => Some(Profile::AeadAes128Gcm),
        SrtpProfile::AEAD_AES_256_GCM => Some(Profile::AeadAes256Gcm),
        _ => None,
    }
}
