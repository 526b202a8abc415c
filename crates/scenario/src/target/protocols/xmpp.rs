//! A room of an XMPP chat over WebSocket (RFC 7395):
//! `xmpp+ws(s)://[USER:PASSWORD@]HOST/PATH?room=ROOM@SERVICE[&domain=DOMAIN]`.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Credential, Facts, Part, Place, Protocol, has_no_rooms};
use crate::consent::IpProtocol;
use crate::target::urls::{
    after_prefix, parameter, remove_parameters, shown_after, with_hidden, with_parameter,
};
use crate::target::{Account, Endpoint, TargetError};

const PREFIX: &str = "xmpp+";

pub(super) static FACTS: Facts = Facts {
    name: "XMPP chat",
    part: Part::Chat,
    carriage: Carriage::Nothing,
    example: ("xmpp+ws://HOST/PATH?room=ROOM@SERVICE", "participants of an XMPP chat"),
    schemes: &["xmpp+ws", "xmpp+wss"],
    mistaken: &[(
        &["xmpp", "xmpps"],
        "write `xmpp+wss://HOST/PATH?room=ROOM@SERVICE`, the WebSocket of the server",
    )],
    read,
    in_room: has_no_rooms,
    credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("the browsers of a run join no chat"),
    sockets: |_, _| (1, 0),
};

fn read(_: &str, text: &str) -> Result<Endpoint, TargetError> {
    let mut url = after_prefix(PREFIX, text)?;
    let wrong = || TargetError::Path {
        protocol: Protocol::Xmpp.name(),
        needs: "the room, `?room=ROOM@SERVICE`",
        example: "xmpp+ws://127.0.0.1:5280/xmpp-websocket\
                  ?room=stage@room.example.org&domain=anon.example.org",
    };
    let room = parameter(&url, "room").filter(|room| is_bare_address(room)).ok_or_else(wrong)?;
    let domain = parameter(&url, "domain").filter(|domain| !domain.is_empty());
    let domain = domain.or_else(|| url.host_str().map(str::to_owned)).ok_or_else(wrong)?;
    let account = Account::take(&mut url);
    remove_parameters(&mut url, &["room", "domain"]);
    Ok(Endpoint { url, place: Place::Xmpp { domain, room, account } })
}

/// Whether `text` is the address of a room: `NAME@SERVICE`.
fn is_bare_address(text: &str) -> bool {
    let parts = text.split_once('@');
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['/', '@', ' ', '<', '&', '"']);
    parts.is_some_and(|(name, service)| is_plain(name) && is_plain(service))
}

fn credential(place: &Place) -> Option<Credential<'_>> {
    let Place::Xmpp { account, .. } = place else { return None };
    account.as_ref().map(Credential::Account)
}

pub(super) fn show(url: &Url, domain: &str, room: &str, account: &Option<Account>) -> String {
    let shown = with_hidden(account.as_ref(), shown_after("", url));
    let shown = with_parameter(&format!("{PREFIX}{shown}"), "room", room);
    if url.host_str() == Some(domain) { shown } else { format!("{shown}&domain={domain}") }
}
