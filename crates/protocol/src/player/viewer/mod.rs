//! The viewer: a participant that plays from a buffer what its lanes download.

use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason, Outcome, Phase};
use throng_scenario::{MediaFormat, PlayerConfig};

use super::Config;
use super::download::client::HttpClient;
use super::download::cors::Embedding;
use super::lane::Lane;
use super::lane::file::FileLane;
use super::lane::keys::Keys;
use super::manifest::ManifestDownload;
use super::manifest::presentation::LiveEdge;
use super::p2p::{PEERS, Tracker};
use super::page::Page;
use super::playback::live::LiveFollower;
use super::playback::meter::Meter;
use super::playback::playout::{Behind, Buffered, Playout};
use super::playback::timeline::Timeline;
use super::playback::user::User;
use crate::participant::{Input, Output, Participant};
use peers::{PeerSocket, TRACKER};

mod interval;
mod loading;
mod peers;
mod position;

/// A full buffer is filled again once so much of it was played.
const REFILL_AFTER: Duration = Duration::from_secs(1);

/// A participant that plays video over HTTP.
pub struct Viewer {
    config: Config,
    client: HttpClient,
    /// The page around the player.
    page: Option<Page>,
    /// The manifest, until the lanes that it describes exist.
    manifest: Option<ManifestDownload>,
    lanes: Vec<Lane>,
    timeline: Timeline,
    keys: Keys,
    /// Where it finds peers.
    tracker: Option<Tracker>,
    /// Where it exchanges segments with peers of other processes.
    peer_socket: PeerSocket,
    /// How far the server's clock is ahead of this host's, where a DASH manifest says how to learn
    /// it.
    server_ahead_us: i64,
    /// Absent before the start.
    pub(super) session: Option<Session>,
    /// Why nothing more will come. What is buffered is played before it ends with that.
    failure: Option<Failure>,
}

/// What there is from the start on.
pub(super) struct Session {
    pub(super) playout: Playout,
    meter: Meter,
    user: User,
    /// Where it plays in a live stream.
    follower: LiveFollower,
    /// Dates that cannot be true were reported.
    knows_wrong_dates: bool,
    /// The buffer is being filled.
    is_filling: bool,
    /// The position where playback begins was chosen.
    is_positioned: bool,
    /// The position is that of the first frame that comes.
    follows_first_frame: bool,
}

