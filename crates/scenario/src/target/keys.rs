//! The keys of `[target]`; `read/target.rs` checks their values against each other.

use serde_json::json;

use super::{
    IceTransportPolicy, RtspTransport, StunServer, Target, TurnUri, target_examples, target_pattern,
};
use crate::keys::Usual::{LeftOut, Required, Said, Stored};
use crate::keys::{
    By, Flag, Keyed, Maybe, Parsed, Problem, SECRET, Several, Whole, Word, keys, networks, text,
};
use crate::network::Network;
use crate::read::target_url;
use crate::room::ROOMS_MAX;
use crate::secret::TokenSource;

/// `[target]` as a file has it: its URL says what else of a [`Target`] is usual.
#[derive(Default)]
pub(crate) struct TargetTable {
    pub(crate) url: Option<Target>,
    pub(crate) token: Option<TokenSource>,
    pub(crate) api_key: Option<String>,
    pub(crate) api_secret: Option<TokenSource>,
    pub(crate) room: Option<String>,
    pub(crate) rooms: u32,
    pub(crate) allow: Vec<Network>,
    pub(crate) tls_insecure: bool,
    pub(crate) rtsp_transport: RtspTransport,
    pub(crate) ice_transport_policy: Option<IceTransportPolicy>,
    pub(crate) stun: Option<StunServer>,
    pub(crate) turn: Option<String>,
    pub(crate) turn_username: Option<String>,
    pub(crate) turn_password: Option<TokenSource>,
}

impl Keyed for TargetTable {
    const NAME: &'static str = "TargetFile";
    const MEANING: &'static str = "The server under load.";

    keys! {
        /// server and protocol, see below; path and query may have the variables `{n}`, `{stream}`,
        /// `{room}`, `{cohort}` and `{random}` of each participant
        "url": url = Maybe(TARGET_URL),
            Required("write under [target] for example url = \"whep+http://127.0.0.1:7080/whep\"");
        /// Bearer token (WHEP, WHIP), Janus `token` or LiveKit token: `"env:NAME"`, `"file:PATH"`,
        /// or the token itself
        "token": token = Maybe(SECRET), Said("none");
        /// LiveKit's API key, with which throng makes a token for each participant
        "api_key": api_key = Maybe(text("text", "devkey")), Said("none");
        /// its secret, written like `token`
        "api_secret": api_secret = Maybe(SECRET), Said("none");
        /// LiveKit's room, for WHIP only: its URL does not name one
        "room": room = Maybe(text("text", "lesson")), Said("none");
        /// number of rooms, 1 to 1000, each with the whole `[crowd]`; for conferences, and for URLs
        /// with `{room}`; see [conference.md](conference.md#many-rooms)
        "rooms": rooms = Whole(1, u64::from(ROOMS_MAX)), LeftOut;
        /// private networks that throng may send to, `["10.0.0.0/8"]`; see [consent.md](consent.md)
        "allow": allow = ALLOW, Said("none");
        /// accept any TLS certificate
        "tls_insecure": tls_insecure = Flag, Stored;
        /// on an RTSP target, the transport of RTP: `"udp"`, `"tcp"` (interleaved), or `"auto"` for
        /// UDP, and TCP where the server refuses it ([rtsp.md](rtsp.md#transport))
        "rtsp_transport": rtsp_transport = Word, LeftOut;
        /// `"all"`: ICE chooses between the direct path and a relay (TURN); `"relay"`: the relay
        /// alone, as `iceTransportPolicy: "relay"` in a browser. OvenMediaEngine, WHEP, WHIP and
        /// LiveKit announce relays; on Janus `turn` names one. `media_paths` in the summary counts
        /// the participants by media path
        "ice_transport_policy": ice_transport_policy = Maybe(Word),
            Said("`\"all\"`; `\"relay\"` where an OvenMediaEngine URL has `?transport=tcp`");
        /// a STUN server, `"stun:HOST"` or `"stun:HOST:PORT"` (3478), from which each participant
        /// learns its address outside a NAT; HOST is an IP address or the host name of `url`.
        /// Behind a NAT, the offer or answer then has a server-reflexive candidate (`typ srflx`) in
        /// addition to the host candidates, as a browser's with `iceServers`. It waits for the STUN
        /// server's answer: one round trip, at most 500 ms. throng does not query STUN servers that
        /// the target announces: participants send their connectivity checks first, and the target
        /// learns the same address from those
        "stun": stun = Maybe(STUN), Said("none");
        /// a TURN server (RFC 8656), `"turn:HOST:PORT"` (UDP), `"turn:HOST:PORT?transport=tcp"` or
        /// `"turns:HOST:PORT"` (TLS). Each peer connection uses it instead of those that the target
        /// announces; see [conference.md](conference.md#through-a-relay-turn). HOST is an IP
        /// address or the host name of `url`
        "turn": turn = Maybe(TURN), Said("none");
        /// the user name of its long-term credential
        "turn_username": turn_username = Maybe(text("text", "throng")), Said("none");
        /// the password, written like `token`
        "turn_password": turn_password = Maybe(SECRET), Said("none");
    }

    fn usual() -> Self {
        Self { rooms: 1, ..Self::default() }
    }
}

impl TargetTable {
    /// That of a target.
    pub(crate) fn of(target: &Target) -> Self {
        let (api, turn) = (target.api_key.as_ref(), target.turn.as_ref());
        let policy = target.ice_transport_policy;
        let says_policy = policy != IceTransportPolicy::All || target.endpoint.asks_for_relay();
        Self {
            url: Some(target.clone()),
            token: target.token.clone(),
            api_key: api.map(|api| api.key.clone()),
            api_secret: api.map(|api| api.secret.clone()),
            room: api.and_then(|api| api.room.clone()),
            rooms: target.rooms,
            allow: target.allow.clone(),
            tls_insecure: target.tls_insecure,
            rtsp_transport: target.rtsp_transport,
            ice_transport_policy: says_policy.then_some(policy),
            stun: target.stun.clone(),
            turn: turn.map(|turn| turn.uri.clone()),
            turn_username: turn.map(|turn| turn.username.clone()),
            turn_password: turn.map(|turn| turn.password.clone()),
        }
    }
}

/// The URL of a server.
pub(crate) const TARGET_URL: By<Target> = By {
    read: |reader, fields, key| {
        let path = fields.path_of(key);
        target_url(reader, fields.get(key)?, &path)
    },
    write: |target| Some(target.display().into()),
    schema: |_| {
        let examples: Vec<&str> = target_examples().map(|(url, _)| url).collect();
        json!({ "type": "string", "pattern": target_pattern(), "examples": examples })
    },
};

const ALLOW: Several<Network> = networks("networks", "10.0.0.0/8");

const STUN: Parsed<StunServer> = Parsed {
    kind: "text",
    example: "stun:10.0.0.1:3478",
    parse: |uri| StunServer::parse(uri).ok_or(" is not stun:HOST or stun:HOST:PORT".into()),
    write: StunServer::to_string,
    schema: |_| json!({ "type": "string", "pattern": "^[Ss][Tt][Uu][Nn]:" }),
    is_removable: true,
};

const TURN: Parsed<String> = Parsed {
    parse: |uri| match TurnUri::parse(uri) {
        Ok(_) => Ok(uri.to_owned()),
        Err(error) => Err(Problem::of(error)),
    },
    schema: |_| json!({ "type": "string", "pattern": "^[Tt][Uu][Rr][Nn][Ss]?:" }),
    ..text("text", "turn:10.0.0.1:3478?transport=tcp")
};
