//! OvenMediaEngine: `ws(s)://HOST:3333/APP/STREAM[/PLAYLIST]`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, Protocol, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{after_prefix, parts_of_path, shown_after};
use crate::target::{Endpoint, TargetError};

pub(super) static FACTS: Facts = Facts {
    name: "OvenMediaEngine",
    part: Part::Watch,
    carriage: Carriage::WebRtc,
    example: ("ws://HOST:3333/APP/STREAM", "viewers on OvenMediaEngine"),
    schemes: &["ws", "wss"],
    mistaken: &[(&["ome", "oven"], "write `ws://HOST:3333/APP/STREAM` or `wss://…`")],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: true,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("browsers cannot join OvenMediaEngine"),
    sockets: sockets::of_webrtc,
};

fn read(_: &str, text: &str) -> Result<Endpoint, TargetError> {
    let url = after_prefix("", text)?;
    let parts = parts_of_path(&url).count();
    match parts {
        2 | 3 => Ok(Endpoint { url, place: Place::OvenMediaEngine }),
        _ => Err(TargetError::Path {
            protocol: Protocol::OvenMediaEngine.name(),
            needs: "application and stream in the path (Janus URLs begin with `janus+ws://`)",
            example: "ws://127.0.0.1:3333/app/stream",
        }),
    }
}

pub(super) fn show(url: &Url) -> String {
    shown_after("", url)
}

impl Endpoint {
    /// Whether the URL requests OvenMediaEngine's relay, which is TURN over TCP: `tcp` to 0.20,
    /// `relay` from 0.21.
    pub(crate) fn asks_for_relay(&self) -> bool {
        self.place == Place::OvenMediaEngine
            && self.url.in_clear().query_pairs().any(|(key, value)| {
                key == "transport" && ["tcp", "relay"].contains(&&*value.to_ascii_lowercase())
            })
    }
}
