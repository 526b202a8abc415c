//! Publishing by RTSP (RFC 2326, ANNOUNCE and RECORD): `publish+rtsp(s)://…`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Credential, Facts, Part, Place, has_no_rooms, rtsp};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{published, shown_published};
use crate::target::{Account, Endpoint, TargetError};

pub(super) static FACTS: Facts = Facts {
    name: "RTSP publishing",
    part: Part::Publish,
    carriage: Carriage::Rtsp,
    example: ("publish+rtsp://HOST/PATH", "publishers by RTSP"),
    schemes: &["publish+rtsp", "publish+rtsps"],
    mistaken: &[(
        &["rtsp+publish", "rtsps+publish", "announce+rtsp", "record+rtsp"],
        "to publish by RTSP write `publish+rtsp://…` or `publish+rtsps://…`",
    )],
    read,
    in_room: has_no_rooms,
    credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("browsers do not publish by this protocol"),
    sockets: sockets::of_rtsp,
};

fn read(scheme: &str, text: &str) -> Result<Endpoint, TargetError> {
    let (scheme, text) = published(scheme, text);
    let (url, account) = rtsp::address(scheme, text)?;
    Ok(Endpoint { url, place: Place::RtspPublish { account } })
}

fn credential(place: &Place) -> Option<Credential<'_>> {
    let Place::RtspPublish { account } = place else { return None };
    account.as_ref().map(Credential::Account)
}

pub(super) fn show(url: &Url, account: &Option<Account>) -> String {
    shown_published(&rtsp::show(url, account))
}
