//! Janus VideoRoom: `janus+ws(s)://HOST:8188/videoroom/ROOM[?path=/PATH][&pin=PIN]`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Credential, Facts, Part, Place, janus_streaming, name_of_room};
use crate::consent::IpProtocol;
use crate::secret::Secret;
use crate::sockets;
use crate::target::JanusId;

pub(super) static FACTS: Facts = Facts {
    name: "Janus VideoRoom",
    part: Part::Confer,
    carriage: Carriage::WebRtc,
    example: ("janus+ws://HOST:8188/videoroom/ROOM", "a conference on Janus VideoRoom"),
    schemes: janus_streaming::SCHEMES,
    mistaken: &[],
    read: janus_streaming::read,
    in_room,
    credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: None,
    sockets: sockets::of_webrtc,
};

/// Numbers are counted on, names get one.
fn in_room(place: &mut Place, index: u32) {
    if let Place::JanusVideoRoom { id, .. } = place {
        *id = match id {
            JanusId::Number(id) => JanusId::Number(id.saturating_add(u64::from(index))),
            JanusId::Text(name) => JanusId::Text(name_of_room(name, index)),
        };
    }
}

fn credential(place: &Place) -> Option<Credential<'_>> {
    let Place::JanusVideoRoom { pin, .. } = place else { return None };
    pin.as_ref().map(Credential::Pin)
}

pub(super) fn show(url: &Url, id: &JanusId, pin: &Option<Secret>) -> String {
    janus_streaming::shown(url, "/videoroom", id, pin.is_some())
}
