//! The cryptography that all sessions share, viewers' and an embedded server's alike: one validated DTLS configuration and
//! one certificate, where the stock provider tests itself anew for every session; and the way of a session's media keys
//! from its DTLS to its owner.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use dimpl::crypto::{Buf, HashAlgorithm, KeyProvider, SignatureAlgorithm, SigningKey};
use str0m_proto::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, ProtocolVersion, SrtpProfile,
};
use str0m_proto::crypto::{CryptoError, CryptoProvider, DtlsVersion};

use super::srtp::{Profile, SessionKeys};

/// How long an unanswered DTLS flight waits before it is sent again, at first; each repetition doubles it. What libwebrtc
/// begins with on a path of less than 25 ms (`kMinHandshakeTimeout` of its `dtls_transport.cc`; RFC 6347's second would be
/// most of a join's time): a server that has not heard yet that ICE is done throws the first flight away, as Janus does.
const FLIGHT_RTO: Duration = Duration::from_millis(50);
/// How often a flight is sent again: past the 40 s that a handshake may take in all.
const FLIGHT_RETRIES: usize = 10;

/// What no session can do without could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CryptoSetupError {
    /// The DTLS configuration failed its self-test.
    #[error("DTLS configuration: {0}")]
    Configuration(String),
    /// No certificate could be made.
    #[error("no DTLS certificate could be made")]
    Certificate,
}

/// What all sessions of the process share.
#[derive(Debug)]
pub struct SharedCrypto {
    /// For str0m's configuration of every session.
    pub provider: Arc<CryptoProvider>,
    /// The certificate of every session.
    pub certificate: DtlsCert,
}

/// Where the DTLS of one session puts its keys, and the session finds them.
#[derive(Clone, Debug, Default)]
pub struct KeySlot(Arc<Mutex<Option<SessionKeys>>>);

thread_local! {
    /// The slot for the session being built. str0m keeps the DTLS provider as a `&'static` object and calls its
    /// `new_dtls` from within `RtcConfig::build`, so a slot can reach the instance only beside the call; it is set
    /// and taken within [`with_key_slot`], and so never outlives the one build that it is for.
    static BUILDING: RefCell<Option<KeySlot>> = const { RefCell::new(None) };
}

impl KeySlot {
    /// The keys, once the handshake has made them; they are handed out once.
    #[must_use]
    pub fn take(&self) -> Option<SessionKeys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, keys: SessionKeys) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys);
    }
}

/// Runs `build`, which makes exactly one DTLS instance, and returns the slot that this instance fills.
pub fn with_key_slot<T>(build: impl FnOnce() -> T) -> (T, KeySlot) {
    let slot = KeySlot::default();
    BUILDING.with_borrow_mut(|building| *building = Some(slot.clone()));
    let built = build();
    BUILDING.with_borrow_mut(|building| *building = None);
    (built, slot)
}

/// The shared cryptography, made at the first call.
///
/// # Errors
/// [`CryptoSetupError`], at every call once the first has failed.
pub fn shared() -> Result<&'static SharedCrypto, CryptoSetupError> {
    static SHARED: OnceLock<Result<SharedCrypto, CryptoSetupError>> = OnceLock::new();
    SHARED.get_or_init(set_up).as_ref().map_err(Clone::clone)
}

fn set_up() -> Result<SharedCrypto, CryptoSetupError> {
    let stock = str0m_aws_lc_rs::default_provider();
    let dtls_crypto = str0m_aws_lc_rs::dimpl_crypto_provider();
    static KEYS: OnceLock<SharedKeys> = OnceLock::new();
    let keys = KEYS.get_or_init(|| SharedKeys { stock: dtls_crypto.key_provider, loaded: OnceLock::new() });
    // ICE has proven the return path before DTLS begins, which is all that a server cookie would prove.
    let configuration = dimpl::Config::builder()
        .use_server_cookie(false)
        .flight_start_rto(FLIGHT_RTO)
        .flight_retries(FLIGHT_RETRIES)
        .with_crypto_provider(dimpl::crypto::CryptoProvider { key_provider: keys, ..dtls_crypto })
        .build()
        .map_err(|error| CryptoSetupError::Configuration(error.to_string()))?;
    static DTLS: OnceLock<SharedDtls> = OnceLock::new();
    let dtls_provider = DTLS
        .get_or_init(|| SharedDtls { stock: stock.dtls_provider, configuration: Arc::new(configuration) });
    let certificate = dtls_provider.generate_certificate().ok_or(CryptoSetupError::Certificate)?;
    keys.share(&certificate.private_key).ok_or(CryptoSetupError::Certificate)?;
    Ok(SharedCrypto { provider: Arc::new(CryptoProvider { dtls_provider, ..stock }), certificate })
}

