//! When the viewer acts next.

use std::time::Instant;

use super::Viewer;
use crate::participant::{NEVER, Why};
use crate::rtsp::playback::PlaybackState;
use crate::rtsp::receiver::Receiver;

impl Viewer {
    pub(super) fn next_deadline(&self) -> (Instant, Why) {
        let mut all = vec![];
        all.extend(self.session.client.next_timeout());
        all.extend(self.session.life.next_timeout());
        let is_free = self.session.client.is_free();
        match (self.session.is_active(), self.playback.state) {
            (true, PlaybackState::Plays) => {
                let timeouts = self.session.options.timeouts;
                let since = self.playback.plays_since();
                let last = self.receiver.as_ref().and_then(Receiver::last_media_at);
                let silent = last.max(since).filter(|_| last.is_some());
                all.extend(silent.map(|at| (at + timeouts.silence, "media overdue")));
                let first = since.filter(|_| last.is_none());
                all.extend(first.map(|at| (at + timeouts.first_media, "first media overdue")));
                all.extend(self.silent_replay_at().map(|at| (at, "replay overdue")));
                // While a request is open, its answer or deadline comes first.
                all.extend(
                    self.end_at().filter(|_| is_free).map(|at| (at, "end of the recording")),
                );
                all.extend(
                    self.playback
                        .next_step_at()
                        .filter(|_| is_free)
                        .map(|at| (at, "action of the viewer")),
                );
            }
            (true, PlaybackState::Paused { until }) if is_free => {
                all.push((until, "end of the pause"));
            }
            (
                true,
                PlaybackState::Joins
                | PlaybackState::Restarts
                | PlaybackState::SetsUpAnew
                | PlaybackState::Stops(_)
                | PlaybackState::Paused { .. }
                | PlaybackState::Continues(_),
            )
            | (false, _) => {}
        }
        if self.receives() {
            all.extend(
                self.receiver
                    .as_ref()
                    .map(|receiver| (receiver.next_timeout(), "meters and reports")),
            );
        }
        all.into_iter()
            .min_by_key(|(at, _)| *at)
            .unwrap_or((self.session.options.clock.at + NEVER, "nothing"))
    }
}
