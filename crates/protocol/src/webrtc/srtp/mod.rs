//! SRTP and SRTCP (RFC 3711, RFC 7714) with key schedules and HMAC pads computed once per session,
//! in place, without allocation: one [`Opener`] for received packets, one [`Sealer`] for sent ones.
//!
//! There is no replay list. A replayed RTP packet is a duplicate sequence number, which the meters
//! of its track count as such; a replayed RTCP packet repeats its content. Neither harms a load
//! generator.

use std::ops::Range;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self, AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

/// The largest growth of an RTP packet by sealing: the AEAD tag.
pub const RTP_GROWTH_MAX: usize = 16;
/// The largest growth of an RTCP packet by sealing: the AEAD tag and the E flag with the SRTCP
/// index.
pub const RTCP_GROWTH_MAX: usize = 20;

const GCM_TAG: usize = 16;
const SHA1_80_TAG: usize = 10;
const RTCP_INDEX: usize = 4;
/// RTCP header and sender SSRC stay in the clear (RFC 3711 3.4).
const RTCP_CLEAR: usize = 8;
const ENCRYPTED_FLAG: u32 = 1 << 31;

/// Why a packet was not opened or sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrtpError {
    /// The packet is shorter than its own header, tag and trailer.
    #[error("{len} bytes are too short for an SRTP packet that needs {needed}")]
    TooShort {
        /// The actual length.
        len: usize,
        /// The length needed.
        needed: usize,
    },
    /// The authentication tag does not match: not from the peer, damaged, or another rollover
    /// counter than expected.
    #[error("authentication failed")]
    Authentication,
    /// SRTCP without encryption (E = 0), which WebRTC never sends (RFC 8827 6.5).
    #[error("SRTCP packet is not encrypted")]
    Unencrypted,
    /// The exported keying material is shorter than the profile needs.
    #[error("{len} bytes of keying material, {needed} needed")]
    KeyLength {
        /// The actual length.
        len: usize,
        /// The length that the profile needs.
        needed: usize,
    },
    /// The cryptographic library refused a key or an operation.
    #[error("cryptographic library refused")]
    Library,
}

/// A protection profile of RFC 5764 4.1.2 and RFC 7714 14.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// `SRTP_AES128_CM_HMAC_SHA1_80`.
    AesCm128HmacSha1_80,
    /// `SRTP_AEAD_AES_128_GCM`.
    AeadAes128Gcm,
    /// `SRTP_AEAD_AES_256_GCM`.
    AeadAes256Gcm,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] =
        [Self::AesCm128HmacSha1_80, Self::AeadAes128Gcm, Self::AeadAes256Gcm];

    fn key_len(self) -> usize {
        match self {
            Self::AesCm128HmacSha1_80 | Self::AeadAes128Gcm => 16,
            Self::AeadAes256Gcm => 32,
        }
    }

    fn salt_len(self) -> usize {
        match self {
            Self::AesCm128HmacSha1_80 => 14,
            Self::AeadAes128Gcm | Self::AeadAes256Gcm => 12,
        }
    }

    /// Bytes of keying material that the DTLS exporter returns for this profile (RFC 5764 4.2): two
    /// keys, two salts.
    #[must_use]
    pub fn keying_material_len(self) -> usize {
        2 * (self.key_len() + self.salt_len())
    }

    /// Bytes that sealing adds to an RTP packet.
    #[must_use]
    pub fn rtp_growth(self) -> usize {
        match self {
            Self::AesCm128HmacSha1_80 => SHA1_80_TAG,
            Self::AeadAes128Gcm | Self::AeadAes256Gcm => GCM_TAG,
        }
    }
}

/// The keys of one session as DTLS exported them.
#[derive(Clone)]
pub struct SessionKeys {
    profile: Profile,
    material: Vec<u8>,
    we_are_dtls_client: bool,
}

