//! The server under load: which protocol, where, and with which token, all read from one URL.

use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

use url::{Host, Url};

use crate::names::{Name, UrlNames, Whose};
use crate::network::Network;
use crate::secret::{HIDDEN, Secret, may_be_shown};

mod media;
pub use media::{IceTransportPolicy, StunServer};

mod turn;
pub use turn::{RelayTransport, TurnHost, TurnServer, TurnUri, TurnUriError};

/// The server under load.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Where it is, and in which protocol it speaks; where the URL has names, an example of it.
    pub endpoint: Endpoint,
    /// The URL's names, such as `{n}`, by which each participant has a URL of its own.
    pub names: Option<UrlNames>,
    /// Bearer token (WHEP and WHIP, sent as `Authorization: Bearer …`) or Janus `token`, if one is needed.
    pub token: Option<TokenSource>,
    /// LiveKit's API key, with which each participant is given a token of its own.
    pub api_key: Option<ApiKey>,
    /// How many rooms of a conference there are, the URL's among them: each has the whole crowd of the file.
    pub rooms: u32,
    /// Further private networks that may be reached beside loopback and this host's own addresses.
    pub allow: Vec<Network>,
    /// Accept any TLS certificate (self-signed test servers).
    pub tls_insecure: bool,
    /// Over which ways media may come.
    pub ice_transport_policy: IceTransportPolicy,
    /// Whom participants ask for their address as it is seen from outside.
    pub stun: Option<StunServer>,
    /// The TURN server that participants use instead of those that signalling announces.
    pub turn: Option<TurnServer>,
}

/// A key of a LiveKit server: who has it makes tokens for participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its name, no secret.
    pub key: String,
    /// Where its secret is.
    pub secret: TokenSource,
    /// The room of a WHIP target, whose URL names none.
    pub room: Option<String>,
}

/// The signalling protocols that a target URL can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OvenMediaEngine's WebSocket signalling: `ws(s)://HOST:3333/APP/STREAM[/PLAYLIST]`.
    OvenMediaEngine,
    /// Janus Streaming plugin over WebSocket: `janus+ws(s)://HOST:8188/streaming/ID`.
    Janus,
    /// Janus VideoRoom plugin over WebSocket: `janus+ws(s)://HOST:8188/videoroom/ROOM`.
    JanusVideoRoom,
    /// LiveKit: `livekit+ws(s)://HOST:7880/ROOM`.
    LiveKit,
    /// WebRTC-HTTP egress protocol: `whep+http(s)://…`.
    Whep,
    /// WebRTC-HTTP ingestion protocol (RFC 9725): `whip+http(s)://…`.
    Whip,
}

impl Protocol {
    /// The name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::OvenMediaEngine => "OvenMediaEngine",
            Protocol::Janus => "Janus Streaming",
            Protocol::JanusVideoRoom => "Janus VideoRoom",
            Protocol::LiveKit => "LiveKit",
            Protocol::Whep => "WHEP",
            Protocol::Whip => "WHIP",
        }
    }
}

/// Where the target is, with what its protocol needs beside the URL.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// OvenMediaEngine.
    OvenMediaEngine {
        /// `ws:` or `wss:`, with application, stream and perhaps playlist in its path; the query as written.
        url: Url,
    },
    /// Janus Streaming.
    Janus {
        /// `ws:` or `wss:` of the Janus WebSocket transport; path `/` unless `?path=` says otherwise.
        url: Url,
        /// The mountpoint to watch.
        mountpoint: JanusId,
        /// The mountpoint's PIN, from `?pin=`.
        pin: Option<Secret>,
    },
    /// Janus VideoRoom: a conference, whose participants send and receive.
    JanusVideoRoom {
        /// `ws:` or `wss:` of the Janus WebSocket transport; path `/` unless `?path=` says otherwise.
        url: Url,
        /// The room to join.
        room: JanusId,
        /// The room's PIN, from `?pin=`.
        pin: Option<Secret>,
    },
    /// LiveKit: a conference, whose participants send and receive.
    LiveKit {
        /// `ws:` or `wss:` of the signalling endpoint: path `/rtc`, below `?path=` where that is given; other query
        /// parameters as written.
        url: Url,
        /// The room to join.
        room: String,
    },
    /// WHEP.
    Whep {
        /// `http:` or `https:`, as written after `whep+`.
        url: Url,
    },
    /// WHIP: participants only send.
    Whip {
        /// `http:` or `https:`, as written after `whip+`.
        url: Url,
    },
}

