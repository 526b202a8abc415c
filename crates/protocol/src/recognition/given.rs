//! The URL that a user gives: of a target of throng, of a web page or WebSocket, or only a host and
//! its port.

use std::fmt;

use throng_observation::Url;
use throng_scenario::{Endpoint, Place, Protocol, Target};
use url::Position;

use super::{KINDS, names};

/// Ports at which a server without a scheme is asked over TLS: of HTTPS, its usual second, RTSPS.
const TLS_PORTS: [u16; 4] = [443, 8443, 322, 8322];

/// Ports at which RTSP is asked before HTTP.
const RTSP_PORTS: [u16; 4] = [554, 8554, 322, 8322];

/// A URL, and what its form tells. `Debug` prints no secret of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    written: Written,
    /// What follows `://`, as it was written.
    rest: String,
    is_secure: bool,
    /// `http:` or `https:`, without what throng's own URLs have beside it.
    base: Url,
    /// The target's, where the URL is a complete one.
    endpoint: Option<Endpoint>,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { written, base, .. } = self;
        f.debug_struct("Given")
            .field("written", written)
            .field("base", base)
            .finish_non_exhaustive()
    }
}

/// How it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    /// With this scheme, which names a protocol.
    Named(String),
    Http,
    WebSocket,
    /// Without a scheme.
    Bare,
}

impl Given {
    /// Reads it.
    ///
    /// # Errors
    /// When it is no URL, or its scheme is of none of the protocols that can be recognised; in
    /// words with help.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => (String::new(), text),
        };
        let target = Target::parse(text);
        let written = match scheme.as_str() {
            "" => Written::Bare,
            "http" | "https" => Written::Http,
            "ws" | "wss" => Written::WebSocket,
            other if KINDS.iter().any(|kind| names(kind, other)) => Written::Named(scheme.clone()),
            _ => return Err(target.map_or_else(|error| error.to_string(), |_| cannot_look())),
        };
        let is_secure = match written {
            Written::Bare => port_of(rest).is_some_and(|port| TLS_PORTS.contains(&port)),
            Written::Named(_) | Written::Http | Written::WebSocket => {
                ["wss", "https", "rtsps"].iter().any(|end| scheme.ends_with(end))
            }
        };
        let (base, endpoint) = match target {
            Ok(target) => (http(target.url(), is_secure), Some(target.endpoint)),
            Err(error) if scheme.starts_with("rtsp") => return Err(error.to_string()),
            // A part of it is missing that can be looked for, or it names no protocol of throng.
            Err(_) => (of_rest(rest, is_secure)?, None),
        };
        Ok(Self { written, rest: rest.to_owned(), is_secure, base, endpoint })
    }

    /// The scheme, where it names a protocol.
    pub(super) fn scheme(&self) -> Option<&str> {
        match &self.written {
            Written::Named(scheme) => Some(scheme),
            Written::Http | Written::WebSocket | Written::Bare => None,
        }
    }

    /// The protocol and the URL, where the scheme names the one and the other is complete.
    pub(super) fn complete(&self) -> Option<(Protocol, String)> {
        let (scheme, endpoint) = self.scheme().zip(self.endpoint.as_ref())?;
        Some((endpoint.protocol(), format!("{scheme}://{}", self.rest)))
    }

    /// The place on the server that a complete URL names.
    pub(super) fn place(&self) -> Option<&Place> {
        self.endpoint.as_ref().map(|endpoint| &endpoint.place)
    }

    /// Whether it may be of a web server: it is one of HTTP, or has no scheme.
    pub(super) fn may_be_http(&self) -> bool {
        matches!(self.written, Written::Http | Written::Bare)
    }

    /// Whether it has no scheme.
    pub(super) fn is_bare(&self) -> bool {
        self.written == Written::Bare
    }

    /// Whether it has no scheme, and a port of RTSP.
    pub(super) fn has_rtsp_port(&self) -> bool {
        self.is_bare() && port_of(&self.rest).is_some_and(|port| RTSP_PORTS.contains(&port))
    }

    /// The same with another scheme, named by its form without TLS.
    pub(super) fn with(&self, scheme: &str) -> String {
        format!("{scheme}{}://{}", if self.is_secure { "s" } else { "" }, self.rest)
    }

    /// Another path on the same host, and its query, with a scheme as in [`Self::with`].
    pub(super) fn at(&self, scheme: &str, path: &str) -> String {
        let end = self.rest.find(['/', '?', '#']).unwrap_or(self.rest.len());
        let host = self.rest.get(..end).unwrap_or_default();
        format!("{scheme}{}://{host}{path}", if self.is_secure { "s" } else { "" })
    }

    /// What is connected to: `http:` or `https:`.
    pub(super) fn url(&self) -> &Url {
        &self.base
    }

    /// Its path.
    pub(super) fn path(&self) -> &str {
        self.base.in_clear().path()
    }

    /// Its path and query.
    pub(super) fn path_and_query(&self) -> &str {
        &self.base.in_clear()[Position::BeforePath..Position::AfterQuery]
    }

    /// Another path of the same server.
    pub(super) fn at_path(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(path);
        url.set_query(None);
        url
    }

    /// `url`, which is one of this server, as that of a WebSocket.
    pub(super) fn web_socket(&self, mut url: Url) -> Url {
        url.set_scheme(if self.is_secure { "wss" } else { "ws" });
        url
    }

    /// Whether it is reached over TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Host and port.
    pub(super) fn host_and_port(&self) -> (String, u16) {
        let host = self.base.host_str().unwrap_or_default().to_owned();
        (host, self.base.port_or_known_default().unwrap_or(0))
    }

    /// The parts of the path that are not empty.
    pub(super) fn parts(&self) -> Vec<&str> {
        let parts = self.base.in_clear().path_segments().into_iter().flatten();
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// A target of throng at the same host and port, whatever its protocol: the consent for load is
    /// that of the host and port.
    #[must_use]
    pub fn neutral_target(&self) -> String {
        let (host, port) = self.host_and_port();
        format!("whep+{}://{host}:{port}/", self.base.scheme())
    }
}

