//! XMPP over WebSocket (RFC 7395): the stream is opened, and the server's features say how to log
//! in.

use throng_scenario::{Place, Protocol};

use super::{Access, Answer, Found, Given, Kind, ProbeRequest, Turn, refines_nothing};
use crate::chat::xmpp::open_stream;

/// Where Prosody and ejabberd have their WebSocket, and ConverseJS looks for it.
const USUAL_PATH: &str = "/xmpp-websocket";

pub(super) static KIND: Kind = Kind {
    name: "XMPP",
    protocols: &[Protocol::Xmpp],
    is_asked: |_| true,
    ask,
    read,
    refine: refines_nothing,
};

fn ask(given: &Given) -> ProbeRequest {
    let open = open_stream(&domain(given));
    let url = match given.path() {
        "/" => given.at_path(USUAL_PATH),
        _ => given.url().clone(),
    };
    ProbeRequest::WebSocket {
        url: given.web_socket(url),
        protocol: Some("xmpp"),
        dialogue: Box::new(move |heard| match heard {
            [] => Turn::Say(open.clone()),
            all if all.iter().any(|text| has_features(text)) => Turn::End,
            _ => Turn::Wait,
        }),
    }
}

/// The domain of the account.
fn domain(given: &Given) -> String {
    match given.place() {
        Some(Place::Xmpp { domain, .. }) => domain.clone(),
        Some(_) | None => given.host_and_port().0,
    }
}

fn has_features(text: &str) -> bool {
    text.contains("features")
}

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let Answer::WebSocket { protocol, heard } = answer else { return None };
    if protocol.as_deref() != Some("xmpp") {
        return None;
    }
    let complete = given.complete().map(|(_, url)| url);
    let is_complete = complete.is_some();
    let url = complete.unwrap_or_else(|| {
        let path = match given.path() {
            "/" => USUAL_PATH,
            path => path,
        };
        let domain = domain(given);
        given.at("xmpp+ws", &format!("{path}?room=stage@conference.{domain}"))
    });
    let mut found = Found::new(Protocol::Xmpp, url);
    if !is_complete {
        found.to_name = Some("the room, and with &domain= the domain if it is not the host");
    }
    let features = heard.iter().find(|text| has_features(text));
    let mechanisms = features.map(|text| mechanisms(text)).unwrap_or_default();
    let is_open = mechanisms.is_empty() || mechanisms.contains(&"ANONYMOUS");
    found.offers.extend(
        (!mechanisms.is_empty()).then(|| format!("logins (SASL): {}", mechanisms.join(", "))),
    );
    found.access = if is_open { Access::Open } else { Access::Account };
    Some((found, None))
}

/// The SASL mechanisms among the features.
fn mechanisms(features: &str) -> Vec<&str> {
    let names = features.split("<mechanism>").skip(1);
    let names = names.filter_map(|rest| rest.split('<').next());
    names.filter(|name| is_mechanism(name)).collect()
}

/// Whether it is a name of one (RFC 4422 section 3.1).
fn is_mechanism(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (1..=20).contains(&name.len())
        && name.bytes().all(|byte| is_letter(byte) || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Prosody 0.12.3 says.
    const OPEN: &str = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' version='1.0' from='anon.pt.localhost' id='d3c0f6ec-813f-4c67-bfe9-6881074937aa' xml:lang='en'/>";
    const FEATURES: &str = "<stream:features xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client'><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>ANONYMOUS</mechanism></mechanisms></stream:features>";

    fn found(url: &str, protocol: Option<&str>, features: &str) -> Option<Found> {
        let heard = vec![OPEN.to_owned(), features.to_owned()];
        let answer = Answer::WebSocket { protocol: protocol.map(str::to_owned), heard };
        Some(read(&Given::parse(url).unwrap(), &answer)?.0)
    }

    #[test]
    fn its_subprotocol_tells_it_and_its_features_how_to_log_in() {
        let open = found("ws://h:5280", Some("xmpp"), FEATURES).unwrap();
        assert_eq!(open.url, "xmpp+ws://h:5280/xmpp-websocket?room=stage@conference.h");
        assert!(open.to_name.is_some() && open.access == Access::Open);
        assert_eq!(open.offers, ["logins (SASL): ANONYMOUS"]);
        let named = "xmpp+wss://h/x?room=a@room.h&domain=anon.h";
        let locked = FEATURES.replace("ANONYMOUS", "SCRAM-SHA-1");
        let locked = found(named, Some("xmpp"), &locked).unwrap();
        assert_eq!((locked.url.as_str(), locked.to_name), (named, None));
        assert_eq!(locked.access, Access::Account);
        assert!(found("ws://h:5280", Some("chat"), FEATURES).is_none());
    }

    #[test]
    fn the_stream_is_opened_for_the_domain_of_the_url() {
        let given = Given::parse("xmpp+wss://h/x?room=a@room.h&domain=anon.h").unwrap();
        let ProbeRequest::WebSocket { url, dialogue, .. } = ask(&given) else {
            panic!("no WebSocket")
        };
        assert_eq!(url.in_clear().as_str(), "wss://h/x");
        let Turn::Say(open) = dialogue(&[]) else { panic!("nothing is said") };
        assert!(open.contains("to=\"anon.h\""), "{open}");
        assert_eq!(dialogue(&[OPEN.to_owned()]), Turn::Wait);
        assert_eq!(dialogue(&[OPEN.to_owned(), FEATURES.to_owned()]), Turn::End);
    }
}
