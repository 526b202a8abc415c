//! What is kept of DTLS once a client has its media keys: the sealed `close_notify` that it will
//! send, and the key that authenticates the peer's. Everything else (transcript, certificates, both
//! ciphers, the flights and the buffers of the handshake) is some 15 kB a viewer, and nothing of it
//! is used again: the server's Finished shows that it needs no flight repeated (RFC 6347 section
//! 4.2.4), there is no renegotiation, and no application data.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{self, AES_128_GCM, AES_256_GCM, LessSafeKey, UnboundKey};
use dimpl::SecurityError;
use dimpl::crypto::{
    Aad, Buf, Cipher, Dtls12CipherSuite, HashAlgorithm, Nonce, SupportedDtls12CipherSuite, TmpBuf,
};
use str0m_proto::crypto::dtls::{DtlsImplError, DtlsOutput};

/// Nothing is due: as long as dimpl waits without a handshake.
const IDLE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Length of a record's header (RFC 6347 section 4.1).
const HEADER: usize = 13;
const ALERT: u8 = 21;
const VERSION_1_2: [u8; 2] = [0xfe, 0xfd];
/// The epoch of all records after the handshake.
const PROTECTED: [u8; 2] = [0, 1];
/// Part of the nonce that is in the record (RFC 5288 section 3).
const EXPLICIT_NONCE: usize = 8;
const TAG: usize = 16;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
/// More than an alert of any suite.
const ALERT_BYTES_MAX: usize = 256;

thread_local! {
    /// The key of the last record that was opened on this thread. dimpl shows nobody its keys, but
    /// gets its ciphers from here; [`opened_with`] takes it right after the call in which the
    /// record was opened.
    static OPENED_WITH: Cell<Option<ReadKey>> = const { Cell::new(None) };
}

/// The key of the last record that was opened on this thread, once.
pub(super) fn opened_with() -> Option<ReadKey> {
    OPENED_WITH.take()
}

/// The key of the peer's records, of AES-GCM.
#[derive(Clone, Copy)]
pub(super) struct ReadKey {
    key: [u8; 32],
    key_len: usize,
    salt: [u8; 4],
}

impl std::fmt::Debug for ReadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadKey")
    }
}

impl ReadKey {
    /// Level and description of the alert in a protected record; `None` for a record that is not
    /// authentic.
    fn alert(&self, header: &[u8], body: &[u8]) -> Option<(u8, u8)> {
        let (explicit, sealed) = body.split_at_checked(EXPLICIT_NONCE)?;
        let plain_len = u16::try_from(sealed.len().checked_sub(TAG)?).ok()?;
        let algorithm = if self.key_len == 16 { &AES_128_GCM } else { &AES_256_GCM };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, self.key.get(..self.key_len)?).ok()?);
        let mut nonce = [0; aead::NONCE_LEN];
        nonce.iter_mut().zip(self.salt.iter().chain(explicit)).for_each(|(to, from)| *to = *from);
        // Epoch and sequence number, type, version, length of the plain text (RFC 5246 section
        // 6.2.3.3).
        let mut aad = [0; HEADER];
        let parts = header.get(3..11)?.iter().chain(header.get(..3)?);
        aad.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
        aad.get_mut(11..)?.copy_from_slice(&plain_len.to_be_bytes());
        let mut opened = [0; ALERT_BYTES_MAX];
        let opened = opened.get_mut(..sealed.len())?;
        opened.copy_from_slice(sealed);
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        match key.open_in_place(nonce, aead::Aad::from(aad), opened).ok()? {
            [level, description, ..] => Some((*level, *description)),
            _ => None,
        }
    }
}

/// A DTLS 1.2 client after its handshake.
#[derive(Debug)]
pub(super) struct Settled {
    read_key: ReadKey,
    /// The sealed `close_notify`, until it is sent. It has the next sequence number: nothing else
    /// is sent.
    goodbye: Option<Box<[u8]>>,
    /// Either side closes.
    is_closing: bool,
    /// The peer closed, and [`DtlsOutput::CloseNotify`] was not returned yet.
    close_is_to_tell: bool,
    now: Instant,
}

impl Settled {
    /// Closes `dtls`, a client of which all outputs were polled, and keeps what that would send.
    /// `None` if it refuses; it continues then as before.
    pub(super) fn of(dtls: &mut dimpl::Dtls, read_key: ReadKey, now: Instant) -> Option<Self> {
        dtls.close().ok()?;
        let mut buffer = [0; 2048];
        let mut goodbye = None;
        loop {
            match dtls.poll_output(&mut buffer) {
                DtlsOutput::Packet(packet) => goodbye = Some(packet.into()),
                DtlsOutput::Timeout(_) | DtlsOutput::BufferTooSmall { .. } => break,
                _ => {}
            }
        }
        Some(Self { read_key, goodbye, is_closing: false, close_is_to_tell: false, now })
    }

