//! LiveKit: `livekit+ws(s)://HOST:7880/ROOM[?path=/PREFIX]`.

use throng_observation::Url;
use throng_observation::percent::decoded;

use super::{ApiKeys, Carriage, Facts, Part, Place, Protocol, has_no_credential, name_of_room};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{
    after_prefix, parameter, remove_parameters, shown_after, with_parameter,
};
use crate::target::{Endpoint, TargetError};

const PREFIX: &str = "livekit+";

/// The path of a server's signalling endpoint, below its prefix.
const PATH: &str = "/rtc";

pub(super) static FACTS: Facts = Facts {
    name: "LiveKit",
    part: Part::Confer,
    carriage: Carriage::WebRtc,
    example: ("livekit+ws://HOST:7880/ROOM", "a conference on LiveKit"),
    schemes: &["livekit+ws", "livekit+wss"],
    mistaken: &[(
        &["livekit", "livekits"],
        "write `livekit+ws://HOST:7880/ROOM` or `livekit+wss://…`",
    )],
    read,
    in_room,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: true,
    api_keys: ApiKeys::RoomOfUrl,
    keeps_browsers_out: None,
    sockets: sockets::of_webrtc,
};

fn read(_: &str, text: &str) -> Result<Endpoint, TargetError> {
    let mut url = after_prefix(PREFIX, text)?;
    let parts = url.in_clear().path_segments();
    let parts: Vec<&str> = parts.map(Iterator::collect).unwrap_or_default();
    let room = match parts.as_slice() {
        [room] | [room, ""] if !room.is_empty() => Some(decoded(room)),
        _ => None,
    };
    let room = room.ok_or(TargetError::Path {
        protocol: Protocol::LiveKit.name(),
        needs: "the room in the path, `/ROOM` (for a server below a prefix add `?path=/PREFIX`)",
        example: "livekit+ws://127.0.0.1:7880/lesson",
    })?;
    let below = parameter(&url, "path").unwrap_or_default();
    url.set_path(&format!("{}{PATH}", below.trim_end_matches('/')));
    remove_parameters(&mut url, &["path"]);
    Ok(Endpoint { url, place: Place::LiveKit { room } })
}

fn in_room(place: &mut Place, index: u32) {
    if let Place::LiveKit { room } = place {
        *room = name_of_room(room, index);
    }
}

pub(super) fn show(url: &Url, room: &str) -> String {
    let mut base = url.clone();
    base.set_path("/");
    base.push_segment(room);
    let text = shown_after(PREFIX, &base);
    match url.shown_path().strip_suffix(PATH) {
        None | Some("") => text,
        Some(below) => with_parameter(&text, "path", below),
    }
}
