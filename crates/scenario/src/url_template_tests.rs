//! The values of variables, where they are allowed, and that no displayed URL contains a secret.

use super::*;
use crate::target::{JanusId, Place, Target};

fn target(text: &str) -> Target {
    Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn values(number: u32) -> UrlValues<'static> {
    UrlValues { number, stream: number % 3, room: 1, cohort: "front row", random: Some(0xabc) }
}

#[test]
fn each_participant_has_a_url_of_its_own() {
    for (text, expect) in [
        ("whip+http://h/live-{n}/whip", "http://h/live-7/whip"),
        (
            "whip+http://h:1985/rtc/v1/whip/?app=live&stream={n}",
            "http://h:1985/rtc/v1/whip/?app=live&stream=7",
        ),
        ("whep+http://h/{stream}/whep?id={random}", "http://h/1/whep?id=0000000000000abc"),
        ("whep+https://h/{cohort}/{room}?x={cohort}", "https://h/front%20row/2?x=front%20row"),
        ("ws://h:3333/app/{n}{n}", "ws://h:3333/app/77"),
        ("whep+http://h/plain", "http://h/plain"),
    ] {
        assert_eq!(target(text).endpoint_of(&values(7)).url.in_clear().as_str(), expect, "{text}");
    }
    let room = |text: &str| match target(text).endpoint_of(&values(7)).place {
        Place::JanusVideoRoom { id, .. } | Place::Janus { id, .. } => id,
        Place::LiveKit { room } => JanusId::Text(room),
        other => panic!("{other:?}"),
    };
    assert_eq!(room("janus+ws://h/streaming/1{stream}"), JanusId::Number(11));
    assert_eq!(room("janus+ws://h/videoroom/{room}"), JanusId::Number(2));
    assert_eq!(room("livekit+ws://h/lesson-{room}"), JanusId::Text("lesson-2".into()));
    // If the URL has no room variable, rooms are numbered from the URL's own room.
    assert_eq!(room("livekit+ws://h/lesson"), JanusId::Text("lesson-2".into()));
    assert_eq!(room("livekit+ws://h/{cohort}"), JanusId::Text("front row-2".into()));
}

#[test]
fn variables_are_allowed_in_path_and_query_only_and_unknown_ones_list_the_known_ones() {
    for (text, expect) in [
        ("whep+http://{n}/x", "scheme, host or port"),
        ("whep+http://h{n}.example/x", "scheme, host or port"),
        ("whep+http://h:80{n}/x", "scheme, host or port"),
        ("whep+http://u{n}@h/x", "scheme, host or port"),
        ("whep+http:///{n}/x", "scheme, host or port"),
        ("whep+http://\\{n}/x", "scheme, host or port"),
        ("whe{n}+http://h/x", "scheme, host or port"),
        ("whep+http://h/{nr}", "unknown variable `{nr}`"),
        ("whep+http://h/{strean}", "did you mean {stream}?"),
        ("whep+http://h/{N}", "write {n} (the participant's number"),
        ("whep+http://h/x?a={", "does not belong to a variable"),
        ("whep+http://h/x?a=}", "%7B or %7D"),
        ("whep+http://h/{{n}}", "does not belong to a variable"),
    ] {
        let error = Target::parse(text).expect_err(text).to_string();
        assert!(error.contains(expect), "{text}: {error}");
    }
}

#[test]
fn a_displayed_url_keeps_its_variables_and_no_secret_and_parses_again() {
    for (text, expect) in [
        ("whip+http://h/a{n}", "whip+http://h/a{n}"),
        (
            "whip+http://joe:hunter2@h/rtc/?app=live&stream=cam-{n}&secret=hunter2",
            "whip+http://…@h/rtc/?app=live&stream=cam-{n}&secret=…",
        ),
        ("whep+http://h/x?token=hunter2{n}#hunter2", "whep+http://h/x?token=…{n}"),
        ("whep+http://h/a@{n}?hunter2", "whep+http://h/a@{n}?…"),
        ("whep+http://h/id={n}/hmac=hunter2", "whep+http://h/id={n}/hmac=…"),
        ("publish+rtmp://h/live/a://hunter2{n}", "publish+rtmp://h/live/a://…{n}"),
        (
            "janus+ws://h/streaming/{n}?path=/p&pin=hunter2",
            "janus+ws://h/streaming/{n}?path=/p&pin=…",
        ),
    ] {
        let target = target(text);
        assert_eq!(target.display(), expect);
        assert_eq!(Target::parse(expect).map(|again| again.display()).as_deref(), Ok(expect));
        assert!(!format!("{:?}", target.template).contains("hunter2"));
    }
    let shown = target("whep+http://h/{n}?id=x{n}&r={random}")
        .shown_of(&UrlValues { random: None, ..values(7) });
    assert_eq!(shown.as_deref(), Some("whep+http://h/7?id=x7&r={random}"));
    assert_eq!(target("whep+http://h/x").shown_of(&values(7)), None);
}

#[test]
fn braces_around_another_word_than_a_variable_hide_no_secret() {
    for (text, expect) in [
        ("http://h/x?jwt={hunter2}", "http://h/x?jwt=…"),
        ("http://h/x?a={hunter2}&b={n}", "http://h/x?a=…&b={n}"),
        ("http://h/x?a={n}{hunter2", "http://h/x?a={n}…"),
        ("http://h/x?ctx={\"sid\":\"hunter2\"}", "http://h/x?ctx=…"),
        ("http://h/x?as={nick}", "http://h/x?as={nick}"),
    ] {
        assert_eq!(masked_url(text, WITH_NAMES), expect);
    }
    let page = "http://h/x?v=1&room={n}&jwt={hunter2}&{hunter2}";
    assert_eq!(masked_url(page, OF_PAGES), "http://h/x?v=1&room=…&jwt=…&…");
}
