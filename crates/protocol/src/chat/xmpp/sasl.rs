//! Authentication (RFC 6120 section 6): ANONYMOUS (RFC 4505), PLAIN (RFC 4616), SCRAM-SHA-1 and
//! SCRAM-SHA-256 (RFC 5802, RFC 7677) without channel binding, which browsers do not have.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use throng_scenario::Secret;

/// More rounds of PBKDF2 than this are not done: a server could make the generator compute for
/// minutes.
const ITERATIONS_MAX: u32 = 1_000_000;

/// An account.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Its name, without the domain.
    pub username: String,
    /// Its password.
    pub password: Secret,
}

/// The hash of SCRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha1,
    Sha256,
}

impl Hash {
    fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        }
    }
}

/// Why an authentication does not go on, though the server refuses nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SaslError {
    /// What the server says is no challenge, or no end of one.
    #[error("{0}")]
    Malformed(String),
    /// The server accepts the account without knowing its password: anybody could answer in its
    /// place (RFC 5802 section 5: the authentication is then unsuccessful).
    #[error("the server does not prove that it knows the password (SCRAM)")]
    Unproven,
}

impl SaslError {
    fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }
}

/// An authentication under way.
#[derive(Debug)]
pub(super) struct Sasl {
    /// Its name on the wire.
    pub(super) mechanism: &'static str,
    /// Its first message, in Base64; empty where it has none.
    pub(super) first: String,
    scram: Option<Scram>,
}

#[derive(Debug)]
struct Scram {
    hash: Hash,
    password: Secret,
    nonce: String,
    /// The client's first message without its header.
    first_bare: String,
    /// What the server must prove to know, once the challenge was answered.
    server_signature: Option<Vec<u8>>,
}

impl Sasl {
    /// The best of the `offered` mechanisms, as ConverseJS chooses; `None` if none can be used.
    pub(super) fn choose(
        offered: &[&str],
        credentials: Option<&Credentials>,
        nonce: String,
    ) -> Option<Self> {
        let has = |name: &str| offered.contains(&name);
        let Some(Credentials { username, password }) = credentials else {
            return has("ANONYMOUS").then(|| Self {
                mechanism: "ANONYMOUS",
                first: String::new(),
                scram: None,
            });
        };
        let scram = [("SCRAM-SHA-256", Hash::Sha256), ("SCRAM-SHA-1", Hash::Sha1)];
        if let Some((mechanism, hash)) = scram.into_iter().find(|(name, _)| has(name)) {
            let name = username.replace('=', "=3D").replace(',', "=2C");
            let first_bare = format!("n={name},r={nonce}");
            let first = BASE64.encode(format!("n,,{first_bare}"));
            let password = password.clone();
            let scram = Scram { hash, password, nonce, first_bare, server_signature: None };
            return Some(Self { mechanism, first, scram: Some(scram) });
        }
        let plain = || BASE64.encode(format!("\0{username}\0{}", password.expose()));
        has("PLAIN").then(|| Self { mechanism: "PLAIN", first: plain(), scram: None })
    }

    /// The answer to a challenge, both in Base64.
    pub(super) fn answer(&mut self, challenge: &str) -> Result<String, SaslError> {
        let none = || SaslError::malformed("a challenge to a mechanism that has none");
        let scram = self.scram.as_mut().ok_or_else(none)?;
        let challenge = decoded(challenge)?;
        Ok(BASE64.encode(scram.answer(&challenge)?))
    }

    /// Checks what a server says at its success, in Base64.
    pub(super) fn check(&self, success: &str) -> Result<(), SaslError> {
        let Some(scram) = &self.scram else { return Ok(()) };
        let said = decoded(success)?;
        let signature = said.strip_prefix("v=").and_then(|text| BASE64.decode(text).ok());
        if signature.is_some() && signature == scram.server_signature {
            Ok(())
        } else {
            Err(SaslError::Unproven)
        }
    }
}

impl Scram {
    /// RFC 5802 section 3.
    fn answer(&mut self, challenge: &str) -> Result<String, SaslError> {
        let field = |key: &str| {
            let value =
                challenge.split(',').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
            let none = || SaslError::Malformed(format!("a challenge without `{key}` (SCRAM)"));
            value.ok_or_else(none)
        };
        let (nonce, salt, rounds) = (field("r")?, field("s")?, field("i")?);
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(SaslError::malformed("a challenge with another nonce (SCRAM)"));
        }
        let not_base64 = |_| SaslError::malformed("a salt that is not Base64 (SCRAM)");
        let salt = BASE64.decode(salt).map_err(not_base64)?;
        let rounds = rounds
            .parse()
            .ok()
            .filter(|rounds| *rounds <= ITERATIONS_MAX)
            .and_then(NonZeroU32::new);
        let rounds = rounds.ok_or_else(|| {
            SaslError::Malformed(format!(
                "an iteration count that is not a number up to {ITERATIONS_MAX} (SCRAM)"
            ))
        })?;

