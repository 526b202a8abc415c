//! The configuration of a WHEP player or WHIP publisher: endpoint, credentials, allowed redirects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use throng_observation::Url;
use throng_scenario::IpProtocol;

use super::super::response_deadline::ANSWER_WITHIN;
use super::super::server_message;
use crate::factory::{TargetFactory, named_address};
use crate::participant::Why;

/// Which of the two protocols is used. They differ in which side may offer, and in their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// WHEP: receives media; a server may answer with an offer of its own.
    #[default]
    Play,
    /// WHIP (RFC 9725): sends media; only the publisher offers.
    Publish,
}

impl Flow {
    /// The protocol's name.
    pub(super) fn server(self) -> &'static str {
        match self {
            Self::Play => "WHEP",
            Self::Publish => "WHIP",
        }
    }

    pub(super) fn awaits_post(self) -> Why {
        match self {
            Self::Play => "WHEP: the response to POST",
            Self::Publish => "WHIP: the response to POST",
        }
    }

    pub(super) fn awaits_goodbye(self) -> Why {
        match self {
            Self::Play => "WHEP: the goodbye",
            Self::Publish => "WHIP: the goodbye",
        }
    }
}

/// Whether a URL that the server names (redirect, session URL) may be requested. The driver checks
/// addresses again when it connects; this avoids the request.
pub type MayReach = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// The endpoint, and how to use it.
#[derive(Clone)]
pub struct Config {
    /// The endpoint, `http:` or `https:`.
    pub url: Url,
    /// Whether to play or to publish.
    pub flow: Flow,
    /// Bearer token (RFC 6750), sent with every request to the origin of the endpoint.
    pub token: Option<String>,
    /// Which URLs may be requested.
    pub may_reach: MayReach,
    /// How long the server may take for one response.
    pub answer_within: Duration,
}

impl Config {
    /// That of a run's players and publishers at `url`.
    pub(crate) fn of(factory: &TargetFactory, url: &Url) -> Self {
        let mut config = Self::new(url.clone());
        config.token.clone_from(&factory.token);
        config.answer_within = factory.timeouts.signalling;
        let may_reach = Arc::clone(&factory.may_reach);
        // Host names are checked by the driver, by the address that they resolve to.
        config.may_reach = Arc::new(move |url| {
            named_address(url).is_none_or(|place| may_reach(IpProtocol::Tcp, place))
        });
        config
    }

    /// The defaults for `url`: only its own origin may be requested.
    #[must_use]
    pub fn new(url: Url) -> Self {
        let origin = url.origin();
        let may_reach: MayReach = Arc::new(move |to: &Url| to.origin() == origin);
        Self { url, flow: Flow::default(), token: None, may_reach, answer_within: ANSWER_WITHIN }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A URL without its secrets, at most as long as a server's words.
pub(super) fn place(url: &Url) -> String {
    server_message::excerpt(&url.to_string())
}
