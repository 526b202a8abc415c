//! Video over HTTP: `http(s)://…`, a file, an HLS playlist or a DASH manifest.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{after_prefix, before_secrets, parts_of_path, shown_after};
use crate::target::{Endpoint, TargetError};

pub(super) static FACTS: Facts = Facts {
    name: "HTTP video",
    part: Part::Watch,
    carriage: Carriage::Http,
    example: ("http://HOST/PATH", "viewers of video files, HLS and DASH"),
    schemes: &["http", "https"],
    mistaken: &[],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("the browsers of a run join WebRTC only"),
    sockets: sockets::of_http_video,
};

fn read(scheme: &str, text: &str) -> Result<Endpoint, TargetError> {
    let url = after_prefix("", text)?;
    // No recording is called so: the prefix was forgotten.
    if matches!(parts_of_path(&url).next_back(), Some("whep" | "whip")) {
        let shown = before_secrets(text);
        let help = format!("for WHEP write `whep+{shown}`, to publish by WHIP `whip+{shown}`");
        return Err(TargetError::Scheme { scheme: scheme.to_owned(), help });
    }
    Ok(Endpoint { url, place: Place::HttpVideo })
}

pub(super) fn show(url: &Url) -> String {
    shown_after("", url)
}
