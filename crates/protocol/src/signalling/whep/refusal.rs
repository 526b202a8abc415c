//! Turns an unexpected response into a failure with the server's own explanation.

use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use throng_observation::{Failure, FailureReason};

use super::super::sections::codec_to_try;
use super::super::server_message;
use super::config::Flow;
use crate::excerpt::retry_after;
use crate::participant::Response;

/// RFC 9457 problem details, or the fields of other servers: MediaMTX `error`, many `message`.
#[derive(Deserialize)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
    error: Option<String>,
    message: Option<String>,
}

/// The failure of `request` (such as `POST http://host/path`) by the status of its response.
pub(super) fn failure(request: &str, response: &Response) -> Failure {
    let status = response.head.status;
    let mut detail = format!("{request}: {status}{}", retry_after(&response.head.headers));
    let words = explanation(&response.body);
    if !words.is_empty() {
        detail.push_str(&format!(": {words}"));
    }
    Failure::new(FailureReason::HttpStatus(status.as_u16()), detail)
}

/// The remedy for publishers that share a stream's name.
const OWN_STREAM: &str =
    "give each publisher a stream of its own, by {n} in the URL's path or query";
/// Text of servers whose stream already has a publisher: SRS `1028: StreamBusy`, MediaMTX `someone
/// is already publishing`.
const BUSY: [&str; 4] = ["busy", "already", "in use", "occupied"];
/// Text of servers that support nothing of the offer: SRS `5018: RtcSdpExchange`, MediaMTX `codec …
/// not supported`.
const CODECS: [&str; 4] = ["codec", "sdp", "payload", "no media"];

/// A remedy after `offer` was refused with `answer`, or without an HTTP response (`None`), if these
/// suggest one.
pub(super) fn remedy(flow: Flow, offer: &str, answer: Option<&Response>) -> Option<String> {
    let Some(answer) = answer else {
        // SRS before 7.0.121 closed the connection for any problem with an offer.
        let may_be = match (flow, codec_to_try(offer)) {
            (Flow::Play, _) => "of the stream: is it published".to_owned(),
            (Flow::Publish, None) => format!("of the stream: {OWN_STREAM}"),
            (Flow::Publish, Some(codec)) => {
                format!("of the codec: {codec}; or of the stream: {OWN_STREAM}")
            }
        };
        return Some(format!(
            "some servers (SRS before 7.0.121) do so because {may_be}; the reason is in their log"
        ));
    };
    if flow == Flow::Play {
        return None;
    }
    let words = explanation(&answer.body).to_ascii_lowercase();
    let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
    match answer.head.status {
        StatusCode::CONFLICT => Some(OWN_STREAM.to_owned()),
        _ if says(&BUSY) => Some(OWN_STREAM.to_owned()),
        StatusCode::NOT_ACCEPTABLE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::UNPROCESSABLE_ENTITY => codec_to_try(offer),
        _ if says(&CODECS) => codec_to_try(offer),
        _ => None,
    }
}

fn explanation(body: &[u8]) -> String {
    // An excerpt needs no more than this, however long the body is.
    let head = body.get(..4096).unwrap_or(body);
    if let Ok(Problem { title, detail, error, message }) = serde_json::from_slice(head) {
        let words: Vec<String> = [title, detail, error, message].into_iter().flatten().collect();
        if !words.is_empty() {
            return server_message::excerpt(&words.join(": "));
        }
    }
    server_message::excerpt(&String::from_utf8_lossy(head))
}

/// A header field as text.
pub(super) fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
