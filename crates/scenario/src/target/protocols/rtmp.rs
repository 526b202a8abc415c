//! Publishing by RTMP: `publish+rtmp(s)://HOST[:1935]/APP/KEY`, or `…/STREAM`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, Protocol, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::target::urls::{as_scheme, parts_of_path, published, shown_published, with_ports};
use crate::target::{Endpoint, TargetError};
use crate::url_template::without_secrets;

/// The ports of RTMP (IANA: macromedia-fcs) and of RTMP over TLS, which is that of HTTPS.
const PORT: u16 = 1935;
const PORT_TLS: u16 = 443;

pub(super) static FACTS: Facts = Facts {
    name: "RTMP publishing",
    part: Part::Publish,
    carriage: Carriage::Ingest,
    example: ("publish+rtmp://HOST/APP/KEY", "publishers by RTMP"),
    schemes: &["publish+rtmp", "publish+rtmps"],
    mistaken: &[(
        &["rtmp", "rtmps", "rtmpt", "rtmpe", "rtmpte", "rtmpts"],
        "to publish by RTMP write `publish+rtmp://HOST/APP/KEY` or `publish+rtmps://…` \
         (there are no viewers by RTMP)",
    )],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("browsers do not publish by this protocol"),
    sockets: |_, _| (1, 0),
};

fn read(scheme: &str, text: &str) -> Result<Endpoint, TargetError> {
    let (scheme, text) = published(scheme, text);
    let url = with_ports(scheme, text, (PORT, PORT_TLS))?;
    if parts_of_path(&url).next().is_none() {
        return Err(TargetError::Path {
            protocol: Protocol::Rtmp.name(),
            needs: "application and key in the path, or the name of the stream alone",
            example: "publish+rtmp://127.0.0.1:1935/live/KEY",
        });
    }
    Ok(Endpoint { url: url.with_key(), place: Place::Rtmp })
}

/// Without the key, which the scheme tells.
pub(super) fn show(url: &Url) -> String {
    let written = as_scheme(url.in_clear().as_str(), ("rtmp", PORT), ("rtmps", PORT_TLS));
    shown_published(&without_secrets(&written))
}
