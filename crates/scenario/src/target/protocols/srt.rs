//! Publishing by SRT: `publish+srt://HOST:PORT[?streamid=…]`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, Protocol, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::target::urls::{as_scheme, published, shown_after, shown_published, with_ports};
use crate::target::{Endpoint, TargetError};

pub(super) static FACTS: Facts = Facts {
    name: "SRT publishing",
    part: Part::Publish,
    carriage: Carriage::Ingest,
    example: ("publish+srt://HOST:9000", "publishers by SRT"),
    schemes: &["publish+srt"],
    mistaken: &[(
        &["srt"],
        "to publish by SRT write `publish+srt://HOST:PORT?streamid=…` \
         (there are no viewers by SRT)",
    )],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Udp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("browsers do not publish by this protocol"),
    // Three pipes to the process, and its own socket.
    sockets: |_, _| (4, 1),
};

fn read(scheme: &str, text: &str) -> Result<Endpoint, TargetError> {
    let (scheme, text) = published(scheme, text);
    // There is no usual port.
    let url = with_ports(scheme, text, (0, 0))?;
    match url.port_or_known_default() {
        Some(0) | None => Err(TargetError::Path {
            protocol: Protocol::Srt.name(),
            needs: "a port",
            example: "publish+srt://127.0.0.1:9000?streamid=live/KEY",
        }),
        Some(_) => Ok(Endpoint { url, place: Place::Srt }),
    }
}

pub(super) fn show(url: &Url) -> String {
    shown_published(&as_scheme(&shown_after("", url), ("srt", 0), ("srt", 0)))
}
