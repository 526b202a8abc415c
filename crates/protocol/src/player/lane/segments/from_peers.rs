//! What a lane of segments gets from peers: the queue of what comes next, and the segments as the
//! player takes them.

use std::time::Instant;

use throng_observation::{Failure, FailureReason, Phase, PlaybackCounters};
use throng_scenario::PeerEngine;

use super::{QueueKey, SegmentLane, Step};
use crate::player::download::transfer::TransferError;
use crate::player::lane::Context;
use crate::player::lane::segment_download::SegmentDownload;
use crate::player::manifest::presentation::{Cursor, Segment, Segments};
use crate::player::p2p::{Found as FoundPeer, PeerLane, Queued, Shelf};

/// How long played segments of live streams are kept for others (`highDemandTimeWindow` behind the
/// position).
const SHARED_BEHIND_US: i64 = 4_000_000;

/// Segments that are looked at ahead of playback: as many as engines look at of PeerTube's
/// recordings, which have segments of four seconds.
const QUEUE_MAX: usize = 1_500;

impl SegmentLane {
    /// Whether `segment` is one that peers have: a whole one.
    pub(super) fn is_for_peers(&self, now: Instant, segment: &Segment, after: Cursor) -> bool {
        let is_on = self.peers.as_ref().is_some_and(|peers| peers.is_on(now));
        is_on && is_shareable(segment) && after.part == 0
    }

    /// Whether playback waits for peers, and not for the server.
    pub(super) fn awaits_peers(&self) -> bool {
        let waits =
            self.peers.as_ref().is_some_and(|peers| peers.waits_for_peers(self.next.segment));
        matches!(self.step, Step::Peers) && waits
    }

    pub(in crate::player) fn found(&mut self, now: Instant, found: &FoundPeer) {
        self.peers.iter_mut().for_each(|peers| peers.found(now, found));
    }

    /// What gets segments from peers, where something does.
    pub(in crate::player) fn peers_mut(&mut self) -> Option<&mut PeerLane> {
        self.peers.as_deref_mut()
    }

    pub(in crate::player) fn take_peer_counters(
        &mut self,
        now: Instant,
        lasted_us: u64,
    ) -> PlaybackCounters {
        self.peers.as_mut().map(|peers| peers.take_counters(now, lasted_us)).unwrap_or_default()
    }

    /// Goes on with what peers and server deliver, and takes the segment that the player waits for.
    pub(super) fn pump_peers(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let Some(mut peers) = self.peers.take() else { return Ok(()) };
        let result = if peers.is_on(now) {
            self.with_queue();
            let queue = std::mem::take(&mut self.queue.0);
            let result = peers.pump(now, context, &self.shelf(context.position_us, &queue));
            self.queue.0 = queue;
            result
        } else {
            let was_awaited = matches!(self.step, Step::Peers);
            if was_awaited {
                self.step = Step::Nothing;
            }
            peers.rest(now, context, was_awaited);
            Ok(())
        };
        let number = self.next.segment;
        let taken = self.found_next().and_then(|(segment, after)| {
            let (whole, took) = peers.take(number)?;
            Some(SegmentDownload::received(now, (segment, after), &whole, took))
        });
        let has_given_up = peers.has_given_up(now, number);
        self.peers = Some(peers);
        result?;
        if let Some(media) = taken {
            self.step = Step::Media(Box::new(media));
            context.client.life.reach(Phase::Playing, now);
            context.client.life.reach(Phase::FirstPacket, now);
            let result = self.complete(now, context);
            // The next one may be there too.
            self.peers.iter_mut().for_each(|peers| peers.wake(now));
            return result;
        }
        if matches!(self.step, Step::Peers) && has_given_up {
            let detail = format!("segment {number}: the server does not deliver it");
            let error = TransferError::unreadable(Failure::new(FailureReason::Protocol, detail));
            return self.failed(now, context, error);
        }
        Ok(())
    }

