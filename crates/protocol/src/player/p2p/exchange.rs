//! Two viewers of which one gives the other segments over a data channel, and which do nothing
//! else: the benchmark of data channels (`bench/data-channel.sh`) lets the engine drive them.
//!
//! ```text
//! giver                 meeting                 taker
//!   offer      ─────────▶    ─────────▶           answer
//!              ◀─────────    ◀─────────
//!   announcement of all segments  ═══════════▶    request of the first
//!   segment in pieces, end        ═══════════▶    request of the next …
//! ```

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_media::timing::WholeSegment;
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase};
use throng_scenario::PeerEngine;

use super::PEERS;
use super::channels::{ChannelOptions, Channels};
use super::neighbours::{Arrived, Neighbours};
use super::swarm::{PeerId, Sent, Swarms};
use super::tracker::{Described, Id};
use crate::participant::{Input, Open, Output, Participant};
use crate::webrtc::MayReach;

/// The names that a tracker would pass on.
const GIVER: Id = [1; 20];
const TAKER: Id = [2; 20];
const OFFER: Id = [3; 20];

/// How often each looks for the description of the other.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The first segment; the others follow.
const FIRST: u64 = 1;

/// What a viewer of an exchange does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeRole {
    /// It has the segments, and offers the connection.
    Gives,
    /// It asks for one segment after the other, and leaves when it has all.
    Takes,
}

/// Where the two pass each other their descriptions, in place of a tracker.
#[derive(Debug, Default)]
pub struct Meeting {
    offer: Passed,
    answer: Passed,
}

/// A description on its way.
#[derive(Debug, Default)]
struct Passed(Mutex<Option<String>>);

impl Passed {
    fn put(&self, sdp: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sdp);
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An exchange of segments.
#[derive(Clone)]
pub struct ExchangeConfig {
    /// How many.
    pub segments: u64,
    /// Bytes of each.
    pub segment_len: usize,
    /// An address that selects the interface.
    pub toward: SocketAddr,
    /// Which addresses may get anything.
    pub may_reach: MayReach,
    /// Where the two find each other.
    pub meeting: Arc<Meeting>,
}

/// One of the two viewers.
pub struct SegmentExchange {
    config: ExchangeConfig,
    role: ExchangeRole,
    neighbours: Neighbours,
    is_connected: bool,
    has_ended: bool,
    /// The segment that is taken, and of whom, once it is asked for.
    next: u64,
    asked: Option<PeerId>,
    outputs: VecDeque<Output>,
    rng: fastrand::Rng,
}

impl SegmentExchange {
    /// A viewer that plays this part.
    #[must_use]
    pub fn new(config: ExchangeConfig, role: ExchangeRole) -> Self {
        // Each has a swarm of its own, as in processes of their own.
        let membership = Swarms::default().swarm("exchange").enter(0, true, None);
        let neighbours = Neighbours::new(membership, None);
        Self {
            config,
            role,
            neighbours,
            is_connected: false,
            has_ended: false,
            next: FIRST,
            asked: None,
            outputs: VecDeque::new(),
            rng: fastrand::Rng::with_seed(1),
        }
    }

    /// How many segments it has taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.next - FIRST
    }

    /// Its socket is open.
    fn opened(&mut self, now: Instant, locals: Vec<SocketAddr>) {
        let options = ChannelOptions {
            engine: PeerEngine::V22,
            swarm: "exchange+V0".into(),
            may_reach: self.config.may_reach.clone(),
            shares: true,
            degree_max: 1,
        };
        let mut channels = Channels::new(options, locals, 1);
        if self.role == ExchangeRole::Gives
            && let Some(offer) = channels.offer(now, OFFER)
        {
            self.config.meeting.offer.put(offer);
        }
        self.neighbours.reach_out(channels);
        if self.role == ExchangeRole::Gives {
            fill(now, &mut self.neighbours, &self.config);
        }
    }

    fn advance(&mut self, now: Instant) {
        if !self.is_connected {
            self.meet(now);
        }
        self.neighbours.tick(now);
        self.note_connection(now);
        if self.role == ExchangeRole::Takes && !self.has_ended {
            self.take(now);
        }
        if !self.has_ended {
            self.neighbours.tick(now);
            self.transmit(now);
        }
    }

    /// Uses the description of the other, once it is there.
    fn meet(&mut self, now: Instant) {
        if self.neighbours.channels().is_none() {
            return;
        }
        let meeting = Arc::clone(&self.config.meeting);
        match self.role {
            ExchangeRole::Gives => {
                if let Some(answer) = meeting.answer.take() {
                    self.neighbours.answered(now, TAKER, (&OFFER, &answer));
                }
            }
            ExchangeRole::Takes => {
                let offer = meeting.offer.take();
                let described = offer.map(|offer| self.neighbours.answer(now, GIVER, &offer));
                if let Some(Described::As(answer)) = described {
                    meeting.answer.put(answer);
                }
            }
        }
    }

    /// From the first connection on the engine serves its socket by tick, as that of a viewer that
    /// plays; with the connection the exchange ends.
    fn note_connection(&mut self, now: Instant) {
        let is_connected = self.neighbours.degree(now) > 0;
        if is_connected && !self.is_connected {
            self.is_connected = true;
            self.outputs.push_back(Output::Observed(Observation::Reached(Phase::FirstPacket, now)));
        } else if self.is_connected && !is_connected {
            match (self.protocol_error(), self.role) {
                (Some(error), _) => self.fail(now, &error),
                (None, ExchangeRole::Gives) => self.end(now, Outcome::Completed),
                (None, ExchangeRole::Takes) => self.fail(now, "the connection is lost"),
            }
        }
    }

