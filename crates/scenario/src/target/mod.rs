//! The server under load.

use std::net::IpAddr;

use throng_observation::Url;
use url::Host;

use crate::consent::IpProtocol;
use crate::network::Network;
use crate::secret::TokenSource;
use crate::url_template::{UrlTemplate, UrlValues, UrlVariable};

mod endpoint;
pub use endpoint::{Account, Endpoint, JanusId, TargetError, secrets_of};

mod protocols;
pub(crate) use protocols::{ApiKeys, target_pattern};
pub use protocols::{Carriage, Part, Place, Protocol, target_examples};

mod urls;

mod keys;
pub(crate) use keys::{TARGET_URL, TargetTable};

mod media;
pub use media::{IceTransportPolicy, RtspTransport, StunServer};

mod turn;
pub use turn::{RelayTransport, TurnHost, TurnServer, TurnUri, TurnUriError};

/// The server under load.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Address and protocol; for a template, those of an example participant.
    pub endpoint: Endpoint,
    /// The URL's template, if it has variables such as `{n}`: each participant has its own URL.
    pub template: Option<UrlTemplate>,
    /// Bearer token (WHEP and WHIP, sent as `Authorization: Bearer …`) or Janus `token`.
    pub token: Option<TokenSource>,
    /// LiveKit's API key, with which throng makes a token for each participant.
    pub api_key: Option<ApiKey>,
    /// Number of rooms, that of the URL included: each has the whole crowd of the file.
    pub rooms: u32,
    /// Private networks that are allowed in addition to loopback and this host's own addresses.
    pub allow: Vec<Network>,
    /// Accept any TLS certificate (self-signed test servers).
    pub tls_insecure: bool,
    /// The ICE candidates that may be used.
    pub ice_transport_policy: IceTransportPolicy,
    /// The STUN server that reports to participants their address outside a NAT.
    pub stun: Option<StunServer>,
    /// The TURN server that participants use instead of those that signalling announces.
    pub turn: Option<TurnServer>,
    /// The transport of RTP, on an RTSP target.
    pub rtsp_transport: RtspTransport,
}

/// A LiveKit API key, which makes tokens for participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its name; not a secret.
    pub key: String,
    /// The source of its secret.
    pub secret: TokenSource,
    /// The room, for a WHIP target, whose URL does not contain one.
    pub room: Option<String>,
}

impl Target {
    /// Reads a target URL; everything else has its default.
    ///
    /// # Errors
    /// When the text is not a URL, its scheme is unknown, its path is incomplete, or a variable in
    /// it is unknown or not allowed there.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let template = UrlTemplate::read(text)?;
        let endpoint = match &template {
            None => Endpoint::parse(text)?,
            Some(template) => {
                let [one, other] = template.examples();
                let (one, other) = (Endpoint::parse(&one)?, Endpoint::parse(&other)?);
                if one.host_and_port() != other.host_and_port() {
                    return Err(template.misplaced().into());
                }
                one
            }
        };
        // A URL that requests OvenMediaEngine's relay uses the relay alone, as in OvenPlayer and
        // OvenRtcTester.
        let ice_transport_policy = if endpoint.asks_for_relay() {
            IceTransportPolicy::Relay
        } else {
            IceTransportPolicy::All
        };
        Ok(Self {
            endpoint,
            template,
            token: None,
            api_key: None,
            rooms: 1,
            allow: Vec::new(),
            tls_insecure: false,
            ice_transport_policy,
            stun: None,
            turn: None,
            rtsp_transport: RtspTransport::default(),
        })
    }

    /// The endpoint of one participant.
    #[must_use]
    pub fn endpoint_of(&self, values: &UrlValues<'_>) -> Endpoint {
        let Some(template) = &self.template else { return self.endpoint.in_room(values.room) };
        // Two examples were valid, and values are digits and escaped text.
        let endpoint =
            Endpoint::parse(&template.of(values)).unwrap_or_else(|_| self.endpoint.clone());
        if template.has(UrlVariable::Room) { endpoint } else { endpoint.in_room(values.room) }
    }

    /// The URL of one participant, secrets redacted; `None` if all have the same.
    #[must_use]
    pub fn shown_of(&self, values: &UrlValues<'_>) -> Option<String> {
        self.template.as_ref().map(|template| template.shown_of(values))
    }

    /// Whether its URL has this variable.
    #[must_use]
    pub fn has_variable(&self, variable: UrlVariable) -> bool {
        self.template.as_ref().is_some_and(|template| template.has(variable))
    }

    /// Whether it can have several rooms: those of a conference, or those of `{room}` in the URL.
    #[must_use]
    pub fn has_rooms(&self) -> bool {
        self.part() == Part::Confer || self.has_variable(UrlVariable::Room)
    }

    /// The protocol of the endpoint.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.endpoint.protocol()
    }

    /// What participants do.
    #[must_use]
    pub fn part(&self) -> Part {
        self.protocol().part()
    }

    /// The URL that throng connects to (`ws`, `wss`, `http`, `https`).
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.endpoint.url
    }

    /// Whether servers of this protocol announce relays (TURN).
    #[must_use]
    pub fn announces_relays(&self) -> bool {
        self.protocol().facts().announces_relays
    }

    /// The protocol by which the port of [`Self::host_and_port`] is reached.
    #[must_use]
    pub fn ip_protocol(&self) -> IpProtocol {
        self.protocol().facts().ip_protocol
    }

    /// Host and port of the signalling server; the port defaults to that of the scheme.
    #[must_use]
    pub fn host_and_port(&self) -> (String, u16) {
        self.endpoint.host_and_port()
    }

    /// Whether the host is a loopback address or `localhost` (RFC 6761 6.3); names are not
    /// resolved.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.url())
    }

    /// The URL as in the scenario, with user names, passwords, PINs and values of query parameters
    /// that may be credentials redacted (`…`).
    #[must_use]
    pub fn display(&self) -> String {
        self.template
            .as_ref()
            .map_or_else(|| self.endpoint.display(), |template| template.shown().to_owned())
    }
}

/// Whether the host of a URL is a loopback address or `localhost` (RFC 6761 6.3); names are not
/// resolved.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests;
