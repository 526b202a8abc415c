//! What the server answers, up to the first PLAY.

use std::time::{Duration, Instant};

use throng_observation::Phase;

use super::Viewer;
use crate::excerpt::excerpt;
use crate::rtsp::client::Answer;
use crate::rtsp::description::Description;
use crate::rtsp::framing::FRAME_HEADER_BYTES;
use crate::rtsp::playback::PlaybackState;
use crate::rtsp::receiver::{Receiver, ReceiverOptions};
use crate::rtsp::set_up::SetUp;
use crate::rtsp::transport::{Track, rtcp_channel, rtp_channel};

impl Viewer {
    pub(super) fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        let Self { session, receiver, .. } = self;
        let (messages, broken) = session.cut(bytes, |at, is_rtcp, packet| match receiver {
            Some(receiver) if is_rtcp => receiver.rtcp(at, now, packet),
            Some(receiver) => receiver.rtp(at, now, FRAME_HEADER_BYTES as u32, packet),
            None => {}
        });
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
        match answer {
            Answer::Ready => self.session.client.describe(now),
            Answer::Described(description) => self.described(now, &description),
            Answer::SetUp(at, granted) => match self.session.was_set_up(now, at, granted) {
                Ok(set_up) => self.was_set_up(now, at, set_up),
                Err(failure) => self.fail(now, failure),
            },
            Answer::TransportRefused => {
                if let Err(failure) = self.session.transport_refused(now) {
                    self.fail(now, failure);
                }
            }
            Answer::Plays(played) => self.plays(now, &played),
            Answer::PlayRefused(status) => self.play_refused(now, status),
            Answer::Paused => self.paused(now),
            Answer::PauseRefused(status) => self.pause_refused(now, status),
            Answer::Moved(url) => {
                if let Err(failure) = self.session.moved(url) {
                    self.fail(now, failure);
                }
            }
            Answer::Gone => self.gone(now),
            Answer::Announced | Answer::Records | Answer::Nothing => {}
        }
    }

    fn described(&mut self, now: Instant, description: &Description) {
        self.session.life.reach(Phase::Described, now);
        if description.media.iter().any(|media| media.is_secure)
            && let Err(failure) = self.session.take_in_the_clear()
        {
            return self.fail(now, failure);
        }
        for line in &description.skipped {
            self.session.anomaly("sdp", format!("not played: m={}", excerpt(line)));
        }
        let (start, is_left_out) = self.playback.described(description.duration);
        self.start = start;
        if is_left_out {
            self.session.anomaly(
                "rtsp",
                "a live presentation is played from now, not from another position",
            );
        }
        let options = ReceiverOptions {
            clock: self.session.options.clock,
            joined_at: self.session.started_at,
            seed: self.session.options.seed,
            is_tapped: self.session.options.is_tapped,
            is_recording: description.duration.is_some(),
        };
        self.receiver = Some(Receiver::new(options, &description.media, now));
        let tracks = description.media.iter().map(|media| Track {
            control: media.control.clone(),
            profile: media.profile.clone(),
            ..Track::default()
        });
        self.session.set_up_tracks(now, tracks.collect());
    }

    fn was_set_up(&mut self, now: Instant, at: usize, set_up: SetUp) {
        self.open_path(at);
        if set_up == SetUp::All {
            self.session.life.reach(Phase::Negotiated, now);
            // Set up anew, a recording begins again.
            let from = if self.playback.state == PlaybackState::Joins {
                self.start
            } else {
                Duration::ZERO
            };
            self.session.client.play(now, Some(from), self.playback.scale());
        }
    }

    /// Sends a packet from each port, which opens the path through NATs and firewalls, as players
    /// do.
    fn open_path(&mut self, at: usize) {
        let Some((rtp, rtcp)) = self.session.tracks.get(at).and_then(|track| track.peers) else {
            return;
        };
        if self.session.is_interleaved {
            return;
        }
        // An RTP packet without payload (version 2, everything else zero).
        let mut empty = vec![0; 12];
        if let Some(first) = empty.first_mut() {
            *first = 0x80;
        }
        self.session.send(rtp_channel(at), rtp, empty);
        if let Some(report) = self.receiver.as_ref().map(Receiver::empty_report) {
            self.session.send(rtcp_channel(at), rtcp, report);
        }
    }
}
