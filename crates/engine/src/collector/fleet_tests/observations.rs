//! What the participants of the crowd observe, from their phases to their ends, in the order in
//! which it happens.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{
    Codec, FailureReason, IceState, Layer, LayerSwitch, MediaKind, MediaPath, Observation, Outcome,
    Phase, RefusedDestination, RunTime, TrackId, seed,
};

use super::crowd::{NEVER_BEGINS, PEOPLE, Role, S, end_of, join, last_phase};
use crate::clock::RunClock;

/// Pseudo-random numbers (SplitMix64) that depend on the participant and the moment alone.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn of(number: u32, moment: i64) -> Self {
        Self((u64::from(number) << 40) ^ moment as u64)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        seed::next(&mut self.0) % bound.max(1)
    }
}

/// What a collector is told of a participant.
#[derive(Clone, Debug)]
pub(super) enum What {
    Started,
    Address,
    Observed(Observation),
    Requested { path: String, status: u16, bytes: u64 },
    RefusedSend,
    Ended(Outcome),
}

#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) at: RunTime,
    pub(super) number: u32,
    pub(super) what: What,
}

/// What all participants observe.
pub(super) struct Story {
    clock: RunClock,
    told: Vec<Told>,
}

impl Story {
    /// In the order in which it happens.
    pub(super) fn of_all(clock: RunClock) -> Vec<Told> {
        let mut story = Self { clock, told: Vec::new() };
        (0..PEOPLE)
            .filter(|number| *number != NEVER_BEGINS)
            .for_each(|number| story.participant(number));
        story.told.sort_by_key(|told| told.at);
        story.told
    }

    pub(super) fn at(&self, us: i64) -> Instant {
        self.clock.instant(RunTime(us))
    }

    pub(super) fn tell(&mut self, number: u32, us: i64, what: What) {
        self.told.push(Told { at: RunTime(us), number, what });
    }

    pub(super) fn observe(&mut self, number: u32, us: i64, observation: Observation) {
        self.tell(number, us, What::Observed(observation));
    }

    fn participant(&mut self, number: u32) {
        let (role, (end, outcome)) = (Role::of(number), end_of(number));
        let mut numbers = Numbers::of(number, -1);
        // Some take longer than a join may.
        let slowly_us = if number % 19 == 8 { 450_000 } else { 0 };
        let mut reached = join(number).at.0 + 1_000 + numbers.below(20_000) as i64;
        self.tell(number, reached, What::Started);
        self.tell(number, reached, What::Address);
        for phase in role.phases().iter().copied().filter(|phase| *phase <= last_phase(number)) {
            reached += 3_000 + numbers.below(120_000) as i64 + slowly_us;
            if reached >= end {
                break;
            }
            let at = self.at(reached);
            self.observe(number, reached, Observation::Reached(phase, at));
            match phase {
                Phase::Negotiated => {
                    self.observe(number, reached, Observation::Ice(IceState::Checking));
                }
                Phase::IceConnected => {
                    self.observe(number, reached, Observation::Ice(IceState::Connected));
                }
                Phase::DtlsConnected => {
                    let path = if number % 4 == 2 { MediaPath::RelayUdp } else { MediaPath::Host };
                    self.observe(number, reached, Observation::Path(path));
                }
                Phase::Playing => {
                    self.observe(number, reached, Observation::Path(MediaPath::Http2));
                }
                _ => {}
            }
        }
        if last_phase(number) == Phase::Joined {
            self.media(number, role, (reached, end));
        }
        match &outcome {
            Outcome::Failed(failure) if failure.reason == FailureReason::Ice => {
                self.observe(number, end, Observation::Ice(IceState::Failed));
            }
            Outcome::Completed if number % 9 == 2 => {
                self.observe(number, end, Observation::LeaveUnanswered);
            }
            _ => {}
        }
        self.tell(number, end, What::Ended(outcome));
    }

    /// What comes of media, second by second.
    fn media(&mut self, number: u32, role: Role, (ready, end): (i64, i64)) {
        if role == Role::Viewer {
            self.tracks(number, ready);
        }
        let to = SocketAddr::from(([10, 0, 0, 7], 9));
        self.observe(number, ready, Observation::Refused(RefusedDestination::IceCandidate, to));
        self.tell(number, ready, What::RefusedSend);
        for (began, ended) in stretches(ready, end) {
            match role {
                Role::Viewer => self.received(number, ready, (began, ended)),
                Role::Publisher => self.sent(number, (began, ended)),
                Role::Player => self.played(number, (began, ended)),
                Role::Chat => self.chatted(number, ended),
            }
            // So many that neither one process nor any worker writes all of them one by one.
            let anomalies = if number.is_multiple_of(4) { 12 } else { 0 };
            for place in 0..anomalies {
                let detail = format!("line {place} has no value").into();
                self.observe(number, ended, Observation::ProtocolAnomaly { place: "sdp", detail });
            }
        }
    }

    fn tracks(&mut self, number: u32, ready: i64) {
        let at = self.at(ready);
        for (track, kind, codec) in
            [(0, MediaKind::Video, Codec::Vp8), (1, MediaKind::Audio, Codec::Opus)]
        {
            let track = TrackId(track);
            let is_recording = number.is_multiple_of(5);
            self.observe(
                number,
                ready,
                Observation::TrackOpened { track, kind, codec, is_recording },
            );
            self.observe(number, ready, Observation::TrackFirstFrame { track, at });
        }
        let mut numbers = Numbers::of(number, -2);
        let asked = ready + 2_300_000;
        let shown = asked + 50_000 + numbers.below(600_000) as i64;
        let switch = LayerSwitch {
            track: TrackId(0),
            layer: Layer::ALL[numbers.below(4) as usize],
            requested_at: self.at(asked),
            shown: (number % 4 != 1).then(|| (self.at(shown), 640, 360)),
        };
        self.observe(number, shown, Observation::LayerSwitched(switch));
    }
}

/// The intervals from one moment to another: they end 0.1 s before each second does.
fn stretches(from: i64, until: i64) -> impl Iterator<Item = (i64, i64)> {
    let mut began = from;
    std::iter::from_fn(move || {
        let next = ((began + 100_000).div_euclid(S) + 1) * S - 100_000;
        let stretch = (began, next.min(until));
        began = stretch.1;
        (stretch.0 < stretch.1).then_some(stretch)
    })
}