        let mut salted = vec![0; self.hash.digest().output_len()];
        pbkdf2::derive(
            self.hash.pbkdf2(),
            rounds,
            &salt,
            self.password.expose().as_bytes(),
            &mut salted,
        );
        let sign =
            |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(self.hash.hmac(), key), text);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(self.hash.digest(), client_key.as_ref());
        // `biws` is `n,,`: no channel binding.
        let without_proof = format!("c=biws,r={nonce}");
        let message = format!("{},{challenge},{without_proof}", self.first_bare);
        let client_signature = sign(stored_key.as_ref(), message.as_bytes());
        let proof: Vec<u8> = client_key
            .as_ref()
            .iter()
            .zip(client_signature.as_ref())
            .map(|(key, sign)| key ^ sign)
            .collect();
        let server_key = sign(&salted, b"Server Key");
        self.server_signature =
            Some(sign(server_key.as_ref(), message.as_bytes()).as_ref().to_vec());
        Ok(format!("{without_proof},p={}", BASE64.encode(proof)))
    }
}

fn decoded(text: &str) -> Result<String, SaslError> {
    let bytes = BASE64.decode(text.trim()).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| SaslError::malformed("a challenge that is not text in Base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(username: &str, password: &str) -> Credentials {
        Credentials { username: username.to_owned(), password: Secret::new(password) }
    }

    /// The examples of RFC 5802 section 5 and RFC 7677 section 3.
    #[test]
    fn scram_gives_the_proofs_of_the_specifications() {
        for (mechanism, nonce, challenge, proof, success) in [
            (
                "SCRAM-SHA-1",
                "fyko+d2lbbFgONRv9qkxdawL",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            ),
            (
                "SCRAM-SHA-256",
                "rOprNGfwEbeRWgbNEkqO",
                "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            ),
        ] {
            let user = account("user", "pencil");
            let mut sasl =
                Sasl::choose(&[mechanism, "PLAIN"], Some(&user), nonce.to_owned()).unwrap();
            assert_eq!(
                (sasl.mechanism, decoded(&sasl.first).unwrap()),
                (mechanism, format!("n,,n=user,r={nonce}"))
            );
            let answer = sasl.answer(&BASE64.encode(challenge)).unwrap();
            assert_eq!(decoded(&answer).unwrap(), proof);
            assert_eq!(sasl.check(&BASE64.encode(success)), Ok(()));
            for unproven in [BASE64.encode("v=AAAA"), String::new()] {
                assert_eq!(sasl.check(&unproven), Err(SaslError::Unproven));
            }
            assert!(matches!(sasl.check("v=!"), Err(SaslError::Malformed(_))));
        }
    }

    #[test]
    fn who_has_no_account_is_anonymous_and_others_choose_the_best() {
        let user = account("u=1,2", "p");
        let choose = |offered: &[&str], user| Sasl::choose(offered, user, "n".to_owned());
        assert_eq!(choose(&["PLAIN", "ANONYMOUS"], None).unwrap().mechanism, "ANONYMOUS");
        assert!(
            choose(&["PLAIN"], None).is_none() && choose(&["ANONYMOUS"], Some(&user)).is_none()
        );
        let plain = choose(&["PLAIN", "ANONYMOUS"], Some(&user)).unwrap();
        assert_eq!(
            (plain.mechanism, decoded(&plain.first).unwrap().as_str()),
            ("PLAIN", "\0u=1,2\0p")
        );
        let scram = choose(&["SCRAM-SHA-1", "SCRAM-SHA-256"], Some(&user)).unwrap();
        assert_eq!(decoded(&scram.first).unwrap(), "n,,n=u=3D1=2C2,r=n");
    }

    #[test]
    fn challenges_that_are_none_are_errors() {
        let user = account("user", "pencil");
        for (challenge, expect) in [
            ("r=other,s=QQ==,i=4096", "nonce"),
            ("r=n,s=QQ==,i=4096", "nonce"),
            ("s=QQ==,i=4096", "without `r`"),
            ("r=nn,s=!,i=4096", "Base64"),
            ("r=nn,s=QQ==,i=0", "iteration count"),
            ("r=nn,s=QQ==,i=4000000000", "iteration count"),
        ] {
            let mut sasl = Sasl::choose(&["SCRAM-SHA-1"], Some(&user), "n".to_owned()).unwrap();
            let error = sasl.answer(&BASE64.encode(challenge)).unwrap_err();
            let SaslError::Malformed(why) = &error else { panic!("{challenge}: {error}") };
            assert!(why.contains(expect), "{challenge}: {why}");
        }
        let mut anonymous = Sasl::choose(&["ANONYMOUS"], None, String::new()).unwrap();
        assert!(anonymous.answer("QQ==").is_err());
    }
}