/// The id of a Janus Streaming mountpoint or of a VideoRoom. Janus uses numbers unless it is configured with `string_ids`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JanusId {
    /// The usual numeric id.
    Number(u64),
    /// The id of a Janus with `string_ids = true`.
    Text(String),
}

impl fmt::Display for JanusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JanusId::Number(id) => id.fmt(f),
            JanusId::Text(id) => id.fmt(f),
        }
    }
}

/// Where the token is; read by the caller, who may touch the environment and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// Written in the scenario itself.
    Inline(Secret),
    /// `env:NAME`: the environment variable `NAME`.
    Environment(String),
    /// `file:PATH`: the trimmed content of a file; a relative path counts from the scenario's folder.
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
}

impl TokenSource {
    /// Whether it is the token itself.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self, Self::Inline(_))
    }
}

impl fmt::Display for TokenSource {
    /// The reference as written, or `…` for a token itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(secret) => secret.fmt(f),
            Self::Environment(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// Why a target URL was not understood, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL at all.
    #[error("`{text}` is not a URL ({why}); write for example `whep+http://127.0.0.1:7080/whep`")]
    NotUrl {
        /// What was written, without secrets.
        text: String,
        /// The URL parser's words.
        why: String,
    },
    /// The scheme names no protocol that throng speaks.
    #[error("the scheme `{scheme}` names no protocol; {help}")]
    Scheme {
        /// The scheme as written.
        scheme: String,
        /// What to write.
        help: String,
    },
    /// The path lacks what the protocol needs.
    #[error("{protocol} needs {needs}: write for example `{example}`")]
    Path {
        /// The protocol.
        protocol: &'static str,
        /// What is missing.
        needs: &'static str,
        /// A URL that would do.
        example: &'static str,
    },
    /// What stands between braces is no name, or stands where none can.
    #[error("{what}; {help}")]
    Names {
        /// What is wrong.
        what: String,
        /// What to write.
        help: String,
        /// Which part of the text.
        at: Range<usize>,
    },
}

impl Target {
    /// Reads a target URL; token, networks and TLS are at their defaults.
    ///
    /// # Errors
    /// When the URL is none, its scheme names no protocol, its path lacks what the protocol needs, or a name in it is
    /// none or stands in the wrong place.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let names = UrlNames::read(text)?;
        let endpoint = match &names {
            None => Endpoint::parse(text)?,
            Some(names) => {
                let [one, other] = names.examples();
                let (one, other) = (Endpoint::parse(&one)?, Endpoint::parse(&other)?);
                if place(one.url()) != place(other.url()) {
                    return Err(names.misplaced());
                }
                one
            }
        };
        // Who asks OvenMediaEngine for its relay means to use it, as OvenPlayer and OvenRtcTester do.
        let ice_transport_policy =
            if endpoint.asks_for_relay() { IceTransportPolicy::Relay } else { IceTransportPolicy::All };
        Ok(Self {
            endpoint,
            names,
            token: None,
            api_key: None,
            rooms: 1,
            allow: Vec::new(),
            tls_insecure: false,
            ice_transport_policy,
            stun: None,
            turn: None,
        })
    }

    /// Where somebody goes.
    #[must_use]
    pub fn endpoint_of(&self, whose: &Whose<'_>) -> Endpoint {
        let Some(names) = &self.names else { return self.endpoint.in_room(whose.room) };
        // Two examples were read; what names come to is digits and escaped text.
        let endpoint = Endpoint::parse(&names.of(whose)).unwrap_or_else(|_| self.endpoint.clone());
        if names.has(Name::Room) { endpoint } else { endpoint.in_room(whose.room) }
    }

    /// The URL of somebody as the scenario would write it, without secrets; `None` where all have the same.
    #[must_use]
    pub fn shown_of(&self, whose: &Whose<'_>) -> Option<String> {
        self.names.as_ref().map(|names| names.shown_of(whose))
    }

