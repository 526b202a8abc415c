//! Janus: its WebSocket, by which it tells what it is (`info`), and the mountpoints of Streaming or
//! the rooms of VideoRoom (`list`). The session of that ends with the WebSocket.

use serde_json::{Value, json};
use throng_scenario::Protocol;

use super::{Access, Answer, Found, Given, Kind, ProbeRequest, Turn, refines_nothing};
use crate::excerpt::excerpt;

const STREAMING: &str = "janus.plugin.streaming";
const VIDEO_ROOM: &str = "janus.plugin.videoroom";

/// Mountpoints and rooms that are told.
const PLACES_MAX: usize = 12;

pub(super) static KIND: Kind = Kind {
    name: "Janus",
    protocols: &[Protocol::Janus, Protocol::JanusVideoRoom],
    is_asked: |_| true,
    ask: |given| {
        let wanted = wanted(given);
        ProbeRequest::WebSocket {
            url: given.web_socket(given.url().clone()),
            protocol: Some("janus-protocol"),
            dialogue: Box::new(move |heard| turn(wanted, heard)),
        }
    },
    read,
    refine: refines_nothing,
};

/// The plugin that the URL names.
fn wanted(given: &Given) -> Option<&'static str> {
    match given.complete()?.0 {
        Protocol::JanusVideoRoom => Some(VIDEO_ROOM),
        Protocol::Janus => Some(STREAMING),
        // Only URLs of Janus are read here.
        _ => None,
    }
}

/// What is known after some messages.
#[derive(Default)]
struct Dialogue {
    info: Option<Value>,
    session: Option<u64>,
    handle: Option<u64>,
    /// What the plugin lists.
    list: Option<Vec<Value>>,
    /// It refused a request after `info`.
    is_refused: bool,
}

impl Dialogue {
    fn of(heard: &[String]) -> Self {
        let mut known = Self::default();
        for said in heard.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok()) {
            let id = said.pointer("/data/id").and_then(Value::as_u64);
            match (said.get("janus").and_then(Value::as_str), said.pointer("/plugindata/data")) {
                (Some("server_info"), _) => known.info = Some(said.clone()),
                (Some("success" | "event"), Some(data)) => {
                    let list = data.get("list").and_then(Value::as_array);
                    known.list = Some(list.cloned().unwrap_or_default());
                }
                (Some("success"), None) if known.session.is_none() => known.session = id,
                (Some("success"), None) => known.handle = id,
                (Some("error"), _) => known.is_refused = true,
                // `ack`, and what needs no answer.
                (Some(_) | None, _) => {}
            }
        }
        known
    }

    fn has(&self, plugin: &str) -> bool {
        self.info.as_ref().is_some_and(|info| {
            info.get("plugins").is_some_and(|plugins| plugins.get(plugin).is_some())
        })
    }

    /// The plugin that is asked for its list, if it is there: the one that is wanted; where none
    /// is, Streaming, or else VideoRoom.
    fn plugin(&self, wanted: Option<&'static str>) -> Option<&'static str> {
        let mut plugins = [STREAMING, VIDEO_ROOM].into_iter();
        plugins.find(|plugin| wanted.is_none_or(|wanted| wanted == *plugin) && self.has(plugin))
    }
}

