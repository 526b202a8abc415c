//! Target URLs: which server and which protocol.

use std::fmt;

use throng_observation::percent::decoded;
use url::Url;

use super::schemes;
use crate::secret::{HIDDEN, Secret};
use crate::url_template::{UrlTemplateError, without_secrets};

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
    /// Video over HTTP: `http(s)://…`, a file, an HLS playlist or a DASH manifest.
    HttpVideo,
    /// A watch page of PeerTube: `peertube+http(s)://HOST/w/ID`.
    PeerTube,
    /// RTSP (RFC 2326): `rtsp(s)://[USER:PASSWORD@]HOST[:554]/…`.
    Rtsp,
    /// Publishing by RTSP (RFC 2326, ANNOUNCE and RECORD): `publish+rtsp(s)://…`.
    RtspPublish,
    /// Publishing by RTMP: `publish+rtmp(s)://HOST[:1935]/APP/KEY`, or `…/STREAM`.
    Rtmp,
    /// Publishing by SRT: `publish+srt://HOST:PORT[?streamid=…]`.
    Srt,
    /// A room of an XMPP chat over WebSocket (RFC 7395):
    /// `xmpp+ws(s)://HOST/PATH?room=ROOM@SERVICE`.
    Xmpp,
    /// A chat whose words are in the scenario, over WebSocket or server-sent events:
    /// `chat+ws(s)://HOST/PATH`, `chat+http(s)://HOST/PATH`.
    Chat,
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
            Protocol::HttpVideo => "HTTP video",
            Protocol::PeerTube => "PeerTube",
            Protocol::Rtsp => "RTSP",
            Protocol::RtspPublish => "RTSP publishing",
            Protocol::Rtmp => "RTMP publishing",
            Protocol::Srt => "SRT publishing",
            Protocol::Xmpp => "XMPP chat",
            Protocol::Chat => "chat by template",
            Protocol::Whep => "WHEP",
            Protocol::Whip => "WHIP",
        }
    }

    /// Whether participants send media and receive none.
    #[must_use]
    pub fn is_send_only(self) -> bool {
        matches!(self, Protocol::RtspPublish | Protocol::Rtmp | Protocol::Srt | Protocol::Whip)
    }

    /// Whether participants play from a buffer, so that their playback begins and may stall; media
    /// of the others is played as it arrives.
    #[must_use]
    pub fn plays_from_buffer(self) -> bool {
        matches!(self, Protocol::HttpVideo | Protocol::PeerTube)
    }

    /// Whether it is a chat: text goes both ways, and no media.
    #[must_use]
    pub fn is_chat(self) -> bool {
        matches!(self, Protocol::Xmpp | Protocol::Chat)
    }

    /// Whether it is RTMP or SRT: one stream of H.264 and AAC.
    #[must_use]
    pub fn is_ingest(self) -> bool {
        matches!(self, Protocol::Rtmp | Protocol::Srt)
    }

    /// Whether it is RTSP: media goes over UDP or the RTSP connection, without ICE.
    #[must_use]
    pub fn is_rtsp(self) -> bool {
        matches!(self, Protocol::Rtsp | Protocol::RtspPublish)
    }
}

/// The address of the target: a URL, and where on its server participants go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What is connected to: `ws:`, `wss:`, `http:` or `https:`. The URL standard knows the hosts
    /// of those schemes only, so `http:` stands for `rtsp:`, `rtmp:` and `srt:`, `https:` for
    /// `rtsps:` and `rtmps:`, each with its port. What [`Self::place`] has is not in it.
    pub url: Url,
    /// The place on the server, by protocol.
    pub place: Place,
}

