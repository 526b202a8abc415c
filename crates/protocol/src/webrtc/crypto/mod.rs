//! The cryptography that all sessions share, those of viewers and of the embedded server: one
//! validated DTLS configuration and one certificate (the stock provider runs its self-test for
//! every session), and the transfer of a session's media keys from its DTLS to its owner.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use dimpl::crypto::{Buf, HashAlgorithm, KeyProvider, SignatureAlgorithm, SigningKey};
use str0m_proto::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, ProtocolVersion, SrtpProfile,
};
use str0m_proto::crypto::{CryptoError, CryptoProvider, DtlsVersion};

use self::settled::{ReadKey, Settled};
use super::srtp::{Profile, SessionKeys};

mod settled;

/// The first retransmission timeout of a DTLS flight; each repetition doubles it. libwebrtc starts
/// with this on a path below 25 ms (`kMinHandshakeTimeout` of its `dtls_transport.cc`; RFC 6347's
/// one second would be most of a join's time): a server that does not know yet that ICE is
/// connected discards the first flight, as Janus does.
const FLIGHT_RTO: Duration = Duration::from_millis(50);
/// How often a flight is retransmitted: beyond the 40 s that a whole handshake may take.
const FLIGHT_RETRIES: usize = 10;

/// Why the shared cryptography could not be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CryptoSetupError {
    /// The DTLS configuration failed its self-test.
    #[error("DTLS configuration: {0}")]
    Configuration(String),
    /// The certificate could not be created.
    #[error("no DTLS certificate could be made")]
    Certificate,
}

/// The cryptography that all sessions of the process share.
#[derive(Debug)]
pub struct SharedCrypto {
    /// For str0m's configuration of every session.
    pub provider: Arc<CryptoProvider>,
    /// The certificate of every session.
    pub certificate: DtlsCert,
}

/// The slot in which the DTLS instance of a session puts its keys, for the session to take.
#[derive(Clone, Debug, Default)]
pub struct KeySlot(Arc<Slot>);

#[derive(Debug, Default)]
struct Slot {
    keys: Mutex<Option<SessionKeys>>,
    only_media: AtomicBool,
}

thread_local! {
    /// The slot for the session being built. str0m keeps the DTLS provider as a `&'static` object
    /// and calls its `new_dtls` from within `RtcConfig::build`, so a slot cannot be an argument of
    /// that call; it is set and taken within [`with_key_slot`], and so never outlives the one build
    /// that it is for.
    static BUILDING: RefCell<Option<KeySlot>> = const { RefCell::new(None) };
}

impl KeySlot {
    /// The keys, once the handshake has derived them; they are returned once.
    #[must_use]
    pub fn take(&self) -> Option<SessionKeys> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, keys: SessionKeys) {
        *self.0.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys);
    }

    /// Whether the session has media only: then its DTLS carries nothing after the handshake but
    /// alerts, and most of its memory is freed. Data channels that are negotiated later than that
    /// do not work.
    pub(super) fn only_media(&self, is_so: bool) {
        self.0.only_media.store(is_so, Ordering::Relaxed);
    }

    fn has_only_media(&self) -> bool {
        self.0.only_media.load(Ordering::Relaxed)
    }
}

/// Runs `build`, which creates exactly one DTLS instance, and returns the slot that this instance
/// fills.
pub fn with_key_slot<T>(build: impl FnOnce() -> T) -> (T, KeySlot) {
    let slot = KeySlot::default();
    BUILDING.with_borrow_mut(|building| *building = Some(slot.clone()));
    let built = build();
    BUILDING.with_borrow_mut(|building| *building = None);
    (built, slot)
}

/// The shared cryptography, set up at the first call.
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
    let keys = KEYS
        .get_or_init(|| SharedKeys { stock: dtls_crypto.key_provider, loaded: OnceLock::new() });
    // ICE has verified the return path before DTLS begins, so a server cookie would add nothing.
    let configuration = dimpl::Config::builder()
        .use_server_cookie(false)
        .flight_start_rto(FLIGHT_RTO)
        .flight_retries(FLIGHT_RETRIES)
        .with_crypto_provider(dimpl::crypto::CryptoProvider {
            key_provider: keys,
            cipher_suites: settled::watched(dtls_crypto.cipher_suites),
            ..dtls_crypto
        })
        .build()
        .map_err(|error| CryptoSetupError::Configuration(error.to_string()))?;
    static DTLS: OnceLock<SharedDtls> = OnceLock::new();
    let dtls_provider = DTLS.get_or_init(|| SharedDtls {
        stock: stock.dtls_provider,
        configuration: Arc::new(configuration),
    });
    let certificate = dtls_provider.generate_certificate().ok_or(CryptoSetupError::Certificate)?;
    keys.share(&certificate.private_key).ok_or(CryptoSetupError::Certificate)?;
    Ok(SharedCrypto { provider: Arc::new(CryptoProvider { dtls_provider, ..stock }), certificate })
}

/// Loads private keys; the shared key is parsed and checked once, not at every join.
#[derive(Debug)]
struct SharedKeys {
    stock: &'static dyn KeyProvider,
    loaded: OnceLock<(Vec<u8>, SharedKey)>,
}