fn turn(wanted: Option<&'static str>, heard: &[String]) -> Turn {
    let known = Dialogue::of(heard);
    let say = |message: &Value| Turn::Say(message.to_string());
    if heard.is_empty() {
        return say(&json!({ "janus": "info", "transaction": "1" }));
    }
    let (Some(plugin), None, false) = (known.plugin(wanted), &known.list, known.is_refused) else {
        return Turn::End;
    };
    // What was said already is not said again after an `ack`.
    let is_ack = heard.last().is_some_and(|text| text.contains("\"ack\""));
    match (known.session, known.handle) {
        _ if is_ack => Turn::Wait,
        (None, _) => say(&json!({ "janus": "create", "transaction": "2" })),
        (Some(session), None) => say(&json!({
            "janus": "attach", "plugin": plugin, "session_id": session, "transaction": "3"
        })),
        (Some(session), Some(handle)) => say(&json!({
            "janus": "message", "body": { "request": "list" }, "session_id": session,
            "handle_id": handle, "transaction": "4"
        })),
    }
}

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let Answer::WebSocket { heard, .. } = answer else { return None };
    let known = Dialogue::of(heard);
    let info = known.info.as_ref()?;
    let wanted = wanted(given);
    let is_room = wanted.or_else(|| known.plugin(None)) == Some(VIDEO_ROOM);
    let places = known.list.as_deref().unwrap_or_default();
    let first = places.iter().find_map(|place| id(place, is_room));
    let (protocol, url) = given.complete().unwrap_or_else(|| {
        let plugin = if is_room { "videoroom" } else { "streaming" };
        let protocol = if is_room { Protocol::JanusVideoRoom } else { Protocol::Janus };
        let path = match given.path() {
            "/" => String::new(),
            path => format!("?path={path}"),
        };
        let id = first.as_deref().unwrap_or("1");
        (protocol, given.at("janus+ws", &format!("/{plugin}/{id}{path}")))
    });
    let mut found = Found::new(protocol, url);
    let version = info.get("version_string").and_then(Value::as_str).unwrap_or_default();
    found.server = Some(format!("Janus {}", excerpt(version)).trim_end().to_owned());
    if given.complete().is_none() && first.is_none() {
        found.to_name = Some("the mountpoint or room: none is listed");
    }
    let missing = wanted.filter(|plugin| !known.has(plugin));
    found.offers.extend(missing.map(|plugin| format!("no {plugin}, which the URL needs")));
    let told = places.iter().filter_map(|place| in_words(place, is_room));
    found.offers.extend(told.take(PLACES_MAX));
    let asks = |key: &str| info.get(key).is_some_and(|value| value == &Value::Bool(true));
    if asks("auth_token") || asks("api_secret") {
        found.access = Access::Token;
    }
    Some((found, None))
}

/// The id of a mountpoint or room, escaped as in a URL; `None` for one that cannot be in a path.
fn id(place: &Value, is_room: bool) -> Option<String> {
    let id = place.get(if is_room { "room" } else { "id" })?;
    match id.as_str() {
        Some("" | "." | "..") => None,
        Some(text) => {
            let escaped: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
            Some(escaped.replace('+', "%20"))
        }
        None => id.as_u64().map(|number| number.to_string()),
    }
}

