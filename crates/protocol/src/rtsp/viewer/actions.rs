//! What the viewer does by its script: pauses, seeks and other speeds.

use std::time::{Duration, Instant};

use rtsp_types::StatusCode;

use super::Viewer;
use crate::participant::NEVER;
use crate::rtsp::playback::{Due, PlaybackState, Then};

impl Viewer {
    /// What is due by the script, by the length of the recording, or by what arrives.
    pub(super) fn play_on(&mut self, now: Instant) {
        match self.playback.state {
            PlaybackState::Plays => {
                if self.session.client.is_free()
                    && let Some(due) = self.playback.take_step(now)
                {
                    return self.act(now, due);
                }
                self.check_media(now);
            }
            PlaybackState::Paused { until } if now >= until && self.session.client.is_free() => {
                self.go_on(now, Then::Pause(Duration::ZERO));
            }
            PlaybackState::Joins
            | PlaybackState::Restarts
            | PlaybackState::SetsUpAnew
            | PlaybackState::Stops(_)
            | PlaybackState::Paused { .. }
            | PlaybackState::Continues(_) => {}
        }
    }

    /// Stops for an action of the script.
    fn act(&mut self, now: Instant, due: Due) {
        match due {
            Due::Impossible => {
                self.session.anomaly("rtsp", "an action was left out: there is nothing to seek in");
            }
            Due::Do(then) => {
                if let Some(receiver) = &mut self.receiver {
                    match then {
                        Then::Seek(_) | Then::Scale(_) => receiver.seek(now),
                        // A server may stop long before it answers.
                        Then::Pause(_) | Then::PlayOn => receiver.expect_nothing(),
                    }
                }
                // A PLAY during playback would be queued (RFC 2326 section 10.5): players pause
                // before they seek.
                self.playback.state = PlaybackState::Stops(then);
                self.session.client.pause(now);
            }
        }
    }

    pub(super) fn paused(&mut self, now: Instant) {
        self.playback.stopped(now);
        match self.playback.state {
            PlaybackState::Stops(Then::Pause(time)) => {
                if let Some(receiver) = &mut self.receiver {
                    receiver.pause(now);
                }
                let until = now.checked_add(time).unwrap_or(now + NEVER);
                self.playback.state = PlaybackState::Paused { until };
            }
            PlaybackState::Stops(then) => self.go_on(now, then),
            PlaybackState::Joins
            | PlaybackState::Plays
            | PlaybackState::Restarts
            | PlaybackState::SetsUpAnew
            | PlaybackState::Paused { .. }
            | PlaybackState::Continues(_) => {}
        }
    }

    /// 405, 455, 501: the server cannot pause. It is still asked for another position, which may be
    /// played at once.
    pub(super) fn pause_refused(&mut self, now: Instant, status: StatusCode) {
        self.session.anomaly("rtsp", format!("PAUSE was refused ({})", u16::from(status)));
        match self.playback.state {
            PlaybackState::Stops(Then::Pause(_)) => {
                self.playback.state = PlaybackState::Plays;
                if let Some(receiver) = &mut self.receiver {
                    receiver.expect(now, self.playback.end_at());
                }
            }
            PlaybackState::Stops(then) => self.go_on(now, then),
            PlaybackState::Joins
            | PlaybackState::Plays
            | PlaybackState::Restarts
            | PlaybackState::SetsUpAnew
            | PlaybackState::Paused { .. }
            | PlaybackState::Continues(_) => {}
        }
    }

    fn go_on(&mut self, now: Instant, then: Then) {
        self.playback.state = PlaybackState::Continues(then);
        let (from, scale) = match then {
            Then::Seek(to) => (Some(to), self.playback.scale()),
            Then::Scale(scale) => (None, scale),
            Then::Pause(_) | Then::PlayOn => (None, self.playback.scale()),
        };
        if let Some(receiver) = &mut self.receiver {
            match then {
                Then::Pause(_) => receiver.go_on(now),
                _ => receiver.await_position(),
            }
        }
        self.session.client.play(now, from, scale);
    }
}