    /// Asks for the next segment, if the last one has come.
    fn take(&mut self, now: Instant) {
        let segment_len = self.config.segment_len;
        self.neighbours.judge(now, &mut |arrived: &Arrived| read(arrived, segment_len).map(Some));
        if let Some(from) = self.asked {
            match self.neighbours.received(now, from, self.next) {
                Sent::Partly(..) => return,
                Sent::Broken => return self.fail(now, "the peer stopped sending"),
                Sent::Whole(_) => self.asked = None,
            }
            self.next += 1;
            self.neighbours.forget_before(self.next);
        }
        if self.taken() == self.config.segments {
            return self.end(now, Outcome::Completed);
        }
        self.asked = self.neighbours.request(now, self.next, &[], &mut self.rng);
    }

    fn transmit(&mut self, now: Instant) {
        let Some(channels) = self.neighbours.channels() else { return };
        let sends =
            channels.take_transmits().into_iter().map(|transmit| Output::Send(PEERS, transmit));
        self.outputs.extend(sends);
        if let Some(error) = self.protocol_error() {
            self.fail(now, &error);
        }
    }

    /// What is wrong with the other.
    fn protocol_error(&mut self) -> Option<String> {
        self.neighbours.channels()?.take_problems().into_iter().next()
    }

    fn fail(&mut self, now: Instant, detail: &str) {
        let detail = self.protocol_error().unwrap_or_else(|| detail.to_owned());
        self.end(now, Outcome::Failed(Failure::new(FailureReason::Protocol, detail)));
    }

    fn end(&mut self, now: Instant, outcome: Outcome) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.neighbours.leave(now);
        // The other learns that this one leaves.
        self.transmit(now);
        self.outputs.push_back(Output::Ended(outcome));
    }
}

impl Participant for SegmentExchange {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.has_ended {
            return;
        }
        match input {
            Input::Start { .. } => {
                let toward = vec![self.config.toward];
                let open = Open::Datagrams { toward, otherwise: None, gathers: false };
                self.outputs.push_back(Output::Open(PEERS, open));
            }
            Input::Opened { channel: PEERS, opening } => self.opened(now, opening.addresses()),
            Input::Closed { channel: PEERS, why } => self.fail(now, &why.to_string()),
            Input::Datagram { channel: PEERS, source, local, bytes, .. } => {
                self.neighbours.datagram(now, (source, local), bytes);
            }
            Input::Leave { .. } => self.end(now, Outcome::Completed),
            _ => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if self.outputs.is_empty() && !self.has_ended {
            self.advance(now);
        }
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let look_at = now + LOOK_EVERY;
        let due = self.neighbours.next_timeout(now).map_or(look_at, |at| at.min(look_at));
        Output::wait(now, (due, "data channel"))
    }
}

/// Gives a viewer all segments: the same bytes under each number, so that they take no memory.
fn fill(now: Instant, neighbours: &mut Neighbours, config: &ExchangeConfig) {
    let bytes: Arc<[u8]> = (0..config.segment_len).map(byte_at).collect();
    for number in FIRST..FIRST + config.segments {
        neighbours.membership().swarm().keep_bytes(number, Arc::clone(&bytes));
        neighbours.keep(now, number, WholeSegment::opaque(bytes.len() as u64));
    }
    neighbours.announce(&[]);
}

fn byte_at(at: usize) -> u8 {
    (at % 251) as u8
}

/// Whether a segment came whole and in order, by its length and its last byte.
fn read(arrived: &Arrived, segment_len: usize) -> Result<WholeSegment, String> {
    let is_right = arrived.bytes.len() == segment_len
        && arrived.bytes.last().copied() == segment_len.checked_sub(1).map(byte_at);
    if is_right {
        Ok(WholeSegment::opaque(arrived.bytes.len() as u64))
    } else {
        Err(format!("segment {} came with other bytes", arrived.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::participant::Opening;

    /// Performs what `ends[at]` wants; how it ended, if it did.
    fn drain(
        now: Instant,
        ends: &mut [SegmentExchange; 2],
        at: usize,
        addresses: [SocketAddr; 2],
    ) -> Option<Outcome> {
        loop {
            match ends[at].poll_output(now) {
                Output::Timeout(..) => return None,
                Output::Ended(outcome) => return Some(outcome),
                Output::Send(_, mut transmit) => {
                    let datagram = Input::Datagram {
                        channel: PEERS,
                        source: addresses[at],
                        local: None,
                        arrived_at: now,
                        bytes: &mut transmit.bytes,
                    };
                    ends[1 - at].handle(now, datagram);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn segments_are_taken_one_after_the_other_until_all_have_come() {
        let addresses = [4_000, 4_001].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let config = ExchangeConfig {
            segments: 3,
            segment_len: 200_000,
            toward: addresses[0],
            may_reach: Arc::new(|_, to| to.ip().is_loopback()),
            meeting: Arc::default(),
        };
        let mut ends = [ExchangeRole::Gives, ExchangeRole::Takes]
            .map(|role| SegmentExchange::new(config.clone(), role));
        let mut now = Instant::now();
        for (end, local) in ends.iter_mut().zip(addresses) {
            let opening = Opening { local: Some(local), ..Opening::default() };
            end.handle(now, Input::Opened { channel: PEERS, opening });
        }
        let mut outcomes = [None, None];
        for _ in 0..2_000 {
            now += Duration::from_millis(5);
            for (at, outcome) in outcomes.iter_mut().enumerate() {
                let ended = drain(now, &mut ends, at, addresses);
                *outcome = outcome.take().or(ended);
            }
        }
        assert_eq!(outcomes, [Some(Outcome::Completed), Some(Outcome::Completed)]);
        assert_eq!(ends.map(|end| end.taken()), [0, 3]);
    }
}