fn in_words(place: &Value, is_room: bool) -> Option<String> {
    let id = id(place, is_room)?;
    let description = place.get("description").and_then(Value::as_str).unwrap_or_default();
    let is_locked = place.get("pin_required").and_then(Value::as_bool).unwrap_or(false);
    let pin = if is_locked { ", needs ?pin=" } else { "" };
    let what = if is_room { "room" } else { "mountpoint" };
    Some(format!("{what} {id}: {}{pin}", excerpt(description)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Janus 1.1.2 says, shortened.
    const INFO: &str = r#"{"janus":"server_info","transaction":"1","name":"Janus WebRTC Server","version":1102,"version_string":"1.1.2","author":"Meetecho s.r.l.","session-timeout":60,"api_secret":false,"auth_token":false,"transports":{"janus.transport.websockets":{"name":"JANUS WebSockets transport plugin"}},"plugins":{"janus.plugin.streaming":{"name":"JANUS Streaming plugin"},"janus.plugin.videoroom":{"name":"JANUS VideoRoom plugin"}}}"#;
    const CREATED: &str = r#"{"janus":"success","transaction":"2","data":{"id":6892828328400420}}"#;
    const ATTACHED: &str = r#"{"janus":"success","session_id":6892828328400420,"transaction":"3","data":{"id":7716893271688448}}"#;
    const LISTED: &str = r#"{"janus":"success","session_id":6892828328400420,"transaction":"4","sender":7716893271688448,"plugindata":{"plugin":"janus.plugin.streaming","data":{"streaming":"list","list":[{"id":2,"type":"live","description":"The stage","enabled":true,"media":[{"mid":"v","type":"video","label":"v","age_ms":12}]},{"id":3,"type":"live","description":"Backstage"}]}}}"#;
    const ROOMS: &str = r#"{"janus":"success","transaction":"4","plugindata":{"plugin":"janus.plugin.videoroom","data":{"videoroom":"success","list":[{"room":1234,"description":"Demo","pin_required":true,"max_publishers":6}]}}}"#;

    fn heard(messages: &[&str]) -> Vec<String> {
        messages.iter().map(|text| (*text).to_owned()).collect()
    }

    fn said(heard_so_far: &[&str]) -> String {
        match turn(None, &heard(heard_so_far)) {
            Turn::Say(text) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn it_is_asked_what_it_is_and_what_it_lists() {
        assert!(said(&[]).contains("\"info\""));
        assert!(said(&[INFO]).contains("\"create\""));
        let attach = said(&[INFO, CREATED]);
        assert!(attach.contains(STREAMING) && attach.contains("6892828328400420"), "{attach}");
        let list = said(&[INFO, CREATED, ATTACHED]);
        assert!(list.contains("\"list\"") && list.contains("7716893271688448"), "{list}");
        let ack = r#"{"janus":"ack","transaction":"4"}"#;
        assert_eq!(said(&[INFO, CREATED, ATTACHED, ack]), "Wait");
        assert_eq!(said(&[INFO, CREATED, ATTACHED, LISTED]), "End");
        assert_eq!(said(&[INFO, r#"{"janus":"error","error":{"code":403}}"#]), "End");
        assert_eq!(said(&["hello"]), "End");
    }

    fn found(url: &str, messages: &[&str]) -> Found {
        let answer = Answer::WebSocket { protocol: None, heard: heard(messages) };
        read(&Given::parse(url).unwrap(), &answer).unwrap().0
    }

    #[test]
    fn the_first_mountpoint_is_watched_unless_the_url_names_one() {
        let listed = [INFO, CREATED, ATTACHED, LISTED];
        let first = found("ws://h:8188", &listed);
        assert_eq!(first.url, "janus+ws://h:8188/streaming/2");
        assert_eq!(first.server.as_deref(), Some("Janus 1.1.2"));
        assert_eq!(first.offers, ["mountpoint 2: The stage", "mountpoint 3: Backstage"]);
        let named = found("janus+ws://h:8188/streaming/9", &listed);
        assert_eq!((named.url.as_str(), named.to_name), ("janus+ws://h:8188/streaming/9", None));
        let proxied = found("https://h/janus", &[INFO]);
        assert_eq!(proxied.url, "janus+wss://h/streaming/1?path=/janus");
        assert!(proxied.to_name.is_some());
    }

    #[test]
    fn rooms_are_told_where_a_conference_is_meant_or_nothing_else_is_there() {
        let room = found("janus+ws://h/videoroom/1234", &[INFO, CREATED, ATTACHED, ROOMS]);
        assert_eq!(room.protocol, Protocol::JanusVideoRoom);
        assert_eq!(room.offers, ["room 1234: Demo, needs ?pin="]);
        // A room is none of Streaming's mountpoints.
        let other = INFO.replace(VIDEO_ROOM, "janus.plugin.echotest");
        assert_eq!(turn(Some(VIDEO_ROOM), &heard(&[&other])), Turn::End);
        let named = found("janus+ws://h/videoroom/1234", &[&other]);
        assert_eq!(named.protocol, Protocol::JanusVideoRoom);
        assert_eq!(named.offers, ["no janus.plugin.videoroom, which the URL needs"]);
        let only = INFO.replace("janus.plugin.streaming", "janus.plugin.echotest");
        let found = found("ws://h", &[&only, CREATED, ATTACHED, ROOMS]);
        assert_eq!(found.url, "janus+ws://h/videoroom/1234");
    }

    #[test]
    fn one_with_tokens_says_so_and_another_server_is_none() {
        let locked = INFO.replace("\"auth_token\":false", "\"auth_token\":true");
        let refused = r#"{"janus":"error","transaction":"2","error":{"code":403,"reason":"Unauthorized request"}}"#;
        assert_eq!(found("ws://h", &[&locked, refused]).access, Access::Token);
        let given = Given::parse("ws://h").unwrap();
        let other = Answer::WebSocket { protocol: None, heard: heard(&["{}"]) };
        assert!(read(&given, &other).is_none());
    }
}
