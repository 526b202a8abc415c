//! What the answer of a collector means.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// The longest wait that a collector can ask for.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// Why a request did not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// In words of throng: what others say may repeat a secret.
    pub(super) why: String,
    /// Whether the same may be sent again.
    pub(super) may_repeat: bool,
    /// How long the collector wants to be left alone.
    pub(super) wait: Option<Duration>,
}

impl Failure {
    /// Nobody answered.
    pub(super) fn unanswered(why: impl Into<String>) -> Self {
        Self { why: why.into(), may_repeat: true, wait: None }
    }

    fn refused(why: String) -> Self {
        Self { why, may_repeat: false, wait: None }
    }
}

/// Judges the head of an answer, as the protocol says which statuses are to be tried again.
pub(super) fn judge(status: StatusCode, headers: &HeaderMap) -> Result<(), Failure> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if status.is_redirection() {
        return Err(Failure::refused(format!(
            "it answers {status}; redirects are not followed: name the URL that answers"
        )));
    }
    if status.is_success() {
        let is_page = text(CONTENT_TYPE).to_ascii_lowercase().starts_with("text/html");
        let page = || Failure::refused("it answers with a web page: that is no collector".into());
        return if is_page { Err(page()) } else { Ok(()) };
    }
    if matches!(status.as_u16(), 429 | 502 | 503 | 504) {
        let wait = text(RETRY_AFTER).parse().ok().map(Duration::from_secs);
        let wait = wait.map(|wait| wait.min(WAIT_MAX));
        return Err(Failure { wait, ..Failure::unanswered(format!("it answers {status}")) });
    }
    let help = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; give its key in OTEL_EXPORTER_OTLP_HEADERS"
        }
        StatusCode::NOT_FOUND => "; give its URL without /v1/metrics",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "; it must take OTLP in JSON",
        _ => "",
    };
    Err(Failure::refused(format!("it answers {status}{help}")))
}

/// How many of the items a collector did not take, by the body of a good answer.
pub(super) fn rejected(body: &[u8]) -> u64 {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return 0 };
    let Some(partial) = answer.get("partialSuccess") else { return 0 };
    let counts = ["rejectedDataPoints", "rejectedSpans"].iter().filter_map(|key| {
        let count = partial.get(key)?;
        // A whole number of 64 bits is a string there, and may be a number.
        count.as_u64().or_else(|| count.as_str()?.parse().ok())
    });
    counts.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn statuses_are_tried_again_as_the_protocol_says() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        for (status, expect) in [
            (200, None),
            (202, None),
            (301, Some((false, None))),
            (400, Some((false, None))),
            (401, Some((false, None))),
            (404, Some((false, None))),
            (429, Some((true, Some(7)))),
            (500, Some((false, None))),
            (502, Some((true, Some(7)))),
            (503, Some((true, Some(7)))),
            (504, Some((true, Some(7)))),
        ] {
            let judged = judge(StatusCode::from_u16(status).unwrap(), &headers).err();
            let judged = judged.map(|why| (why.may_repeat, why.wait.map(|wait| wait.as_secs())));
            assert_eq!(judged, expect, "{status}");
        }
        headers.insert(RETRY_AFTER, HeaderValue::from_static("99999999"));
        let asked = judge(StatusCode::SERVICE_UNAVAILABLE, &headers).unwrap_err();
        assert_eq!(asked.wait, Some(WAIT_MAX));
    }

    #[test]
    fn a_web_page_is_no_collector() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("Text/HTML; charset=utf-8"));
        let why = judge(StatusCode::OK, &headers).unwrap_err();
        assert!(why.why.contains("web page") && !why.may_repeat, "{why:?}");
    }

    #[test]
    fn a_partial_success_counts_what_was_not_taken() {
        for (body, expect) in [
            ("", 0),
            ("{}", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"old"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedDataPoints":12}}"#, 12),
            (r#"{"partialSuccess":{"rejectedSpans":-1}}"#, 0),
            ("nonsense", 0),
            ("[1]", 0),
        ] {
            assert_eq!(rejected(body.as_bytes()), expect, "{body}");
        }
        assert_eq!(rejected(b"\xff\x00"), 0);
    }
}