impl Viewer {
    /// A viewer that plays what `config` names.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut client = HttpClient::new(
            config.http,
            (config.token.clone(), &config.url),
            config.may_reach.clone(),
            config.head_timeout,
        );
        client.add_headers(&config.player.headers);
        client.keep_cookies(config.player.credentials, config.clock);
        let format = config.player.format.of_path(config.url.in_clear().path());
        if let Some(page) = &config.player.page {
            // Files are played by a media element itself.
            client.embed(Embedding::at(page, format != MediaFormat::File));
        }
        let (lanes, manifest) = match format {
            MediaFormat::Hls | MediaFormat::Dash => {
                let playlists = config.playlists.clone();
                let manifest =
                    ManifestDownload::new(config.url.clone(), format, playlists, config.clock);
                (Vec::new(), Some(manifest))
            }
            MediaFormat::Auto | MediaFormat::File => {
                let lane = FileLane::new(config.url.clone(), config.indexes.clone());
                (vec![Lane::File(Box::new(lane))], None)
            }
        };
        Self {
            client,
            page: config.page.clone().map(Page::new),
            lanes,
            manifest,
            timeline: Timeline::default(),
            keys: Keys::default(),
            tracker: config.player.peers.as_ref().and_then(|peers| {
                let seed = config.name_seed(peers);
                Some(Tracker::new(peers.tracker.clone()?, peers.engine, seed))
            }),
            peer_socket: match &config.player.peers {
                Some(peers) if peers.has_channels(config.number) => PeerSocket::Wanted,
                _ => PeerSocket::None,
            },
            server_ahead_us: 0,
            session: None,
            failure: None,
            config,
        }
    }

    /// The wall clock by which the stream goes, microseconds since 1970: the server's, as far as it
    /// is known.
    fn unix_us(&self, now: Instant) -> i64 {
        let host_us = i64::try_from(self.config.clock.unix_ns(now) / 1_000).unwrap_or(i64::MAX);
        host_us.saturating_add(self.server_ahead_us)
    }

    fn player(&self) -> &PlayerConfig {
        &self.config.player
    }

    fn start(&mut self, now: Instant, intended_at: Instant) {
        self.client.life.start(now, ());
        self.page.iter_mut().for_each(|page| page.start(now));
        let player = self.player();
        let user = User::new(player, self.config.number, now);
        self.session = Some(Session {
            playout: Playout::new(intended_at, 0, player.start),
            meter: Meter::new(self.config.clock.at, now),
            user,
            follower: LiveFollower::new(self.config.player.live),
            knows_wrong_dates: false,
            is_filling: true,
            is_positioned: false,
            follows_first_frame: false,
        });
    }

    /// What is buffered.
    fn buffered(&self) -> Buffered {
        // A lane whose tracks are not known yet may bring one.
        let is_known = self.lanes.iter().all(|lane| lane.has_tracks() || lane.is_complete());
        let position_us = self.session.as_ref().map_or(0, |session| session.playout.position_us());
        let playable_us = self
            .timeline
            .playable_us(position_us, |track| self.track_has_ended(track))
            .filter(|_| is_known);
        let is_at_hole = playable_us.is_some() && playable_us == self.timeline.hole_us(position_us);
        let behind = if is_at_hole {
            Behind::Hole
        } else if self.is_complete() {
            Behind::End
        } else if self.failure.is_some() {
            Behind::Failure
        } else {
            Behind::More
        };
        Buffered { playable_us, behind }
    }

    /// Whether all of this track was received.
    fn track_has_ended(&self, track: usize) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.find(|lane| lane.brings(track)).is_none_or(|lane| lane.has_ended(track))
    }

    /// Whether all media were received.
    fn is_complete(&self) -> bool {
        !self.lanes.is_empty() && self.lanes.iter().all(Lane::is_complete)
    }

    /// How far all tracks were received, whether it can be played yet or not.
    fn received_us(&self) -> Option<i64> {
        self.timeline.received_us(|track| self.track_has_ended(track))
    }

    /// The end of the stream, where it is live: that of the lane that ends first.
    fn edge(&self) -> Option<LiveEdge> {
        self.lanes.iter().filter_map(Lane::edge).min_by_key(|edge| edge.ends_us)
    }

    /// Media ahead of the position, microseconds; a hole in it is jumped over.
    fn buffer_us(&self, position_us: i64) -> u64 {
        if self.buffered().playable_us.is_none() {
            return 0;
        }
        self.timeline.ahead_us(position_us, |track| self.track_has_ended(track))
    }

    /// Up to how much media the buffer is filled, and below which it is filled again.
    fn buffer_bounds_us(&self) -> (u64, u64) {
        let as_us = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let target_us = as_us(self.config.player.buffer);
        (target_us, target_us - as_us(REFILL_AFTER).min(target_us / 2))
    }

    /// Moves the clock of playback to `now`.
    fn advance(&mut self, now: Instant) {
        let buffered = self.buffered();
        if let Some(session) = &mut self.session {
            session.playout.advance(now, buffered);
        }
        self.jump_over_hole();
    }

    /// Everything that follows from what was received or from the time.
    fn settle(&mut self, now: Instant) {
        if self.client.life.is_ending() || self.session.is_none() {
            return;
        }
        if !self.has_player(now) {
            return self.lose_patience(now);
        }
        self.pump_manifest(now);
        if self.client.life.is_ending() {
            return;
        }
        let unix_us = self.unix_us(now);
        self.lanes.iter_mut().for_each(|lane| lane.tick(now, unix_us));
        self.position(now);
        self.follow_first_frame();
        self.follow_live(now);
        let buffered = self.buffered();
        let Some(session) = &mut self.session else { return };
        if session.is_positioned && session.playout.resume(buffered) {
            self.client.life.reach(Phase::PlaybackStarted, now);
        }
        if self.has_run_out(now) {
            return;
        }
        self.act_as_user(now);
        self.at_end(now);
        self.pump(now);
        self.pump_tracker(now);
        self.lose_patience(now);
    }

    /// A lane cannot go on. What is buffered is played all the same, as a media element does whose
    /// player has given up; but where the run may not go, nothing goes on.
    fn fail(&mut self, now: Instant, failure: Failure) {
        if failure.reason.is_forbidden() || self.lanes.is_empty() {
            return self.end(now, Outcome::Failed(failure));
        }
        if self.failure.is_some() {
            return;
        }
        if self.session.as_ref().is_some_and(|session| session.playout.waits_since().is_none()) {
            // It may be long until it ends.
            self.client.anomaly(format!("plays out its buffer, and cannot fetch more: {failure}"));
        }
        self.failure = Some(failure);
        for at in 0..self.lanes.len() {
            let stopped = self.with_lane(at, |lane, context| {
                lane.stop(context);
                Ok(())
            });
            // Stopping cannot fail.
            let _ = stopped;
        }
    }

    /// Ends a viewer that has failed and has played what it had.
    fn has_run_out(&mut self, now: Instant) -> bool {
        let session = self.session.as_ref();
        let waits = session.is_some_and(|session| session.playout.waits_since().is_some());
        let Some(failure) = self.failure.take_if(|_| waits) else { return false };
        self.end(now, Outcome::Failed(failure));
        true
    }

    fn lose_patience(&mut self, now: Instant) {
        let (Some(patience), Some(session)) = (self.config.player.patience, &self.session) else {
            return;
        };
        let Some(since) = session.playout.waits_since().filter(|since| now >= *since + patience)
        else {
            return;
        };
        let waited = now.saturating_duration_since(since).as_secs_f64();
        let what =
            if session.playout.start_awaited_since().is_some() { "to begin" } else { "to go on" };
        let detail = format!("gave up after waiting {waited:.1} s for playback {what}");
        self.end(now, Outcome::Failed(Failure::new(FailureReason::NoMedia, detail)));
    }

    fn end(&mut self, now: Instant, outcome: Outcome) {
        if !self.client.life.is_ending() {
            self.advance(now);
            self.end_interval(now);
            self.leave_peers(now);
            self.client.life.leave(None, outcome);
        }
    }

    fn leave(&mut self, now: Instant) {
        let has_begun = self.lanes.iter().any(Lane::is_described);
        let outcome = if let Some(failure) = self.failure.take() {
            // It has not come to the end of what it had, but nothing more would have come.
            Outcome::Failed(failure)
        } else if has_begun {
            Outcome::Completed
        } else {
            Outcome::not_started("left before anything was received")
        };
        self.end(now, outcome);
    }
}