/// Where on the server participants go: what each protocol needs in addition to the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// OvenMediaEngine: application, stream and perhaps playlist are in the path.
    OvenMediaEngine,
    /// A mountpoint of Janus Streaming; the path is `/` without `?path=`.
    Janus {
        /// The mountpoint.
        id: JanusId,
        /// Its PIN, from `?pin=`.
        pin: Option<Secret>,
    },
    /// A conference on Janus VideoRoom; the path is `/` without `?path=`.
    JanusVideoRoom {
        /// The room to join.
        id: JanusId,
        /// Its PIN, from `?pin=`.
        pin: Option<Secret>,
    },
    /// A conference on LiveKit; the path is `/rtc`, below `?path=` if given.
    LiveKit {
        /// The room to join.
        room: String,
    },
    /// Video over HTTP.
    HttpVideo,
    /// A watch page of PeerTube.
    PeerTube,
    /// A presentation of RTSP.
    Rtsp {
        /// Who asks for it, from the URL's user info; `None`: anybody.
        account: Option<Account>,
    },
    /// Publishing by RTSP.
    RtspPublish {
        /// Who publishes, from the URL's user info; `None`: anybody.
        account: Option<Account>,
    },
    /// Publishing by RTMP.
    Rtmp,
    /// Publishing by SRT.
    Srt,
    /// A room of an XMPP chat.
    Xmpp {
        /// The domain of the account, from `?domain=`; the URL's host where it is not given.
        domain: String,
        /// The address of the room, from `?room=`.
        room: String,
        /// Who enters it, from the URL's user info; `None`: anonymous.
        account: Option<Account>,
    },
    /// A chat whose words are in the scenario: a WebSocket, or an event stream over HTTP.
    Chat,
    /// WHEP.
    Whep,
    /// WHIP.
    Whip,
}

/// Who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user name.
    pub name: String,
    /// Its password.
    pub password: Secret,
}

impl Account {
    /// Takes user name and password out of a URL; `None` if it has no user name.
    fn take(url: &mut Url) -> Option<Self> {
        let account = (!url.username().is_empty()).then(|| Self {
            name: decoded(url.username()),
            password: Secret::new(url.password().map(decoded).unwrap_or_default()),
        });
        // These do not fail: URLs of these schemes may have user info.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        account
    }
}

/// The id of a Janus Streaming mountpoint or of a VideoRoom. Janus uses numbers unless it is
/// configured with `string_ids`.
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

/// Why a target URL is not valid, with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL.
    #[error("`{text}` is not a URL ({why}); write for example `whep+http://127.0.0.1:7080/whep`")]
    NotUrl {
        /// The text, secrets redacted.
        text: String,
        /// The URL parser's error.
        why: String,
    },
    /// The scheme is not one of a supported protocol.
    #[error("unknown scheme `{scheme}`; {help}")]
    Scheme {
        /// The scheme.
        scheme: String,
        /// What to write.
        help: String,
    },
    /// The path is incomplete.
    #[error("{protocol} requires {needs}: write for example `{example}`")]
    Path {
        /// The protocol.
        protocol: &'static str,
        /// What is missing.
        needs: &'static str,
        /// A URL that would be valid.
        example: &'static str,
    },
    /// A fragment, where it can only be meant as a part of a name, key or stream id.
    #[error("`#` begins a fragment, which no server sees; write `%23` for a `#` in a URL")]
    Fragment,
    /// A variable is unknown, or where none is allowed.
    #[error(transparent)]
    Template(#[from] UrlTemplateError),
}

/// The URL of a Janus target in a scenario.
fn janus_url(url: &Url, plugin: &str, id: &JanusId, has_pin: bool) -> String {
    let mut base = url.clone();
    base.set_path(plugin);
    base.set_query(None);
    // An id may contain characters that end a path segment, so the URL type escapes it.
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
    format!("janus+{}{query}", without_secrets(base.as_str()))
}

/// The path of a LiveKit server's signalling endpoint, below its prefix.
const LIVEKIT_PATH: &str = "/rtc";

/// The URL of a LiveKit target in a scenario.
fn livekit_url(url: &Url, room: &str) -> String {
    let mut base = url.clone();
    base.set_path("/");
    if let Ok(mut segments) = base.path_segments_mut() {
        segments.clear().push(room);
    }
    let text = format!("livekit+{}", without_secrets(base.as_str()));
    match url.path().strip_suffix(LIVEKIT_PATH) {
        None | Some("") => text,
        Some(prefix) => {
            format!("{text}{}path={prefix}", if text.contains('?') { '&' } else { '?' })
        }
    }
}

/// Whether `text` is the address of a room: `NAME@SERVICE`.
fn is_bare_address(text: &str) -> bool {
    let parts = text.split_once('@');
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['/', '@', ' ', '<', '&', '"']);
    parts.is_some_and(|(name, service)| is_plain(name) && is_plain(service))
}

