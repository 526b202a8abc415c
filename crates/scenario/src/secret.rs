//! Secrets, which never appear in logs, errors or stored scenarios, and their sources.

use std::fmt;

pub(crate) use throng_observation::masked::{HIDDEN, may_be_shown};

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
}