impl std::fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKeys").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl SessionKeys {
    /// `material` is client key, server key, client salt, server salt (RFC 5764 4.2).
    ///
    /// # Errors
    /// [`SrtpError::KeyLength`] when it is too short for `profile`.
    pub fn new(
        profile: Profile,
        material: &[u8],
        we_are_dtls_client: bool,
    ) -> Result<Self, SrtpError> {
        let needed = profile.keying_material_len();
        let material = material
            .get(..needed)
            .ok_or(SrtpError::KeyLength { len: material.len(), needed })?
            .to_vec();
        Ok(Self { profile, material, we_are_dtls_client })
    }

    /// The negotiated profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The cipher for received packets.
    ///
    /// # Errors
    /// [`SrtpError::Library`] only.
    pub fn opener(&self) -> Result<Opener, SrtpError> {
        let (key, salt) = self.master(!self.we_are_dtls_client);
        Ok(Opener {
            rtp: Cipher::derive(self.profile, key, salt, Label::RTP)?,
            rtcp: Cipher::derive(self.profile, key, salt, Label::RTCP)?,
        })
    }

    /// The cipher for sent packets.
    ///
    /// # Errors
    /// [`SrtpError::Library`] only.
    pub fn sealer(&self) -> Result<Sealer, SrtpError> {
        let (key, salt) = self.master(self.we_are_dtls_client);
        let rtp = Cipher::derive(self.profile, key, salt, Label::RTP)?;
        Ok(Sealer { rtp, control: self.control_sealer()? })
    }

    /// The cipher for sent RTCP, of a session that sends no media: instead of a [`Self::sealer`].
    ///
    /// # Errors
    /// [`SrtpError::Library`] only.
    pub fn control_sealer(&self) -> Result<ControlSealer, SrtpError> {
        let (key, salt) = self.master(self.we_are_dtls_client);
        let rtcp = Cipher::derive(self.profile, key, salt, Label::RTCP)?;
        Ok(ControlSealer { rtcp, rtcp_index: 0 })
    }

    fn master(&self, of_client: bool) -> (&[u8], &[u8]) {
        let (key_len, salt_len) = (self.profile.key_len(), self.profile.salt_len());
        let (keys, salts) = self.material.split_at(2 * key_len);
        let (client_key, server_key) = keys.split_at(key_len);
        let (client_salt, server_salt) = salts.split_at(salt_len);
        if of_client { (client_key, client_salt) } else { (server_key, server_salt) }
    }
}

/// Authenticates and decrypts the peer's packets.
pub struct Opener {
    rtp: Cipher,
    rtcp: Cipher,
}

impl Opener {
    /// Authenticates and decrypts an RTP packet in place and returns the range of its plain payload
    /// (padding included) in `packet`. `header_len` counts the fixed header, CSRCs and the
    /// extension; `index` is the extended sequence number, from [`IndexEstimator`].
    ///
    /// # Errors
    /// When the packet is too short or its tag is wrong; `packet` is then unspecified and not to be
    /// used.
    #[inline]
    pub fn open_rtp(
        &self,
        packet: &mut [u8],
        header_len: usize,
        ssrc: u32,
        index: u64,
    ) -> Result<Range<usize>, SrtpError> {
        let len = packet.len();
        let needed = header_len + self.rtp.tag_len();
        if len < needed {
            return Err(SrtpError::TooShort { len, needed });
        }
        let end = len - self.rtp.tag_len();
        match &self.rtp {
            Cipher::Gcm { key, salt } => {
                let (header, sealed) = packet.split_at_mut(header_len);
                key.open_in_place(gcm_nonce(salt, ssrc, index), Aad::from(&*header), sealed)
                    .map_err(|_| SrtpError::Authentication)?;
            }
            Cipher::Cm(mode) => {
                let CounterMode { key, pads, salt } = &**mode;
                let (body, tag) = packet.split_at_mut(end);
                check_tag(pads, &[body, &rollover(index)], tag)?;
                apply_keystream(key, &cm_iv(salt, ssrc, index), &mut body[header_len..])?;
            }
        }
        Ok(header_len..end)
    }

    /// Authenticates and decrypts an RTCP packet in place and returns the length of the plain
    /// compound packet.
    ///
    /// # Errors
    /// As [`Self::open_rtp`], and when the packet is not encrypted.
    pub fn open_rtcp(&self, packet: &mut [u8]) -> Result<usize, SrtpError> {
        let len = packet.len();
        let tag_len = self.rtcp.tag_len();
        let needed = RTCP_CLEAR + tag_len + RTCP_INDEX;
        if len < needed {
            return Err(SrtpError::TooShort { len, needed });
        }
        let ssrc = be_u32(&packet[4..8]);
        // AEAD puts the tag before the index (RFC 7714 9.2), HMAC after it (RFC 3711 3.4); both end
        // the packet.
        let plain_len = len - tag_len - RTCP_INDEX;
        match &self.rtcp {
            Cipher::Gcm { key, salt } => {
                let (body, trailer) = packet.split_at_mut(len - RTCP_INDEX);
                let index = encrypted_index(trailer)?;
                let (clear, sealed) = body.split_at_mut(RTCP_CLEAR);
                key.open_in_place(
                    gcm_nonce(salt, ssrc, u64::from(index)),
                    rtcp_aad(clear, index),
                    sealed,
                )
                .map_err(|_| SrtpError::Authentication)?;
            }
            Cipher::Cm(mode) => {
                let CounterMode { key, pads, salt } = &**mode;
                let (body, tag) = packet.split_at_mut(len - tag_len);
                check_tag(pads, &[body], tag)?;
                let (plain, trailer) = body.split_at_mut(plain_len);
                let index = encrypted_index(trailer)?;
                apply_keystream(
                    key,
                    &cm_iv(salt, ssrc, u64::from(index)),
                    &mut plain[RTCP_CLEAR..],
                )?;
            }
        }
        Ok(plain_len)
    }
}

