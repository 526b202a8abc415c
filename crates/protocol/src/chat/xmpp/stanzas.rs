//! What a browser with ConverseJS sends, stanza by stanza, to the byte but for names and ids: its
//! frames were recorded against Prosody (ConverseJS 10.1.2), attributes in the order of Strophe.

use super::xml::escaped;

/// Namespaces.
pub(super) mod ns {
    pub(in crate::chat::xmpp) const BIND: &str = "urn:ietf:params:xml:ns:xmpp-bind";
    pub(in crate::chat::xmpp) const DISCO_INFO: &str = "http://jabber.org/protocol/disco#info";
    pub(in crate::chat::xmpp) const DISCO_ITEMS: &str = "http://jabber.org/protocol/disco#items";
    pub(in crate::chat::xmpp) const MAM: &str = "urn:xmpp:mam:2";
    pub(in crate::chat::xmpp) const MUC_USER: &str = "http://jabber.org/protocol/muc#user";
    pub(in crate::chat::xmpp) const SASL: &str = "urn:ietf:params:xml:ns:xmpp-sasl";
    pub(in crate::chat::xmpp) const SM: &str = "urn:xmpp:sm:3";
}

/// ConverseJS's entity capabilities (XEP-0115), in presences.
const CAPS: &str = concat!(
    r#"<c hash="sha-1" node="https://conversejs.org" ver="vFjUiQWh2ew0hsRBxf7LNFK8ol0=" "#,
    r#"xmlns="http://jabber.org/protocol/caps"/>"#,
);

pub(crate) fn open(domain: &str) -> String {
    format!(
        r#"<open to="{}" version="1.0" xmlns="urn:ietf:params:xml:ns:xmpp-framing"/>"#,
        escaped(domain)
    )
}

pub(super) fn close() -> String {
    r#"<close xmlns="urn:ietf:params:xml:ns:xmpp-framing"/>"#.to_owned()
}

