//! The RTSP viewer: a participant that opens the connection, sets the tracks up, plays and leaves.

use std::time::{Duration, Instant};

use rtsp_types::StatusCode;
use throng_media::prefetch::Prefetcher;
use throng_observation::{Failure, FailureReason, Observation, Outcome, Phase};
use throng_scenario::{AtEnd, PlaybackScript};

use super::client::{Answer, Played};
use super::description::Description;
use super::framing::FRAME_HEADER_BYTES;
use super::playback::{Due, Playback, PlaybackState, Then};
use super::receiver::{Receiver, ReceiverOptions};
use super::rtp_info;
use super::session::{Config, Session, Stage};
use super::set_up::SetUp;
use super::transport::{Mode, Track, rtcp_channel, rtp_channel};
use crate::excerpt::excerpt;
use crate::participant::{Input, NEVER, Output, Participant, Why};
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

/// Silence after which a recording that has reached its length counts as ended …
const END_PATIENCE: Duration = Duration::from_secs(1);
/// … and one whose end the server has announced: media may arrive after RTCP BYE, on another
/// socket.
const BYE_PATIENCE: Duration = Duration::from_millis(200);
/// Silence after which a recording that is played again counts as not played: Live555 answers PLAY
/// after the end with 200 and sends nothing.
const REPLAY_PATIENCE: Duration = Duration::from_secs(2);
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

    fn bytes(&mut self, now: Instant, bytes: &[u8]) {
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

    fn plays(&mut self, now: Instant, played: &Played) {
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

    fn play_refused(&mut self, now: Instant, status: StatusCode) {
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

    fn paused(&mut self, now: Instant) {
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
            _ => {}
        }
    }

    /// 405, 455, 501: the server cannot pause. It is still asked for another position, which may be
    /// played at once.
    fn pause_refused(&mut self, now: Instant, status: StatusCode) {
        self.session.anomaly("rtsp", format!("PAUSE was refused ({})", u16::from(status)));
        match self.playback.state {
            PlaybackState::Stops(Then::Pause(_)) => {
                self.playback.state = PlaybackState::Plays;
                if let Some(receiver) = &mut self.receiver {
                    receiver.expect(now, self.playback.end_at());
                }
            }
            PlaybackState::Stops(then) => self.go_on(now, then),
            _ => {}
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

    /// The recording has ended.
    fn ended(&mut self, now: Instant) {
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
    fn set_up_anew(&mut self, now: Instant) {
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

    fn gone(&mut self, now: Instant) {
        if self.session.is_active() && self.playback.state == PlaybackState::SetsUpAnew {
            self.session.client.forget_session();
            return self.session.prepare(now, 0);
        }
        self.session.over();
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

    /// Ends the media: what still arrives is not counted, nor reported after the end.
    fn say_goodbye(&mut self, now: Instant) {
        let Some(mut receiver) = self.receiver.take() else { return };
        receiver.finish(now);
        for at in 0..self.session.tracks.len() {
            self.session.send_rtcp(at, receiver.goodbye());
        }
        self.session.life.extend(receiver.take_observed().map(Output::Observed));
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

    /// What is due by the script, by the length of the recording, or by what arrives.
    fn play_on(&mut self, now: Instant) {
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
            _ => {}
        }
    }

    /// Whether the recording has ended, or media is missing.
    fn check_media(&mut self, now: Instant) {
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
    fn silent_replay_at(&self) -> Option<Instant> {
        let receiver = self.receiver.as_ref().filter(|_| self.is_replay)?;
        let at = self.playback.plays_since()? + REPLAY_PATIENCE;
        (!receiver.has_media()).then_some(at)
    }

    /// When a recording that fell silent counts as ended.
    fn end_at(&self) -> Option<Instant> {
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

    fn next_deadline(&self) -> (Instant, Why) {
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
            _ => {}
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

/// Whether a server refuses to play on with this status where its recording has ended.
fn may_be_end(status: StatusCode) -> bool {
    matches!(status, StatusCode::MethodNotValidInThisState | StatusCode::InvalidRange)
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
