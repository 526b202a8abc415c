//! A string that never shows itself in logs, errors or stored scenarios.

use std::fmt;

/// What stands in the place of a secret wherever one would be shown.
pub(crate) const HIDDEN: &str = "…";

/// Names of URL parameters with one of these in them may sign or authorise.
const SECRET_NAMES: [&str; 17] = [
    "token", "key", "secret", "pass", "pwd", "pin", "sig", "auth", "jwt", "policy", "cred", "hash", "hmac",
    "session", "ticket", "code", "access",
];

/// A name of a stream or a room is no longer.
const SHOWN_BYTES_MAX: usize = 64;

/// So many letters and digits on end, with both among them, are no word.
const WORD_BYTES_MIN: usize = 20;

/// Whether a parameter of a URL's query may be shown with its value, as it is written there: its name is none of a secret, and
/// its value looks like a name. Two streams whose names stand in the query are told apart by them.
pub(crate) fn may_be_shown(pair: &str) -> bool {
    let Some((name, value)) = pair.split_once('=') else { return false };
    let name = name.to_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/:".contains(c);
    let is_random = |word: &str| {
        let has = |is: fn(char) -> bool| word.contains(is);
        word.len() >= WORD_BYTES_MIN && has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic())
    };
    SECRET_NAMES.iter().all(|secret| !name.contains(secret))
        && (1..=SHOWN_BYTES_MAX).contains(&value.len())
        && name.chars().chain(value.chars()).all(is_plain)
        && !value.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random)
}

/// A token, PIN or password. `Debug` and `Display` print `…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, to be sent to the server and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_and_what_may_be_a_secret_is_not() {
        for (name, value, is_shown) in [
            ("app", "live", true),
            ("stream", "lesson-12", true),
            ("room", "3fa85f64-5717-4562-b3fc-2c963f66afa6", true),
            ("transport", "tcp", true),
            ("accessToken", "a", false),
            ("X-Amz-Signature", "a", false),
            ("authKey", "a", false),
            ("PIN", "12", false),
            // Whatever it is called, it looks like a key.
            ("t", "9f86d081884c7d659a2feaa0c55ad015", false),
            ("t", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", false),
            ("v", "a%20b", false),
            ("v", "", false),
            ("\u{1b}[31m", "a", false),
        ] {
            assert_eq!(may_be_shown(&format!("{name}={value}")), is_shown, "{name}={value}");
        }
        assert!(!may_be_shown("hunter2"), "a value without a name");
    }
}
