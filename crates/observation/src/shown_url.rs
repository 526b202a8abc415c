//! A URL that cannot be shown with its secrets.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use url::{Host, Origin, ParseError};

use crate::masked::{HIDDEN, Shown, masked, masked_request_path, masked_url};

/// A URL that gets load, or leads to where load goes: of a target, a segment, a redirect. Wherever
/// it is shown its secrets are [`HIDDEN`]: it has no other `Display` and `Debug`, and what may be
/// secret of it, user info, path and query, has one way out, [`Self::in_clear`], which is for what
/// is sent.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url {
    url: url::Url,
    /// It is kept as one of HTTP, and its path ends with a key.
    has_key: bool,
}

impl Url {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// When `text` is none.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { url: url::Url::parse(text)?, has_key: false })
    }

    /// Reads a reference, which is relative to this URL.
    ///
    /// # Errors
    /// When `reference` is none.
    pub fn join(&self, reference: &str) -> Result<Self, ParseError> {
        Ok(Self { url: self.url.join(reference)?, has_key: self.has_key })
    }

    /// The same, whose path is a key: nothing of it is shown.
    #[must_use]
    pub fn with_key(self) -> Self {
        Self { has_key: true, ..self }
    }

    /// With all its secrets: for what is sent, and what is told apart by it. Where that may be, the
    /// tests of the architecture list.
    #[must_use]
    pub fn in_clear(&self) -> &url::Url {
        &self.url
    }

    /// As text in which the secrets are as `how` says.
    #[must_use]
    pub fn shown(&self, how: Shown) -> String {
        if self.has_key { self.to_string() } else { masked_url(self.url.as_str(), how) }
    }

    /// The path without its secrets.
    #[must_use]
    pub fn shown_path(&self) -> Cow<'_, str> {
        if self.has_key { Cow::Borrowed(HIDDEN) } else { masked_request_path(self.url.path()) }
    }

    /// The scheme, without `:`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> Option<Host<&str>> {
        self.url.host()
    }

    /// The host as it is written in URLs.
    #[must_use]
    pub fn host_str(&self) -> Option<&str> {
        self.url.host_str()
    }

    /// Whether it has a host.
    #[must_use]
    pub fn has_host(&self) -> bool {
        self.url.has_host()
    }

    /// The port, if it is not that of the scheme.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.url.port()
    }

    /// The port, or that of the scheme.
    #[must_use]
    pub fn port_or_known_default(&self) -> Option<u16> {
        self.url.port_or_known_default()
    }

    /// Scheme, host and port, as the web tells servers apart.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.url.origin()
    }

    /// Whether it has a user name or a password.
    #[must_use]
    pub fn has_user(&self) -> bool {
        !self.url.username().is_empty() || self.url.password().is_some()
    }

    /// Whether it has nothing but scheme, host and port.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        let has_path = !matches!(self.url.path(), "" | "/");
        let has_more = self.url.query().is_some() || self.url.fragment().is_some();
        !(self.has_user() || has_path || has_more)
    }

    /// Takes user name and password out of it.
    pub fn remove_user(&mut self) {
        // These fail for URLs alone that cannot have any.
        let _ = self.url.set_username("");
        let _ = self.url.set_password(None);
    }

    /// Takes out the fragment, which no server sees (RFC 3986, 3.5).
    pub fn remove_fragment(&mut self) {
        self.url.set_fragment(None);
    }

    /// Sets the scheme; it stays where the other one is of another kind, as `rtsp` and `http` are.
    pub fn set_scheme(&mut self, scheme: &str) {
        let _ = self.url.set_scheme(scheme);
    }

    /// Sets the port; whether a URL of its kind can have one.
    pub fn set_port(&mut self, port: u16) -> bool {
        self.url.set_port(Some(port)).is_ok()
    }

    /// Sets the path.
    pub fn set_path(&mut self, path: &str) {
        self.url.set_path(path);
    }

    /// Adds a segment to the path, in which `/` is escaped.
    pub fn push_segment(&mut self, segment: &str) {
        if let Ok(mut segments) = self.url.path_segments_mut() {
            segments.push(segment);
        }
    }

    /// Sets the query, without `?`.
    pub fn set_query(&mut self, query: Option<&str>) {
        self.url.set_query(query);
    }

    /// Adds a parameter to the query.
    pub fn add_parameter(&mut self, name: &str, value: &str) {
        self.url.query_pairs_mut().append_pair(name, value);
    }
}

impl FromStr for Url {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_key {
            return f.pad(&format!("{}/{HIDDEN}", self.url.origin().ascii_serialization()));
        }
        f.pad(&masked(self.url.as_str()))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_url_is_shown_without_its_secrets_and_sent_with_them() {
        let text = "http://me:hunter2@h:81/hmac=hunter2/b?token=hunter2&n=3#hunter2";
        let of = url(text);
        assert_eq!(format!("{of:.6}"), "http:/");
        let further = of.join("c?sig=hunter2").unwrap();
        for shown in [of.to_string(), format!("{of:?} {further} {further:?}")] {
            assert!(!shown.contains("hunter2") && shown.contains("@h:81/"), "{shown}");
        }
        assert!(!of.shown_path().contains("hunter2"), "{}", of.shown_path());
        assert_eq!(of.in_clear().as_str(), text);
    }

    #[test]
    fn a_path_that_is_a_key_is_hidden_whatever_the_scheme() {
        let of = url("https://h:1935/live/hunter2").with_key();
        assert_eq!((of.to_string().as_str(), &*of.shown_path()), ("https://h:1935/…", "…"));
        assert_eq!(of.in_clear().path(), "/live/hunter2");
    }

    #[test]
    fn a_url_of_a_server_has_scheme_host_and_port_alone() {
        for (text, expect) in [
            ("http://h:81", true),
            ("tls://h:7081", true),
            ("tls://h:7081/", true),
            ("http://h/a", false),
            ("http://h?a", false),
            ("http://h/#a", false),
            ("http://me@h/", false),
            ("http://:pw@h/", false),
        ] {
            assert_eq!(url(text).is_of_server(), expect, "{text}");
        }
    }

    #[test]
    fn parts_are_set_in_place() {
        let mut of = url("https://me:pw@h/w/a?x=1#y");
        of.remove_user();
        of.remove_fragment();
        of.set_path("/rooms");
        of.push_segment("a/b");
        of.set_query(None);
        of.add_parameter("n", "1 2");
        of.add_parameter("m", "3");
        of.set_scheme("wss");
        assert!(of.set_port(81));
        assert_eq!(of.in_clear().as_str(), "wss://h:81/rooms/a%2Fb?n=1+2&m=3");
        of.set_path("/");
        of.push_segment("room");
        of.set_scheme("rtsp");
        assert_eq!((of.in_clear().path(), of.scheme()), ("/room", "wss"));
    }
}
