//! What a viewer loads: the page, the manifest, the lanes.

use std::time::Instant;

use throng_observation::{Failure, Outcome, Phase};
use throng_scenario::RenditionPolicy;

use super::Viewer;
use crate::participant::{DownloadEvent, FetchId};
use crate::player::lane::file::FileLane;
use crate::player::lane::segments::{SegmentLane, SegmentOptions};
use crate::player::lane::{Context, Lane};
use crate::player::manifest::presentation::LanePlan;
use crate::player::manifest::screen::keep_fitting;
use crate::player::manifest::{ManifestDownload, Received};
use crate::player::page::{Page, PageContext};

impl Viewer {
    /// Calls `act` on the lane at `at`.
    pub(super) fn with_lane<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Lane, &mut Context<'_>) -> Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        let (lane, session) = (self.lanes.get_mut(at)?, self.session.as_mut()?);
        let mut context = Context {
            client: &mut self.client,
            timeline: &mut self.timeline,
            meter: &mut session.meter,
            keys: &mut self.keys,
            tracker: self.tracker.as_mut(),
            position_us: session.is_positioned.then(|| session.playout.position_us()),
        };
        Some(act(lane, &mut context))
    }

    /// Calls `act` on the page.
    pub(super) fn with_page<T>(
        &mut self,
        act: impl FnOnce(&mut Page, &mut PageContext<'_>) -> T,
    ) -> Option<T> {
        let (page, session) = (self.page.as_mut()?, self.session.as_mut()?);
        Some(act(page, &mut PageContext { client: &mut self.client, meter: &mut session.meter }))
    }

    /// Goes on with the page, and says whether it has come to its player, which it has at once
    /// where there is none.
    pub(super) fn has_player(&mut self, now: Instant) -> bool {
        if let Some(Err(failure)) = self.with_page(|page, context| page.pump(now, context)) {
            self.end(now, Outcome::Failed(failure));
            return false;
        }
        let Some(page) = &mut self.page else { return true };
        let begins = page.player_begins(now);
        if let Some(at) = begins {
            self.client.life.reach(Phase::PageLoaded, at);
        }
        begins.is_some()
    }

    /// Handles what the driver reports of the manifest's download, which may bring the lanes.
    pub(super) fn manifest(&mut self, now: Instant, fetch: FetchId, event: DownloadEvent<'_>) {
        let received =
            self.with_manifest(|manifest, context| manifest.handle(now, context, fetch, event));
        match received.transpose() {
            Ok(received) => self.receive_manifest(now, received.flatten()),
            Err(failure) => self.fail(now, failure),
        }
    }

    /// Goes on with the manifest.
    pub(super) fn pump_manifest(&mut self, now: Instant) {
        if self.failure.is_some() {
            return;
        }
        match self.with_manifest(|manifest, context| manifest.pump(now, context)).transpose() {
            Ok(received) => self.receive_manifest(now, received.flatten()),
            Err(failure) => self.fail(now, failure),
        }
    }

    /// Calls `act` on the manifest.
    pub(super) fn with_manifest<T>(
        &mut self,
        act: impl FnOnce(&mut ManifestDownload, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let (Some(manifest), Some(session)) = (&mut self.manifest, &mut self.session) else {
            return None;
        };
        let mut context = Context {
            client: &mut self.client,
            timeline: &mut self.timeline,
            meter: &mut session.meter,
            keys: &mut self.keys,
            tracker: self.tracker.as_mut(),
            position_us: None,
        };
        Some(act(manifest, &mut context))
    }

    /// Takes what the manifest says: the first time it makes the lanes.
    pub(super) fn receive_manifest(&mut self, now: Instant, received: Option<Received>) {
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
        let screen_lines = self.config.player.screen_lines;
        let indexes = &self.config.indexes;
        let options = SegmentOptions {
            policy,
            screen_lines,
            low_latency: live.low_latency,
            preload_hints: live.preload_hints,
            indexes: indexes.clone(),
            playlists: self.config.playlists.clone(),
            peers: self.peer_options(),
            is_separate_sound: false,
        };
        let lane = |(at, plan)| match plan {
            LanePlan::Segments(renditions) => {
                // Peers exchange what has the pictures; sound of its own comes from the server.
                let is_separate_sound = at > 0;
                let peers = options.peers.clone().filter(|_| !is_separate_sound);
                let options = SegmentOptions { peers, is_separate_sound, ..options.clone() };
                let mut lane = SegmentLane::new(renditions, options);
                lane.has_first_playlist(now, times);
                Some(Lane::Segments(Box::new(lane)))
            }
            // Files are not switched between: the one that a player begins with is played.
            LanePlan::File(mut files) => {
                keep_fitting(&mut files, |(_, lines)| *lines, screen_lines);
                let file =
                    if policy == RenditionPolicy::Highest { files.last() } else { files.first() };
                file.map(|(url, _)| {
                    Lane::File(Box::new(FileLane::new(url.clone(), indexes.clone())))
                })
            }
        };
        self.lanes = lanes.into_iter().enumerate().filter_map(lane).collect();
        self.lend_peer_socket();
    }

    /// Handles what the driver reports of a lane's download.
    pub(super) fn lane(
        &mut self,
        now: Instant,
        at: usize,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) {
        self.advance(now);
        let before = self.received_us();
        let result = self.with_lane(at, |lane, context| lane.handle(now, context, fetch, event));
        self.gained(before);
        if let Some(Err(failure)) = result {
            self.fail(now, failure);
        }
    }

    /// Media came, where what was received ended at `before`.
    fn gained(&mut self, before: Option<i64>) {
        let after = self.received_us();
        if let Some(session) = &mut self.session {
            // What was received from before the position, such as the way from a key frame to it,
            // is no gain.
            let position_us = session.playout.position_us();
            let before_us = before.map_or(position_us, |before_us| before_us.max(position_us));
            session
                .meter
                .gained(after.map_or(0, |after_us| after_us.saturating_sub(before_us)).max(0));
        }
    }

    /// Requests more where the buffer is below its target.
    pub(super) fn pump(&mut self, now: Instant) {
        if self.client.life.is_ending() {
            return;
        }
        if self.failure.is_some() {
            self.session.iter_mut().for_each(|session| session.meter.wants(now, false));
            return;
        }
        let is_complete = self.is_complete();
        let (target_us, refill_us) = self.buffer_bounds_us();
        let Some(position_us) = self.session.as_ref().map(|session| session.playout.position_us())
        else {
            return;
        };
        let buffer_us = self.buffer_us(position_us);
        let Some(session) = &mut self.session else { return };
        session.is_filling = buffer_us < if session.is_filling { target_us } else { refill_us };
        let wants = session.is_filling && !is_complete;
        // At the end of a live stream there is nothing that the server could deliver.
        let waits_for_edge = !self.lanes.is_empty() && self.lanes.iter().all(Lane::waits_for_edge);
        session.meter.wants(now, wants && !waits_for_edge);
        // What peers have comes without an event of the driver.
        let before = self.config.player.peers.as_ref().map(|_| self.received_us());
        for at in 0..self.lanes.len() {
            if let Some(Err(failure)) =
                self.with_lane(at, |lane, context| lane.pump(now, context, wants))
            {
                return self.fail(now, failure);
            }
        }
        before.into_iter().for_each(|before| self.gained(before));
    }
}