pub(super) fn auth(mechanism: &str, first: &str) -> String {
    let sasl = ns::SASL;
    if first.is_empty() {
        format!(r#"<auth mechanism="{mechanism}" xmlns="{sasl}"/>"#)
    } else {
        format!(r#"<auth mechanism="{mechanism}" xmlns="{sasl}">{first}</auth>"#)
    }
}

pub(super) fn response(answer: &str) -> String {
    format!(r#"<response xmlns="{}">{answer}</response>"#, ns::SASL)
}

pub(super) fn bind(id: &str) -> String {
    iq(id, None, "set", &format!(r#"<bind xmlns="{}"/>"#, ns::BIND))
}

pub(super) fn session(id: &str) -> String {
    iq(id, None, "set", r#"<session xmlns="urn:ietf:params:xml:ns:xmpp-session"/>"#)
}

pub(super) fn roster(id: &str) -> String {
    iq(id, None, "get", r#"<query xmlns="jabber:iq:roster"/>"#)
}

/// The vCard of `to`, or one's own.
pub(super) fn vcard(id: &str, to: Option<&str>) -> String {
    iq(id, to, "get", r#"<vCard xmlns="vcard-temp"/>"#)
}

pub(super) fn ping(id: &str, domain: &str) -> String {
    iq(id, Some(domain), "get", r#"<ping xmlns="urn:xmpp:ping"/>"#)
}

pub(super) fn disco(id: &str, from: &str, to: &str, namespace: &str) -> String {
    from_iq(id, from, Some(to), "get", &format!(r#"<query xmlns="{namespace}"/>"#))
}

/// Asks the room for the nickname that it has registered.
pub(super) fn registered_nick(id: &str, from: &str, room: &str) -> String {
    from_iq(
        id,
        from,
        Some(room),
        "get",
        &format!(r#"<query node="x-roomuser-item" xmlns="{}"/>"#, ns::DISCO_INFO),
    )
}

pub(super) fn enable_carbons(id: &str, from: &str) -> String {
    from_iq(id, from, None, "set", r#"<enable xmlns="urn:xmpp:carbons:2"/>"#)
}

/// The latest `max` messages of the room's archive (XEP-0313).
pub(super) fn history(id: &str, room: &str, query_id: &str, max: u32) -> String {
    let form = concat!(
        r#"<x type="submit" xmlns="jabber:x:data"><field type="hidden" var="FORM_TYPE">"#,
        "<value>urn:xmpp:mam:2</value></field></x>",
    );
    let page = format!(
        r#"<set xmlns="http://jabber.org/protocol/rsm"><before></before><max>{max}</max></set>"#
    );
    iq(
        id,
        Some(room),
        "set",
        &format!(r#"<query queryid="{query_id}" xmlns="{}">{form}{page}</query>"#, ns::MAM),
    )
}

fn iq(id: &str, to: Option<&str>, kind: &str, payload: &str) -> String {
    let to = to.map(|to| format!(r#" to="{}""#, escaped(to))).unwrap_or_default();
    format!(r#"<iq id="{id}"{to} type="{kind}" xmlns="jabber:client">{payload}</iq>"#)
}

fn from_iq(id: &str, from: &str, to: Option<&str>, kind: &str, payload: &str) -> String {
    let to = to.map(|to| format!(r#" to="{}""#, escaped(to))).unwrap_or_default();
    format!(
        r#"<iq from="{}" id="{id}"{to} type="{kind}" xmlns="jabber:client">{payload}</iq>"#,
        escaped(from)
    )
}

pub(super) fn available() -> String {
    format!(r#"<presence xmlns="jabber:client"><priority>0</priority>{CAPS}</presence>"#)
}

/// Joins a room (XEP-0045 section 7.2).
pub(super) fn join(id: &str, from: &str, occupant: &str) -> String {
    let muc = r#"<x xmlns="http://jabber.org/protocol/muc"><history maxstanzas="0"/></x>"#;
    let (from, occupant) = (escaped(from), escaped(occupant));
    let addresses = format!(r#"from="{from}" id="{id}" to="{occupant}""#);
    format!(r#"<presence {addresses} xmlns="jabber:client">{muc}{CAPS}</presence>"#)
}

/// Leaves the room.
pub(super) fn leave(from: &str, occupant: &str) -> String {
    let (from, occupant) = (escaped(from), escaped(occupant));
    format!(r#"<presence from="{from}" to="{occupant}" type="unavailable" xmlns="jabber:client"/>"#)
}

/// Takes another nickname in the room (XEP-0045 section 7.6).
pub(super) fn nickname(id: &str, from: &str, occupant: &str) -> String {
    let (from, occupant) = (escaped(from), escaped(occupant));
    format!(r#"<presence from="{from}" id="{id}" to="{occupant}" xmlns="jabber:client"/>"#)
}

/// Enables stream management (XEP-0198).
pub(super) fn enable_management() -> String {
    format!(r#"<enable resume="true" xmlns="{}"/>"#, ns::SM)
}

/// Asks for the stream of a connection before, of which `handled` stanzas came.
pub(super) fn resume(handled: u32, id: &str) -> String {
    format!(r#"<resume h="{handled}" previd="{}" xmlns="{}"/>"#, escaped(id), ns::SM)
}

/// Says that `handled` stanzas came.
pub(super) fn acknowledge(handled: u32) -> String {
    format!(r#"<a h="{handled}" xmlns="{}"/>"#, ns::SM)
}

/// Asks what came.
pub(super) fn request_acknowledgement() -> String {
    format!(r#"<r xmlns="{}"/>"#, ns::SM)
}

/// A message to the room, with the chat state `active`, as ConverseJS adds it where it sends chat
/// states (XEP-0085).
pub(super) fn message(id: &str, from: &str, room: &str, body: &str, has_state: bool) -> String {
    let state =
        if has_state { r#"<active xmlns="http://jabber.org/protocol/chatstates"/>"# } else { "" };
    let origin = format!(r#"<origin-id id="{id}" xmlns="urn:xmpp:sid:0"/>"#);
    let (from, room, body) = (escaped(from), escaped(room), escaped(body));
    let addresses = format!(r#"from="{from}" id="{id}" to="{room}""#);
    let content = format!("<body>{body}</body>{state}{origin}");
    format!(r#"<message {addresses} type="groupchat" xmlns="jabber:client">{content}</message>"#)
}

/// A chat state alone, such as `composing`, which the room passes to everybody.
pub(super) fn chat_state(id: &str, room: &str, state: &str) -> String {
    let hints = r#"<no-store xmlns="urn:xmpp:hints"/><no-permanent-store xmlns="urn:xmpp:hints"/>"#;
    let content = format!(r#"<{state} xmlns="http://jabber.org/protocol/chatstates"/>{hints}"#);
    format!(
        r#"<message id="{id}" to="{}" type="groupchat" xmlns="jabber:client">{content}</message>"#,
        escaped(room)
    )
}

/// The answer to an iq of the server that asks for something: there is nothing, which is all that
/// it needs.
pub(super) fn nothing(id: &str, to: Option<&str>) -> String {
    let to = to.map(|to| format!(r#" to="{}""#, escaped(to))).unwrap_or_default();
    format!(r#"<iq id="{}"{to} type="result" xmlns="jabber:client"/>"#, escaped(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of ConverseJS's frames, as recorded.
    #[test]
    fn frames_are_as_long_as_those_of_a_browser() {
        let jid = "wqtbjauxcfczgybjdcptmkcs@anon.pt.localhost/YSuG3k4SlMfm";
        let (id, room) =
            ("f9561b22-f519-4d60-91bc-04e0a22ae83b:sendIQ", "r400-1@room.pt.localhost");
        let (uuid, occupant) =
            ("48b40318-8dbc-4903-b84c-3f58a85a61ee", "r400-1@room.pt.localhost/Anonymous 298573");
        for (frame, length) in [
            (open("anon.pt.localhost"), 88),
            (auth("ANONYMOUS", ""), 70),
            (bind("_bind_auth_2"), 108),
            (session("_session_auth_2"), 117),
            (disco(id, jid, "anon.pt.localhost", ns::DISCO_INFO), 231),
            (roster("8524ca70-c888-4613-b741-e638b7a9a7e9:roster"), 124),
            (vcard(id, None), 118),
            (vcard(id, Some(room)), 148),
            (disco(id, jid, room, ns::DISCO_INFO), 238),
            (disco(id, jid, "anon.pt.localhost", ns::DISCO_ITEMS), 232),
            (available(), 187),
            (registered_nick(id, jid, room), 261),
            (enable_carbons(id, jid), 190),
            (join(uuid, jid, occupant), 388),
            (history(id, room, "dc6cd5d9-d3cf-42a8-9c8a-4d1fff4541bb", 50), 403),
            (vcard(id, Some("r400-1@room.pt.localhost/Anonymous 100013")), 165),
            (ping("822ba1a7-1a01-45fd-b57e-22181eeaf947:ping", "anon.pt.localhost"), 141),
        ] {
            assert_eq!(frame.len(), length, "{frame}");
        }
    }
}
