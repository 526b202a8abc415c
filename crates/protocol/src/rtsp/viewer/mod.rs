//! The RTSP viewer: a participant that opens the connection, sets the tracks up, plays and leaves.
//!
//! `dialogue` takes answers up to the first PLAY, and `playing` those to every PLAY. While it
//! plays, `actions` does what its script says, and `ending` tells the end of a recording from media
//! that is missing. `leaving` is every way out, and `deadlines` when it acts next.

use std::time::{Duration, Instant};

use throng_media::prefetch::Prefetcher;
use throng_scenario::PlaybackScript;

use super::playback::Playback;
use super::receiver::Receiver;
use super::session::{Config, Session, Stage};
use super::transport::Mode;
use crate::participant::{Input, Output, Participant};
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

mod actions;
mod deadlines;
mod dialogue;
mod ending;
mod leaving;
mod playing;

/// UDP and IP header, bytes.
const UDP_V4_BYTES: u32 = 28;
const UDP_V6_BYTES: u32 = 48;

/// A participant that plays one RTSP presentation.
pub struct Viewer {
    session: Session,
    playback: Playback,
    /// Where playback begins.
    start: Duration,
    /// PLAY was answered in the session in which the recording had ended.
    is_replay: bool,
    /// A session of this server plays its recording once.
    plays_once: bool,
    receiver: Option<Receiver>,
}

impl Viewer {
    /// A viewer that plays what `config` names, a recording from its beginning and again and again.
    #[must_use]
    pub fn new(config: Config, options: ParticipantOptions) -> Self {
        Self::with_playback(config, PlaybackScript::default(), options)
    }

    /// A viewer that plays a recording by `script`.
    #[must_use]
    pub fn with_playback(
        config: Config,
        script: PlaybackScript,
        options: ParticipantOptions,
    ) -> Self {
        Self {
            playback: Playback::new(script),
            session: Session::new(config, Mode::Play, options),
            start: Duration::ZERO,
            is_replay: false,
            plays_once: false,
            receiver: None,
        }
    }

    fn connect(&mut self, now: Instant) {
        if let Err(failure) = self.session.connect() {
            self.fail(now, failure);
        }
    }

    fn take_observed(&mut self) {
        if let Some(receiver) = self.receiver.as_mut().filter(|receiver| receiver.has_observed()) {
            self.session.life.extend(receiver.take_observed().map(Output::Observed));
        }
    }

    fn tick(&mut self, now: Instant) {
        if let Err(failure) = self.session.client.timeout(now) {
            self.session.client.forget_session();
            self.fail(now, failure);
        }
        if self.session.give_up_goodbye(now) {
            return;
        }
        let (is_active, receives) = (self.session.is_active(), self.receives());
        if let Some(receiver) = self.receiver.as_mut().filter(|_| receives) {
            receiver.timeout(now);
            while let Some((at, report)) = receiver.poll_report(now) {
                if is_active {
                    self.session.send_rtcp(at, report);
                }
            }
        }
        if is_active {
            self.play_on(now);
        }
    }

    /// Whether its meters run.
    fn receives(&self) -> bool {
        matches!(self.session.life.live(), Some(Stage::Joining | Stage::Active))
    }
}

impl Participant for Viewer {
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
                let Some((at, is_rtcp)) = self.session.track_of(channel, source) else { return };
                let Some(receiver) = &mut self.receiver else { return };
                if is_rtcp {
                    receiver.rtcp(at, arrived_at, bytes);
                } else {
                    let overhead_bytes = if source.is_ipv4() { UDP_V4_BYTES } else { UDP_V6_BYTES };
                    receiver.rtp(at, arrived_at, overhead_bytes, bytes);
                }
            }
            Input::Closed { channel, why } => {
                if let Some(failure) = self.session.closed(channel, why) {
                    self.fail(now, failure);
                }
            }
            Input::Leave { .. } => self.leave(now),
            // Due work is done when the outputs are drained.
            Input::Timeout => {}
            Input::Bytes { .. }
            | Input::Blocked { .. }
            | Input::Message { .. }
            | Input::Fetched { .. }
            | Input::Download { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if !self.session.life.has_output() && !self.session.life.is_over() {
            self.tick(now);
            self.take_observed();
        }
        self.session.next_output().unwrap_or_else(|| Output::wait(now, self.next_deadline()))
    }

    fn receive_lag(&mut self, lag: Duration) {
        self.receiver.iter_mut().for_each(|receiver| receiver.receive_lag(lag));
    }

    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        if let Some(receiver) = &self.receiver {
            receiver.prefetch(level, prefetcher);
        }
    }
}
