//! Which protocol answers at a URL: a few requests, each of which a client of that protocol makes,
//! and what their answers tell.
//!
//! ```text
//! URL -> Given -> ProbeRequest -> Answer -> Found
//! ```
//! A file for each protocol has what is asked and how the answer is read; both are pure. The
//! [`Prober`] is the participant that asks, one protocol after the other, until one is found.

use std::fmt;

use throng_observation::masked::masked;
use throng_scenario::Protocol;

mod answer;
mod given;
mod probe_request;
mod prober;

mod http_video;
mod janus;
mod livekit;
mod oven_media_engine;
mod peertube;
mod rtsp;
mod srs;
mod whep;
mod xmpp;

#[cfg(test)]
mod tests;

pub use self::answer::Answer;
pub use self::given::Given;
pub use self::probe_request::{Dialogue, ProbeRequest, Turn};
pub use self::prober::{CONNECT_WITHIN, Prober, Tried};

/// What an answer tells, and what to ask for more; `None`: it is another protocol's.
type Read = fn(&Given, &Answer) -> Option<(Found, Option<ProbeRequest>)>;

/// What is asked of a server to know a protocol, and how its answers are read.
struct Kind {
    /// Its name for people.
    name: &'static str,
    /// The protocols that it tells.
    protocols: &'static [Protocol],
    /// Whether it is asked where the URL names no protocol of throng.
    is_asked: fn(&Given) -> bool,
    ask: fn(&Given) -> ProbeRequest,
    read: Read,
    /// Adds what the answer to the second request tells.
    refine: fn(&mut Found, &Given, &Answer),
}

/// All of them, in the order in which they are asked.
static KINDS: [&Kind; 9] = [
    &whep::KIND,
    &http_video::KIND,
    &peertube::KIND,
    &srs::KIND,
    &livekit::KIND,
    &janus::KIND,
    &xmpp::KIND,
    &oven_media_engine::KIND,
    &rtsp::KIND,
];

/// Of kinds that ask once.
fn refines_nothing(_: &mut Found, _: &Given, _: &Answer) {}

/// A protocol that answered, and what its server said. `Debug` prints no secret of its URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Found {
    /// The protocol.
    pub protocol: Protocol,
    /// The URL of a target, as a scenario has it; secrets that the user's URL has are in it.
    pub url: String,
    /// The server's name and version, in its own words.
    pub server: Option<String>,
    /// What it offers, in words of which some are the server's: renditions, streams, codecs.
    pub offers: Vec<String>,
    /// What it asks of who comes.
    pub access: Access,
    /// Whether video over HTTP is a live stream; `None`: it was not told, or is no such video.
    pub is_live: Option<bool>,
    /// The part of [`Self::url`] that nobody named and that the user has to.
    pub to_name: Option<&'static str>,
}

/// What a server asks of who comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing, as far as was seen.
    Open,
    /// A token.
    Token,
    /// A token that is made with an API key.
    ApiKey,
    /// User name and password.
    Account,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, url, server, offers, access, is_live, to_name } = self;
        f.debug_struct("Found")
            .field("protocol", protocol)
            .field("url", &masked(url))
            .field("server", server)
            .field("offers", offers)
            .field("access", access)
            .field("is_live", is_live)
            .field("to_name", to_name)
            .finish()
    }
}

impl Found {
    /// A protocol at `url`, of which nothing else is known.
    fn new(protocol: Protocol, url: String) -> Self {
        Self {
            protocol,
            url,
            server: None,
            offers: Vec::new(),
            access: Access::Open,
            is_live: None,
            to_name: None,
        }
    }
}

impl Given {
    /// The kinds to ask, in order: those of the scheme, or all that may answer at such a URL.
    fn kinds(&self) -> Vec<&'static Kind> {
        let is_meant = |kind: &&'static Kind| match self.scheme() {
            Some(scheme) => names(kind, scheme),
            None => (kind.is_asked)(self),
        };
        let mut kinds: Vec<&Kind> = KINDS.into_iter().filter(is_meant).collect();
        if self.has_rtsp_port() {
            kinds.sort_by_key(|kind| !kind.protocols.contains(&Protocol::Rtsp));
        }
        kinds
    }

    /// What the scheme of the URL names, where it names a protocol and the URL is complete.
    #[must_use]
    pub fn named(&self) -> Option<Found> {
        self.complete().map(|(protocol, url)| Found::new(protocol, url))
    }
}

/// Whether `scheme` is one of the protocols of `kind`.
fn names(kind: &Kind, scheme: &str) -> bool {
    kind.protocols.iter().any(|protocol| protocol.schemes().contains(&scheme))
}
