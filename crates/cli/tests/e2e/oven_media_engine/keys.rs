//! The media keys of a str0m session, for a server that sends reports of its own in addition to
//! str0m's. `crypto` of throng-protocol withholds the keys from str0m, which has to send the media
//! here.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use str0m::RtcConfig;
use str0m::config::{CryptoProvider, DtlsCert, DtlsVersion};
use str0m::crypto::CryptoError;
use str0m::crypto::dtls::{
    DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, ProtocolVersion, SrtpProfile,
};
use throng_protocol::webrtc::srtp::{Profile, SessionKeys};

/// The place of one session's keys, filled after its handshake.
pub(super) type Slot = Arc<Mutex<Option<SessionKeys>>>;

thread_local! {
    /// The slot of the session that this thread built last: str0m creates its DTLS while it is
    /// built.
    static LAST: RefCell<Slot> = RefCell::default();
}

/// Builds a session of `config`; returns it with the slot of its keys.
pub(super) fn build(config: RtcConfig) -> (str0m::Rtc, Slot) {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    let provider = PROVIDER.get_or_init(|| {
        let stock = str0m::crypto::from_feature_flags();
        static OPEN: OnceLock<OpenProvider> = OnceLock::new();
        let dtls_provider = OPEN.get_or_init(|| OpenProvider(stock.dtls_provider));
        Arc::new(CryptoProvider { dtls_provider, ..stock })
    });
    let rtc = config.set_crypto_provider(Arc::clone(provider)).build(Instant::now());
    (rtc, LAST.with_borrow(Arc::clone))
}

/// The stock DTLS, with access to its keys.
#[derive(Debug)]
struct OpenProvider(&'static dyn DtlsProvider);

impl DtlsProvider for OpenProvider {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        self.0.generate_certificate()
    }

    fn new_dtls(
        &self,
        certificate: &DtlsCert,
        now: Instant,
        version: DtlsVersion,
        mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let slot = Slot::default();
        LAST.with_borrow_mut(|last| *last = Arc::clone(&slot));
        Ok(Box::new(Open { dtls: self.0.new_dtls(certificate, now, version, mtu)?, slot }))
    }
}

#[derive(Debug)]
struct Open {
    dtls: Box<dyn DtlsInstance>,
    slot: Slot,
}

impl DtlsInstance for Open {
    fn set_active(&mut self, active: bool) {
        self.dtls.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.dtls.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        let we_are_client = self.dtls.is_active();
        let output = self.dtls.poll_output(buf);
        if let DtlsOutput::KeyingMaterial(material, profile) = &output {
            let profile = match *profile {
                SrtpProfile::AES128_CM_SHA1_80 => Profile::AesCm128HmacSha1_80,
                SrtpProfile::AEAD_AES_128_GCM => Profile::AeadAes128Gcm,
                _ => Profile::AeadAes256Gcm,
            };
            let keys = SessionKeys::new(profile, material, we_are_client).unwrap();
            *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys);
        }
        output
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.dtls.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        self.dtls.send_application_data(data)
    }

    fn is_active(&self) -> bool {
        self.dtls.is_active()
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.dtls.protocol_version()
    }

    fn is_closing(&self) -> bool {
        self.dtls.is_closing()
    }

    fn is_closed(&self) -> bool {
        self.dtls.is_closed()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.dtls.close()
    }
}