    /// The segment that the player waits for, if it waits for one.
    fn found_next(&self) -> Option<(Box<Segment>, Cursor)> {
        let segments = self.segments().filter(|_| matches!(self.step, Step::Peers))?;
        segments.whole(self.next.segment)
    }

    /// The first segment that is still shared: of live streams those go that were played a while
    /// ago.
    fn shared_from(&self, position_us: i64) -> u64 {
        let live = self.segments().filter(|segments| segments.is_live());
        live.map_or(0, |segments| {
            segments.at(position_us.saturating_sub(SHARED_BEHIND_US), false).segment
        })
    }

    /// Makes the queue where what it is made of has changed.
    fn with_queue(&mut self) {
        let edge = self.edge();
        let (starts_us, ends_us) = edge.map_or((0, 0), |edge| (edge.starts_us, edge.ends_us));
        let key: QueueKey = (self.current, self.next, starts_us, ends_us);
        if self.queue.1 == Some(key) {
            return;
        }
        let mut queue = Vec::new();
        // A rendition whose playlist is not there yet has nothing to ask for.
        let Some(segments) = self.segments() else {
            self.queue = (queue, None);
            return;
        };
        // What cannot be read before something else was loaded is not asked for before. What the
        // player waits for can be read, though a playlist that came since may have its
        // initialisation segment elsewhere.
        let init = self.init.as_ref().map(|(init, _)| init);
        let awaited = matches!(self.step, Step::Peers).then_some(self.next.segment);
        segments.each_from(self.next.segment, &mut |number: u64, segment: &Segment| {
            let is_readable = segment.init.is_none() || segment.init.as_ref() == init;
            if !is_readable && awaited != Some(number) {
                return false;
            }
            if is_shareable(segment) {
                let starts_us = segment.starts_us;
                let ends_us = starts_us.saturating_add_unsigned(segment.duration_us);
                queue.push(Queued { number, starts_us, ends_us });
            }
            queue.len() < QUEUE_MAX
        });
        self.queue = (queue, Some(key));
    }

    /// What the rendition that is played is called in names of swarms: its resolution, or its place
    /// in the manifest (`processMainManifest` of p2p-media-loader-hlsjs).
    fn rendition_of_peers(&self) -> usize {
        let engine = self.options.peers.as_ref().map(|peers| peers.config.engine);
        let rendition = self.renditions.get(self.current);
        if engine == Some(PeerEngine::V4) {
            let resolution = rendition.and_then(|rendition| rendition.resolution);
            return resolution.and_then(|lines| usize::try_from(lines).ok()).unwrap_or(0);
        }
        rendition.and_then(|rendition| rendition.listed_at).unwrap_or(self.current)
    }

    fn shelf<'a>(&'a self, position_us: Option<i64>, queue: &'a [Queued]) -> Shelf<'a> {
        let first = self
            .segments()
            .and_then(Segments::window)
            .map_or(0, |window| window.playlist().media_sequence);
        let position_us = position_us.unwrap_or(self.wanted_us);
        Shelf {
            rendition: self.rendition_of_peers(),
            queue,
            first: first.max(self.shared_from(position_us)),
            requested: matches!(self.step, Step::Peers).then_some(self.next.segment),
            position_us,
            segments: self.segments(),
            indexes: &self.options.indexes,
            init: self.init.as_ref().map(|(_, init)| init),
            program: self
                .program
                .as_ref()
                .filter(|((rendition, _), _)| *rendition == self.current)
                .map(|((_, discontinuity), program)| (*discontinuity, program)),
        }
    }
}

/// Whether peers may have it: a file or a part of one with an end, which is not encrypted.
fn is_shareable(segment: &Segment) -> bool {
    let has_end = segment.media.range.is_none_or(|(_, last)| last < u64::MAX);
    has_end && !segment.is_progressive && segment.key.is_none()
}