    /// Whether its URL has this name.
    #[must_use]
    pub fn has_name(&self, name: Name) -> bool {
        self.names.as_ref().is_some_and(|names| names.has(name))
    }

    /// Whether its participants can be in several rooms: those of a conference, or rooms that the URL numbers.
    #[must_use]
    pub fn has_rooms(&self) -> bool {
        self.is_conference() || self.has_name(Name::Room)
    }

    /// The protocol of the endpoint.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match self.endpoint {
            Endpoint::OvenMediaEngine { .. } => Protocol::OvenMediaEngine,
            Endpoint::Janus { .. } => Protocol::Janus,
            Endpoint::JanusVideoRoom { .. } => Protocol::JanusVideoRoom,
            Endpoint::LiveKit { .. } => Protocol::LiveKit,
            Endpoint::Whep { .. } => Protocol::Whep,
            Endpoint::Whip { .. } => Protocol::Whip,
        }
    }

    /// The URL that is connected to (`ws`, `wss`, `http`, `https`).
    #[must_use]
    pub fn url(&self) -> &Url {
        self.endpoint.url()
    }

    /// Whether servers of this protocol announce TURN servers.
    #[must_use]
    pub fn announces_relays(&self) -> bool {
        !matches!(self.endpoint, Endpoint::Janus { .. } | Endpoint::JanusVideoRoom { .. })
    }

    /// Host and port of the signalling server, the port filled in from the scheme.
    #[must_use]
    pub fn host_and_port(&self) -> (String, u16) {
        place(self.url())
    }

    /// Whether participants send to each other there.
    #[must_use]
    pub fn is_conference(&self) -> bool {
        matches!(self.endpoint, Endpoint::JanusVideoRoom { .. } | Endpoint::LiveKit { .. })
    }

    /// Whether the host is a loopback address or `localhost` (RFC 6761 6.3) by its name alone.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.url().host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                name == "localhost" || name.ends_with(".localhost")
            }
            None => false,
        }
    }

    /// The URL as the scenario writes it, without secrets: user names, passwords, PINs and the values of query
    /// parameters that may sign or authorise are shown as `…`. Names, of streams say, are shown.
    #[must_use]
    pub fn display(&self) -> String {
        if let Some(names) = &self.names {
            return names.shown().to_owned();
        }
        match &self.endpoint {
            Endpoint::OvenMediaEngine { url } => without_secrets(url),
            Endpoint::Whep { url } => format!("whep+{}", without_secrets(url)),
            Endpoint::Whip { url } => format!("whip+{}", without_secrets(url)),
            Endpoint::LiveKit { url, room } => livekit_url(url, room),
            Endpoint::Janus { url, mountpoint, pin } => {
                janus_url(url, "/streaming", mountpoint, pin.is_some())
            }
            Endpoint::JanusVideoRoom { url, room, pin } => janus_url(url, "/videoroom", room, pin.is_some()),
        }
    }
}

/// A Janus target as the scenario writes it.
fn janus_url(url: &Url, plugin: &str, id: &JanusId, has_pin: bool) -> String {
    let mut base = url.clone();
    base.set_path(plugin);
    base.set_query(None);
    // An id may hold characters that end a path segment, so the URL type writes it.
    if let Ok(mut segments) = base.path_segments_mut() {
        segments.push(&id.to_string());
    }
    let mut queries = Vec::new();
    if url.path() != "/" {
        queries.push(format!("path={}", url.path()));
    }
    if has_pin {
        queries.push(format!("pin={HIDDEN}"));
    }
    let query = if queries.is_empty() { String::new() } else { format!("?{}", queries.join("&")) };
    format!("janus+{}{query}", without_secrets(&base))
}

/// What a LiveKit server's signalling endpoint is called, below its prefix.
const LIVEKIT_PATH: &str = "/rtc";

/// A LiveKit target as the scenario writes it.
fn livekit_url(url: &Url, room: &str) -> String {
    let mut base = url.clone();
    base.set_path("/");
    if let Ok(mut segments) = base.path_segments_mut() {
        segments.clear().push(room);
    }
    let text = format!("livekit+{}", without_secrets(&base));
    match url.path().strip_suffix(LIVEKIT_PATH) {
        None | Some("") => text,
        Some(prefix) => format!("{text}{}path={prefix}", if text.contains('?') { '&' } else { '?' }),
    }
}

