//! The servers that a scenario names beside its target: they get load too, and need the same
//! consent.

use std::net::SocketAddr;

use throng_observation::Url;

use crate::peers::PeerConfig;
use crate::plan::Plan;
use crate::role::Role;
use crate::target::TurnUri;

/// A server that a key of a cohort names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPlace {
    /// The key, such as `chat.url`.
    pub key: &'static str,
    /// The name of the cohort that has it first.
    pub cohort: String,
    /// Its host, as in the URL.
    pub host: String,
    /// Its port; that of the scheme where none is written.
    pub port: u16,
}

impl Plan {
    /// The servers that cohorts name beside the target, each once.
    #[must_use]
    pub fn named_places(&self) -> Vec<NamedPlace> {
        self.beside_target(|role| named_urls(role).map(|(key, url)| (key, url.clone())).collect())
    }

    /// The origins to which cohorts send the requests of recorded pages, each once. Load that they
    /// may not get is left out of the run.
    #[must_use]
    pub fn named_origins(&self) -> Vec<NamedPlace> {
        self.beside_target(|role| {
            let rules = role.player.recorded_page.iter().flat_map(|page| &page.origins);
            let urls = rules.filter_map(|rule| Url::parse(&rule.requested).ok());
            urls.map(|url| ("player.origins", url)).collect()
        })
    }

    /// The places of the URLs of all roles, each once and without that of the target.
    fn beside_target(
        &self,
        urls_of: impl Fn(&Role) -> Vec<(&'static str, Url)>,
    ) -> Vec<NamedPlace> {
        let mut places: Vec<NamedPlace> = Vec::new();
        for (cohort, role) in self.cohorts.iter().zip(&self.roles) {
            for (key, url) in urls_of(role) {
                let host = url.host_str().unwrap_or_default().to_owned();
                let port = url.port_or_known_default().unwrap_or(0);
                if !places.iter().any(|place| place.host == host && place.port == port) {
                    places.push(NamedPlace { key, cohort: cohort.clone(), host, port });
                }
            }
        }
        let target = self.target.host_and_port();
        places.retain(|place| (&place.host, place.port) != (&target.0, target.1));
        places
    }

    /// The STUN and TURN servers that the target names by their addresses. Those that are named
    /// otherwise are on the target's host.
    #[must_use]
    pub fn named_ice_servers(&self) -> Vec<SocketAddr> {
        let stun = self.target.stun.as_ref().and_then(|server| server.address(None));
        let turn = self.target.turn.as_ref().and_then(|server| TurnUri::parse(&server.uri).ok());
        stun.into_iter().chain(turn.and_then(|uri| uri.address(None))).collect()
    }

    /// Whether viewers exchange data with each other over data channels.
    #[must_use]
    pub fn has_peers_over_channels(&self) -> bool {
        let mut peers = self.roles.iter().filter_map(|role| role.player.peers.as_ref());
        peers.any(PeerConfig::has_any_channels)
    }
}

/// The URLs that a role names beside the target, with their keys.
pub(crate) fn named_urls(role: &Role) -> impl Iterator<Item = (&'static str, &Url)> {
    let chat = role.chat.beside.as_deref().map(|chat| ("chat.url", &chat.url));
    let peers = role.player.peers.as_ref();
    let tracker =
        peers.and_then(|peers| peers.tracker.as_ref()).map(|url| ("player.p2p.tracker", url));
    let hashes =
        peers.and_then(|peers| peers.hashes.as_ref()).map(|url| ("player.p2p.hashes", url));
    [chat, tracker, hashes].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    #[test]
    fn chats_trackers_and_hashes_of_all_cohorts_are_named_once_and_the_target_is_not() {
        let scenario = r#"
[target]
url = "http://media.example/a.m3u8"
[run]
duration = "20s"
[[crowd]]
name = "viewers"
size = 3
chat = { url = "xmpp+wss://chat.example/ws?room=stage@room.example" }
player = { p2p = { tracker = "wss://10.9.9.9:8443/tracker/socket", hashes = "http://media.example/segments-sha256.json" } }
[[crowd]]
name = "others"
size = 3
chat = { url = "chat+https://chat.example/events", template = { join = [], say = "{text}" } }

[crowd.player]
har = "a.har"
origins = { "https://cdn.example" = "http://127.0.0.2:8080", "https://a.example" = "http://media.example" }
p2p = { hashes = "http://[2001:db8::1]/segments-sha256.json" }
"#;
        let plan = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}")).plan();
        let places = plan.named_places();
        let origins = plan.named_origins();
        let origins: Vec<_> = origins.iter().map(|place| (&*place.host, place.port)).collect();
        assert_eq!(origins, [("127.0.0.2", 8080)]);
        let places: Vec<_> = places
            .iter()
            .map(|place| (place.key, &*place.cohort, &*place.host, place.port))
            .collect();
        assert_eq!(
            places,
            [
                ("chat.url", "viewers", "chat.example", 443),
                ("player.p2p.tracker", "viewers", "10.9.9.9", 8443),
                ("player.p2p.hashes", "others", "[2001:db8::1]", 80),
            ]
        );
    }
}
