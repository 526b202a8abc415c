//! A response that is not the one wanted, as a failure that repeats the server's own explanation.

use http::{HeaderMap, header};
use serde::Deserialize;
use throng_observation::{Failure, FailureReason};

use super::super::said;
use crate::participant::Response;

/// RFC 9457 problem details.
#[derive(Deserialize)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
}

/// The failure of `request` (such as `POST http://host/path`) by the status of its response.
pub(super) fn failure(request: &str, response: &Response) -> Failure {
    let status = response.head.status;
    let mut detail = format!("{request}: {status}");
    if let Some(wait) = text(&response.head.headers, header::RETRY_AFTER) {
        detail.push_str(&format!(", Retry-After: {}", said::excerpt(wait)));
    }
    let words = explanation(&response.body);
    if !words.is_empty() {
        detail.push_str(&format!(": {words}"));
    }
    Failure::new(FailureReason::HttpStatus(status.as_u16()), detail)
}

fn explanation(body: &[u8]) -> String {
    // An excerpt needs no more than this, however long the body is.
    let head = body.get(..4096).unwrap_or(body);
    if let Ok(Problem { title, detail }) = serde_json::from_slice(head) {
        let words: Vec<String> = [title, detail].into_iter().flatten().collect();
        if !words.is_empty() {
            return said::excerpt(&words.join(": "));
        }
    }
    said::excerpt(&String::from_utf8_lossy(head))
}

/// A header field as text.
pub(super) fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
