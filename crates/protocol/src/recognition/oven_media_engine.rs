//! OvenMediaEngine: its signalling, by which it offers a stream, or says that there is none.
//! Nothing is answered to the offer.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use throng_scenario::Protocol;

use super::{Answer, Found, Given, Kind, ProbeRequest, Turn, refines_nothing};
use crate::excerpt::excerpt;

/// Formats that repeat or repair media (RFC 4588, RFC 2198, RFC 5109, RFC 8627).
const NOT_MEDIA: [&str; 4] = ["rtx", "red", "ulpfec", "flexfec-03"];

pub(super) static KIND: Kind = Kind {
    name: "OvenMediaEngine",
    protocols: &[Protocol::OvenMediaEngine],
    // Application, stream, and perhaps a playlist.
    is_asked: |given| (2..=3).contains(&given.parts().len()),
    ask: |given| ProbeRequest::WebSocket {
        url: given.web_socket(given.url().clone()),
        protocol: None,
        dialogue: Box::new(|heard| match heard {
            [] => Turn::Say(json!({ "command": "request_offer" }).to_string()),
            _ => Turn::End,
        }),
    },
    read,
    refine: refines_nothing,
};

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let Answer::WebSocket { heard, .. } = answer else { return None };
    let said: Value = serde_json::from_str(heard.first()?).ok()?;
    let code = said.get("code").and_then(Value::as_i64)?;
    let mut found = Found::new(Protocol::OvenMediaEngine, given.with("ws"));
    found.server = Some("OvenMediaEngine".to_owned());
    match said.pointer("/sdp/sdp").and_then(Value::as_str) {
        Some(offer) if said.get("command").and_then(Value::as_str) == Some("offer") => {
            found.offers.push(format!("offers {}", codecs(offer).join(", ")));
        }
        Some(_) | None => {
            let error = said.get("error").and_then(Value::as_str)?;
            found.offers.push(format!("no offer now: code {code}, {}", excerpt(error)));
        }
    }
    Some((found, None))
}

/// The codecs of a description.
fn codecs(sdp: &str) -> Vec<String> {
    let maps = sdp.lines().filter_map(|line| line.trim().strip_prefix("a=rtpmap:"));
    let names = maps.filter_map(|map| map.split_once(' ')?.1.split('/').next());
    let names =
        names.filter(|name| !NOT_MEDIA.iter().any(|other| name.eq_ignore_ascii_case(other)));
    names.map(excerpt).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(said: &str) -> Option<Found> {
        let answer = Answer::WebSocket { protocol: None, heard: vec![said.to_owned()] };
        Some(read(&Given::parse("ws://h:3333/app/stream").unwrap(), &answer)?.0)
    }

    #[test]
    fn an_offer_tells_the_codecs_and_a_refusal_that_there_is_no_stream() {
        let offer = r#"{"command":"offer","id":506764844,"peer_id":0,"code":200,"sdp":{"type":"offer","sdp":"v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 98 99\r\na=rtpmap:98 H264/90000\r\na=rtpmap:99 rtx/90000\r\nm=audio 9 UDP/TLS/RTP/SAVPF 110\r\na=rtpmap:110 OPUS/48000/2\r\n"},"candidates":[]}"#;
        let playing = found(offer).unwrap();
        assert_eq!(playing.url, "ws://h:3333/app/stream");
        assert_eq!(playing.offers, ["offers H264, OPUS"]);
        let refused = found(r#"{"code":404,"error":"Cannot create offer"}"#).unwrap();
        assert_eq!(refused.offers, ["no offer now: code 404, Cannot create offer"]);
        for other in ["{}", "hello", r#"{"code":0}"#, "[1]"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
