//! OvenMediaEngine's signalling, played strictly by a conformance server (no package of the real one exists), with
//! real media behind it: the stage's, by its WHEP endpoint turned around.

use std::net::Ipv4Addr;
use std::sync::Arc;

use throng_sim::ome::{Behaviour, MediaPeer, Server};

use crate::throng::{alone, figure, run};

/// A media side that offers and never sends: what signalling alone can show.
struct Mute;

impl MediaPeer for Mute {
    fn offer(&mut self) -> String {
        include_str!("ome-offer.sdp").replace('\n', "\r\n")
    }
    fn answer(&mut self, sdp: &str) {
        assert!(sdp.contains("a=recvonly"), "a viewer receives: {sdp}");
    }
    fn candidate(&mut self, candidate: &str) {
        assert!(candidate.starts_with("candidate:"), "{candidate}");
    }
}
