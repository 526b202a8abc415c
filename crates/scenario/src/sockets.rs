//! The file descriptors and UDP ports that a participant holds at most.

use crate::peers::PeerConfig;
use crate::plan::Plan;
use crate::role::Role;
use crate::target::{Endpoint, RtspTransport, Target};

/// Connections to one origin over HTTP/1.1, as browsers.
const HTTP1_CONNECTIONS: u64 = 6;

impl Plan {
    /// File descriptors and UDP ports of one participant: the mean of the crowd where cohorts
    /// differ, rounded up.
    #[must_use]
    pub fn sockets_each(&self) -> (u64, u64) {
        let users = self.users_by_cohort();
        let all: f64 = users.iter().sum();
        if all <= 0.0 {
            return sockets_each(&self.target, None);
        }
        let (mut descriptors, mut ports) = (0.0, 0.0);
        for ((destination, role), users) in self.destinations.iter().zip(&self.roles).zip(users) {
            let (descriptors_each, ports_each) = sockets_each(&destination.target, Some(role));
            descriptors += descriptors_each as f64 * users / all;
            ports += ports_each as f64 * users / all;
        }
        // The sum of shares may be a little more than one.
        let rounded_up = |mean: f64| (mean - 1e-6).ceil() as u64;
        (rounded_up(descriptors), rounded_up(ports))
    }
}

/// Those of a participant with `role`: of its protocol, and of a chat beside it.
fn sockets_each(target: &Target, role: Option<&Role>) -> (u64, u64) {
    let (descriptors, ports) = (target.protocol().facts().sockets)(target, role);
    let beside = role.and_then(|role| role.chat.beside.as_deref()).map_or(0, of_chat);
    (descriptors + beside, ports)
}

/// By WebRTC: a signalling connection and a datagram socket. WHEP's connection is short, but all
/// may be open at once.
pub(crate) fn of_webrtc(_: &Target, _: Option<&Role>) -> (u64, u64) {
    (2, 1)
}

pub(crate) fn of_rtsp(target: &Target, _: Option<&Role>) -> (u64, u64) {
    match target.rtsp_transport {
        RtspTransport::Tcp => (1, 0),
        // Two sockets for each of audio and video.
        RtspTransport::Auto | RtspTransport::Udp => (5, 4),
    }
}

/// A connection, and another while the first is being closed after a seek; one UDP port over
/// HTTP/3.
pub(crate) fn of_http_video(_: &Target, role: Option<&Role>) -> (u64, u64) {
    let peers = role.and_then(|role| role.player.peers.as_ref());
    (2 + peers.map_or(0, of_peers), 1 + peers.map_or(0, of_channels))
}

/// The page with its media, and socket.io.
pub(crate) fn of_peertube(_: &Target, role: Option<&Role>) -> (u64, u64) {
    let peers = role.and_then(|role| role.player.peers.as_ref());
    let chat = role.is_some_and(|role| role.chat.is_wanted);
    // The page says which tracker there is.
    let channels = peers.map_or(0, of_channels);
    (HTTP1_CONNECTIONS + 1 + u64::from(peers.is_some()) + u64::from(chat) + channels, 1 + channels)
}

/// A WebSocket; or an event stream, and what is said.
pub(crate) fn of_chat(endpoint: &Endpoint) -> u64 {
    if endpoint.is_event_stream() { 2 } else { 1 }
}

/// Another segment at the same time, the list of hashes, the tracker.
fn of_peers(peers: &PeerConfig) -> u64 {
    1 + u64::from(peers.hashes.is_some()) + u64::from(peers.tracker.is_some()) + of_channels(peers)
}

/// The UDP socket of data channels, which a viewer may have.
fn of_channels(peers: &PeerConfig) -> u64 {
    u64::from(peers.has_any_channels())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OWN_DESCRIPTORS;
    use crate::scenario::Scenario;

    fn plan(url: &str, crowd: &str) -> Plan {
        let text = format!("[target]\nurl = \"{url}\"\n[run]\nduration = \"20s\"\n{crowd}");
        Scenario::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")).plan()
    }

    #[test]
    fn trackers_sockets_and_chats_of_viewers_are_counted() {
        const HLS: &str = "http://127.0.0.1/a.m3u8";
        const PAGE: &str = "peertube+http://127.0.0.1/w/a";
        let tracker = "tracker = \"ws://127.0.0.1/tracker/socket\"";
        let hashes = "hashes = \"http://127.0.0.1/segments-sha256.json\"";
        let xmpp = "chat = { url = \"xmpp+ws://127.0.0.1/ws?room=a@b\" }";
        let events = "chat = { url = \"chat+http://127.0.0.1/events\", template = { join = [], say = \"{text}\" } }";
        for (url, keys, expect) in [
            (HLS, String::new(), (2, 1)),
            (HLS, "player = { p2p = {} }".into(), (3, 1)),
            (HLS, format!("player = {{ p2p = {{ {tracker}, {hashes} }} }}"), (5, 1)),
            (HLS, format!("player = {{ p2p = {{ {tracker}, data_channels = 0.5 }} }}"), (5, 2)),
            (PAGE, "player = { p2p = { data_channels = 0.5 } }".into(), (9, 2)),
            (HLS, xmpp.to_owned(), (3, 1)),
            (HLS, format!("{events}\nplayer = {{ p2p = {{ {tracker} }} }}"), (6, 1)),
            (PAGE, String::new(), (7, 1)),
            (PAGE, "player = { p2p = {} }\nchat = { every = \"2m\" }".into(), (9, 1)),
            ("xmpp+ws://127.0.0.1/ws?room=a@b", String::new(), (1, 0)),
            (
                "chat+http://127.0.0.1/a",
                "chat = { template = { join = [], say = \"{text}\" } }".into(),
                (2, 0),
            ),
            (
                "chat+ws://127.0.0.1/a",
                "chat = { template = { join = [], say = \"{text}\" } }".into(),
                (1, 0),
            ),
            ("ws://127.0.0.1:3333/a/b", String::new(), (2, 1)),
            ("publish+rtmp://127.0.0.1/a/{n}", String::new(), (1, 0)),
        ] {
            let plan = plan(url, &format!("[crowd]\nsize = 10\n{keys}\n"));
            assert_eq!(plan.sockets_each(), expect, "{url} {keys}");
            assert_eq!(plan.needs.file_descriptors, OWN_DESCRIPTORS + 10 * expect.0);
        }
    }

    #[test]
    fn a_crowd_of_different_cohorts_needs_the_mean() {
        let crowd = "[[crowd]]\nname = \"viewers\"\nsize = 30\n[[crowd]]\nname = \"chat\"\nsize = 10\n\
                     url = \"xmpp+ws://127.0.0.1/ws?room=a@b\"\n";
        let plan = plan("http://127.0.0.1/a.m3u8", crowd);
        assert_eq!(plan.sockets_each(), (2, 1), "1.75 and 0.75");
    }
}