/// Loads private keys; the one that all sessions share is read and checked once, and not at every join.
#[derive(Debug)]
struct SharedKeys {
    stock: &'static dyn KeyProvider,
    loaded: OnceLock<(Vec<u8>, SharedKey)>,
}

impl SharedKeys {
    /// Keeps the key that `der` holds; `None` when it holds none.
    fn share(&self, der: &[u8]) -> Option<()> {
        let key = self.stock.load_private_key(der).ok()?;
        let shared = SharedKey {
            algorithm: key.algorithm(),
            hash: key.hash_algorithm(),
            hashes: key.supported_hash_algorithms().into(),
            key: Arc::new(Mutex::new(key)),
        };
        self.loaded.set((der.to_vec(), shared)).ok()
    }
}

impl KeyProvider for SharedKeys {
    fn load_private_key(&self, der: &[u8]) -> Result<Box<dyn SigningKey>, dimpl::CryptoError> {
        match self.loaded.get() {
            Some((shared, key)) if shared == der => Ok(Box::new(key.clone())),
            _ => self.stock.load_private_key(der),
        }
    }
}

/// A handle on the key of the shared certificate. Signing takes some twenty microseconds once a join, so that threads
/// seldom wait for one another.
#[derive(Clone, Debug)]
struct SharedKey {
    key: Arc<Mutex<Box<dyn SigningKey>>>,
    algorithm: SignatureAlgorithm,
    hash: HashAlgorithm,
    hashes: Arc<[HashAlgorithm]>,
}

impl SigningKey for SharedKey {
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), dimpl::CryptoError> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).sign(data, hash, out)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        self.hash
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &self.hashes
    }
}

/// Makes DTLS instances of one configuration.
struct SharedDtls {
    stock: &'static dyn DtlsProvider,
    configuration: Arc<dimpl::Config>,
}

impl std::fmt::Debug for SharedDtls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedDtls")
    }
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
        let certificate = dimpl::DtlsCertificate {
            certificate: certificate.certificate.clone(),
            private_key: certificate.private_key.clone(),
        };
        let configuration = Arc::clone(&self.configuration);
        let dtls = match version {
            DtlsVersion::Dtls12 => dimpl::Dtls::new_12(configuration, certificate, now),
            DtlsVersion::Dtls13 => dimpl::Dtls::new_13(configuration, certificate, now),
            _ => dimpl::Dtls::new_auto(configuration, certificate, now),
        };
        Ok(Box::new(KeyedDtls { dtls, slot: BUILDING.with_borrow_mut(Option::take) }))
    }
}

/// A DTLS instance that gives the media keys to the session's owner, and not to str0m: its own SRTP contexts and control
/// packets would cost memory, and time at every join, and nothing of them is ever used.
struct KeyedDtls {
    dtls: dimpl::Dtls,
    slot: Option<KeySlot>,
}

impl std::fmt::Debug for KeyedDtls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedDtls")
    }
}

impl DtlsInstance for KeyedDtls {
    fn set_active(&mut self, active: bool) {
        self.dtls.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.dtls.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        let we_are_client = self.dtls.is_active();
        let output = self.dtls.poll_output(buf);
        if let (DtlsOutput::KeyingMaterial(material, profile), Some(slot)) = (&output, &self.slot)
            && let Some(profile) = profile_of(*profile)
            && let Ok(keys) = SessionKeys::new(profile, material, we_are_client)
        {
            slot.put(keys);
            // Told a second time str0m does nothing about it, and asks for what comes next.
            return DtlsOutput::Connected;
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

fn profile_of(profile: SrtpProfile) -> Option<Profile> {
    match profile {
        SrtpProfile::AES128_CM_SHA1_80 => Some(Profile::AesCm128HmacSha1_80),
        SrtpProfile::AEAD_AES_128_GCM => Some(Profile::AeadAes128Gcm),
        SrtpProfile::AEAD_AES_256_GCM => Some(Profile::AeadAes256Gcm),
        _ => None,
    }
}
