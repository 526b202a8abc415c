//! The viewer: a participant that plays from a buffer what its lanes download.

use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason, Outcome, Phase};
use throng_scenario::{AtEnd, MediaFormat, PlayerConfig, RenditionPolicy};

use super::Config;
use super::client::HttpClient;
use super::cors::Embedding;
use super::file::FileLane;
use super::lane::{Context, Lane, Phases, Sought};
use super::live::{LiveFollower, dates_ahead_us};
use super::manifest::{ManifestDownload, Received};
use super::meter::{IntervalEnd, Meter};
use super::page::{Page, PageContext};
use super::playout::{Buffered, Playout};
use super::presentation::{LanePlan, LiveEdge};
use super::segments::{SegmentLane, SegmentOptions};
use super::timeline::Timeline;
use super::user::{User, UserAction};
use crate::participant::{DownloadEvent, FetchId, Input, Output, Participant, Why};

/// Longer than any run.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);

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
    phases: Phases,
    /// How far the server's clock is ahead of this host's, where a DASH manifest says how to learn it.
    server_ahead_us: i64,
    /// Absent before the start.
    pub(super) session: Option<Session>,
    outcome: Option<Outcome>,
    has_ended: bool,
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
        let format = config.player.format.of_path(config.url.path());
        if let Some(page) = &config.player.page {
            // Files are played by a media element itself.
            client.embed(Embedding::at(page, format != MediaFormat::File));
        }
        let (lanes, manifest) = match format {
            MediaFormat::Hls | MediaFormat::Dash => {
                let playlists = config.playlists.clone();
                let manifest = ManifestDownload::new(config.url.clone(), format, playlists, config.clock);
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
            phases: Phases::default(),
            server_ahead_us: 0,
            session: None,
            outcome: None,
            has_ended: false,
            config,
        }
    }

    /// The wall clock by which the stream goes, microseconds since 1970: the server's, as far as it is known.
    fn unix_us(&self, now: Instant) -> i64 {
        let host_us = i64::try_from(self.config.clock.unix_ns(now) / 1_000).unwrap_or(i64::MAX);
        host_us.saturating_add(self.server_ahead_us)
    }

    fn player(&self) -> &PlayerConfig {
        &self.config.player
    }

    fn start(&mut self, now: Instant, intended_at: Instant) {
        self.phases.reach(&mut self.client, Phase::Started, now);
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
        let brought_by = |track: usize| self.lanes.iter().find(|lane| lane.brings(track));
        let has_ended = |track: usize| brought_by(track).is_none_or(Lane::is_complete);
        // A lane whose tracks are not known yet may bring one.
        let is_known = self.lanes.iter().all(|lane| lane.has_tracks() || lane.is_complete());
        let position_us = self.session.as_ref().map_or(0, |session| session.playout.position_us());
        Buffered {
            playable_us: self.timeline.playable_us(position_us, has_ended).filter(|_| is_known),
            is_complete: !self.lanes.is_empty() && self.lanes.iter().all(Lane::is_complete),
        }
    }

    /// How far all tracks were received, whether it can be played yet or not.
    fn received_us(&self) -> Option<i64> {
        let brought_by = |track: usize| self.lanes.iter().find(|lane| lane.brings(track));
        self.timeline.received_us(|track: usize| brought_by(track).is_none_or(Lane::is_complete))
    }

    /// The end of the stream, where it is live: that of the lane that ends first.
    fn edge(&self) -> Option<LiveEdge> {
        self.lanes.iter().filter_map(Lane::edge).min_by_key(|edge| edge.ends_us)
    }

    /// Media ahead of the position, microseconds.
    fn buffer_us(&self, position_us: i64) -> u64 {
        let playable_us = self.buffered().playable_us.unwrap_or(position_us);
        u64::try_from(playable_us.saturating_sub(position_us)).unwrap_or(0)
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

    /// Where playback stops at a hole and media goes on behind it, it goes on there, as hls.js's does.
    fn jump_over_hole(&mut self) {
        let Some(session) = self.session.as_mut().filter(|session| session.playout.is_stalled()) else {
            return;
        };
        if let Some(after_us) = self.timeline.after_hole_us(session.playout.position_us()) {
            session.playout.jump(after_us);
        }
    }

    /// Calls `act` on the lane at `at`.
    fn with_lane<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Lane, &mut Context<'_>) -> Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        let (lane, session) = (self.lanes.get_mut(at)?, self.session.as_mut()?);
        let mut context = Context {
            client: &mut self.client,
            timeline: &mut self.timeline,
            meter: &mut session.meter,
            phases: &mut self.phases,
            position_us: session.is_positioned.then(|| session.playout.position_us()),
        };
        Some(act(lane, &mut context))
    }

    /// Calls `act` on the page.
    fn with_page<T>(&mut self, act: impl FnOnce(&mut Page, &mut PageContext<'_>) -> T) -> Option<T> {
        let (page, session) = (self.page.as_mut()?, self.session.as_mut()?);
        Some(act(page, &mut PageContext { client: &mut self.client, meter: &mut session.meter }))
    }

    /// Goes on with the page, and says whether it has come to its player, which it has at once where there is none.
    fn has_player(&mut self, now: Instant) -> bool {
        if let Some(Err(failure)) = self.with_page(|page, context| page.pump(now, context)) {
            self.end(now, Outcome::Failed(failure));
            return false;
        }
        let Some(page) = &mut self.page else { return true };
        let begins = page.player_begins(now);
        if let Some(at) = begins {
            self.phases.reach(&mut self.client, Phase::PageLoaded, at);
        }
        begins.is_some()
    }

    /// Handles what the driver reports of the manifest's download, which may bring the lanes.
    fn manifest(&mut self, now: Instant, fetch: FetchId, event: DownloadEvent<'_>) -> Result<(), Failure> {
        let received = self.with_manifest(|manifest, context| manifest.handle(now, context, fetch, event));
        self.receive_manifest(now, received.transpose()?.flatten());
        Ok(())
    }

    /// Calls `act` on the manifest.
    fn with_manifest<T>(
        &mut self,
        act: impl FnOnce(&mut ManifestDownload, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let (Some(manifest), Some(session)) = (&mut self.manifest, &mut self.session) else { return None };
        let mut context = Context {
            client: &mut self.client,
            timeline: &mut self.timeline,
            meter: &mut session.meter,
            phases: &mut self.phases,
            position_us: None,
        };
        Some(act(manifest, &mut context))
    }

    /// Takes what the manifest says: the first time it makes the lanes.
    fn receive_manifest(&mut self, now: Instant, received: Option<Received>) {
        let (lanes, times) = match received {
            None => return,
            Some(Received::First { lanes, times, server_ahead_us }) => {
                self.server_ahead_us = server_ahead_us;
                (lanes, times)
            }
            Some(Received::Update(url, manifest)) => {
                return self.lanes.iter_mut().for_each(|lane| lane.update(&url, &manifest));
            }
        };
        self.manifest.take_if(|manifest| !manifest.goes_on());
        let (policy, live) = (self.config.player.rendition, self.config.player.live);
        let indexes = &self.config.indexes;
        let options = SegmentOptions {
            policy,
            low_latency: live.low_latency,
            preload_hints: live.preload_hints,
            indexes: indexes.clone(),
            playlists: self.config.playlists.clone(),
        };
        let lane = |plan| match plan {
            LanePlan::Segments(renditions) => {
                let mut lane = SegmentLane::new(renditions, options.clone());
                lane.has_first_playlist(now, times);
                Some(Lane::Segments(Box::new(lane)))
            }
            // Files are not switched between: the one that a player begins with is played.
            LanePlan::File(urls) => {
                let url = if policy == RenditionPolicy::Highest { urls.last() } else { urls.first() };
                url.map(|url| Lane::File(Box::new(FileLane::new(url.clone(), indexes.clone()))))
            }
        };
        self.lanes = lanes.into_iter().filter_map(lane).collect();
    }

    /// Handles what the driver reports of a lane's download.
    fn lane(
        &mut self,
        now: Instant,
        at: usize,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        self.advance(now);
        let before = self.received_us();
        let result = self.with_lane(at, |lane, context| lane.handle(now, context, fetch, event));
        let after = self.received_us();
        if let Some(session) = &mut self.session {
            // What was received from before the position, such as the way from a key frame to it, is no gain.
            let position_us = session.playout.position_us();
            let before_us = before.map_or(position_us, |before_us| before_us.max(position_us));
            session.meter.gained(after.map_or(0, |after_us| after_us - before_us).max(0));
        }
        result.unwrap_or(Ok(()))
    }

    /// Everything that follows from what was received or from the time.
    fn settle(&mut self, now: Instant) {
        if self.outcome.is_some() || self.session.is_none() {
            return;
        }
        if !self.has_player(now) {
            return self.lose_patience(now);
        }
        match self.with_manifest(|manifest, context| manifest.pump(now, context)).transpose() {
            Ok(received) => self.receive_manifest(now, received.flatten()),
            Err(failure) => return self.end(now, Outcome::Failed(failure)),
        }
        let unix_us = self.unix_us(now);
        self.lanes.iter_mut().for_each(|lane| lane.tick(now, unix_us));
        self.position(now);
        self.follow_first_frame();
        self.follow_live(now);
        let buffered = self.buffered();
        let Some(session) = &mut self.session else { return };
        if session.is_positioned && session.playout.resume(buffered) {
            self.phases.reach(&mut self.client, Phase::PlaybackStarted, now);
        }
        self.act_as_user(now);
        self.at_end(now);
        self.pump(now);
        self.lose_patience(now);
    }

    /// Chooses where playback begins, once the media is described.
    fn position(&mut self, now: Instant) {
        let is_described = !self.lanes.is_empty() && self.lanes.iter().all(Lane::is_described);
        let duration_us = self.lanes.iter().filter_map(Lane::duration_us).max();
        let edge = self.edge();
        let player = &self.config.player;
        let Some(session) = self.session.as_mut().filter(|session| is_described && !session.is_positioned)
        else {
            return;
        };
        let start_us = match &edge {
            Some(edge) => session.follower.sync_position_us(edge, now),
            None => session.user.start_us(player, duration_us),
        };
        if start_us != 0 {
            let sought = self.seek_lanes(start_us);
            if sought == Sought::Impossible {
                // A file without an index tells its rate only after a while.
                return;
            }
            self.moved(now, (0, start_us), sought);
        }
        if let Some(session) = &mut self.session {
            session.playout.starts_at(start_us);
            session.is_positioned = true;
        }
    }

    /// Moves all lanes to `position_us`; the worst of what they say.
    fn seek_lanes(&mut self, position_us: i64) -> Sought {
        let mut worst = Sought::Exact;
        for at in 0..self.lanes.len() {
            let sought = self.with_lane(at, |lane, context| Ok(lane.seek(context, position_us)));
            match sought {
                Some(Ok(Sought::Impossible)) | None | Some(Err(_)) => return Sought::Impossible,
                Some(Ok(Sought::Estimated)) => worst = Sought::Estimated,
                Some(Ok(Sought::Exact)) => {}
            }
        }
        worst
    }

    /// What was buffered is of no use at another position.
    fn moved(&mut self, now: Instant, (from_us, to_us): (i64, i64), sought: Sought) {
        let is_estimated = sought == Sought::Estimated;
        self.timeline.clear(from_us, if is_estimated { i64::MIN } else { to_us });
        if let Some(session) = &mut self.session {
            session.meter.moved();
            session.meter.wants(now, true);
            session.is_filling = true;
            session.follows_first_frame = is_estimated;
        }
    }

    /// Returns to a live stream that has left playback behind, and plays faster where that is wanted.
    fn follow_live(&mut self, now: Instant) {
        let Some(edge) = self.edge() else { return };
        let Some(session) = self.session.as_ref().filter(|session| session.is_positioned) else { return };
        let position_us = session.playout.position_us();
        let waits = session.playout.waits_since().is_some();
        let buffer_us = self.buffer_us(position_us);
        let Some(session) = &mut self.session else { return };
        let rate_milli = session.follower.rate_milli(&edge, now, position_us, buffer_us);
        session.playout.set_rate(rate_milli);
        if session.follower.must_jump(&edge, now, position_us, waits) {
            let sync_us = session.follower.sync_position_us(&edge, now);
            let sought = self.seek_lanes(sync_us);
            if let Some(session) = &mut self.session {
                session.playout.jump(sync_us);
            }
            self.moved(now, (position_us, sync_us), sought);
        }
    }

    fn follow_first_frame(&mut self) {
        let first_us = self.lanes.iter().filter_map(Lane::first_frame_us).min();
        if let Some(session) = &mut self.session
            && session.follows_first_frame
            && let Some(first_us) = first_us
        {
            session.follows_first_frame = false;
            session.playout.starts_at(first_us);
        }
    }

    fn act_as_user(&mut self, now: Instant) {
        let duration_us = self.lanes.iter().filter_map(Lane::duration_us).max();
        let Some(session) = self.session.as_mut().filter(|session| session.is_positioned) else { return };
        match session.user.poll(now) {
            Some(UserAction::Pause(length)) => session.playout.pause(length),
            Some(UserAction::Seek(share)) => {
                // A live stream has no length to seek in.
                let Some(duration_us) = duration_us else { return };
                let position_us = (duration_us as f64 * share) as i64;
                let sought = self.seek_lanes(position_us);
                if sought == Sought::Impossible {
                    return;
                }
                let Some(session) = &mut self.session else { return };
                let from_us = session.playout.position_us();
                session.playout.seek(position_us);
                self.moved(now, (from_us, position_us), sought);
            }
            None => {}
        }
    }

    /// At its end the media is played again, or the viewer leaves.
    fn at_end(&mut self, now: Instant) {
        if !self.session.as_ref().is_some_and(|session| session.playout.has_ended()) {
            return;
        }
        if self.player().at_end == AtEnd::Leave || self.edge().is_some() {
            return self.end(now, Outcome::Completed);
        }
        let sought = self.seek_lanes(0);
        let Some(session) = &mut self.session else { return };
        // The last frame has no end by which it could be counted.
        let from_us = session.playout.position_us().saturating_add(1);
        session.playout.restart(0);
        self.moved(now, (from_us, 0), sought);
    }

    /// Requests more where the buffer is below its target.
    fn pump(&mut self, now: Instant) {
        if self.outcome.is_some() {
            return;
        }
        let is_complete = self.buffered().is_complete;
        let (target_us, refill_us) = self.buffer_bounds_us();
        let Some(position_us) = self.session.as_ref().map(|session| session.playout.position_us()) else {
            return;
        };
        let buffer_us = self.buffer_us(position_us);
        let Some(session) = &mut self.session else { return };
        session.is_filling = buffer_us < if session.is_filling { target_us } else { refill_us };
        let wants = session.is_filling && !is_complete;
        // At the end of a live stream there is nothing that the server could deliver.
        let waits_for_edge = !self.lanes.is_empty() && self.lanes.iter().all(Lane::waits_for_edge);
        session.meter.wants(now, wants && !waits_for_edge);
        for at in 0..self.lanes.len() {
            if let Some(Err(failure)) = self.with_lane(at, |lane, context| lane.pump(now, context, wants)) {
                return self.end(now, Outcome::Failed(failure));
            }
        }
    }

    fn lose_patience(&mut self, now: Instant) {
        let (Some(patience), Some(session)) = (self.config.player.patience, &self.session) else { return };
        let Some(since) = session.playout.waits_since().filter(|since| now >= *since + patience) else {
            return;
        };
        let waited = now.saturating_duration_since(since).as_secs_f64();
        let what = if session.playout.start_awaited_since().is_some() { "to begin" } else { "to go on" };
        let detail = format!("gave up after waiting {waited:.1} s for playback {what}");
        self.end(now, Outcome::Failed(Failure::new(FailureReason::NoMedia, detail)));
    }

    fn end_interval(&mut self, now: Instant) {
        let Some(session) = &self.session else { return };
        let position_us = session.playout.position_us() + i64::from(session.playout.has_ended());
        let buffer_us = self.buffer_us(position_us);
        let http = self.client.take_counters();
        let edge = self.edge();
        let date_us = self.lanes.iter().find_map(|lane| lane.date_us(position_us));
        let unix_us = self.unix_us(now);
        let Some(session) = &mut self.session else { return };
        let has_begun = session.playout.start_awaited_since().is_none();
        let live = edge.filter(|edge| session.is_positioned && has_begun && !edge.has_ended);
        if let Some(ahead_us) = live.and_then(|edge| dates_ahead_us(&edge, (now, unix_us)))
            && !std::mem::replace(&mut session.knows_wrong_dates, true)
        {
            self.client.anomaly(format!(
                "the dates of the playlist are {:.1} s ahead of this host's clock; latency is measured to its end",
                ahead_us as f64 / 1e6
            ));
        }
        // Marks are of the clock of the host that publishes, which is that of throng.
        let captured_us = self.timeline.captured_unix_us(position_us);
        let captured_us = captured_us.map(|us| us.saturating_add(self.server_ahead_us));
        let live = live.map(|edge| {
            session.follower.interval(&edge, (now, unix_us), (position_us, date_us), captured_us)
        });
        let times = session.playout.take_times();
        session.follower.stalled(times.stall_count);
        let mut end = IntervalEnd {
            times,
            http,
            timeline: &mut self.timeline,
            position_us,
            buffer_us,
            start_awaited_since: session.playout.start_awaited_since(),
            live,
        };
        let client = &mut self.client;
        session.meter.end_interval(now, &mut end, |observation| client.observe(observation));
    }

    fn end(&mut self, now: Instant, outcome: Outcome) {
        if self.outcome.is_none() {
            self.advance(now);
            self.end_interval(now);
            self.outcome = Some(outcome);
        }
    }

    fn leave(&mut self, now: Instant) {
        let has_begun = self.lanes.iter().any(Lane::is_described);
        let outcome = if has_begun {
            Outcome::Completed
        } else {
            Outcome::Failed(Failure::new(FailureReason::NotStarted, "left before anything was received"))
        };
        self.end(now, outcome);
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let never = (self.config.clock.at + NEVER, "nothing");
        let Some(session) = &self.session else { return never };
        let position_us = session.playout.position_us();
        let buffered = self.buffered();
        let mut all = vec![(session.meter.next_timeout(), "end of the interval")];
        all.extend(session.playout.next_timeout(buffered).map(|at| (at, "buffer used up")));
        let user = session.user.next_timeout().filter(|_| session.is_positioned);
        all.extend(user.map(|at| (at, "action of the user")));
        all.extend(self.page.as_ref().and_then(Page::next_timeout).map(|at| (at, "request of the page")));
        all.extend(
            self.manifest.iter().filter_map(ManifestDownload::next_timeout).map(|at| (at, "manifest")),
        );
        all.extend(
            self.lanes.iter().filter_map(Lane::next_timeout).map(|at| (at, "download overdue or repeated")),
        );
        let patience = self.config.player.patience;
        all.extend(
            patience
                .zip(session.playout.waits_since())
                .map(|(patience, since)| (since + patience, "patience")),
        );
        let edge = self.edge();
        all.extend(
            edge.and_then(|edge| session.follower.next_look(&edge))
                .map(|look| (session.playout.at() + look, "speed")),
        );
        if session.playout.is_playing() && !session.is_filling {
            // When so much was played that the buffer is filled again.
            let (_, refill_us) = self.buffer_bounds_us();
            let spare_us = self.buffer_us(position_us).saturating_sub(refill_us);
            all.push((session.playout.at() + Duration::from_micros(spare_us + 1), "buffer is filled again"));
        }
        all.into_iter().min_by_key(|(at, _)| *at).unwrap_or(never)
    }
}

impl Participant for Viewer {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.outcome.is_some() {
            return;
        }
        match input {
            Input::Start { intended_at } => self.start(now, intended_at),
            Input::Download { fetch, event } => {
                let Some((fetch, event)) = self.client.after_preflight(now, fetch, event) else { return };
                let result = if self.page.as_ref().is_some_and(|page| page.owns(fetch)) {
                    self.with_page(|page, context| page.handle(now, context, fetch, event)).unwrap_or(Ok(()))
                } else if self.manifest.as_ref().is_some_and(|manifest| manifest.owns(fetch)) {
                    self.manifest(now, fetch, event)
                } else if let Some(at) = self.lanes.iter().position(|lane| lane.owns(fetch)) {
                    self.lane(now, at, fetch, event)
                } else {
                    return;
                };
                if let Err(failure) = result {
                    self.end(now, Outcome::Failed(failure));
                }
            }
            Input::Leave { .. } => self.leave(now),
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
        if let Some(output) = self.client.poll_output() {
            return output;
        }
        if self.outcome.is_none() {
            self.advance(now);
            if self.session.as_ref().is_some_and(|session| session.meter.is_due(now)) {
                self.end_interval(now);
            }
            self.settle(now);
        }
        if let Some(output) = self.client.poll_output() {
            return output;
        }
        if let Some(outcome) = self.outcome.clone()
            && !std::mem::replace(&mut self.has_ended, true)
        {
            return Output::Ended(outcome);
        }
        let (at, why) = self.next_deadline();
        // A deadline that has passed without any work would make the driver spin.
        Output::Timeout(at.max(now + Duration::from_millis(1)), why)
    }
}
