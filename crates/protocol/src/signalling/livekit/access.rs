//! The access token of a participant: a JSON Web Token (RFC 7519) signed with an API key of the
//! server (HS256).
//!
//! Source: LiveKit's documentation of access tokens (claims `iss`, `sub`, `nbf`, `exp`, `name`,
//! `video`).

use std::fmt;
use std::time::Instant;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use throng_media::quality::WallClock;
use throng_scenario::{Role, Subscription};

use crate::factory::TargetFactory;

/// How long a token is valid: longer than a run; the server checks it only at the join.
const VALID_FOR_S: u64 = 24 * 3_600;
/// By how much the server's clock may be behind the local one.
const CLOCKS_APART_S: u64 = 60;

/// The credentials for a room.
#[derive(Clone)]
pub enum Access {
    /// A token that was issued elsewhere.
    Token(String),
    /// An API key of the server, which signs a token for each join.
    Key(Box<Key>),
}

/// The contents of a token.
#[derive(Clone)]
pub struct Key {
    /// The key's name.
    pub name: String,
    /// Its secret.
    pub secret: String,
    /// The room that the token permits.
    pub room: String,
    /// The identity of the participant: unique in the room, and the name that the others see.
    pub identity: String,
    /// Whether the participant may publish.
    pub can_publish: bool,
    /// Whether the participant may subscribe.
    pub can_subscribe: bool,
    /// Converts moments to wall time.
    pub clock: WallClock,
}

impl Access {
    /// That of a participant of a run, by its name and role.
    pub(crate) fn of(factory: &TargetFactory, name: &str, role: &Role, room: &str) -> Self {
        match &factory.api_key {
            Some(api) => Self::Key(Box::new(Key {
                name: api.key.clone(),
                secret: api.secret.expose().to_owned(),
                room: room.to_owned(),
                identity: factory.mark.put(name),
                can_publish: role.publish.is_some(),
                can_subscribe: role.subscribe != Subscription::NONE,
                clock: factory.clock,
            })),
            None => Self::Token(factory.token.clone().unwrap_or_default()),
        }
    }

    /// The token for a join at `now`.
    #[must_use]
    pub fn token(&self, now: Instant) -> String {
        match self {
            Self::Token(token) => token.clone(),
            Self::Key(key) => key.token(now),
        }
    }
}

impl Key {
    fn token(&self, now: Instant) -> String {
        let now_s = self.clock.unix_ns(now) / 1_000_000_000;
        let claims = json!({
            "iss": self.name,
            "sub": self.identity,
            "name": self.identity,
            "nbf": now_s.saturating_sub(CLOCKS_APART_S),
            "exp": now_s.saturating_add(VALID_FOR_S),
            "video": {
                "room": self.room,
                "roomJoin": true,
                "canPublish": self.can_publish,
                "canSubscribe": self.can_subscribe,
            },
        });
        let header = json!({ "alg": "HS256", "typ": "JWT" });
        let encoded = |text: String| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let tag = hmac::sign(&key, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(_) => f.write_str("Token(…)"),
            Self::Key(key) => key.fmt(f),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, room, identity, .. } = self;
        f.debug_struct("Key")
            .field("name", name)
            .field("room", room)
            .field("identity", identity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn key() -> (Key, Instant) {
        let now = Instant::now();
        let key = Key {
            name: "devkey".into(),
            secret: "secret".into(),
            room: "lesson \"1\"".into(),
            identity: "throng-7".into(),
            can_publish: true,
            can_subscribe: false,
            clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
        };
        (key, now)
    }

    #[test]
    fn a_token_states_identity_room_grants_and_expiry() {
        let (key, now) = key();
        let token = Access::Key(Box::new(key)).token(now);
        let parts: Vec<&str> = token.split('.').collect();
        let read = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(read(parts[0]), json!({ "alg": "HS256", "typ": "JWT" }));
        assert_eq!(
            read(parts[1]),
            json!({
                "iss": "devkey", "sub": "throng-7", "name": "throng-7", "nbf": 1_699_999_940, "exp": 1_700_086_400,
                "video": { "room": "lesson \"1\"", "roomJoin": true, "canPublish": true, "canSubscribe": false },
            })
        );
        let secret = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let signed = token.rsplit_once('.').unwrap().0;
        let tag = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        assert!(hmac::verify(&secret, signed.as_bytes(), &tag).is_ok());
    }

    #[test]
    fn a_secret_is_never_shown() {
        let (mut key, _) = key();
        key.secret = "hunter2".into();
        let shown =
            format!("{:?} {:?}", Access::Token("hunter2".into()), Access::Key(Box::new(key)));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