    /// Handles alerts and ignores all other records.
    pub(super) fn handle_packet(&mut self, mut packet: &[u8]) -> Result<(), DtlsImplError> {
        while let Some((header, rest)) = packet.split_at_checked(HEADER) {
            let [kind, major, minor, epoch_high, epoch_low, .., len_high, len_low] = *header else {
                break;
            };
            let len = usize::from(u16::from_be_bytes([len_high, len_low]));
            let Some((body, rest)) = rest.split_at_checked(len) else { break };
            packet = rest;
            // Without the keys anybody could have sent it.
            let is_protected =
                [epoch_high, epoch_low] == PROTECTED && [major, minor] == VERSION_1_2;
            if kind != ALERT || !is_protected {
                continue;
            }
            match self.read_key.alert(header, body) {
                // It is answered by one (RFC 5246 section 7.2.1).
                Some((_, CLOSE_NOTIFY)) => {
                    self.close_is_to_tell |= !self.is_closing;
                    self.is_closing = true;
                }
                Some((FATAL, description)) => {
                    return Err(DtlsImplError::SecurityError(SecurityError::FatalAlert {
                        description,
                    }));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn poll_output<'a>(&mut self, buffer: &'a mut [u8]) -> DtlsOutput<'a> {
        let goodbye = if self.is_closing { self.goodbye.take() } else { None };
        if let Some(goodbye) = goodbye
            && let Some(place) = buffer.get_mut(..goodbye.len())
        {
            place.copy_from_slice(&goodbye);
            return DtlsOutput::Packet(place);
        }
        if std::mem::take(&mut self.close_is_to_tell) {
            return DtlsOutput::CloseNotify;
        }
        DtlsOutput::Timeout(self.now + IDLE)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
    }

    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing && !self.is_closed()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closing && self.goodbye.is_none() && !self.close_is_to_tell
    }
}

/// `suites`, with ciphers that show the key which opens the peer's records. Only the first call
/// counts.
pub(super) fn watched(
    suites: &'static [&'static dyn SupportedDtls12CipherSuite],
) -> &'static [&'static dyn SupportedDtls12CipherSuite] {
    static SUITES: OnceLock<Vec<WatchedSuite>> = OnceLock::new();
    static LISTED: OnceLock<Vec<&'static dyn SupportedDtls12CipherSuite>> = OnceLock::new();
    let suites = SUITES.get_or_init(|| suites.iter().map(|suite| WatchedSuite(*suite)).collect());
    LISTED.get_or_init(|| {
        suites.iter().map(|suite| suite as &dyn SupportedDtls12CipherSuite).collect()
    })
}