/// Encrypts outgoing packets. There must be only one per session: two would use an SRTCP index
/// twice.
pub struct Sealer {
    rtp: Cipher,
    control: ControlSealer,
}

/// Encrypts outgoing RTCP packets. As of [`Sealer`], which has one, there must be only one per
/// session.
pub struct ControlSealer {
    rtcp: Cipher,
    /// The index of the last SRTCP packet; 31 bits.
    rtcp_index: u32,
}

impl Sealer {
    /// Bytes that sealing adds to an RTP packet.
    #[must_use]
    pub fn rtp_growth(&self) -> usize {
        self.rtp.tag_len()
    }

    /// Encrypts the RTP packet in `buffer[..plain_len]` in place, appends its tag, and returns the
    /// sealed length. The buffer needs [`RTP_GROWTH_MAX`] spare bytes. The caller never seals two
    /// different packets with the same `ssrc` and `index`.
    ///
    /// # Errors
    /// [`SrtpError::TooShort`] when the header is longer than the packet or the buffer has no room
    /// for the tag.
    #[inline]
    pub fn seal_rtp(
        &self,
        buffer: &mut [u8],
        plain_len: usize,
        header_len: usize,
        ssrc: u32,
        index: u64,
    ) -> Result<usize, SrtpError> {
        let sealed_len = plain_len + self.rtp.tag_len();
        let (Some(_), Some(packet)) =
            (plain_len.checked_sub(header_len), buffer.get_mut(..sealed_len))
        else {
            return Err(SrtpError::TooShort {
                len: buffer.len(),
                needed: sealed_len.max(header_len),
            });
        };
        let (body, tag_place) = packet.split_at_mut(plain_len);
        match &self.rtp {
            Cipher::Gcm { key, salt } => {
                let (header, payload) = body.split_at_mut(header_len);
                let tag = key
                    .seal_in_place_separate_tag(
                        gcm_nonce(salt, ssrc, index),
                        Aad::from(&*header),
                        payload,
                    )
                    .map_err(|_| SrtpError::Library)?;
                tag_place.copy_from_slice(tag.as_ref());
            }
            Cipher::Cm(mode) => {
                let CounterMode { key, pads, salt } = &**mode;
                apply_keystream(key, &cm_iv(salt, ssrc, index), &mut body[header_len..])?;
                put_tag(pads, &[body, &rollover(index)], tag_place);
            }
        }
        Ok(sealed_len)
    }

    /// See [`ControlSealer::seal_rtcp`].
    ///
    /// # Errors
    /// As that.
    pub fn seal_rtcp(&mut self, packet: &mut Vec<u8>) -> Result<(), SrtpError> {
        self.control.seal_rtcp(packet)
    }
}

impl ControlSealer {
    /// Encrypts the RTCP compound packet in `packet` in place and appends its trailer, with the
    /// next SRTCP index.
    ///
    /// # Errors
    /// [`SrtpError::TooShort`] when it is not even an RTCP header and an SSRC.
    pub fn seal_rtcp(&mut self, packet: &mut Vec<u8>) -> Result<(), SrtpError> {
        if packet.len() < RTCP_CLEAR {
            return Err(SrtpError::TooShort { len: packet.len(), needed: RTCP_CLEAR });
        }
        self.rtcp_index = (self.rtcp_index + 1) & !ENCRYPTED_FLAG;
        let index = self.rtcp_index;
        let trailer = (index | ENCRYPTED_FLAG).to_be_bytes();
        let ssrc = be_u32(&packet[4..8]);
        match &self.rtcp {
            Cipher::Gcm { key, salt } => {
                let (clear, payload) = packet.split_at_mut(RTCP_CLEAR);
                let tag = key
                    .seal_in_place_separate_tag(
                        gcm_nonce(salt, ssrc, u64::from(index)),
                        rtcp_aad(clear, index),
                        payload,
                    )
                    .map_err(|_| SrtpError::Library)?;
                packet.extend_from_slice(tag.as_ref());
                packet.extend_from_slice(&trailer);
            }
            Cipher::Cm(mode) => {
                let CounterMode { key, pads, salt } = &**mode;
                apply_keystream(
                    key,
                    &cm_iv(salt, ssrc, u64::from(index)),
                    &mut packet[RTCP_CLEAR..],
                )?;
                packet.extend_from_slice(&trailer);
                let mut tag = [0; SHA1_80_TAG];
                put_tag(pads, &[packet], &mut tag);
                packet.extend_from_slice(&tag);
            }
        }
        Ok(())
    }
}

