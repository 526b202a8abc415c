//! What throng knows of each protocol of a target, one file each: its URLs, what its participants
//! do, and what they need.

use std::collections::BTreeSet;

use throng_observation::Url;

use super::{Account, Endpoint, JanusId, Target, TargetError};
use crate::consent::IpProtocol;
use crate::keys::url_pattern;
use crate::role::Role;
use crate::secret::Secret;

mod chat;
mod http_video;
mod janus_streaming;
mod janus_video_room;
mod livekit;
mod oven_media_engine;
mod peertube;
mod rtmp;
mod rtsp;
mod rtsp_publish;
mod srt;
mod whep;
mod whip;
mod xmpp;

#[cfg(test)]
mod tests;

/// Declares the protocols, each with what its place needs in addition to the URL, and the file that
/// knows more: [`Facts`] in `FACTS`, and `show`, which writes URL and place as in a scenario,
/// secrets redacted.
macro_rules! protocols {
    ($(
        $(#[$meaning:meta])+
        $name:ident $({ $($(#[$of_field:meta])+ $field:ident: $type:ty),+ $(,)? })? => $file:ident,
    )+) => {
        /// The protocols that a target URL can name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Protocol {
            $($(#[$meaning])+ $name),+
        }

        impl Protocol {
            /// All of them, in the order of help texts.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            pub(crate) fn facts(self) -> &'static Facts {
                match self {
                    $(Self::$name => &$file::FACTS),+
                }
            }
        }

        /// Where on the server participants go: what each protocol needs in addition to the URL.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Place {
            $($(#[$meaning])+ $name $({ $($(#[$of_field])+ $field: $type),+ })?),+
        }

        impl Place {
            pub(super) fn protocol(&self) -> Protocol {
                match self {
                    $(Self::$name { .. } => Protocol::$name),+
                }
            }

            /// The URL as in the scenario, secrets redacted.
            pub(super) fn show(&self, url: &Url) -> String {
                match self {
                    $(Self::$name $({ $($field),+ })? => $file::show(url $($(, $field)+)?)),+
                }
            }
        }
    };
}

protocols! {
    /// WebRTC-HTTP egress protocol: `whep+http(s)://…`.
    Whep => whep,
    /// OvenMediaEngine's WebSocket signalling: `ws(s)://HOST:3333/APP/STREAM[/PLAYLIST]`.
    OvenMediaEngine => oven_media_engine,
    /// A mountpoint of the Janus Streaming plugin over WebSocket:
    /// `janus+ws(s)://HOST:8188/streaming/ID`. The path of the URL is `/` without `?path=`.
    Janus {
        /// The mountpoint.
        id: JanusId,
        /// Its PIN, from `?pin=`.
        pin: Option<Secret>,
    } => janus_streaming,
    /// A conference on the Janus VideoRoom plugin over WebSocket:
    /// `janus+ws(s)://HOST:8188/videoroom/ROOM`. The path of the URL is `/` without `?path=`.
    JanusVideoRoom {
        /// The room to join.
        id: JanusId,
        /// Its PIN, from `?pin=`.
        pin: Option<Secret>,
    } => janus_video_room,
    /// A conference on LiveKit: `livekit+ws(s)://HOST:7880/ROOM`. The path of the URL is `/rtc`,
    /// below `?path=` if given.
    LiveKit {
        /// The room to join.
        room: String,
    } => livekit,
    /// Video over HTTP: `http(s)://…`, a file, an HLS playlist or a DASH manifest.
    HttpVideo => http_video,
    /// A watch page of PeerTube: `peertube+http(s)://HOST/w/ID`.
    PeerTube => peertube,
    /// RTSP (RFC 2326): `rtsp(s)://[USER:PASSWORD@]HOST[:554]/…`.
    Rtsp {
        /// Who asks for the presentation, from the URL's user info; `None`: anybody.
        account: Option<Account>,
    } => rtsp,
    /// WebRTC-HTTP ingestion protocol (RFC 9725): `whip+http(s)://…`.
    Whip => whip,
    /// Publishing by RTSP (RFC 2326, ANNOUNCE and RECORD): `publish+rtsp(s)://…`.
    RtspPublish {
        /// Who publishes, from the URL's user info; `None`: anybody.
        account: Option<Account>,
    } => rtsp_publish,
    /// Publishing by RTMP: `publish+rtmp(s)://HOST[:1935]/APP/KEY`, or `…/STREAM`.
    Rtmp => rtmp,
    /// Publishing by SRT: `publish+srt://HOST:PORT[?streamid=…]`.
    Srt => srt,
    /// A room of an XMPP chat over WebSocket (RFC 7395):
    /// `xmpp+ws(s)://HOST/PATH?room=ROOM@SERVICE`.
    Xmpp {
        /// The domain of the account, from `?domain=`; the URL's host where it is not given.
        domain: String,
        /// The address of the room, from `?room=`.
        room: String,
        /// Who enters it, from the URL's user info; `None`: anonymous.
        account: Option<Account>,
    } => xmpp,
    /// A chat whose words are in the scenario, over WebSocket or server-sent events:
    /// `chat+ws(s)://HOST/PATH`, `chat+http(s)://HOST/PATH`.
    Chat => chat,
}

/// What throng knows of a protocol. All of it is said for each one: a default would be wrong for
/// some, and nobody would notice.
pub(crate) struct Facts {
    /// The name for people.
    pub(crate) name: &'static str,
    /// What participants do.
    pub(crate) part: Part,
    /// How media travels.
    pub(crate) carriage: Carriage,
    /// A URL of it, and what that is for, for help texts.
    pub(crate) example: (&'static str, &'static str),
    /// What its URLs begin with before `://`, in lower case.
    pub(crate) schemes: &'static [&'static str],
    /// Schemes that people write in place of these, and what to write.
    pub(crate) mistaken: &'static [(&'static [&'static str], &'static str)],
    /// Reads a URL whose scheme, in lower case, is one of [`Self::schemes`].
    pub(crate) read: fn(scheme: &str, text: &str) -> Result<Endpoint, TargetError>,
    /// Makes of a place the one in the room so many after its own.
    pub(crate) in_room: fn(&mut Place, u32),
    /// What a place has that opens it.
    pub(crate) credential: fn(&Place) -> Option<Credential<'_>>,
    /// How the port of the URL is reached.
    pub(crate) ip_protocol: IpProtocol,
    /// Whether its servers announce relays (TURN).
    pub(crate) announces_relays: bool,
    /// What its servers take API keys for.
    pub(crate) api_keys: ApiKeys,
    /// Why the browsers of a run cannot join; `None` if they can.
    pub(crate) keeps_browsers_out: Option<&'static str>,
    /// The file descriptors and UDP ports of one participant at most, without a chat beside it.
    pub(crate) sockets: fn(&Target, Option<&Role>) -> (u64, u64),
}

/// What opens a place, from its URL; nobody but the server is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credential<'a> {
    /// A PIN.
    Pin(&'a Secret),
    /// Who logs in, with a password.
    Account(&'a Account),
}

/// What participants do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// They receive media.
    Watch,
    /// They send media and receive none.
    Publish,
    /// They send media to each other.
    Confer,
    /// They say and read; there is no media.
    Chat,
    /// They visit a page: they watch, and may be in its chat.
    Visit,
}

impl Part {
    /// Whether there is media for them to receive.
    #[must_use]
    pub fn receives_media(self) -> bool {
        match self {
            Self::Watch | Self::Confer | Self::Visit => true,
            Self::Publish | Self::Chat => false,
        }
    }

    /// The name of a cohort whose scenario gives it none.
    pub(crate) fn participants(self) -> &'static str {
        match self {
            Self::Publish => "publishers",
            Self::Watch | Self::Confer | Self::Chat | Self::Visit => "viewers",
        }
    }
}

/// How media travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// By WebRTC, over a path that ICE finds.
    WebRtc,
    /// By RTP over UDP or the RTSP connection, without ICE.
    Rtsp,
    /// In files and segments over HTTP, into a buffer from which it is played: playback begins, and
    /// may stall. Media of the others is played as it arrives.
    Http,
    /// In one stream of H.264 and AAC: RTMP, SRT.
    Ingest,
    /// There is none.
    Nothing,
}

/// What a server takes tokens for that are made with an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiKeys {
    /// For nothing.
    None,
    /// For the room in the URL, into which nobody gets without a token.
    RoomOfUrl,
    /// For a room that the URL does not name.
    NamedRoom,
}

impl Protocol {
    /// The name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// What its URLs begin with before `://`, in lower case.
    #[must_use]
    pub fn schemes(self) -> &'static [&'static str] {
        self.facts().schemes
    }

    /// What participants do.
    #[must_use]
    pub fn part(self) -> Part {
        self.facts().part
    }

    /// How media travels.
    #[must_use]
    pub fn carriage(self) -> Carriage {
        self.facts().carriage
    }
}

