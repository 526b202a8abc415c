//! WHEP (draft-ietf-wish-whep): `whep+http(s)://…`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{after_prefix, shown_after};
use crate::target::{Endpoint, TargetError};

const PREFIX: &str = "whep+";

pub(super) static FACTS: Facts = Facts {
    name: "WHEP",
    part: Part::Watch,
    carriage: Carriage::WebRtc,
    example: ("whep+http://HOST/PATH", "viewers on any WHEP server"),
    schemes: &["whep+http", "whep+https"],
    mistaken: &[
        (&["whep", "wheps"], "write `whep+http://…` or `whep+https://…`"),
        (
            &["webrtc", "webrtcs"],
            "write the server's WHEP endpoint: of SRS \
             `whep+http://HOST:1985/rtc/v1/whep/?app=APP&stream=STREAM`",
        ),
    ],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: true,
    api_keys: ApiKeys::None,
    keeps_browsers_out: None,
    sockets: sockets::of_webrtc,
};

fn read(_: &str, text: &str) -> Result<Endpoint, TargetError> {
    Ok(Endpoint { url: after_prefix(PREFIX, text)?, place: Place::Whep })
}

pub(super) fn show(url: &Url) -> String {
    shown_after(PREFIX, url)
}
