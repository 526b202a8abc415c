//! RTSP (RFC 2326): `rtsp(s)://[USER:PASSWORD@]HOST[:554]/…`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Credential, Facts, Part, Place, has_no_rooms};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{as_scheme, shown_after, with_hidden, with_ports};
use crate::target::{Account, Endpoint, TargetError};

/// The ports of RTSP and of RTSP over TLS (IANA).
const PORT: u16 = 554;
const PORT_TLS: u16 = 322;

pub(super) static FACTS: Facts = Facts {
    name: "RTSP",
    part: Part::Watch,
    carriage: Carriage::Rtsp,
    example: ("rtsp://HOST/PATH", "viewers on any RTSP server"),
    schemes: &["rtsp", "rtsps"],
    mistaken: &[(
        &["rtspu", "rtspt"],
        "write `rtsp://…`, and target.rtsp_transport = \"udp\" or \"tcp\"",
    )],
    read,
    in_room: has_no_rooms,
    credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("browsers do not play RTSP"),
    sockets: sockets::of_rtsp,
};

fn read(scheme: &str, text: &str) -> Result<Endpoint, TargetError> {
    let (url, account) = address(scheme, text)?;
    Ok(Endpoint { url, place: Place::Rtsp { account } })
}

/// A URL, kept as one of HTTP, and the account in it; `text` begins with `scheme`.
pub(super) fn address(scheme: &str, text: &str) -> Result<(Url, Option<Account>), TargetError> {
    let mut url = with_ports(scheme, text, (PORT, PORT_TLS))?;
    let account = Account::take(&mut url);
    Ok((url, account))
}

fn credential(place: &Place) -> Option<Credential<'_>> {
    let Place::Rtsp { account } = place else { return None };
    account.as_ref().map(Credential::Account)
}

pub(super) fn show(url: &Url, account: &Option<Account>) -> String {
    with_hidden(account.as_ref(), written(&shown_after("", url)))
}

/// A URL that is kept as one of HTTP, as it was written.
fn written(url: &str) -> String {
    as_scheme(url, ("rtsp", PORT), ("rtsps", PORT_TLS))
}

impl Endpoint {
    /// The URL of an RTSP presentation as requests have it: without the port if it is the usual
    /// one. `None` for other protocols.
    #[must_use]
    pub fn rtsp_url(&self) -> Option<Url> {
        if self.protocol().carriage() != Carriage::Rtsp {
            return None;
        }
        Url::parse(&written(self.url.in_clear().as_str())).ok()
    }
}
