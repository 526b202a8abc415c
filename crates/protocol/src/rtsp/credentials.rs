//! Authentication: Basic (RFC 7617) and Digest with MD5 or SHA-256 (RFC 7616), as a server's 401
//! asks for it.

use http_auth::digest::Algorithm;
use http_auth::{PasswordClient, PasswordParams};
use throng_scenario::Secret;

/// A user name and password, from the target's URL.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The user.
    pub username: String,
    /// Its password; may be empty.
    pub password: Secret,
}

/// The state of authentication.
#[derive(Default)]
pub(super) struct Authentication {
    credentials: Option<Credentials>,
    client: Option<PasswordClient>,
}

impl Authentication {
    pub(super) fn new(credentials: Option<Credentials>) -> Self {
        Self { credentials, client: None }
    }

    /// Whether the target has credentials.
    pub(super) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// Whether credentials were sent before.
    pub(super) fn has_answered(&self) -> bool {
        self.client.is_some()
    }

    /// Takes the server's challenges, one per `WWW-Authenticate` header; the strongest supported
    /// one is answered.
    ///
    /// # Errors
    /// What makes them unusable.
    pub(super) fn challenge<'a>(
        &mut self,
        challenges: impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut builder = PasswordClient::builder();
        for challenge in challenges {
            builder = builder.challenges(challenge);
        }
        self.client = Some(builder.build()?);
        Ok(())
    }

    /// Whether the last challenge only replaced an expired nonce (RFC 7616 section 3.3).
    pub(super) fn is_stale(&self) -> bool {
        matches!(&self.client, Some(PasswordClient::Digest(digest)) if digest.stale())
    }

    /// The `Authorization` header of a request, once challenged.
    pub(super) fn header(&mut self, method: &str, uri: &str, body: &[u8]) -> Option<String> {
        let (client, credentials) = (self.client.as_mut()?, self.credentials.as_ref()?);
        let parameters = PasswordParams {
            username: &credentials.username,
            password: credentials.password.expose(),
            uri,
            method,
            body: Some(body),
        };
        let mut response = client.respond(&parameters).ok()?;
        // Without qop http-auth answers as RFC 2069 did, which knew MD5 only. The algorithm has to
        // be named where it is another (RFC 7616 section 3.4: as in the challenge).
        if let PasswordClient::Digest(digest) = client
            && digest.rfc2069_compat()
            && let Some(name) = name_beyond_md5(digest.algorithm())
        {
            response += ", algorithm=";
            response += name;
        }
        Some(response)
    }
}

/// The name of an algorithm that is not the default one.
fn name_beyond_md5(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::Sha256 => Some("SHA-256"),
        Algorithm::Sha512Trunc256 => Some("SHA-512-256"),
        _ => None,
    }
}
