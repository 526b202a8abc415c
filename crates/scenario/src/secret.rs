//! Secrets, which never appear in logs, errors or stored scenarios, and their sources.

use std::fmt;

/// The text that is shown in place of a secret.
pub(crate) const HIDDEN: &str = "…";

/// URL parameters whose names contain one of these may be signatures or credentials.
const SECRET_NAMES: [&str; 17] = [
    "token", "key", "secret", "pass", "pwd", "pin", "sig", "auth", "jwt", "policy", "cred", "hash",
    "hmac", "session", "ticket", "code", "access",
];

/// Names of streams and rooms are no longer.
const SHOWN_BYTES_MAX: usize = 64;

/// A word that mixes letters and digits and is at least this long counts as random.
const WORD_BYTES_MIN: usize = 20;

/// Whether a query parameter may be shown with its value: its name is not that of a secret, and its
/// value looks like a name. Stream names in a query stay visible this way.
pub(crate) fn may_be_shown(pair: &str) -> bool {
    let Some((name, value)) = pair.split_once('=') else { return false };
    let name = name.to_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/:".contains(c);
    let is_random = |word: &str| {
        let has = |is: fn(char) -> bool| word.contains(is);
        word.len() >= WORD_BYTES_MIN
            && has(|c| c.is_ascii_digit())
            && has(|c| c.is_ascii_alphabetic())
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

    /// The value itself, for the server only.
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

/// The source of a token; the caller reads environment and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// In the scenario itself.
    Inline(Secret),
    /// `env:NAME`: the environment variable `NAME`.
    Environment(String),
    /// `file:PATH`: the trimmed content of a file; a relative path is relative to the scenario's
    /// folder.
    File(String),
}

impl TokenSource {
    /// Reads `env:NAME`, `file:PATH`, or the token itself.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match (text.strip_prefix("env:"), text.strip_prefix("file:")) {
            (Some(name), _) => Self::Environment(name.to_owned()),
            (_, Some(path)) => Self::File(path.to_owned()),
            _ => Self::Inline(Secret::new(text)),
        }
    }

    /// Whether it is the token itself.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self, Self::Inline(_))
    }
}

impl fmt::Display for TokenSource {
    /// The reference, or `…` for the token itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(secret) => secret.fmt(f),
            Self::Environment(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed_and_its_place_is() {
        let secret = Secret::new("hunter2");
        let inline = TokenSource::parse("hunter2");
        for text in [
            secret.to_string(),
            format!("{secret:?}"),
            format!("{:#?}", Some(&secret)),
            inline.to_string(),
            format!("{inline:?}"),
        ] {
            assert!(text.contains(HIDDEN) && !text.contains("hunter2"), "{text}");
        }
        assert_eq!(secret.expose(), "hunter2");
        for place in ["env:TOKEN", "file:secrets/token"] {
            assert_eq!(TokenSource::parse(place).to_string(), place);
        }
    }

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