/// A URL that `account` was taken out of, with a sign that there is one.
fn with_hidden(account: Option<&Account>, url: String) -> String {
    match account {
        Some(_) => url.replacen("://", &format!("://{HIDDEN}@"), 1),
        None => url,
    }
}

/// The URL of an XMPP target in a scenario.
fn xmpp_url(url: &Url, domain: &str, room: &str, account: Option<&Account>) -> String {
    let text = with_hidden(account, without_secrets(url.as_str()));
    let domain =
        if url.host_str() == Some(domain) { String::new() } else { format!("&domain={domain}") };
    format!("xmpp+{text}{}room={room}{domain}", if text.contains('?') { '&' } else { '?' })
}

impl Endpoint {
    /// The same server with another room: 0 is that of the URL. Numbers are incremented, names
    /// become `NAME-2`, `NAME-3` and so on. Endpoints without rooms stay the same.
    #[must_use]
    pub fn in_room(&self, index: u32) -> Self {
        let named = |name: &str| match index {
            0 => name.to_owned(),
            _ => format!("{name}-{}", u64::from(index) + 1),
        };
        let mut endpoint = self.clone();
        match &mut endpoint.place {
            Place::JanusVideoRoom { id: JanusId::Number(id), .. } => {
                *id = id.saturating_add(u64::from(index));
            }
            Place::JanusVideoRoom { id: JanusId::Text(name), .. }
            | Place::LiveKit { room: name } => {
                *name = named(name);
            }
            _ => {}
        }
        endpoint
    }

    /// The URL as in the scenario, secrets redacted.
    pub(crate) fn display(&self) -> String {
        let url = &self.url;
        match &self.place {
            Place::OvenMediaEngine | Place::HttpVideo => without_secrets(url.as_str()),
            Place::PeerTube => format!("peertube+{}", without_secrets(url.as_str())),
            Place::Rtsp { account } => as_rtsp(url, account.as_ref()),
            Place::RtspPublish { account } => {
                format!("publish+{}", as_rtsp(url, account.as_ref()))
            }
            Place::Rtmp => format!("publish+{}", as_rtmp(url)),
            Place::Srt => format!("publish+{}", as_srt(url)),
            Place::Xmpp { domain, room, account } => xmpp_url(url, domain, room, account.as_ref()),
            Place::Chat => format!("chat+{}", without_secrets(url.as_str())),
            Place::Whep => format!("whep+{}", without_secrets(url.as_str())),
            Place::Whip => format!("whip+{}", without_secrets(url.as_str())),
            Place::LiveKit { room } => livekit_url(url, room),
            Place::Janus { id, pin } => janus_url(url, "/streaming", id, pin.is_some()),
            Place::JanusVideoRoom { id, pin } => janus_url(url, "/videoroom", id, pin.is_some()),
        }
    }

    /// Host and port.
    pub(crate) fn host_and_port(&self) -> (String, u16) {
        let url = &self.url;
        (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or(0))
    }

