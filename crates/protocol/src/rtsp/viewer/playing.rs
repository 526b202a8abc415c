//! The answers to PLAY: where and how fast it plays, or that it does not.

use std::time::{Duration, Instant};

use rtsp_types::StatusCode;
use throng_observation::{Failure, FailureReason, Observation, Phase};

use super::Viewer;
use crate::rtsp::client::Played;
use crate::rtsp::playback::{PlaybackState, Then};
use crate::rtsp::rtp_info;
use crate::rtsp::session::Stage;

impl Viewer {
    pub(super) fn plays(&mut self, now: Instant, played: &Played) {
        let wanted = match self.playback.state {
            PlaybackState::Continues(Then::Scale(scale)) => scale,
            _ => self.playback.scale(),
        };
        // A server that does not know the header plays at normal speed.
        let scale = played.scale.unwrap_or(1.0);
        if (scale - wanted).abs() > 0.005 {
            self.session
                .anomaly("rtsp", format!("speed {wanted} was asked for, {scale} is played"));
        }
        let asked = match self.playback.state {
            PlaybackState::Joins => Some(self.start),
            PlaybackState::Restarts | PlaybackState::SetsUpAnew => Some(Duration::ZERO),
            PlaybackState::Continues(Then::Seek(to)) => Some(to),
            _ => None,
        };
        self.begin_position(now, played);
        if self.playback.state == PlaybackState::Joins {
            let path = self.session.path();
            self.session.life.observe(Observation::Path(path));
            self.session.life.reach(Phase::Playing, now);
        }
        self.is_replay = self.playback.state == PlaybackState::Restarts;
        self.playback.stops_at(played.until);
        self.playback.plays(now, asked, played.from, scale);
        if let Some(receiver) = &mut self.receiver {
            receiver.expect(now, self.playback.end_at());
        }
        self.session.life.enter(Stage::Active);
    }

    /// PLAY was answered, for the first time or another one: which packets are meant.
    fn begin_position(&mut self, now: Instant, played: &Played) {
        let Some(receiver) = &mut self.receiver else { return };
        match self.playback.state {
            PlaybackState::Joins => return,
            PlaybackState::Restarts | PlaybackState::SetsUpAnew => receiver.resume(now),
            PlaybackState::Continues(_)
            | PlaybackState::Stops(_)
            | PlaybackState::Paused { .. }
            | PlaybackState::Plays => {}
        }
        let tracks = self.session.tracks.iter();
        let urls = tracks.map(|track| self.session.client.url_of(track.control.as_deref()));
        let first = rtp_info::sequences(&played.first, &urls.collect::<Vec<_>>());
        receiver.begin_position(now, &first);
    }

    pub(super) fn play_refused(&mut self, now: Instant, status: StatusCode) {
        let code = u16::from(status);
        match self.playback.state {
            PlaybackState::Restarts => {
                let detail =
                    format!("the recording could not be played again ({code}); it is set up anew");
                self.session.anomaly("rtsp", detail);
                self.set_up_anew(now);
            }
            // 457 Invalid Range, 501 Not Implemented: it is played on from where it was.
            PlaybackState::Continues(Then::Seek(_) | Then::Scale(_)) => {
                self.session
                    .anomaly("rtsp", format!("a seek or another speed was refused ({code})"));
                self.playback.state = PlaybackState::Continues(Then::PlayOn);
                self.session.client.play(now, None, self.playback.scale());
            }
            // It was paused where nothing follows.
            PlaybackState::Continues(_) if may_be_end(status) && self.playback.is_near_end(now) => {
                self.ended(now);
            }
            _ => {
                let detail = format!("PLAY, after a pause: {code}");
                self.fail(now, Failure::new(FailureReason::RtspStatus(code), detail));
            }
        }
    }
}

/// Whether a server refuses to play on with this status where its recording has ended.
fn may_be_end(status: StatusCode) -> bool {
    matches!(status, StatusCode::MethodNotValidInThisState | StatusCode::InvalidRange)
}