fn cannot_look() -> String {
    "publishers and chats by template are not looked for: begin with a file of examples/, such as \
     examples/rtsp-publishers.toml or examples/chat-irc.toml"
        .to_owned()
}

/// The port that is written in what follows `://`.
fn port_of(rest: &str) -> Option<u16> {
    of_rest(rest, false).ok().and_then(|url| url.port())
}

/// A URL of HTTP, of what follows `://`.
fn of_rest(rest: &str, is_secure: bool) -> Result<Url, String> {
    let scheme = if is_secure { "https" } else { "http" };
    // The URL standard takes what follows more slashes for the host.
    let has_host = !rest.is_empty() && !rest.starts_with(['/', '\\', '?', '#']);
    let url = Url::parse(&format!("{scheme}://{rest}")).ok().filter(|_| has_host);
    let url = url.map(|url| http(&url, is_secure));
    url.ok_or_else(|| "this is no URL: write for example http://HOST:PORT/PATH".to_owned())
}

/// A URL of the web, or of a WebSocket, as one of HTTP.
fn http(url: &Url, is_secure: bool) -> Url {
    let mut url = url.clone();
    url.set_scheme(if is_secure { "https" } else { "http" });
    url.remove_fragment();
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<&'static str> {
        Given::parse(text).unwrap().kinds().iter().map(|kind| kind.name).collect()
    }

    #[test]
    fn a_scheme_of_throng_is_asked_alone_and_others_in_the_order_of_the_documentation() {
        for (text, expect) in [
            ("whep+http://h/whep", &["WHEP"][..]),
            ("WHIP+https://h/whip", &["WHEP"]),
            ("janus+ws://h:8188", &["Janus"]),
            ("rtsps://u:p@h/cam", &["RTSP"]),
            ("wss://h/app/stream", &["LiveKit", "Janus", "XMPP", "OvenMediaEngine"]),
            ("ws://h:8188", &["LiveKit", "Janus", "XMPP"]),
        ] {
            assert_eq!(kinds(text), expect, "{text}");
        }
        let http = ["WHEP", "HTTP video", "PeerTube", "SRS", "LiveKit", "Janus", "XMPP"];
        assert_eq!(kinds("http://h"), http);
        assert_eq!(kinds("h:8080"), [&http[..], &["RTSP"]].concat());
        assert_eq!(kinds("h:8554/cam"), [&["RTSP"][..], &http].concat());
        assert_eq!(kinds("https://h/a/b").last(), Some(&"OvenMediaEngine"));
    }

    #[test]
    fn what_is_connected_to_is_a_url_of_http_of_the_same_host_and_port() {
        for (text, url, neutral) in [
            ("h", "http://h/", "whep+http://h:80/"),
            ("[::1]:8443/x?a=1", "https://[::1]:8443/x?a=1", "whep+https://[::1]:8443/"),
            ("wss://h/app/s#x", "https://h/app/s", "whep+https://h:443/"),
            ("rtsp://u:p@h/cam", "http://h:554/cam", "whep+http://h:554/"),
            ("janus+ws://h:8188/streaming/1?path=/j", "http://h:8188/j", "whep+http://h:8188/"),
            ("livekit+wss://h", "https://h/", "whep+https://h:443/"),
        ] {
            let given = Given::parse(text).unwrap();
            assert_eq!(
                (given.url().in_clear().as_str(), &*given.neutral_target()),
                (url, neutral),
                "{text}"
            );
        }
        let given = Given::parse("https://u:p@h:1/a?b").unwrap();
        assert_eq!(given.with("whep+http"), "whep+https://u:p@h:1/a?b");
        assert_eq!(given.at("janus+ws", "/streaming/1"), "janus+wss://u:p@h:1/streaming/1");
    }

    #[test]
    fn what_cannot_be_looked_for_is_said_with_help() {
        for (text, help) in [
            ("", "no URL"),
            ("http:///x", "no URL"),
            ("rtsp://h/a#b", "%23"),
            ("janus://h/streaming/1", "janus+ws://"),
            ("publish+rtmp://h/app/key", "examples/"),
            ("chat+ws://h/", "examples/"),
        ] {
            let said = Given::parse(text).unwrap_err();
            assert!(said.contains(help), "{text}: {said}");
        }
    }
}