    /// The protocol.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.place {
            Place::OvenMediaEngine => Protocol::OvenMediaEngine,
            Place::Janus { .. } => Protocol::Janus,
            Place::JanusVideoRoom { .. } => Protocol::JanusVideoRoom,
            Place::LiveKit { .. } => Protocol::LiveKit,
            Place::HttpVideo => Protocol::HttpVideo,
            Place::PeerTube => Protocol::PeerTube,
            Place::Rtsp { .. } => Protocol::Rtsp,
            Place::RtspPublish { .. } => Protocol::RtspPublish,
            Place::Rtmp => Protocol::Rtmp,
            Place::Srt => Protocol::Srt,
            Place::Xmpp { .. } => Protocol::Xmpp,
            Place::Chat => Protocol::Chat,
            Place::Whep => Protocol::Whep,
            Place::Whip => Protocol::Whip,
        }
    }

    /// Whether the URL requests OvenMediaEngine's relay, which is TURN over TCP: `tcp` to 0.20,
    /// `relay` from 0.21.
    pub(crate) fn asks_for_relay(&self) -> bool {
        self.place == Place::OvenMediaEngine
            && self.url.query_pairs().any(|(key, value)| {
                key == "transport" && ["tcp", "relay"].contains(&&*value.to_ascii_lowercase())
            })
    }

    /// Whether it is a chat over server-sent events.
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        self.place == Place::Chat && matches!(self.url.scheme(), "http" | "https")
    }

    /// Whether it is a chat.
    pub(crate) fn is_chat(&self) -> bool {
        self.protocol().is_chat()
    }

    pub(crate) fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        let not_url =
            |why: &str| TargetError::NotUrl { text: before_secrets(text), why: why.into() };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(not_url("it has no `scheme://`"));
        };
        // The URL standard takes what follows more slashes for the host.
        if rest.is_empty() || rest.starts_with(['/', '\\', '?', '#']) {
            return Err(not_url("it has no host"));
        }
        let scheme = scheme.to_ascii_lowercase();
        // The URL standard knows the hosts of ws and http only, so the prefix goes before parsing.
        let plain = |prefix: &str| -> Result<Url, TargetError> {
            let rest = text.get(prefix.len()..).unwrap_or_default();
            let mut url = Url::parse(rest).map_err(|why| TargetError::NotUrl {
                text: before_secrets(text),
                why: why.to_string(),
            })?;
            // No server ever sees a fragment (RFC 3986, 3.5).
            url.set_fragment(None);
            // An empty query would not be written.
            if url.query() == Some("") {
                url.set_query(None);
            }
            Ok(url)
        };
        match scheme.as_str() {
            "ws" | "wss" => Self::oven(plain("")?),
            "janus+ws" | "janus+wss" => Self::janus(&plain("janus+")?),
            "livekit+ws" | "livekit+wss" => Self::livekit(&plain("livekit+")?),
            "xmpp+ws" | "xmpp+wss" => Self::xmpp(&plain("xmpp+")?),
            "chat+ws" | "chat+wss" | "chat+http" | "chat+https" => {
                Ok(Self { url: plain("chat+")?, place: Place::Chat })
            }
            "http" | "https" => {
                let url = plain("")?;
                // No recording is called so: the prefix was forgotten.
                let last = url.path_segments().into_iter().flatten().rfind(|part| !part.is_empty());
                match last {
                    Some("whep" | "whip") => {
                        Err(TargetError::Scheme { help: mend_for(&scheme, text), scheme })
                    }
                    _ => Ok(Self { url, place: Place::HttpVideo }),
                }
            }
            "rtsp" | "rtsps" => {
                let (url, account) = rtsp(&scheme, text)?;
                Ok(Self { url, place: Place::Rtsp { account } })
            }
            "publish+rtsp" | "publish+rtsps" | "publish+rtmp" | "publish+rtmps" | "publish+srt" => {
                let rest = text.get("publish+".len()..).unwrap_or_default();
                Self::published(scheme.trim_start_matches("publish+"), rest)
            }
            "peertube+http" | "peertube+https" => {
                let url = plain("peertube+")?;
                // A page names its video, and is not that of the instance.
                let names_video = url
                    .path_segments()
                    .into_iter()
                    .flatten()
                    .filter(|part| !part.is_empty())
                    .count()
                    > 1;
                if names_video {
                    Ok(Self { url, place: Place::PeerTube })
                } else {
                    Err(TargetError::Scheme { help: mend_for("peertube", text), scheme })
                }
            }
            "whep+http" | "whep+https" => Ok(Self { url: plain("whep+")?, place: Place::Whep }),
            "whip+http" | "whip+https" => Ok(Self { url: plain("whip+")?, place: Place::Whip }),
            _ => Err(TargetError::Scheme { help: mend_for(&scheme, text), scheme }),
        }
    }

    /// The URL of an RTSP presentation as requests have it: without the port if it is the usual
    /// one. `None` for other protocols.
    #[must_use]
    pub fn rtsp_url(&self) -> Option<Url> {
        if !self.protocol().is_rtsp() {
            return None;
        }
        Url::parse(&rtsp_scheme(self.url.as_str())).ok()
    }

    /// Publishing by a protocol that viewers use too, or whose URLs are those of viewers elsewhere:
    /// `text` is what stands after `publish+`.
    fn published(scheme: &str, text: &str) -> Result<Self, TargetError> {
        match scheme {
            "srt" => Self::srt(text),
            "rtmp" | "rtmps" => Self::rtmp(scheme, text),
            _ => {
                let (url, account) = rtsp(scheme, text)?;
                Ok(Self { url, place: Place::RtspPublish { account } })
            }
        }
    }

    fn rtmp(scheme: &str, text: &str) -> Result<Self, TargetError> {
        let url = with_ports(scheme, text, (RTMP_PORT, RTMPS_PORT))?;
        if url.path_segments().into_iter().flatten().all(str::is_empty) {
            return Err(TargetError::Path {
                protocol: Protocol::Rtmp.name(),
                needs: "application and key in the path, or the name of the stream alone",
                example: "publish+rtmp://127.0.0.1:1935/live/KEY",
            });
        }
        Ok(Self { url, place: Place::Rtmp })
    }

    fn srt(text: &str) -> Result<Self, TargetError> {
        let url = with_ports("srt", text, (0, 0))?;
        match url.port_or_known_default() {
            Some(0) | None => Err(TargetError::Path {
                protocol: Protocol::Srt.name(),
                needs: "a port",
                example: "publish+srt://127.0.0.1:9000?streamid=live/KEY",
            }),
            Some(_) => Ok(Self { url, place: Place::Srt }),
        }
    }

    fn oven(url: Url) -> Result<Self, TargetError> {
        let segments =
            url.path_segments().map_or(0, |parts| parts.filter(|part| !part.is_empty()).count());
        match segments {
            2 | 3 => Ok(Self { url, place: Place::OvenMediaEngine }),
            _ => Err(TargetError::Path {
                protocol: Protocol::OvenMediaEngine.name(),
                needs: "application and stream in the path (Janus URLs begin with `janus+ws://`)",
                example: "ws://127.0.0.1:3333/app/stream",
            }),
        }
    }

    fn livekit(written: &Url) -> Result<Self, TargetError> {
        let parts: Vec<&str> = written.path_segments().map(Iterator::collect).unwrap_or_default();
        let room = match parts.as_slice() {
            [room] | [room, ""] if !room.is_empty() => Some(decoded(room)),
            _ => None,
        };
        let room = room.ok_or(TargetError::Path {
            protocol: Protocol::LiveKit.name(),
            needs: "the room in the path, `/ROOM` (for a server below a prefix add `?path=/PREFIX`)",
            example: "livekit+ws://127.0.0.1:7880/lesson",
        })?;
        let pairs: Vec<_> = written.query_pairs().into_owned().collect();
        let prefix =
            pairs.iter().find(|(key, _)| key == "path").map_or("", |(_, value)| value.as_str());
        let mut url = written.clone();
        url.set_path(&format!("{}{LIVEKIT_PATH}", prefix.trim_end_matches('/')));
        url.set_query(None);
        let further: Vec<_> = pairs.iter().filter(|(key, _)| key != "path").collect();
        if !further.is_empty() {
            url.query_pairs_mut().extend_pairs(further);
        }
        Ok(Self { url, place: Place::LiveKit { room } })
    }

    fn xmpp(written: &Url) -> Result<Self, TargetError> {
        let wrong = || TargetError::Path {
            protocol: Protocol::Xmpp.name(),
            needs: "the room, `?room=ROOM@SERVICE`",
            example: "xmpp+ws://127.0.0.1:5280/xmpp-websocket?room=stage@room.example.org&domain=anon.example.org",
        };
        let pairs: Vec<_> = written.query_pairs().into_owned().collect();
        let parameter =
            |name| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let room = parameter("room").filter(|room| is_bare_address(room)).ok_or_else(wrong)?;
        let domain = parameter("domain").filter(|domain| !domain.is_empty());
        let domain = domain.or_else(|| written.host_str().map(str::to_owned)).ok_or_else(wrong)?;
        let mut url = written.clone();
        let account = Account::take(&mut url);
        url.set_query(None);
        let further: Vec<_> =
            pairs.iter().filter(|(key, _)| key != "room" && key != "domain").collect();
        if !further.is_empty() {
            url.query_pairs_mut().extend_pairs(further);
        }
        Ok(Self { url, place: Place::Xmpp { domain, room, account } })
    }

    fn janus(written: &Url) -> Result<Self, TargetError> {
        let wrong = || TargetError::Path {
            protocol: "Janus",
            needs: "a mountpoint or a room in the path, `/streaming/ID` or `/videoroom/ID`",
            example: "janus+ws://127.0.0.1:8188/streaming/1",
        };
        let parts: Vec<&str> = written.path_segments().map(Iterator::collect).unwrap_or_default();
        let (plugin, id) = match parts.as_slice() {
            [plugin @ ("streaming" | "videoroom"), id]
            | [plugin @ ("streaming" | "videoroom"), id, ""]
                if !id.is_empty() =>
            {
                (*plugin, decoded(id))
            }
            _ => return Err(wrong()),
        };
        let id = id.parse().map_or(JanusId::Text(id), JanusId::Number);
        let parameter = |name| {
            written.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let mut url = written.clone();
        url.set_path(&parameter("path").unwrap_or_default());
        url.set_query(None);
        let pin = parameter("pin").map(Secret::new);
        let place = match plugin {
            "videoroom" => Place::JanusVideoRoom { id, pin },
            _ => Place::Janus { id, pin },
        };
        Ok(Self { url, place })
    }
}

