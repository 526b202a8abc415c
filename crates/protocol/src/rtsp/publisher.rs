//! The RTSP publisher: a participant that announces its media, sets the tracks up, sends and
//! leaves.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase};
use throng_scenario::IpProtocol;
use throng_scenario::consent::way_to_agree;

use super::announce::{control, session_description};
use super::client::Answer;
use super::framing::FRAME_HEADER_BYTES;
use super::sender::Sender;
use super::session::{Config, Session, Stage, interleave};
use super::set_up::SetUp;
use super::transport::{Mode, Track, rtp_channel};
use crate::participant::{Input, NEVER, Output, Participant, Why};
use crate::published::PublishedMedia;
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

/// A participant that publishes one presentation by ANNOUNCE and RECORD.
pub struct Publisher {
    session: Session,
    media: Vec<PublishedMedia>,
    /// Once RECORD was answered.
    sender: Option<Sender>,
    has_bad_rtcp: bool,
}

impl Publisher {
    /// A publisher of `media` at what `config` names.
    #[must_use]
    pub fn new(config: Config, media: Vec<PublishedMedia>, options: ParticipantOptions) -> Self {
        let session = Session::new(config, Mode::Record, options);
        Self { session, media, sender: None, has_bad_rtcp: false }
    }

    fn connect(&mut self, now: Instant) {
        if self.media.is_empty() {
            let detail = "the role has nothing to publish";
            return self.fail(now, Failure::new(FailureReason::InternalError, detail));
        }
        if let Err(failure) = self.session.connect() {
            self.fail(now, failure);
        }
    }

    fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        let Self { session, sender, has_bad_rtcp, .. } = self;
        let mut is_bad = false;
        let (messages, broken) = session.cut(bytes, |_, is_rtcp, packet| {
            if let Some(sender) = sender.as_mut().filter(|_| is_rtcp) {
                is_bad |= !sender.rtcp(now, packet);
            }
        });
        if is_bad && !std::mem::replace(has_bad_rtcp, true) {
            session.anomaly("rtcp", "a control packet is malformed");
        }
        for message in messages {
            if self.session.life.is_over() {
                return;
            }
            match self.session.client.message(now, message) {
                Ok(answer) => self.answered(now, answer),
                Err(failure) => self.fail(now, failure),
            }
        }
        if let Some(failure) = broken {
            self.fail(now, failure);
        }
    }

    fn answered(&mut self, now: Instant, answer: Answer) {
        let result = match answer {
            Answer::Ready => {
                let clips: Vec<_> = self.media.iter().map(|media| &*media.clip).collect();
                let address = self
                    .session
                    .server
                    .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |server| server.ip());
                self.session
                    .client
                    .announce(now, session_description(&clips, address.to_canonical()));
                Ok(())
            }
            Answer::Announced => {
                self.session.life.reach(Phase::Described, now);
                let track = |at| Track {
                    control: Some(control(at)),
                    profile: "RTP/AVP".into(),
                    ..Track::default()
                };
                self.session.set_up_tracks(now, (0..self.media.len()).map(track).collect());
                Ok(())
            }
            Answer::SetUp(at, granted) => match self.session.was_set_up(now, at, granted) {
                Ok(SetUp::More) => Ok(()),
                Ok(SetUp::All) => self.were_set_up(now),
                Err(failure) => Err(failure),
            },
            Answer::TransportRefused => self.session.transport_refused(now),
            Answer::Records => {
                self.records(now);
                Ok(())
            }
            Answer::Moved(url) => {
                self.sender = None;
                self.session.moved(url)
            }
            Answer::Gone => {
                self.session.over();
                Ok(())
            }
            Answer::Described(_)
            | Answer::Plays(_)
            | Answer::PlayRefused(_)
            | Answer::Paused
            | Answer::PauseRefused(_)
            | Answer::Nothing => Ok(()),
        };
        if let Err(failure) = result {
            self.fail(now, failure);
        }
    }

    fn were_set_up(&mut self, now: Instant) -> Result<(), Failure> {
        if let Some(to) = self.session.tracks.iter().find_map(|track| track.refused) {
            let way = way_to_agree(IpProtocol::Udp, to);
            let detail = format!("the server's port for media, {to}, may not be sent to ({way})");
            return Err(Failure::new(FailureReason::NotAllowed, detail));
        }
        let is_sendable = |track: &Track| {
            if self.session.is_interleaved {
                track.granted.channels.is_some()
            } else {
                track.peers.is_some()
            }
        };
        if !self.session.tracks.iter().all(is_sendable) {
            let where_to = if self.session.is_interleaved { "channels" } else { "ports" };
            let detail = format!("SETUP was answered without {where_to} to send to");
            return Err(Failure::new(FailureReason::Protocol, detail));
        }
        self.session.life.reach(Phase::Negotiated, now);
        self.session.client.record(now);
        Ok(())
    }

    fn records(&mut self, now: Instant) {
        self.session.life.enter(Stage::Active);
        let path = self.session.path();
        self.session.life.observe(Observation::Path(path));
        self.session.life.reach(Phase::Playing, now);
        let options = &self.session.options;
        let sender =
            Sender::new(&self.media, options.clock, options.seed, self.session.started_at, now);
        self.sender = Some(sender);
    }

    /// Sends what is due.
    fn send_due(&mut self, now: Instant) {
        let Self { session, sender: Some(sender), .. } = self else { return };
        let (is_interleaved, server) = (session.is_interleaved, session.server);
        let overhead_bytes = if is_interleaved { FRAME_HEADER_BYTES as u64 } else { 0 };
        sender.frames(now, overhead_bytes, |at, packets| {
            let Some(track) = session.tracks.get(at) else { return };
            if let (false, Some((rtp, _))) = (is_interleaved, track.peers) {
                packets.into_iter().for_each(|packet| session.send(rtp_channel(at), rtp, packet));
            } else if let (true, Some((channel, _)), Some(server)) =
                (is_interleaved, track.granted.channels, server)
            {
                // A frame is one write: the driver's queue of a connection is bounded by writes.
                let mut bytes =
                    Vec::with_capacity(packets.iter().map(|packet| packet.len() + 4).sum());
                packets.iter().for_each(|packet| {
                    interleave(&mut bytes, channel, packet);
                });
                session.send(SIGNALLING, server, bytes);
            }
        });
        while let Some((at, report)) = sender.poll_report(now) {
            session.send_rtcp(at, report);
        }
        let intervals = sender.take_due_intervals(now);
        session.life.extend(intervals.into_iter().map(Output::Observed));
    }

    fn leave(&mut self, now: Instant) {
        self.part(now, self.session.outcome_of_leaving());
    }

    /// Leaves with `failure`; one that leaves already ends with that.
    fn fail(&mut self, now: Instant, failure: Failure) {
        if self.session.life.is_leaving() {
            return self.session.over();
        }
        self.part(now, Outcome::Failed(failure));
    }

    fn part(&mut self, now: Instant, outcome: Outcome) {
        if !self.session.life.is_ending() {
            self.say_goodbye(now);
            self.session.part(now, outcome);
        }
    }

    fn say_goodbye(&mut self, now: Instant) {
        let Some(mut sender) = self.sender.take() else { return };
        for at in 0..self.session.tracks.len() {
            if let Some(goodbye) = sender.goodbye(at) {
                self.session.send_rtcp(at, goodbye);
            }
        }
        let intervals = sender.take_intervals(now);
        self.session.life.extend(intervals.into_iter().map(Output::Observed));
    }

    fn tick(&mut self, now: Instant) {
        if let Err(failure) = self.session.client.timeout(now) {
            self.session.client.forget_session();
            self.fail(now, failure);
        }
        if !self.session.give_up_goodbye(now) && self.session.is_active() {
            self.send_due(now);
        }
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let media = self.sender.as_ref().map(Sender::next_timeout);
        let all = [self.session.client.next_timeout(), self.session.life.next_timeout(), media];
        all.into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
            .unwrap_or((self.session.options.clock.at + NEVER, "nothing"))
    }
}

