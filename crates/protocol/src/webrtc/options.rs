//! The settings shared by viewers and conference participants: allowed addresses, STUN and TURN
//! servers, timeouts.

use std::net::SocketAddr;
use std::time::Duration;

use throng_media::quality::WallClock;
use throng_scenario::StunServer;

pub use throng_scenario::MayReach;

use crate::signalling::RelayServer;

/// How a WebRTC participant connects.
#[derive(Clone)]
pub struct ParticipantOptions {
    /// The consent guard's check of candidates, STUN and TURN servers.
    pub may_reach: MayReach,
    /// One reading of both clocks, shared by all participants of a run.
    pub clock: WallClock,
    /// An address of the server, when known beforehand; it selects the interface of the media
    /// socket.
    pub toward: Option<SocketAddr>,
    /// Seed of the random values of a participant (report intervals, SSRC).
    pub seed: u64,
    /// How long each step may take.
    pub timeouts: StepTimeouts,
    /// Received coded frames are reported too.
    pub is_tapped: bool,
    /// Only relayed candidates are gathered (RFC 8829 section 3.5.3).
    pub relay_only: bool,
    /// The STUN server that each connection asks for a server-reflexive candidate.
    pub stun: Option<StunServer>,
    /// The TURN server of the scenario. It takes precedence over those that signalling announces.
    pub turn: Option<RelayServer>,
}

#[cfg(test)]
impl ParticipantOptions {
    /// Of a participant of a test, which may reach everything and began at `now`.
    pub(crate) fn for_tests(now: std::time::Instant) -> Self {
        Self {
            may_reach: std::sync::Arc::new(|_, _| true),
            clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
            toward: None,
            seed: 7,
            timeouts: StepTimeouts::default(),
            is_tapped: false,
            relay_only: false,
            stun: None,
            turn: None,
        }
    }
}

/// How long each step of a session may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTimeouts {
    /// From the start until offer and answer are exchanged.
    pub signalling: Duration,
    /// From there until a candidate pair works.
    pub ice: Duration,
    /// From there until the media keys are known.
    pub dtls: Duration,
    /// From there until the first media packet.
    pub first_media: Duration,
    /// Between media packets.
    pub silence: Duration,
    /// For lost consent (RFC 7675) to return.
    pub consent: Duration,
    /// For signing off.
    pub goodbye: Duration,
}

impl Default for StepTimeouts {
    fn default() -> Self {
        let ten = Duration::from_secs(10);
        Self {
            signalling: ten,
            ice: ten,
            dtls: ten,
            first_media: ten,
            silence: ten,
            consent: Duration::from_secs(5),
            goodbye: Duration::from_secs(2),
        }
    }
}