impl Participant for Viewer {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.client.life.is_ending() {
            return;
        }
        match input {
            Input::Start { intended_at } => self.start(now, intended_at),
            Input::Download { fetch, event } => {
                let Some((fetch, event)) = self.client.after_preflight(now, fetch, event) else {
                    return;
                };
                let result = if self.page.as_ref().is_some_and(|page| page.owns(fetch)) {
                    self.with_page(|page, context| page.handle(now, context, fetch, event))
                        .unwrap_or(Ok(()))
                } else if self.manifest.as_ref().is_some_and(|manifest| manifest.owns(fetch)) {
                    return self.manifest(now, fetch, event);
                } else if let Some(at) = self.lanes.iter().position(|lane| lane.owns(fetch)) {
                    return self.lane(now, at, fetch, event);
                } else {
                    return;
                };
                if let Err(failure) = result {
                    self.end(now, Outcome::Failed(failure));
                }
            }
            Input::Leave { .. } => self.leave(now),
            Input::Opened { channel: TRACKER, opening } => self.tracker_opened(now, &opening),
            Input::Opened { channel: PEERS, opening } => self.peer_socket_opened(now, &opening),
            Input::Closed { channel: PEERS, why } => self.peer_socket_closed(now, &why),
            Input::Datagram { channel: PEERS, source, local, bytes, .. } => {
                let peers = self.lanes.iter_mut().filter_map(Lane::peers_mut);
                peers.for_each(|peers| peers.datagram(now, (source, local), bytes));
            }
            Input::Message { channel: TRACKER, message } => self.tracker_said(now, &message),
            Input::Closed { channel: TRACKER, why } => {
                self.tracker.iter_mut().for_each(|tracker| tracker.closed(now, &why.to_string()));
            }
            // Due work is done when the outputs are drained.
            Input::Timeout
            | Input::Opened { .. }
            | Input::Datagram { .. }
            | Input::Bytes { .. }
            | Input::Blocked { .. }
            | Input::Message { .. }
            | Input::Closed { .. }
            | Input::Fetched { .. } => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if let Some(output) = self.client.life.pop() {
            return output;
        }
        if !self.client.life.is_ending() {
            self.advance(now);
            if self.session.as_ref().is_some_and(|session| session.meter.is_due(now)) {
                self.end_interval(now);
            }
            self.settle(now);
        }
        self.client.life.over();
        self.client.life.pop().unwrap_or_else(|| Output::wait(now, self.next_deadline()))
    }
}