#[derive(Debug)]
struct WatchedSuite(&'static dyn SupportedDtls12CipherSuite);

impl SupportedDtls12CipherSuite for WatchedSuite {
    fn suite(&self) -> Dtls12CipherSuite {
        self.0.suite()
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        self.0.hash_algorithm()
    }

    fn key_lengths(&self) -> (usize, usize, usize) {
        self.0.key_lengths()
    }

    fn explicit_nonce_len(&self) -> usize {
        self.0.explicit_nonce_len()
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn min_protected_fragment_len(&self) -> usize {
        self.0.min_protected_fragment_len()
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, dimpl::CryptoError> {
        let cipher = self.0.create_cipher(key)?;
        let is_gcm = self.explicit_nonce_len() == EXPLICIT_NONCE && self.tag_len() == TAG;
        if !is_gcm || !matches!(key.len(), 16 | 32) {
            return Ok(cipher);
        }
        let mut kept = ReadKey { key: [0; 32], key_len: key.len(), salt: [0; 4] };
        kept.key.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        Ok(Box::new(WatchedCipher { cipher, key: kept }))
    }
}

#[derive(Debug)]
struct WatchedCipher {
    cipher: Box<dyn Cipher>,
    key: ReadKey,
}

impl Cipher for WatchedCipher {
    fn encrypt(
        &mut self,
        plain: &mut Buf,
        aad: Aad,
        nonce: Nonce,
    ) -> Result<(), dimpl::CryptoError> {
        self.cipher.encrypt(plain, aad, nonce)
    }

    fn decrypt(
        &mut self,
        sealed: &mut TmpBuf,
        aad: Aad,
        nonce: Nonce,
    ) -> Result<(), dimpl::CryptoError> {
        self.key.salt.iter_mut().zip(nonce.0).for_each(|(to, from)| *to = from);
        self.cipher.decrypt(sealed, aad, nonce)?;
        OPENED_WITH.set(Some(self.key));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use str0m_proto::crypto::DtlsVersion;
    use str0m_proto::crypto::dtls::DtlsInstance;

    use super::super::{KeySlot, shared, with_key_slot};
    use super::*;

    type End = Box<dyn DtlsInstance>;

    fn end(is_client: bool, settles: bool, now: Instant) -> (End, KeySlot) {
        let shared = shared().unwrap();
        let provider = shared.provider.dtls_provider;
        let (made, slot) = with_key_slot(|| {
            provider.new_dtls(&shared.certificate, now, DtlsVersion::Dtls12, None)
        });
        let mut made = made.unwrap();
        made.set_active(is_client);
        slot.only_media(settles);
        (made, slot)
    }

    /// Passes what `from` sends to `to`; whether `from` reported that its peer closed.
    fn pass(from: &mut End, to: &mut End) -> (Vec<Vec<u8>>, bool) {
        let (mut sent, mut is_closed) = (Vec::new(), false);
        let mut buffer = [0; 2048];
        loop {
            match from.poll_output(&mut buffer) {
                DtlsOutput::Packet(packet) => sent.push(packet.to_vec()),
                DtlsOutput::CloseNotify => is_closed = true,
                DtlsOutput::Timeout(_) => break,
                _ => {}
            }
        }
        sent.iter().for_each(|packet| to.handle_packet(packet).unwrap());
        (sent, is_closed)
    }

    fn connected(settles: bool) -> (End, End) {
        let now = Instant::now();
        let ((mut client, keys), (mut server, _)) =
            (end(true, settles, now), end(false, settles, now));
        for end in [&mut client, &mut server] {
            end.handle_timeout(now).unwrap();
        }
        for _ in 0..8 {
            pass(&mut client, &mut server);
            pass(&mut server, &mut client);
        }
        assert!(keys.take().is_some());
        assert_eq!(format!("{client:?}"), if settles { "KeyedDtls(settled)" } else { "KeyedDtls" });
        assert_eq!(format!("{server:?}"), "KeyedDtls", "its last flight may have to be repeated");
        (client, server)
    }

    #[test]
    fn a_settled_client_closes_as_one_that_is_not() {
        for settles in [true, false] {
            let (mut client, mut server) = connected(settles);
            assert!(!client.is_closing() && !client.is_closed());
            client.close().unwrap();
            assert!(client.is_closing());
            let (sent, _) = pass(&mut client, &mut server);
            assert_eq!(sent.iter().map(|packet| packet[0]).collect::<Vec<_>>(), [ALERT]);
            assert_eq!(sent[0][3..5], PROTECTED);
            assert!(client.is_closed());
            assert!(pass(&mut server, &mut client).1, "settled: {settles}");
            assert!(client.send_application_data(b"late").is_err());
        }
    }

    #[test]
    fn a_settled_client_answers_the_peer_s_close_as_one_that_is_not() {
        for settles in [true, false] {
            let (mut client, mut server) = connected(settles);
            server.close().unwrap();
            let (sent, _) = pass(&mut server, &mut client);
            let (answer, is_closed) = pass(&mut client, &mut server);
            assert!(is_closed && client.is_closed(), "settled: {settles}");
            assert_eq!(answer.iter().map(|packet| packet[0]).collect::<Vec<_>>(), [ALERT]);
            // A repeated close is no second one.
            sent.iter().for_each(|packet| client.handle_packet(packet).unwrap());
            assert_eq!(pass(&mut client, &mut server), (Vec::new(), false));
        }
    }

    #[test]
    fn a_settled_client_ignores_what_is_not_authentic() {
        let (mut client, mut server) = connected(true);
        server.close().unwrap();
        let mut buffer = [0; 2048];
        let DtlsOutput::Packet(close) = server.poll_output(&mut buffer) else {
            panic!("no close_notify")
        };
        let close = close.to_vec();
        for at in 0..close.len() {
            let mut damaged = close.clone();
            damaged[at] ^= 1;
            client.handle_packet(&damaged).unwrap();
            client.handle_packet(&close[..at]).unwrap();
        }
        // A fatal alert, as anybody can send it.
        client
            .handle_packet(&[ALERT, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, FATAL, 40])
            .unwrap();
        assert!(!client.is_closing() && !client.is_closed());
        // Nor do records in front of it hide one.
        client
            .handle_packet(
                &[&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0][..], &close].concat(),
            )
            .unwrap();
        assert!(client.is_closing());
    }

    #[test]
    fn a_settled_client_is_small() {
        assert!(size_of::<Settled>() <= 96, "{}", size_of::<Settled>());
    }
}
