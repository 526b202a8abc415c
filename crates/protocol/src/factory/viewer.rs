//! Viewers by WebRTC.

use std::sync::Arc;

use throng_observation::Url;
use throng_scenario::{IceTransportPolicy, IpProtocol, JanusId, Secret};

use super::{Seat, TargetFactory, named_address};
use crate::participant::Participant;
use crate::signalling::{Signalling, janus, ome, whep};
use crate::webrtc::viewer::Viewer;

impl TargetFactory {
    pub(super) fn viewer(
        &self,
        seat: Seat<'_>,
        signalling: Box<dyn Signalling>,
    ) -> Box<dyn Participant> {
        Box::new(Viewer::new(signalling, self.options(seat.number)))
    }

    pub(super) fn ome(&self, url: &Url) -> Box<dyn Signalling> {
        let mut url = url.clone();
        if self.ice_transport_policy == IceTransportPolicy::Relay
            && self.turn.is_none()
            && !url.in_clear().query_pairs().any(|(key, _)| key == "transport")
        {
            // Without this parameter the server does not announce its relay.
            url.add_parameter("transport", "tcp");
        }
        let mut config = ome::Config::new(url);
        config.answer_within = self.timeouts.signalling;
        let bearer = |token: &String| ("Authorization".to_owned(), format!("Bearer {token}"));
        config.headers.extend(self.token.as_ref().map(bearer));
        Box::new(ome::Ome::new(config))
    }

    pub(super) fn streaming(
        &self,
        url: &Url,
        mountpoint: &JanusId,
        pin: Option<&Secret>,
    ) -> Box<dyn Signalling> {
        Box::new(janus::Streaming::new(janus::Config {
            url: url.clone(),
            mountpoint: match mountpoint {
                JanusId::Number(id) => janus::MountpointId::Number(*id),
                JanusId::Text(id) => janus::MountpointId::Text(id.clone()),
            },
            pin: pin.map(|pin| pin.expose().to_owned()),
            session: self.janus_session(),
        }))
    }

    pub(super) fn janus_session(&self) -> janus::SessionConfig {
        janus::SessionConfig {
            token: self.token.clone(),
            answer_within: self.timeouts.signalling,
            ..janus::SessionConfig::default()
        }
    }

    /// The HTTP configuration of WHEP and WHIP.
    pub(super) fn whep(&self, url: &Url) -> whep::Config {
        let mut config = whep::Config::new(url.clone());
        config.token.clone_from(&self.token);
        config.answer_within = self.timeouts.signalling;
        let may_reach = Arc::clone(&self.may_reach);
        // Host names are checked by the driver, by the address that they resolve to.
        config.may_reach = Arc::new(move |url| {
            named_address(url).is_none_or(|place| may_reach(IpProtocol::Tcp, place))
        });
        config
    }
}
