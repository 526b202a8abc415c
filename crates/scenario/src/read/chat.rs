//! Checks `chat` of a `[crowd]` against the target.

use super::fields::{Fields, Reader};
use super::tree::{Entry, Span, Value};
use crate::chat::ChatTemplate;
use crate::scenario::Scenario;
use crate::target::{Carriage, Endpoint, Part, Protocol};

/// What to do with a chat on a target that has none.
const OTHER_TARGET: &str = "remove chat, or write url = \"xmpp+wss://HOST/PATH?room=ROOM\", \
                            \"chat+wss://HOST/PATH\" or \"chat+https://HOST/PATH\"";

/// Keys that only XMPP has a use for.
const XMPP_KEYS: [&str; 6] =
    ["vcards", "history", "chat_states", "nick_change", "nick_change_within", "stream_management"];

/// Keys of a template that only chats over WebSocket have a use for, and those that only chats over
/// server-sent events have.
const WEBSOCKET_KEYS: [&str; 2] = ["subprotocols", "binary"];
const HTTP_KEYS: [&str; 4] = ["stream", "post", "headers", "replay"];

/// Where the chat of a cohort is in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChatSpans {
    chat: Span,
    template: Option<Span>,
    /// Of the keys that only XMPP has a use for.
    of_xmpp: [Option<Span>; XMPP_KEYS.len()],
    /// Of the keys of the template that only one of its transports has a use for.
    of_websocket: [Option<Span>; WEBSOCKET_KEYS.len()],
    of_http: [Option<Span>; HTTP_KEYS.len()],
    join: Option<Span>,
}

impl ChatSpans {
    /// Those of a cohort that has one.
    pub(super) fn of(cohort: &mut Fields<'_>) -> Option<Self> {
        let chat = cohort.get("chat")?;
        let Value::Table(entries) = &chat.value else { return None };
        let mut fields = Fields::new(String::new(), Some(chat.span), entries);
        let template = fields.span_of("template");
        let of_xmpp = XMPP_KEYS.map(|key| fields.span_of(key));
        let words: &[Entry] = match fields.get("template").map(|node| &node.value) {
            Some(Value::Table(entries)) => entries,
            _ => &[],
        };
        let mut words = Fields::new(String::new(), template, words);
        let of_websocket = WEBSOCKET_KEYS.map(|key| words.span_of(key));
        let of_http = HTTP_KEYS.map(|key| words.span_of(key));
        let join = words.span_of("join");
        Some(Self { chat: chat.span, template, of_xmpp, of_websocket, of_http, join })
    }
}

/// A chat has an effect on targets that are one only, and each kind has keys of its own. `spans`:
/// of each cohort, and of its `chat`.
pub(super) fn check_target(
    reader: &mut Reader,
    scenario: &Scenario,
    spans: &[(Span, Option<ChatSpans>)],
) {
    for (cohort, (place, spans)) in scenario.crowd.iter().zip(spans) {
        let target = cohort.target.as_ref().unwrap_or(&scenario.target);
        let beside = cohort.role.as_ref().and_then(|role| role.chat.beside.as_deref());
        let plays = target.protocol().carriage() == Carriage::Http;
        let protocol = match (target.part(), beside) {
            (Part::Watch, Some(beside)) if plays => beside.protocol(),
            // Its page says where its chat is.
            (Part::Visit, None) => Protocol::Xmpp,
            (Part::Chat | Part::Visit, Some(_)) => {
                if let Some(spans) = spans {
                    let message = format!(
                        "`chat.url` has no effect: {} has its own chat",
                        target.protocol().name()
                    );
                    reader.fail(spans.chat, message, "remove url from chat");
                }
                continue;
            }
            (Part::Watch | Part::Publish | Part::Confer, _) | (Part::Chat, None) => {
                target.protocol()
            }
        };
        let template = spans.as_ref().and_then(|spans| spans.template);
        match (protocol, spans) {
            (Protocol::Chat, _) if template.is_none() => {
                let span = spans.as_ref().map_or(*place, |spans| spans.chat);
                let message = "`chat.template` is missing: it says what is spoken there";
                let help = "write for example [crowd.chat.template] with join = [\"JOIN {room}\"] \
                            and say = \"SAY {text}\", or url = \"xmpp+wss://…\"";
                reader.fail(span, message, help);
            }
            (Protocol::Chat, Some(spans)) => {
                has_no_effect(reader, "chat", (&XMPP_KEYS, &spans.of_xmpp), "chats of XMPP");
                let words = cohort.role.as_ref().and_then(|role| role.chat.template.as_ref());
                check_transport(reader, beside.unwrap_or(&target.endpoint), words, spans);
            }
            (_, Some(_)) if protocol.part() == Part::Chat => {
                if let Some(span) = template {
                    let message = "`chat.template` has no effect: the target speaks XMPP";
                    reader.fail(
                        span,
                        message,
                        "remove it, or write url = \"chat+wss://HOST/PATH\"",
                    );
                }
            }
            (protocol, Some(spans)) => {
                let message = format!("`chat` has no effect: {} is no chat", protocol.name());
                let help = match protocol {
                    Protocol::HttpVideo => {
                        "remove chat, or add chat.url = \"xmpp+wss://HOST/PATH?room=ROOM@SERVICE\" \
                         for viewers who are in it"
                    }
                    _ => OTHER_TARGET,
                };
                reader.fail(spans.chat, message, help);
            }
            (_, None) => {}
        }
    }
}