/// Extends 16-bit sequence numbers of one SSRC to the 48-bit SRTP index (RFC 3711 3.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexEstimator {
    highest: Option<u64>,
}

impl IndexEstimator {
    /// The index that `sequence` most likely has: the one nearest to the highest authenticated so
    /// far.
    #[inline]
    #[must_use]
    pub fn estimate(&self, sequence: u16) -> u64 {
        let Some(highest) = self.highest else { return u64::from(sequence) };
        let rollover = highest >> 16;
        let last = (highest & 0xffff) as i32;
        let distance = i32::from(sequence) - last;
        let rollover = if distance > 0x8000 {
            // Before the last wrap; there is no cycle before the first.
            rollover.saturating_sub(1)
        } else if distance < -0x8000 {
            rollover + 1
        } else {
            rollover
        };
        (rollover << 16) | u64::from(sequence)
    }

    /// The packet with `index` was authentic.
    #[inline]
    pub fn accept(&mut self, index: u64) {
        if self.highest.is_none_or(|highest| index > highest) {
            self.highest = Some(index);
        }
    }
}

/// One direction's cipher of RTP or RTCP.
enum Cipher {
    Gcm {
        key: LessSafeKey,
        salt: [u8; 12],
    },
    /// Boxed: HMAC pads are large, and the sessions of most servers do not use them.
    Cm(Box<CounterMode>),
}

struct CounterMode {
    key: EncryptingKey,
    pads: hmac::Key,
    salt: [u8; 14],
}

/// First of three consecutive key derivation labels: encryption, authentication, salt (RFC 3711
/// 4.3.2).
struct Label;

impl Label {
    const RTP: u8 = 0;
    const RTCP: u8 = 3;
}

impl Cipher {
    fn derive(
        profile: Profile,
        master_key: &[u8],
        master_salt: &[u8],
        label: u8,
    ) -> Result<Self, SrtpError> {
        let mut key = [0; 32];
        let key = &mut key[..profile.key_len()];
        derive_key(master_key, master_salt, label, key)?;
        let mut auth = [0; 20];
        derive_key(master_key, master_salt, label + 1, &mut auth)?;
        let mut salt = [0; 14];
        derive_key(master_key, master_salt, label + 2, &mut salt[..profile.salt_len()])?;
        Self::from_session_keys(profile, key, &auth, &salt)
    }

    fn from_session_keys(
        profile: Profile,
        key: &[u8],
        auth: &[u8],
        salt: &[u8; 14],
    ) -> Result<Self, SrtpError> {
        let gcm = |algorithm| -> Result<Self, SrtpError> {
            let key =
                LessSafeKey::new(UnboundKey::new(algorithm, key).map_err(|_| SrtpError::Library)?);
            let mut salt_96 = [0; 12];
            salt_96.copy_from_slice(&salt[..12]);
            Ok(Self::Gcm { key, salt: salt_96 })
        };
        match profile {
            Profile::AeadAes128Gcm => gcm(&AES_128_GCM),
            Profile::AeadAes256Gcm => gcm(&AES_256_GCM),
            Profile::AesCm128HmacSha1_80 => Ok(Self::Cm(Box::new(CounterMode {
                key: counter_mode(&AES_128, key)?,
                pads: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, auth),
                salt: *salt,
            }))),
        }
    }

    #[inline]
    fn tag_len(&self) -> usize {
        match self {
            Self::Gcm { .. } => GCM_TAG,
            Self::Cm(_) => SHA1_80_TAG,
        }
    }
}

