//! PeerTube: its configuration, which every page asks for, and the video of a watch page.

use serde_json::Value;
use throng_observation::units;
use throng_scenario::Protocol;

use super::{Answer, Found, Given, Kind, ProbeRequest};
use crate::excerpt::excerpt;

/// An id of a video is no longer (a UUID has 36).
const ID_LETTERS_MAX: usize = 64;

pub(super) static KIND: Kind = Kind {
    name: "PeerTube",
    protocols: &[Protocol::PeerTube],
    is_asked: Given::may_be_http,
    ask: |given| ProbeRequest::get(given.at_path("/api/v1/config")),
    read,
    refine,
};

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let said = answer.json()?;
    let version = said.get("serverVersion").and_then(Value::as_str)?;
    said.get("instance").and_then(Value::as_object)?;
    let (url, video) = match video(given) {
        Some(video) => (given.with("peertube+http"), Some(video)),
        None => (given.at("peertube+http", "/w/ID"), None),
    };
    let mut found = Found::new(Protocol::PeerTube, url);
    found.server = Some(format!("PeerTube {}", excerpt(version)));
    if video.is_none() {
        found.to_name = Some("the id of the video, from the URL of its watch page");
    }
    let further = video.map(|id| ProbeRequest::get(given.at_path(&format!("/api/v1/videos/{id}"))));
    Some((found, further))
}

/// The video of a watch page: `/w/ID`, `/videos/watch/ID`.
fn video(given: &Given) -> Option<String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let parts = given.parts();
    let id = match parts.as_slice() {
        ["w", id] | ["videos", "watch", id] => *id,
        _ => return None,
    };
    (id.len() <= ID_LETTERS_MAX && id.bytes().all(is_letter)).then(|| id.to_owned())
}

fn refine(found: &mut Found, _: &Given, answer: &Answer) {
    let Some(said) = answer.json() else { return };
    found.is_live = said.get("isLive").and_then(Value::as_bool);
    let name = said.get("name").and_then(Value::as_str).unwrap_or_default();
    let length = said.get("duration").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    let length = length.map(|seconds| format!(", {}", units::duration_ms(seconds * 1e3)));
    found.offers.push(format!("a video, {}{}", excerpt(name), length.unwrap_or_default()));
}

#[cfg(test)]
mod tests {
    use super::super::tests::http;
    use super::*;

    /// The beginning of what PeerTube 6.3.3 answers.
    const CONFIG: &str = r#"{"client":{"videos":{}},"instance":{"name":"Stage","shortDescription":""},"serverVersion":"6.3.3","serverCommit":"x","signup":{"allowed":false}}"#;

    #[test]
    fn a_watch_page_names_its_video_and_the_front_page_none() {
        let given = Given::parse("https://h/w/kEsjeaVCtdtvQpW4d9ndbm").unwrap();
        let (mut found, further) = read(&given, &http("200", CONFIG)).unwrap();
        assert_eq!(found.url, "peertube+https://h/w/kEsjeaVCtdtvQpW4d9ndbm");
        assert_eq!((found.server.as_deref(), found.to_name), (Some("PeerTube 6.3.3"), None));
        let asked = further.unwrap().to_string();
        assert_eq!(asked, "GET https://h/api/v1/videos/kEsjeaVCtdtvQpW4d9ndbm");
        let video = r#"{"id":7,"name":"An evening","isLive":true,"duration":0}"#;
        refine(&mut found, &given, &http("200", video));
        assert_eq!(
            (found.is_live, found.offers.as_slice()),
            (Some(true), &["a video, An evening".to_owned()][..])
        );
        let front = Given::parse("h:9000").unwrap();
        let (found, further) = read(&front, &http("200", CONFIG)).unwrap();
        assert_eq!(found.url, "peertube+http://h:9000/w/ID");
        assert!(found.to_name.is_some() && further.is_none());
    }

    #[test]
    fn another_configuration_is_none_of_peertube() {
        let given = Given::parse("https://h/w/x").unwrap();
        for (status, body) in [("404", CONFIG), ("200", "{}"), ("200", r#"{"serverVersion":"1"}"#)]
        {
            assert!(read(&given, &http(status, body)).is_none(), "{body}");
        }
    }
}