/// A parameter of a query, its value hidden if that may be a secret.
fn shown_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some(_) if may_be_shown(pair) => pair.to_owned(),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        // A value without a name.
        None => HIDDEN.to_owned(),
    }
}

/// Host and port.
fn place(url: &Url) -> (String, u16) {
    (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or(0))
}

/// `url` as text, with user info and the values of query parameters hidden that may be secrets.
fn without_secrets(url: &Url) -> String {
    let mut shown = url.clone();
    // Neither fails: hosts of these schemes may have user info.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    let queries = match url.query() {
        // As it is written, so that it reads back as the same.
        Some(query) if query.split('&').all(may_be_shown) => vec![query.to_owned()],
        Some(query) => query.split('&').filter(|pair| !pair.is_empty()).map(shown_pair).collect(),
        None => Vec::new(),
    };
    let user = if url.username().is_empty() && url.password().is_none() { "" } else { "…@" };
    let text = shown.as_str().replacen("://", &format!("://{user}"), 1);
    if queries.is_empty() { text } else { format!("{text}?{}", queries.join("&")) }
}

impl Endpoint {
    /// Whether the URL asks OvenMediaEngine for its relay, which is TURN over TCP: `tcp` until 0.20, `relay` since 0.21.
    pub(crate) fn asks_for_relay(&self) -> bool {
        let Self::OvenMediaEngine { url } = self else { return false };
        url.query_pairs().any(|(key, value)| {
            key == "transport" && ["tcp", "relay"].contains(&&*value.to_ascii_lowercase())
        })
    }