/// Keys that are written although only `whose` have a use for them.
fn has_no_effect(
    reader: &mut Reader,
    table: &str,
    (keys, spans): (&[&str], &[Option<Span>]),
    whose: &str,
) {
    let written = keys.iter().zip(spans).filter_map(|(key, span)| Some((key, (*span)?)));
    for (key, span) in written {
        let message = format!("`{table}.{key}` has no effect: only {whose} have it");
        reader.fail(span, message, format!("remove {key}"));
    }
}

/// What of a template has a use only over the other transport.
fn check_transport(
    reader: &mut Reader,
    endpoint: &Endpoint,
    words: Option<&ChatTemplate>,
    spans: &ChatSpans,
) {
    const TABLE: &str = "chat.template";
    if endpoint.is_event_stream() {
        // `binary = false` is what it is in any case.
        let [subprotocols, binary] = spans.of_websocket;
        let written = [subprotocols, binary.filter(|_| words.is_some_and(|words| words.binary))];
        let whose = "chats over WebSocket (chat+wss://…)";
        return has_no_effect(reader, TABLE, (&WEBSOCKET_KEYS, &written), whose);
    }
    const WHOSE: &str = "chats over server-sent events (chat+https://…)";
    has_no_effect(reader, TABLE, (&HTTP_KEYS, &spans.of_http), WHOSE);
    if words.is_some_and(|words| words.join.iter().any(|step| step.path.is_some())) {
        let message = format!("`{TABLE}.join`: `path` has no effect: only {WHOSE} have it");
        reader.fail(spans.join, message, "remove path");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::chat::{ChatMoment, ChatRenames, VcardPolicy};
    use crate::read::read_cohort;
    use crate::target::Place;

    const CHAT: &str = "xmpp+wss://h/ws?room=stage@room.h&domain=anon.h";

    fn read(url: &str, chat: &str) -> Result<Scenario, String> {
        read_cohort(url, &format!("chat = {{ {chat} }}"))
    }

    #[test]
    fn what_is_said_is_read_and_written() {
        let scenario = read(
            CHAT,
            r#"vcards = "all", every = "2m", history = 20, chat_states = true, nick_change = "30%", stream_management = false, origin = "https://a.example", seed = 7,
               moments = [{ at = "10m", share = 0.25, within = "5s" }, { at = "11m" }]"#
                .replace('\n', " ")
                .as_str(),
        );
        let role = scenario.unwrap().crowd[0].role.clone().unwrap();
        let within = Duration::from_secs(10);
        let second = ChatMoment { at: Duration::from_secs(660), share_milli: 1_000, within };
        assert_eq!(
            (role.chat.vcards, role.chat.every),
            (VcardPolicy::All, Some(Duration::from_secs(120)))
        );
        let renames = ChatRenames { share_milli: 300, within: Duration::from_secs(60) };
        assert_eq!((role.chat.renames, role.chat.stream_management), (Some(renames), false));
        assert_eq!((role.chat.moments[0].share_milli, role.chat.moments[1]), (250, second));
    }

    #[test]
    fn viewers_of_a_video_may_be_in_a_chat_too() {
        let hls = "http://127.0.0.1/a.m3u8";
        let scenario = read(hls, &format!("url = \"{CHAT}\", every = \"2m\"")).unwrap();
        let chat = scenario.crowd[0].role.clone().unwrap().chat;
        let place = chat.beside.map(|beside| beside.place);
        assert!(matches!(place, Some(Place::Xmpp { room, .. }) if room == "stage@room.h"));
        let error = read(hls, "url = \"http://127.0.0.1/\"").unwrap_err();
        assert!(error.contains("`crowd.chat.url` is HTTP video, not a chat"), "{error}");
        let error = read(CHAT, &format!("url = \"{CHAT}\"")).unwrap_err();
        assert!(error.contains("XMPP chat has its own chat"), "{error}");
    }

    #[test]
    fn what_has_no_effect_or_no_sense_is_an_error() {
        for (url, chat, expect) in [
            (
                "http://127.0.0.1/a.m3u8",
                r#"every = "2m""#,
                "`chat` has no effect: HTTP video is no chat",
            ),
            (CHAT, r#"every = "1ms""#, "less than 100 ms"),
            (CHAT, r#"vcards = "some""#, "not one of"),
            (CHAT, r#"template = { join = [], say = "{text}" }"#, "the target speaks XMPP"),
            ("chat+ws://h/irc", r#"every = "2m""#, "`chat.template` is missing"),
            (
                "chat+ws://h/irc",
                r#"vcards = "all", template = { join = [], say = "{text}" }"#,
                "`chat.vcards` has no effect: only chats of XMPP have it",
            ),
            (
                "chat+ws://h/irc",
                r#"template = { join = [], say = "{text}", post = { path = "/say" } }"#,
                "`chat.template.post` has no effect: only chats over server-sent events (chat+https://…) have it",
            ),
            (
                "chat+ws://h/irc",
                r#"template = { join = [{ send = "a", path = "/join" }], say = "{text}" }"#,
                "`chat.template.join`: `path` has no effect",
            ),
            (
                "chat+http://h/events",
                r#"template = { join = [], say = "{text}", binary = true }"#,
                "`chat.template.binary` has no effect: only chats over WebSocket (chat+wss://…) have it",
            ),
            (CHAT, r#"nick_change = "130%""#, "is more than 100 %"),
            (CHAT, r#"nick_change = "some""#, "a percentage such as"),
            (CHAT, r#"nick_change_within = "1m""#, "nobody changes a nickname"),
            (CHAT, "history = 5000", "history"),
            (CHAT, r#"origin = "https://a.example/path""#, "is not an origin"),
            (CHAT, r#"moments = "now""#, "is not a list"),
            (CHAT, "moments = [{ share = 0.5 }]", "at` is missing"),
            (CHAT, r#"moments = [{ at = "1m", share = 2 }]"#, "not a share from 0 to 1"),
            (CHAT, "loud = true", "loud"),
        ] {
            let error = read(url, chat).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
    }

    #[test]
    fn the_url_names_the_room_and_hides_the_password() {
        for (url, shown) in [
            (CHAT, "xmpp+wss://h/ws?room=stage@room.h&domain=anon.h"),
            ("xmpp+ws://a:hush@h:5280/ws?room=r@h&domain=h", "xmpp+ws://…@h:5280/ws?room=r@h"),
        ] {
            let scenario = read(url, r#"every = "2m""#).unwrap();
            assert!(scenario.to_toml().contains(shown), "{}", scenario.to_toml());
        }
        for url in [
            "xmpp+ws://h/ws",
            "xmpp+ws://h/ws?room=stage",
            "xmpp+ws://h/ws?room=a@b/c",
            "xmpp://h/ws?room=a@b",
        ] {
            let error = read(url, "").unwrap_err();
            assert!(error.contains("xmpp+ws"), "{error}");
        }
    }
}