impl SharedKeys {
    /// Parses and keeps the key in `der`; `None` when there is none.
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

/// A handle on the key of the shared certificate. A signature takes about 20 µs once per join, so
/// threads rarely wait for one another.
#[derive(Clone, Debug)]
struct SharedKey {
    key: Arc<Mutex<Box<dyn SigningKey>>>,
    algorithm: SignatureAlgorithm,
    hash: HashAlgorithm,
    hashes: Arc<[HashAlgorithm]>,
}

impl SigningKey for SharedKey {
    fn sign(
        &mut self,
        data: &[u8],
        hash: HashAlgorithm,
        out: &mut Buf,
    ) -> Result<(), dimpl::CryptoError> {
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

/// Creates DTLS instances with one configuration.
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
        let slot = BUILDING.with_borrow_mut(Option::take);
        let state = State::Whole(Box::new(dtls));
        Ok(Box::new(KeyedDtls { state, slot, is_keyed: false, read_key: None, now }))
    }
}

/// A DTLS instance that passes the media keys to the session's owner instead of str0m, whose own
/// SRTP contexts and control packets would cost memory, and time at every join, without ever being
/// used.
struct KeyedDtls {
    state: State,
    slot: Option<KeySlot>,
    /// Whether the slot was filled: what the handshake needed can be freed.
    is_keyed: bool,
    /// The key of the peer's records, where it is known.
    read_key: Option<ReadKey>,
    now: Instant,
}

enum State {
    Whole(Box<dimpl::Dtls>),
    /// See [`Settled`].
    Settled(Box<Settled>),
}

impl std::fmt::Debug for KeyedDtls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.state {
            State::Whole(_) => "KeyedDtls",
            State::Settled(_) => "KeyedDtls(settled)",
        })
    }
}

impl KeyedDtls {
    /// Passes a datagram or the time to DTLS before it has settled. Notes the key that opened the
    /// peer's records.
    fn handle(
        &mut self,
        act: impl FnOnce(&mut dimpl::Dtls) -> Result<(), DtlsImplError>,
    ) -> Result<(), DtlsImplError> {
        let State::Whole(dtls) = &mut self.state else { return Ok(()) };
        // The self-test of the configuration opens records too.
        let _ = settled::opened_with();
        let result = act(dtls);
        self.read_key = settled::opened_with().filter(|_| self.slot.is_some()).or(self.read_key);
        result
    }

    /// Frees what is not needed any more. Only for a client: the server's last flight may have to
    /// be repeated.
    fn settle(&mut self) {
        let State::Whole(dtls) = &mut self.state else { return };
        let Some(read_key) = self.read_key.filter(|_| dtls.is_active()) else { return };
        let is_open = !dtls.is_closing() && !dtls.is_closed();
        if is_open
            && dtls.protocol_version() == Some(ProtocolVersion::DTLS1_2)
            && self.slot.as_ref().is_some_and(KeySlot::has_only_media)
            && let Some(settled) = Settled::of(dtls, read_key, self.now)
        {
            self.state = State::Settled(Box::new(settled));
            // It is needed only once.
            self.slot = None;
        }
    }
}

impl DtlsInstance for KeyedDtls {
    fn set_active(&mut self, active: bool) {
        if let State::Whole(dtls) = &mut self.state {
            dtls.set_active(active);
        }
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        match &mut self.state {
            State::Whole(_) => self.handle(|dtls| dtls.handle_packet(packet)),
            State::Settled(settled) => settled.handle_packet(packet),
        }
    }

    fn poll_output<'a>(&mut self, buf: &'a mut [u8]) -> DtlsOutput<'a> {
        let dtls = match &mut self.state {
            State::Whole(dtls) => dtls,
            State::Settled(settled) => return settled.poll_output(buf),
        };
        let we_are_client = dtls.is_active();
        let output = dtls.poll_output(buf);
        if let (DtlsOutput::KeyingMaterial(material, profile), Some(slot)) = (&output, &self.slot)
            && let Some(profile) = profile_of(*profile)
            && let Ok(keys) = SessionKeys::new(profile, material, we_are_client)
        {
            slot.put(keys);
            self.is_keyed = true;
            // str0m ignores a second `Connected`, and polls again.
            return DtlsOutput::Connected;
        }
        // All that the handshake yields was returned.
        if self.is_keyed && matches!(output, DtlsOutput::Timeout(_)) {
            self.settle();
        }
        output
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.now = now;
        match &mut self.state {
            State::Whole(_) => self.handle(|dtls| dtls.handle_timeout(now)),
            State::Settled(settled) => {
                settled.handle_timeout(now);
                Ok(())
            }
        }
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        match &mut self.state {
            State::Whole(dtls) => dtls.send_application_data(data),
            State::Settled(settled) if settled.is_closing() || settled.is_closed() => {
                Err(DtlsImplError::ConnectionClosed)
            }
            // Of a data channel that was negotiated too late, which nobody here uses.
            State::Settled(_) => Ok(data.len()),
        }
    }

    fn is_active(&self) -> bool {
        match &self.state {
            State::Whole(dtls) => dtls.is_active(),
            State::Settled(_) => true,
        }
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        match &self.state {
            State::Whole(dtls) => dtls.protocol_version(),
            State::Settled(_) => Some(ProtocolVersion::DTLS1_2),
        }
    }

    fn is_closing(&self) -> bool {
        match &self.state {
            State::Whole(dtls) => dtls.is_closing(),
            State::Settled(settled) => settled.is_closing(),
        }
    }

    fn is_closed(&self) -> bool {
        match &self.state {
            State::Whole(dtls) => dtls.is_closed(),
            State::Settled(settled) => settled.is_closed(),
        }
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        match &mut self.state {
            State::Whole(dtls) => dtls.close(),
            State::Settled(settled) => {
                settled.close();
                Ok(())
            }
        }
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
