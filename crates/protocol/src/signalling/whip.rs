//! WHIP: publishing a stream by WebRTC over HTTP (RFC 9725). The exchange is that of WHEP, behind
//! [`RoomSignalling`], so that publishers are ordinary conference participants.

use std::time::Instant;

use throng_observation::Url;

use super::livekit::Access;
use super::room::{PeerId, RoomInput, RoomOutput, RoomSignalling};
use super::whep::{Config, Flow, Whep};
use super::{SignalInput, SignalOutput, Signalling};
use crate::factory::{Seat, TargetFactory};
use crate::participant::Why;

/// A participant that publishes at a WHIP endpoint.
pub struct Whip {
    dialogue: Whep,
    /// Signs a token for this publisher, where the server is LiveKit and its API key is configured.
    access: Option<Access>,
    /// The answer, which follows [`RoomOutput::Joined`].
    answer: Option<String>,
}

impl Whip {
    /// That of a publisher at `url`; LiveKit's has a token of its own.
    pub(crate) fn of(
        factory: &TargetFactory,
        Seat { number, role, .. }: Seat<'_>,
        url: &Url,
    ) -> Self {
        let access = factory.api_key.as_ref().map(|api| {
            let room = api.room.as_deref().unwrap_or_default();
            Access::of(factory, &publisher_name(number), role, room)
        });
        Self::new(Config::of(factory, url), access)
    }

    /// A publisher in its initial state. `config.flow` is overwritten.
    #[must_use]
    pub fn new(config: Config, access: Option<Access>) -> Self {
        Self { dialogue: Whep::new(Config { flow: Flow::Publish, ..config }), access, answer: None }
    }
}

impl RoomSignalling for Whip {
    fn handle(&mut self, now: Instant, input: RoomInput<'_>) {
        let input = match input {
            RoomInput::Start => {
                if let Some(access) = &self.access {
                    self.dialogue.set_token(access.token(now));
                }
                SignalInput::Start
            }
            RoomInput::Offer(PeerId::PUBLISHER, sdp) => SignalInput::Offer(sdp),
            RoomInput::Fetched(id, result) => SignalInput::Fetched(id, result),
            RoomInput::Candidate(PeerId::PUBLISHER, line) => SignalInput::Candidate(line),
            RoomInput::CandidatesDone(PeerId::PUBLISHER) => SignalInput::CandidatesDone,
            RoomInput::Connected(PeerId::PUBLISHER) => SignalInput::Connected,
            RoomInput::Timeout => SignalInput::Timeout,
            RoomInput::Leave { .. } => SignalInput::Leave,
            // There is no channel but HTTP, nothing is received, and the only connection sends.
            // WHIP has no signal for mute; the sender just stops.
            RoomInput::Opened(_)
            | RoomInput::Message(_)
            | RoomInput::Closed(_)
            | RoomInput::Offer(..)
            | RoomInput::Answer(..)
            | RoomInput::Candidate(..)
            | RoomInput::CandidatesDone(_)
            | RoomInput::Connected(_)
            | RoomInput::Lost(_)
            | RoomInput::Subscribe(_)
            | RoomInput::Mute(..)
            | RoomInput::Layer(_) => return,
        };
        self.dialogue.handle(now, input);
    }

    fn poll_output(&mut self) -> Option<RoomOutput> {
        if let Some(sdp) = self.answer.take() {
            return Some(RoomOutput::RemoteAnswer(PeerId::PUBLISHER, sdp));
        }
        loop {
            return Some(match self.dialogue.poll_output()? {
                SignalOutput::WantOffer => RoomOutput::WantOffer(PeerId::PUBLISHER),
                SignalOutput::RemoteAnswer(sdp) => {
                    self.answer = Some(sdp);
                    RoomOutput::Joined
                }
                SignalOutput::RemoteCandidate(candidate) => {
                    RoomOutput::RemoteCandidate(PeerId::PUBLISHER, candidate)
                }
                SignalOutput::Fetch(id, request) => RoomOutput::Fetch(id, request),
                SignalOutput::Reached(opening) => RoomOutput::Reached(opening),
                SignalOutput::Refused(what, place) => RoomOutput::Refused(what, place),
                SignalOutput::Anomaly(detail) => RoomOutput::Anomaly(detail),
                SignalOutput::Failed(failure) => RoomOutput::Failed(failure),
                SignalOutput::Goodbye => RoomOutput::Goodbye,
                SignalOutput::Open(open) => RoomOutput::Open(open),
                SignalOutput::Signal(message) => RoomOutput::Signal(message),
                SignalOutput::Close => RoomOutput::Close,
                SignalOutput::Relay(relay) => RoomOutput::Relay(relay),
                // Servers offer to players only.
                SignalOutput::RemoteOffer(_) => continue,
            });
        }
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        self.dialogue.next_timeout()
    }
}

/// The identity of a WHIP publisher on LiveKit. It differs from those of conference participants,
/// because LiveKit removes a participant when another one joins with the same identity.
fn publisher_name(number: u32) -> String {
    format!("throng-whip-{number}")
}
