//! A watch page of PeerTube: `peertube+http(s)://HOST/w/ID`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{after_prefix, parts_of_path, shown_after};
use crate::target::{Endpoint, TargetError};

const PREFIX: &str = "peertube+";

const HELP: &str = "write the URL of a watch page: `peertube+https://HOST/w/ID`";

pub(super) static FACTS: Facts = Facts {
    name: "PeerTube",
    part: Part::Visit,
    carriage: Carriage::Http,
    example: ("peertube+https://HOST/w/ID", "visitors of a page of PeerTube"),
    schemes: &["peertube+http", "peertube+https"],
    mistaken: &[(&["peertube", "peertubes"], HELP)],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("the browsers of a run join WebRTC only"),
    sockets: sockets::of_peertube,
};

fn read(scheme: &str, text: &str) -> Result<Endpoint, TargetError> {
    let url = after_prefix(PREFIX, text)?;
    // A page names its video, and is not that of the instance.
    if parts_of_path(&url).count() > 1 {
        Ok(Endpoint { url, place: Place::PeerTube })
    } else {
        Err(TargetError::Scheme { scheme: scheme.to_owned(), help: HELP.to_owned() })
    }
}

pub(super) fn show(url: &Url) -> String {
    shown_after(PREFIX, url)
}