/// The URL of an RTSP target, kept as one of HTTP, and the account in it; `text` begins with
/// `scheme`.
fn rtsp(scheme: &str, text: &str) -> Result<(Url, Option<Account>), TargetError> {
    let mut url = with_ports(scheme, text, (RTSP_PORT, RTSPS_PORT))?;
    let account = Account::take(&mut url);
    Ok((url, account))
}

/// A URL of a scheme whose hosts the URL standard does not know, as one of HTTP; of HTTPS if the
/// scheme is one over TLS. It has the usual port where none is written.
fn with_ports(scheme: &str, text: &str, (plain, secured): (u16, u16)) -> Result<Url, TargetError> {
    let (known, port) = if scheme.ends_with('s') { ("https", secured) } else { ("http", plain) };
    let rest = text.get(scheme.len()..).unwrap_or_default();
    let not_url = |why: String| TargetError::NotUrl { text: before_secrets(text), why };
    let mut url = Url::parse(&format!("{known}{rest}")).map_err(|why| not_url(why.to_string()))?;
    // A port that is written and usual for the other scheme is not kept by the URL type.
    let authority =
        rest.trim_start_matches("://").split(['/', '?', '#']).next().unwrap_or_default();
    let has_port = authority.rsplit(['@', ']']).next().is_some_and(|host| host.contains(':'));
    if url.port().is_none() && !has_port && url.set_port(Some(port)).is_err() {
        return Err(not_url("it has no host".into()));
    }
    // It is no part of what a server is asked for: a key or stream id would end before it.
    if url.fragment().is_some() {
        return Err(TargetError::Fragment);
    }
    Ok(url)
}

