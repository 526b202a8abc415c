//! SRS: its HTTP API, which tells its version and its streams; they are watched by WHEP.

use serde_json::Value;
use throng_scenario::Protocol;
use url::form_urlencoded::byte_serialize;

use super::{Answer, Found, Given, Kind, ProbeRequest};
use crate::excerpt::excerpt;

/// Streams that are told.
const STREAMS_MAX: usize = 12;

pub(super) static KIND: Kind = Kind {
    name: "SRS",
    // Its URLs are of WHEP, which knows them by their scheme.
    protocols: &[],
    is_asked: Given::may_be_http,
    ask: |given| ProbeRequest::get(given.at_path("/api/v1/versions")),
    read,
    refine,
};

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let said = answer.json()?;
    let data = said.get("data").filter(|data| data.get("major").is_some_and(Value::is_u64))?;
    let version = data.get("version").and_then(Value::as_str)?;
    said.get("code").filter(|code| code.as_u64() == Some(0))?;
    let mut found = Found::new(Protocol::Whep, endpoint(given, "live", "STREAM"));
    found.server = Some(format!("SRS {}", excerpt(version)));
    found.to_name = Some("app and stream: nobody publishes now");
    Some((found, Some(ProbeRequest::get(given.at_path("/api/v1/streams/")))))
}

fn endpoint(given: &Given, app: &str, stream: &str) -> String {
    let [app, stream] =
        [app, stream].map(|name| byte_serialize(name.as_bytes()).collect::<String>());
    given.at("whep+http", &format!("/rtc/v1/whep/?app={app}&stream={stream}"))
}

fn refine(found: &mut Found, given: &Given, answer: &Answer) {
    let said = answer.json().unwrap_or_default();
    let all = said.get("streams").and_then(Value::as_array).map(Vec::as_slice);
    let is_published = |stream: &&Value| {
        stream.pointer("/publish/active").and_then(Value::as_bool).unwrap_or(false)
    };
    let mut is_first = true;
    for stream in all.unwrap_or_default().iter().filter(is_published).take(STREAMS_MAX) {
        let text = |path: &str| stream.pointer(path).and_then(Value::as_str);
        let (Some(app), Some(name)) = (text("/app"), text("/name")) else { continue };
        let codecs = [text("/video/codec"), text("/audio/codec")];
        let codecs: Vec<String> = codecs.into_iter().flatten().map(excerpt).collect();
        found.offers.push(format!("{}/{}: {}", excerpt(app), excerpt(name), codecs.join(", ")));
        if std::mem::take(&mut is_first) {
            found.url = endpoint(given, app, name);
            found.to_name = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::http;
    use super::*;

    const VERSIONS: &str = r#"{"code":0,"server":"vid-2u54s6r","service":"4f2b1l07","pid":"123","data":{"major":7,"minor":0,"revision":121,"version":"7.0.121"}}"#;
    const STREAMS: &str = r#"{"code":0,"server":"vid-2u54s6r","streams":[{"id":"vid-1","name":"gone","app":"live","publish":{"active":false}},{"id":"vid-2","name":"cam 1","vhost":"vid-9","app":"live","url":"/live/cam","clients":1,"publish":{"active":true,"cid":"x"},"video":{"codec":"H264","profile":"Main","level":"3.1","width":1280,"height":720},"audio":{"codec":"AAC","sample_rate":44100}}]}"#;

    #[test]
    fn the_first_stream_that_is_published_is_watched() {
        let given = Given::parse("http://h:1985").unwrap();
        let (mut found, further) = read(&given, &http("200", VERSIONS)).unwrap();
        assert_eq!(further.unwrap().to_string(), "GET http://h:1985/api/v1/streams/");
        assert_eq!(found.url, "whep+http://h:1985/rtc/v1/whep/?app=live&stream=STREAM");
        assert!(found.to_name.is_some());
        refine(&mut found, &given, &http("200", STREAMS));
        assert_eq!(found.url, "whep+http://h:1985/rtc/v1/whep/?app=live&stream=cam+1");
        assert_eq!((found.to_name, found.server.as_deref()), (None, Some("SRS 7.0.121")));
        assert_eq!(found.offers, ["live/cam 1: H264, AAC"]);
    }

    #[test]
    fn versions_of_others_are_not_those_of_srs() {
        let given = Given::parse("http://h:1985").unwrap();
        for body in ["{}", "[]", r#"{"code":0,"data":{"version":"1"}}"#, "<html></html>"] {
            assert!(read(&given, &http("200", body)).is_none(), "{body}");
        }
    }
}