    /// The URL that is connected to (`ws`, `wss`, `http`, `https`).
    #[must_use]
    pub fn url(&self) -> &Url {
        match self {
            Self::OvenMediaEngine { url }
            | Self::Janus { url, .. }
            | Self::JanusVideoRoom { url, .. }
            | Self::LiveKit { url, .. }
            | Self::Whep { url }
            | Self::Whip { url } => url,
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        let Some((scheme, _)) = text.split_once("://") else {
            return Err(TargetError::NotUrl {
                text: before_secrets(text),
                why: "it has no `scheme://`".into(),
            });
        };
        let scheme = scheme.to_ascii_lowercase();
        // The URL standard knows the hosts of ws and http only, so the prefix goes before parsing.
        let plain = |prefix: &str| {
            let rest = text.get(prefix.len()..).unwrap_or_default();
            Url::parse(rest)
                .map_err(|why| TargetError::NotUrl { text: before_secrets(text), why: why.to_string() })
        };
        match scheme.as_str() {
            "ws" | "wss" => Self::oven(plain("")?),
            "janus+ws" | "janus+wss" => Self::janus(&plain("janus+")?),
            "livekit+ws" | "livekit+wss" => Self::livekit(&plain("livekit+")?),
            "whep+http" | "whep+https" => Ok(Self::Whep { url: plain("whep+")? }),
            "whip+http" | "whip+https" => Ok(Self::Whip { url: plain("whip+")? }),
            _ => Err(TargetError::Scheme { help: mend_for(&scheme, text), scheme }),
        }
    }

    fn oven(url: Url) -> Result<Self, TargetError> {
        let segments = url.path_segments().map_or(0, |parts| parts.filter(|part| !part.is_empty()).count());
        match segments {
            2 | 3 => Ok(Self::OvenMediaEngine { url }),
            _ => Err(TargetError::Path {
                protocol: Protocol::OvenMediaEngine.name(),
                needs: "application and stream in the path (for Janus, begin with `janus+ws://`)",
                example: "ws://127.0.0.1:3333/app/stream",
            }),
        }
    }

    fn livekit(written: &Url) -> Result<Self, TargetError> {
        let parts: Vec<&str> = written.path_segments().map(Iterator::collect).unwrap_or_default();
        let room = match parts.as_slice() {
            [room] | [room, ""] if !room.is_empty() => decoded(room),
            _ => None,
        };
        let room = room.ok_or(TargetError::Path {
            protocol: Protocol::LiveKit.name(),
            needs: "the room in the path, `/ROOM` (for a server below a prefix add `?path=/PREFIX`)",
            example: "livekit+ws://127.0.0.1:7880/lesson",
        })?;
        let pairs: Vec<_> = written.query_pairs().into_owned().collect();
        let prefix = pairs.iter().find(|(key, _)| key == "path").map_or("", |(_, value)| value.as_str());
        let mut url = written.clone();
        url.set_path(&format!("{}{LIVEKIT_PATH}", prefix.trim_end_matches('/')));
        url.set_fragment(None);
        url.set_query(None);
        let further: Vec<_> = pairs.iter().filter(|(key, _)| key != "path").collect();
        if !further.is_empty() {
            url.query_pairs_mut().extend_pairs(further);
        }
        Ok(Self::LiveKit { url, room })
    }

    fn janus(written: &Url) -> Result<Self, TargetError> {
        let wrong = || TargetError::Path {
            protocol: "Janus",
            needs: "a mountpoint or a room in the path, `/streaming/ID` or `/videoroom/ID`",
            example: "janus+ws://127.0.0.1:8188/streaming/1",
        };
        let parts: Vec<&str> = written.path_segments().map(Iterator::collect).unwrap_or_default();
        let (plugin, id) = match parts.as_slice() {
            [plugin @ ("streaming" | "videoroom"), id] | [plugin @ ("streaming" | "videoroom"), id, ""]
                if !id.is_empty() =>
            {
                (*plugin, decoded(id).ok_or_else(wrong)?)
            }
            _ => return Err(wrong()),
        };
        let id = id.parse().map_or(JanusId::Text(id), JanusId::Number);
        let parameter =
            |name| written.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let mut url = written.clone();
        url.set_path(&parameter("path").unwrap_or_default());
        url.set_query(None);
        url.set_fragment(None);
        let pin = parameter("pin").map(Secret::new);
        Ok(match plugin {
            "videoroom" => Self::JanusVideoRoom { url, room: id, pin },
            _ => Self::Janus { url, mountpoint: id, pin },
        })
    }
}

/// A path segment as the text that it means.
fn decoded(part: &str) -> Option<String> {
    // Forms decode %XX as the URL standard does; `+` and `&` mean themselves in a path.
    let escaped = format!("id={}", part.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(escaped.as_bytes()).next().map(|(_, value)| value.into_owned())
}

/// What to write in place of a scheme that names no protocol.
fn mend_for(scheme: &str, text: &str) -> String {
    let shown = before_secrets(text);
    match scheme {
        "http" | "https" => format!("for WHEP write `whep+{shown}`, to publish by WHIP `whip+{shown}`"),
        "janus+http" | "janus+https" => {
            "throng speaks to Janus over WebSocket: write `janus+ws://HOST:8188/streaming/ID`".into()
        }
        "whep" | "wheps" => "write `whep+http://…` or `whep+https://…`".into(),
        "whip" | "whips" => "write `whip+http://…` or `whip+https://…`".into(),
        "livekit" | "livekits" => "write `livekit+ws://HOST:7880/ROOM` or `livekit+wss://…`".into(),
        "janus" => "write `janus+ws://HOST:8188/streaming/ID` or `janus+wss://…`".into(),
        "ome" | "oven" => "write `ws://HOST:3333/APP/STREAM` or `wss://…`".into(),
        _ => "write `ws://…` for OvenMediaEngine, `janus+ws://…` for Janus, `livekit+ws://…` for LiveKit, \
              `whep+http://…` for WHEP, `whip+http://…` for WHIP"
            .into(),
    }
}

/// The part of a URL-like text before its query, without user info, cut to a line's length.
fn before_secrets(text: &str) -> String {
    let head = text.split(['?', '#']).next().unwrap_or_default();
    let head = match head.split_once("://") {
        Some((scheme, rest)) => match rest.split_once('@') {
            Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}"),
            None => head.to_owned(),
        },
        None => head.to_owned(),
    };
    head.chars().take(120).collect()
}

#[cfg(test)]
mod tests;