impl Participant for Publisher {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.session.life.is_over() {
            return;
        }
        match input {
            Input::Start { .. } => {
                self.session.start(now);
                self.connect(now);
            }
            Input::Opened { channel: SIGNALLING, opening } => self.session.connected(now, &opening),
            Input::Opened { channel, opening } => self.session.ports_opened(now, channel, &opening),
            Input::Bytes { channel: SIGNALLING, bytes } => self.bytes(now, bytes),
            Input::Datagram { channel, source, arrived_at, bytes, .. } => {
                let Some((_, true)) = self.session.track_of(channel, source) else { return };
                let Some(sender) = &mut self.sender else { return };
                if !sender.rtcp(arrived_at, bytes)
                    && !std::mem::replace(&mut self.has_bad_rtcp, true)
                {
                    self.session.anomaly("rtcp", "a control packet is malformed");
                }
            }
            Input::Closed { channel, why } => {
                if let Some(failure) = self.session.closed(channel, why) {
                    self.fail(now, failure);
                }
            }
            Input::Leave { .. } => self.leave(now),
            Input::Blocked { duration, .. } => {
                if let Some(sender) = &mut self.sender {
                    sender.blocked(duration);
                }
            }
            // Due work is done when the outputs are drained.
            Input::Timeout => {}
            Input::Bytes { .. }
            | Input::Message { .. }
            | Input::Fetched { .. }
            | Input::Download { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if !self.session.life.has_output() && !self.session.life.is_over() {
            self.tick(now);
        }
        self.session.next_output().unwrap_or_else(|| Output::wait(now, self.next_deadline()))
    }
}
