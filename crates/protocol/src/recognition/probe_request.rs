//! Requests that tell protocols apart.

use std::fmt;

use http::Method;
use throng_observation::Url;
use throng_observation::masked::masked;

/// A request.
pub enum ProbeRequest {
    /// By HTTP; of the body the beginning is read.
    Http {
        /// `OPTIONS` or `GET`.
        method: Method,
        /// `http:` or `https:`.
        url: Url,
    },
    /// An upgrade, and what is said then.
    WebSocket {
        /// `ws:` or `wss:`.
        url: Url,
        /// The subprotocol that is asked for.
        protocol: Option<&'static str>,
        /// What is said, by what was heard.
        dialogue: Dialogue,
    },
    /// `OPTIONS` of RTSP.
    Rtsp {
        /// `rtsp:` or `rtsps:`, without user info.
        url: String,
        /// Where its server is.
        place: (String, u16),
        /// Whether it is reached over TLS.
        is_secure: bool,
    },
}

/// What to do after the messages that were heard so far, from the first one on.
pub type Dialogue = Box<dyn Fn(&[String]) -> Turn + Send>;

/// The next turn of a dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Say this.
    Say(String),
    /// Hear more.
    Wait,
    /// Enough was heard.
    End,
}

impl ProbeRequest {
    /// A request for `url`.
    pub(super) fn get(url: Url) -> Self {
        Self::Http { method: Method::GET, url }
    }
}

impl fmt::Display for ProbeRequest {
    /// What is asked, for people; secrets of the URL are hidden.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { method, url } => write!(f, "{method} {url}"),
            Self::WebSocket { url, protocol: Some(protocol), .. } => {
                write!(f, "WebSocket {url} ({protocol})")
            }
            Self::WebSocket { url, protocol: None, .. } => {
                write!(f, "WebSocket {url}")
            }
            Self::Rtsp { url, .. } => write!(f, "OPTIONS {}", masked(url)),
        }
    }
}
