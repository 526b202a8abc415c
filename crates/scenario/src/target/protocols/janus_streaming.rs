//! Janus Streaming: `janus+ws(s)://HOST:8188/streaming/ID[?path=/PATH][&pin=PIN]`. URLs of both
//! plugins of Janus are read here, which differ in the path alone.

use throng_observation::Url;
use throng_observation::percent::decoded;

use super::{ApiKeys, Carriage, Credential, Facts, Part, Place, has_no_rooms};
use crate::consent::IpProtocol;
use crate::secret::{HIDDEN, Secret};
use crate::sockets;
use crate::target::urls::{after_prefix, parameter, shown_after};
use crate::target::{Endpoint, JanusId, TargetError};

const PREFIX: &str = "janus+";

/// What URLs of both plugins begin with.
pub(super) const SCHEMES: &[&str] = &["janus+ws", "janus+wss"];

pub(super) static FACTS: Facts = Facts {
    name: "Janus Streaming",
    part: Part::Watch,
    carriage: Carriage::WebRtc,
    example: ("janus+ws://HOST:8188/streaming/ID", "viewers on Janus Streaming"),
    schemes: SCHEMES,
    mistaken: &[
        (
            &["janus+http", "janus+https"],
            "throng connects to Janus by WebSocket: write `janus+ws://HOST:8188/streaming/ID`",
        ),
        (&["janus"], "write `janus+ws://HOST:8188/streaming/ID` or `janus+wss://…`"),
    ],
    read,
    in_room: has_no_rooms,
    credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: None,
    sockets: sockets::of_webrtc,
};

/// Reads a URL of Streaming or of VideoRoom.
pub(super) fn read(_: &str, text: &str) -> Result<Endpoint, TargetError> {
    let mut url = after_prefix(PREFIX, text)?;
    let parts = url.in_clear().path_segments();
    let parts: Vec<&str> = parts.map(Iterator::collect).unwrap_or_default();
    let (is_room, id) = match parts.as_slice() {
        ["streaming", id] | ["streaming", id, ""] if !id.is_empty() => (false, decoded(id)),
        ["videoroom", id] | ["videoroom", id, ""] if !id.is_empty() => (true, decoded(id)),
        _ => {
            return Err(TargetError::Path {
                protocol: "Janus",
                needs: "a mountpoint or a room in the path, `/streaming/ID` or `/videoroom/ID`",
                example: "janus+ws://127.0.0.1:8188/streaming/1",
            });
        }
    };
    let id = id.parse().map_or(JanusId::Text(id), JanusId::Number);
    let (path, pin) = (parameter(&url, "path"), parameter(&url, "pin").map(Secret::new));
    url.set_path(&path.unwrap_or_default());
    url.set_query(None);
    let place = if is_room { Place::JanusVideoRoom { id, pin } } else { Place::Janus { id, pin } };
    Ok(Endpoint { url, place })
}

fn credential(place: &Place) -> Option<Credential<'_>> {
    let Place::Janus { pin, .. } = place else { return None };
    pin.as_ref().map(Credential::Pin)
}

pub(super) fn show(url: &Url, id: &JanusId, pin: &Option<Secret>) -> String {
    shown(url, "/streaming", id, pin.is_some())
}

/// The same of either plugin.
pub(super) fn shown(url: &Url, plugin: &str, id: &JanusId, has_pin: bool) -> String {
    let mut base = url.clone();
    base.set_path(plugin);
    base.set_query(None);
    // An id may contain characters that end a path segment, so the URL type escapes it.
    base.push_segment(&id.to_string());
    let (mut queries, path) = (Vec::new(), url.shown_path());
    if path != "/" {
        queries.push(format!("path={path}"));
    }
    if has_pin {
        queries.push(format!("pin={HIDDEN}"));
    }
    let query = if queries.is_empty() { String::new() } else { format!("?{}", queries.join("&")) };
    format!("{}{query}", shown_after(PREFIX, &base))
}