/// RFC 3711 4.3 with a key derivation rate of 0, and RFC 7714 11 for the 96-bit salt, which is
/// left-aligned.
fn derive_key(
    master_key: &[u8],
    master_salt: &[u8],
    label: u8,
    out: &mut [u8],
) -> Result<(), SrtpError> {
    let mut iv = [0; 16];
    iv.iter_mut().zip(master_salt).for_each(|(iv, salt)| *iv = *salt);
    iv[7] ^= label;
    out.fill(0);
    let algorithm = if master_key.len() == 32 { &AES_256 } else { &AES_128 };
    apply_keystream(&counter_mode(algorithm, master_key)?, &iv, out)
}

fn counter_mode(
    algorithm: &'static cipher::Algorithm,
    key: &[u8],
) -> Result<EncryptingKey, SrtpError> {
    UnboundCipherKey::new(algorithm, key)
        .and_then(EncryptingKey::ctr)
        .map_err(|_| SrtpError::Library)
}

#[inline]
fn apply_keystream(key: &EncryptingKey, iv: &[u8; 16], data: &mut [u8]) -> Result<(), SrtpError> {
    // Some libraries refuse an empty buffer, and an RTP packet may have an empty payload.
    if data.is_empty() {
        return Ok(());
    }
    key.less_safe_encrypt(data, EncryptionContext::Iv128(iv.into()))
        .map(drop)
        .map_err(|_| SrtpError::Library)
}

#[inline]
fn sign(pads: &hmac::Key, parts: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(pads);
    parts.iter().for_each(|part| context.update(part));
    context.sign()
}

#[inline]
fn check_tag(pads: &hmac::Key, parts: &[&[u8]], tag: &[u8]) -> Result<(), SrtpError> {
    let expect = sign(pads, parts);
    verify_slices_are_equal(&expect.as_ref()[..SHA1_80_TAG], tag)
        .map_err(|_| SrtpError::Authentication)
}

#[inline]
fn put_tag(pads: &hmac::Key, parts: &[&[u8]], place: &mut [u8]) {
    place.copy_from_slice(&sign(pads, parts).as_ref()[..SHA1_80_TAG]);
}

/// The upper 32 of the index's 48 bits.
#[inline]
fn rollover(index: u64) -> [u8; 4] {
    ((index >> 16) as u32).to_be_bytes()
}

/// RFC 3711 4.1.1: salt · 2^16 ⊕ SSRC · 2^64 ⊕ index · 2^16; the last two bytes count blocks.
#[inline]
fn cm_iv(salt: &[u8; 14], ssrc: u32, index: u64) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[4..8].copy_from_slice(&ssrc.to_be_bytes());
    iv[8..14].copy_from_slice(&index.to_be_bytes()[2..]);
    iv.iter_mut().zip(salt).for_each(|(iv, salt)| *iv ^= salt);
    iv
}

/// RFC 7714 8.1: 16 zero bits, SSRC, rollover counter, sequence number; ⊕ salt. Of RTCP (9.1) it is
/// the same of the 31-bit index.
#[inline]
fn gcm_nonce(salt: &[u8; 12], ssrc: u32, index: u64) -> Nonce {
    let mut iv = [0; 12];
    iv[2..6].copy_from_slice(&ssrc.to_be_bytes());
    iv[6..12].copy_from_slice(&index.to_be_bytes()[2..]);
    iv.iter_mut().zip(salt).for_each(|(iv, salt)| *iv ^= salt);
    Nonce::assume_unique_for_key(iv)
}

/// RFC 7714 9.2: the part in the clear, then the E flag and the index.
fn rtcp_aad(clear: &[u8], index: u32) -> Aad<[u8; RTCP_CLEAR + RTCP_INDEX]> {
    let mut aad = [0; RTCP_CLEAR + RTCP_INDEX];
    let (head, tail) = aad.split_at_mut(RTCP_CLEAR);
    head.copy_from_slice(clear);
    tail.copy_from_slice(&(index | ENCRYPTED_FLAG).to_be_bytes());
    Aad::from(aad)
}

fn encrypted_index(trailer: &[u8]) -> Result<u32, SrtpError> {
    let word = be_u32(trailer);
    if word & ENCRYPTED_FLAG == 0 {
        Err(SrtpError::Unencrypted)
    } else {
        Ok(word & !ENCRYPTED_FLAG)
    }
}

/// The first four bytes as a big-endian number; a shorter slice is taken whole.
fn be_u32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |word, byte| (word << 8) | u32::from(*byte))
}

#[cfg(test)]
mod tests;