/// A URL of each protocol, and what it is for; one a line of help.
pub fn target_examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    Protocol::ALL.iter().map(|protocol| protocol.facts().example)
}

/// The pattern of the URLs of all protocols.
pub(crate) fn target_pattern() -> String {
    let schemes = Protocol::ALL.iter().flat_map(|protocol| protocol.schemes());
    let schemes: BTreeSet<&str> = schemes.copied().collect();
    url_pattern(&schemes.into_iter().collect::<Vec<_>>())
}

/// Reads a URL by its scheme, which is in lower case.
pub(super) fn read(scheme: &str, text: &str) -> Result<Endpoint, TargetError> {
    let mut all = Protocol::ALL.iter().map(|protocol| protocol.facts());
    match all.find(|facts| facts.schemes.contains(&scheme)) {
        Some(facts) => (facts.read)(scheme, text),
        None => Err(TargetError::Scheme { scheme: scheme.to_owned(), help: help_for(scheme) }),
    }
}

/// What to write in place of an unknown scheme.
fn help_for(scheme: &str) -> String {
    let mut mistakes = Protocol::ALL.iter().flat_map(|protocol| protocol.facts().mistaken);
    mistakes.find(|(schemes, _)| schemes.contains(&scheme)).map_or_else(
        || format!("write {}", examples_in_a_sentence()),
        |(_, help)| (*help).to_owned(),
    )
}

/// The examples of all protocols, by scheme.
fn examples_in_a_sentence() -> String {
    let scheme = |url: &str| url.split("://").next().unwrap_or_default().to_owned();
    let all = target_examples().map(|(url, what)| format!("`{}://…` for {what}", scheme(url)));
    all.collect::<Vec<_>>().join(", ")
}

/// Of protocols without rooms all rooms are one.
fn has_no_rooms(_: &mut Place, _: u32) {}

/// Of protocols whose places are open, or are opened by what is in the URL that is connected to.
fn has_no_credential(_: &Place) -> Option<Credential<'_>> {
    None
}

/// The name of the room so many after the one of this name: `NAME-2`, `NAME-3` and so on.
fn name_of_room(name: &str, index: u32) -> String {
    match index {
        0 => name.to_owned(),
        _ => format!("{name}-{}", u64::from(index) + 1),
    }
}