/// The ports of RTSP and of RTSP over TLS (IANA).
const RTSP_PORT: u16 = 554;
const RTSPS_PORT: u16 = 322;

/// The ports of RTMP (IANA: macromedia-fcs) and of RTMP over TLS, which is that of HTTPS.
const RTMP_PORT: u16 = 1935;
const RTMPS_PORT: u16 = 443;

/// A URL that is kept as one of HTTP, with the scheme that it was written with: plain or over TLS,
/// each with its usual port.
fn as_scheme(url: &str, plain: (&str, u16), secured: (&str, u16)) -> String {
    let (tls, rest) = match url.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix("http://").unwrap_or(url)),
    };
    let (scheme, usual) = if tls { secured } else { plain };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let known = if tls { 443 } else { 80 };
    let has_port = authority.rsplit([']', '@']).next().is_some_and(|host| host.contains(':'));
    let authority = match authority.strip_suffix(&format!(":{usual}")) {
        Some(host) => host.to_owned(),
        None if has_port || known == usual => authority.to_owned(),
        None => format!("{authority}:{known}"),
    };
    format!("{scheme}://{authority}{path}")
}

fn rtsp_scheme(url: &str) -> String {
    as_scheme(url, ("rtsp", RTSP_PORT), ("rtsps", RTSPS_PORT))
}

