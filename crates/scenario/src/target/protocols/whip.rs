//! WHIP (RFC 9725): `whip+http(s)://…`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{after_prefix, shown_after};
use crate::target::{Endpoint, TargetError};

const PREFIX: &str = "whip+";

pub(super) static FACTS: Facts = Facts {
    name: "WHIP",
    part: Part::Publish,
    carriage: Carriage::WebRtc,
    example: ("whip+http://HOST/PATH", "publishers by WHIP"),
    schemes: &["whip+http", "whip+https"],
    mistaken: &[(&["whip", "whips"], "write `whip+http://…` or `whip+https://…`")],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: true,
    api_keys: ApiKeys::NamedRoom,
    keeps_browsers_out: Some("browsers receive nothing: WHIP is send-only"),
    sockets: sockets::of_webrtc,
};

fn read(_: &str, text: &str) -> Result<Endpoint, TargetError> {
    Ok(Endpoint { url: after_prefix(PREFIX, text)?, place: Place::Whip })
}

pub(super) fn show(url: &Url) -> String {
    shown_after(PREFIX, url)
}
