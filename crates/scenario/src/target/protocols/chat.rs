//! A chat whose words are in the scenario: `chat+ws(s)://…` over WebSocket, `chat+http(s)://…` over
//! server-sent events.

use throng_observation::Url;

use super::{ApiKeys, Carriage, Facts, Part, Place, has_no_credential, has_no_rooms};
use crate::consent::IpProtocol;
use crate::sockets;
use crate::target::urls::{after_prefix, shown_after};
use crate::target::{Endpoint, TargetError};

const PREFIX: &str = "chat+";

pub(super) static FACTS: Facts = Facts {
    name: "chat by template",
    part: Part::Chat,
    carriage: Carriage::Nothing,
    example: ("chat+ws://HOST/PATH", "participants of another chat, by template"),
    schemes: &["chat+ws", "chat+wss", "chat+http", "chat+https"],
    mistaken: &[(
        &["chat", "irc", "ircs", "irc+ws", "irc+wss", "sse", "sse+http", "sse+https", "chat+sse"],
        "write `chat+wss://HOST/PATH` for a WebSocket or `chat+https://HOST/PATH` for server-sent \
         events, with [crowd.chat.template], or `xmpp+wss://…` for XMPP",
    )],
    read,
    in_room: has_no_rooms,
    credential: has_no_credential,
    ip_protocol: IpProtocol::Tcp,
    announces_relays: false,
    api_keys: ApiKeys::None,
    keeps_browsers_out: Some("the browsers of a run join no chat"),
    sockets: |target, _| (sockets::of_chat(&target.endpoint), 0),
};

fn read(_: &str, text: &str) -> Result<Endpoint, TargetError> {
    Ok(Endpoint { url: after_prefix(PREFIX, text)?, place: Place::Chat })
}

pub(super) fn show(url: &Url) -> String {
    shown_after(PREFIX, url)
}

impl Endpoint {
    /// Whether it is a chat over server-sent events.
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        self.place == Place::Chat && matches!(self.url.scheme(), "http" | "https")
    }
}