/// The URL of an RTSP target in a scenario.
fn as_rtsp(url: &Url, account: Option<&Account>) -> String {
    with_hidden(account, rtsp_scheme(&without_secrets(url.as_str())))
}

/// Without the key, which the scheme tells.
fn as_rtmp(url: &Url) -> String {
    without_secrets(&as_scheme(url.as_str(), ("rtmp", RTMP_PORT), ("rtmps", RTMPS_PORT)))
}

fn as_srt(url: &Url) -> String {
    as_scheme(&without_secrets(url.as_str()), ("srt", 0), ("srt", 0))
}

/// What to write in place of an unknown scheme.
fn mend_for(scheme: &str, text: &str) -> String {
    let shown = before_secrets(text);
    match scheme {
        "http" | "https" => format!("for WHEP write `whep+{shown}`, to publish by WHIP `whip+{shown}`"),
        "janus+http" | "janus+https" => {
            "throng connects to Janus by WebSocket: write `janus+ws://HOST:8188/streaming/ID`".into()
        }
        "rtmp" | "rtmps" | "rtmpt" | "rtmpe" | "rtmpte" | "rtmpts" => {
            "to publish by RTMP write `publish+rtmp://HOST/APP/KEY` or `publish+rtmps://…` (there are no viewers by RTMP)".into()
        }
        "srt" => "to publish by SRT write `publish+srt://HOST:PORT?streamid=…` (there are no viewers by SRT)".into(),
        "rtspu" | "rtspt" => "write `rtsp://…`, and target.rtsp_transport = \"udp\" or \"tcp\"".into(),
        "rtsp+publish" | "rtsps+publish" | "announce+rtsp" | "record+rtsp" => {
            "to publish by RTSP write `publish+rtsp://…` or `publish+rtsps://…`".into()
        }
        "whep" | "wheps" => "write `whep+http://…` or `whep+https://…`".into(),
        "whip" | "whips" => "write `whip+http://…` or `whip+https://…`".into(),
        "livekit" | "livekits" => "write `livekit+ws://HOST:7880/ROOM` or `livekit+wss://…`".into(),
        "janus" => "write `janus+ws://HOST:8188/streaming/ID` or `janus+wss://…`".into(),
        "xmpp" | "xmpps" => "write `xmpp+wss://HOST/PATH?room=ROOM@SERVICE`, the WebSocket of the server".into(),
        "chat" | "irc" | "ircs" | "irc+ws" | "irc+wss" | "sse" | "sse+http" | "sse+https" | "chat+sse" => {
            "write `chat+wss://HOST/PATH` for a WebSocket or `chat+https://HOST/PATH` for server-sent events, with \
             [crowd.chat.template], or `xmpp+wss://…` for XMPP"
                .into()
        }
        "peertube" | "peertubes" => "write the URL of a watch page: `peertube+https://HOST/w/ID`".into(),
        "webrtc" | "webrtcs" => {
            "write the server's WHEP endpoint: of SRS \
             `whep+http://HOST:1985/rtc/v1/whep/?app=APP&stream=STREAM`"
                .into()
        }
        "ome" | "oven" => "write `ws://HOST:3333/APP/STREAM` or `wss://…`".into(),
        _ => format!("write {}", schemes::sentence()),
    }
}

/// The part of a URL-like text before its query, without user info and without a key; cut to a
/// line's length.
fn before_secrets(text: &str) -> String {
    let shown = without_secrets(text);
    let head = shown.split('?').next().unwrap_or_default();
    let is_rtmp = |scheme: &str| scheme.to_ascii_lowercase().contains("rtmp");
    let head = match (head.split_once(':'), head.rsplit_once('@')) {
        (Some((_, rest)), _) if rest.starts_with("//") => head.to_owned(),
        // Without the slashes, no part of it is known for what it is.
        (Some((scheme, _)), _) if is_rtmp(scheme) => format!("{scheme}:{HIDDEN}"),
        (_, Some((_, host))) => format!("{HIDDEN}@{host}"),
        (_, None) => head.to_owned(),
    };
    head.chars().take(120).collect()
}
