//! Silence: the end of a recording, which is played again, or media that is missing.

use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason};
use throng_scenario::AtEnd;

use super::Viewer;
use crate::rtsp::playback::PlaybackState;

/// Silence after which a recording that has reached its length counts as ended …
const END_PATIENCE: Duration = Duration::from_secs(1);
/// … and one whose end the server has announced: media may arrive after RTCP BYE, on another
/// socket.
const BYE_PATIENCE: Duration = Duration::from_millis(200);
/// Silence after which a recording that is played again counts as not played: Live555 answers PLAY
/// after the end with 200 and sends nothing.
const REPLAY_PATIENCE: Duration = Duration::from_secs(2);

impl Viewer {
    /// Whether the recording has ended, or media is missing.
    pub(super) fn check_media(&mut self, now: Instant) {
        let (Some(receiver), Some(plays_since)) = (&self.receiver, self.playback.plays_since())
        else {
            return;
        };
        if self.silent_replay_at().is_some_and(|at| now >= at) {
            return self.stays_silent(now);
        }
        if self.end_at().is_some_and(|at| now >= at) {
            return self.ended(now);
        }
        let timeouts = self.session.options.timeouts;
        let Some(last) = receiver.last_media_at() else {
            if now >= plays_since + timeouts.first_media {
                // What came and was no media did pass.
                let hint = if self.session.is_interleaved || receiver.has_noticed() {
                    ""
                } else {
                    "; a firewall may drop UDP: target.rtsp_transport = \"tcp\""
                };
                let noticed =
                    receiver.last_anomaly().map(|last| format!(" ({last})")).unwrap_or_default();
                let detail = format!("PLAY was answered, and no media came{noticed}{hint}");
                self.fail(now, Failure::new(FailureReason::NoMedia, detail));
            }
            return;
        };
        if now >= last.max(plays_since) + timeouts.silence {
            let end = if self.playback.has_end() {
                ""
            } else {
                "; the description names no end (a=range), so it may be that of a recording"
            };
            let detail = format!("no media for {:.0} s{end}", timeouts.silence.as_secs_f64());
            self.fail(now, Failure::new(FailureReason::MediaLost, detail));
        }
    }

    /// When a recording that is played again counts as silent.
    pub(super) fn silent_replay_at(&self) -> Option<Instant> {
        let receiver = self.receiver.as_ref().filter(|_| self.is_replay)?;
        let at = self.playback.plays_since()? + REPLAY_PATIENCE;
        (!receiver.has_media()).then_some(at)
    }

    /// When a recording that fell silent counts as ended.
    pub(super) fn end_at(&self) -> Option<Instant> {
        let (receiver, plays_since) = (self.receiver.as_ref()?, self.playback.plays_since()?);
        let last = receiver.last_media_at();
        if !receiver.has_media() && !self.playback.may_end_unseen(last.is_some()) {
            return None;
        }
        let last = last.map_or(plays_since, |last| last.max(plays_since));
        if receiver.has_ended() {
            return Some(last + BYE_PATIENCE);
        }
        Some(self.playback.end_at()?.max(last) + END_PATIENCE)
    }

    /// The recording has ended.
    pub(super) fn ended(&mut self, now: Instant) {
        if self.playback.at_end == AtEnd::Leave {
            return self.leave(now);
        }
        if !self.session.client.is_free() {
            return;
        }
        if self.plays_once {
            return self.set_up_anew(now);
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.end_position(now);
        }
        self.playback.stopped(now);
        self.playback.state = PlaybackState::Restarts;
        self.session.client.play(now, Some(Duration::ZERO), self.playback.scale());
    }

    /// The recording was to be played again, and nothing came.
    fn stays_silent(&mut self, now: Instant) {
        let waited_s = REPLAY_PATIENCE.as_secs();
        self.session.anomaly(
            "rtsp",
            format!(
                "PLAY after the end of the recording was answered, and nothing came in {waited_s} \
                 s; it is set up anew each time"
            ),
        );
        self.set_up_anew(now);
    }

    /// Plays the recording again in a new session.
    pub(super) fn set_up_anew(&mut self, now: Instant) {
        if let Some(receiver) = &mut self.receiver {
            receiver.end_position(now);
        }
        self.playback.stopped(now);
        self.playback.state = PlaybackState::SetsUpAnew;
        self.plays_once = true;
        if !self.session.client.tear_down(now) {
            self.gone(now);
        }
    }

    pub(super) fn gone(&mut self, now: Instant) {
        if self.session.is_active() && self.playback.state == PlaybackState::SetsUpAnew {
            self.session.client.forget_session();
            return self.session.prepare(now, 0);
        }
        self.session.over();
    }
}
