//! What servers answer to requests that tell protocols apart.

use std::fmt;

use http::header::{CONTENT_TYPE, HeaderName, LOCATION, SERVER};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::excerpt::excerpt;
use crate::participant::ChannelError;

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// By HTTP.
    Http {
        /// The status.
        status: StatusCode,
        /// The header fields.
        headers: HeaderMap,
        /// The beginning of the body.
        body: Vec<u8>,
        /// Whether that is the whole body.
        is_whole: bool,
    },
    /// The WebSocket opened.
    WebSocket {
        /// The subprotocol that the server chose.
        protocol: Option<String>,
        /// Its messages, in order.
        heard: Vec<String>,
    },
    /// By RTSP.
    Rtsp {
        /// The status.
        status: u16,
        /// `Server`.
        server: Option<String>,
        /// `Public`: the methods that it knows.
        methods: Option<String>,
    },
    /// There was none.
    Nothing(ChannelError),
}

impl Answer {
    /// The body of a response of success that is JSON.
    pub(super) fn json(&self) -> Option<Value> {
        match self {
            Self::Http { status, body, .. } if status.is_success() => {
                serde_json::from_slice(body).ok()
            }
            Self::Http { .. } | Self::WebSocket { .. } | Self::Rtsp { .. } | Self::Nothing(_) => {
                None
            }
        }
    }
}

/// The text of a header field.
pub(super) fn field(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl fmt::Display for Answer {
    /// For people: what a server says in it is short and on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { status, headers, .. } => {
                write!(f, "HTTP {status}")?;
                let said = [(CONTENT_TYPE, ""), (SERVER, "Server: "), (LOCATION, "Location: ")];
                said.into_iter().try_for_each(|(name, label)| match field(headers, name) {
                    Some(value) => write!(f, ", {label}{}", excerpt(value)),
                    None => Ok(()),
                })
            }
            Self::WebSocket { heard, .. } => match heard.first() {
                Some(first) => write!(f, "it opened, and said {}", excerpt(first)),
                None => f.write_str("it opened, and nothing was said"),
            },
            Self::Rtsp { status, .. } => write!(f, "RTSP {status}"),
            Self::Nothing(why) => why.fmt(f),
        }
    }
}
