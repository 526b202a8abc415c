//! Parses server messages with bounds: a message that is too big, of the wrong kind or malformed
//! becomes a failure that shows its beginning.

use serde::de::DeserializeOwned;
use throng_observation::{Failure, FailureReason};

pub(super) use crate::excerpt::excerpt;
use crate::participant::Message;

/// The largest signalling message or body accepted. Offers of a hundred media sections stay under
/// 300 kB.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// How many candidates, or ICE servers, one message may carry; the rest is dropped.
pub(super) const LIST_MAX: usize = 64;

/// The failure of a session whose `server` broke its protocol.
pub(super) fn broken(server: &str, what: impl std::fmt::Display) -> Failure {
    Failure::new(FailureReason::Protocol, format!("{server}: {what}"))
}

/// The JSON object in a WebSocket message.
///
/// # Errors
/// [`FailureReason::Protocol`] when the message is binary, over 1 MiB, not JSON, or not shaped as
/// `T`.
pub(super) fn json<T: DeserializeOwned>(server: &str, message: &Message) -> Result<T, Failure> {
    let text = match message {
        Message::Text(text) => text,
        Message::Binary(bytes) => {
            return Err(broken(
                server,
                format!("a binary message of {} bytes instead of text", bytes.len()),
            ));
        }
    };
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(broken(
            server,
            format!("a message of {} bytes; the limit is {MESSAGE_BYTES_MAX}", text.len()),
        ));
    }
    // Errors of serde repeat the value that they did not expect.
    let malformed = |error: serde_json::Error| {
        let why = excerpt(&error.to_string());
        broken(server, format!("malformed JSON message ({why}): {}", excerpt(text)))
    };
    serde_json::from_str(text).map_err(malformed)
}

/// Returns `sdp` if it looks like a session description (RFC 8866 begins with `v=0`).
///
/// # Errors
/// [`FailureReason::Protocol`] with an excerpt otherwise.
pub(super) fn session_description(
    server: &str,
    what: &str,
    sdp: String,
) -> Result<String, Failure> {
    if sdp.len() > MESSAGE_BYTES_MAX {
        return Err(broken(
            server,
            format!("{what} has {} bytes; the limit is {MESSAGE_BYTES_MAX}", sdp.len()),
        ));
    }
    if sdp.trim_start().starts_with("v=0") && sdp.contains("\nm=") {
        Ok(sdp)
    } else {
        Err(broken(server, format!("{what} is not a session description: {}", excerpt(&sdp))))
    }
}

/// Normalises a candidate of a server, which may lack the prefix or have `a=`, to `candidate:…`;
/// `None` for an empty one, which is end-of-candidates (RFC 8838 §8).
pub(super) fn candidate(written: &str) -> Option<String> {
    let written = written.trim();
    let value = written.strip_prefix("a=").unwrap_or(written);
    match value {
        "" | "end-of-candidates" => None,
        value if value.starts_with("candidate:") => Some(value.to_owned()),
        value => Some(format!("candidate:{value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_brought_to_one_form() {
        for (written, expect) in [
            (
                "candidate:1 1 udp 1 10.0.0.1 9 typ host",
                Some("candidate:1 1 udp 1 10.0.0.1 9 typ host"),
            ),
            ("a=candidate:1 1 udp", Some("candidate:1 1 udp")),
            ("1 1 udp 1 10.0.0.1 9 typ host", Some("candidate:1 1 udp 1 10.0.0.1 9 typ host")),
            ("", None),
            ("end-of-candidates", None),
        ] {
            assert_eq!(candidate(written).as_deref(), expect, "{written}");
        }
    }

    #[test]
    fn messages_out_of_bounds_are_named_failures() {
        let huge = Message::Text(format!("\"{}\"", "x".repeat(MESSAGE_BYTES_MAX)));
        for (message, expect) in [
            (Message::Binary(vec![1, 2, 3]), "binary message of 3 bytes"),
            (huge, "the limit is 1048576"),
            (Message::Text("{\"a\":".into()), "malformed JSON message"),
            (Message::Text("[".repeat(100_000)), "malformed JSON message"),
        ] {
            let failure = json::<serde_json::Value>("server", &message).unwrap_err();
            assert_eq!(failure.reason, FailureReason::Protocol);
            assert!(failure.detail.contains(expect) && failure.detail.len() < 1_000, "{failure}");
        }
    }
}
