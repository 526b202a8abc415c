//! From a target to the participants that play at it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use throng_media::quality::WallClock;
use throng_scenario::{Endpoint, Mountpoint};
use url::{Host, Url};

use crate::participant::Participant;
use crate::signalling::{Signalling, janus, ome, whep};
use crate::webrtc::viewer::{MayReach, Patience, Viewer, ViewerOptions};

/// Everything that the viewers of one target share.
#[derive(Clone)]
pub struct ViewerCasting {
    /// Where to watch what.
    pub endpoint: Endpoint,
    /// Bearer token (WHEP, OvenMediaEngine) or Janus `token`, as read from where the scenario says.
    pub token: Option<String>,
    /// The consent guard's judgement.
    pub may_reach: MayReach,
    /// One reading of both clocks for the whole run.
    pub clock: WallClock,
    /// An address of the server when its URL names a host that was resolved before; it chooses the interface on which a
    /// viewer that makes the offer receives.
    pub server: Option<SocketAddr>,
    /// Seed of the run; each viewer draws its own from it.
    pub seed: u64,
    /// How long each step of a session may take.
    pub patience: Patience,
}

impl ViewerCasting {
    /// The viewer of number `number`.
    #[must_use]
    pub fn viewer(&self, number: u32) -> Box<dyn Participant> {
        let options = ViewerOptions {
            may_reach: Arc::clone(&self.may_reach),
            clock: self.clock,
            toward: self.server.or_else(|| named_address(self.url())),
            // An odd multiplier spreads neighbouring numbers over all seeds.
            seed: self.seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            patience: self.patience,
        };
        Box::new(Viewer::new(self.signalling(), options))
    }

    fn url(&self) -> &Url {
        match &self.endpoint {
            Endpoint::OvenMediaEngine { url } | Endpoint::Janus { url, .. } | Endpoint::Whep { url } => url,
        }
    }

    fn signalling(&self) -> Box<dyn Signalling> {
        match &self.endpoint {
            Endpoint::OvenMediaEngine { url } => {
                let mut config = ome::Config::new(url.clone());
                config.answer_within = self.patience.signalling;
                let bearer = |token: &String| ("Authorization".to_owned(), format!("Bearer {token}"));
                config.headers.extend(self.token.as_ref().map(bearer));
                Box::new(ome::Ome::new(config))
            }
            Endpoint::Janus { url, mountpoint, pin } => Box::new(janus::Streaming::new(janus::Config {
                url: url.clone(),
                mountpoint: match mountpoint {
                    Mountpoint::Number(id) => janus::MountpointId::Number(*id),
                    Mountpoint::Text(id) => janus::MountpointId::Text(id.clone()),
                },
                pin: pin.as_ref().map(|pin| pin.expose().to_owned()),
                session: janus::SessionConfig {
                    token: self.token.clone(),
                    answer_within: self.patience.signalling,
                    ..janus::SessionConfig::default()
                },
            })),
            Endpoint::Whep { url } => {
                let mut config = whep::Config::new(url.clone());
                config.token.clone_from(&self.token);
                config.answer_within = self.patience.signalling;
                let may_reach = Arc::clone(&self.may_reach);
                // A name is judged by the driver, by the address that it resolves to.
                config.may_reach =
                    Arc::new(move |url| named_address(url).is_none_or(|place| may_reach(place.ip())));
                Box::new(whep::Whep::new(config))
            }
        }
    }
}

/// The address that a URL names without resolving anything.
fn named_address(url: &Url) -> Option<SocketAddr> {
    let port = url.port_or_known_default().unwrap_or(9);
    let ip = match url.host()? {
        Host::Ipv4(ip) => IpAddr::V4(ip),
        Host::Ipv6(ip) => IpAddr::V6(ip),
        Host::Domain(name) if name.eq_ignore_ascii_case("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Host::Domain(_) => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::participant::{Input, Open, Output};
    use std::time::{Duration, Instant};

    #[test]
    fn each_endpoint_gets_a_viewer_that_opens_its_signalling() {
        let now = Instant::now();
        let url = |text: &str| Url::parse(text).unwrap();
        for (endpoint, opens) in [
            (Endpoint::OvenMediaEngine { url: url("ws://10.0.0.1:3333/app/stream") }, true),
            (
                Endpoint::Janus {
                    url: url("ws://10.0.0.1:8188/"),
                    mountpoint: Mountpoint::Number(1),
                    pin: None,
                },
                true,
            ),
            (Endpoint::Whep { url: url("http://10.0.0.1/whep") }, false),
        ] {
            let casting = ViewerCasting {
                endpoint,
                token: Some("t".into()),
                may_reach: Arc::new(|_| true),
                clock: WallClock { at: now, unix_ns: 0 },
                server: None,
                seed: 1,
                patience: Patience { signalling: Duration::from_secs(3), ..Patience::default() },
            };
            let mut viewer = casting.viewer(4);
            viewer.handle(now, Input::Start { intended_at: now });
            let mut opened = Vec::new();
            loop {
                match viewer.poll_output(now) {
                    Output::Open(_, open) => opened.push(open),
                    Output::Timeout(at, _) => break assert!(at <= now + Duration::from_secs(3)),
                    Output::Observed(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            let expect = if opens { "WebSocket" } else { "Datagrams" };
            let [open] = opened.as_slice() else { panic!("{opened:?}") };
            assert!(format!("{open:?}").starts_with(expect), "{open:?}");
            if let Open::Datagrams { toward } = open {
                assert_eq!(toward.ip(), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
            }
        }
    }

    #[test]
    fn urls_name_addresses_without_a_resolver() {
        for (url, expect) in [
            ("http://127.0.0.1:80/x", Some("127.0.0.1:80")),
            ("wss://[::1]:8989/", Some("[::1]:8989")),
            ("ws://localhost:8188/", Some("127.0.0.1:8188")),
            ("https://example.invalid/whep", None),
        ] {
            assert_eq!(
                named_address(&Url::parse(url).unwrap()),
                expect.map(|text| text.parse().unwrap()),
                "{url}"
            );
        }
    }
}
