//! What a lane of segments requests, and when it gives something up or switches to another
//! rendition.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::Failure;
use throng_scenario::RenditionPolicy;

use super::{INIT_LEN_MAX, PASSED_MAX, SegmentLane, Step};
use crate::player::download::whole::WholeDownload;
use crate::player::lane::Context;
use crate::player::lane::abandon::{LOOKS_EVERY, Loading, better};
use crate::player::lane::decrypt::KEY_LEN;
use crate::player::lane::segment_download::SegmentDownload;
use crate::player::manifest::presentation::{Cursor, Found, Segment, Segments};

impl SegmentLane {
    pub(in crate::player) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        wants: bool,
    ) -> Result<(), Failure> {
        if let Some(rendition) = self.renditions.get(self.current)
            && let Err(failure) = self.loader.pump(now, context, rendition)
        {
            self.leave_rendition(now, context, failure)?;
        }
        let overdue = match &mut self.step {
            Step::Nothing | Step::Peers => None,
            Step::Init(whole, _) | Step::Key(whole, _) => whole.pump(now, context).err(),
            Step::Media(media) => media.overdue(now),
        };
        if let Some(error) = overdue {
            if matches!(self.step, Step::Media(_)) {
                context.client.failed();
            }
            self.stop(context);
            self.failed(now, context, error)?;
        }
        self.give_up_late(now, context);
        if matches!(self.step, Step::Nothing) && !self.is_complete && !self.retry.waits(now) {
            self.request(now, context, wants)?;
        }
        if let Step::Media(media) = &mut self.step {
            media.demand(now, context);
        }
        self.pump_peers(now, context)
    }

    /// Gives the segment up that would come too late, for the same of a smaller rendition.
    pub(super) fn give_up_late(&mut self, now: Instant, context: &mut Context<'_>) {
        let is_live = self.is_live();
        let may_switch = self.looks_for_late() && self.throughput.is_known();
        let Step::Media(media) = &mut self.step else { return };
        if now < media.next_look_at {
            return;
        }
        media.next_look_at = now + LOOKS_EVERY;
        let Some(position_us) = context.position_us.filter(|_| may_switch) else { return };
        let (loading, buffer_us) =
            (media.loading(now), media.segment.starts_us.saturating_sub(position_us));
        if now < media.began_at + Loading::looked_at_after(loading.duration_us, loading.first_byte)
        {
            return;
        }
        let buffer = Duration::from_micros(u64::try_from(buffer_us).unwrap_or(0));
        let choice = (&self.renditions[..], self.current);
        let Some(chosen) =
            better(&loading, buffer, self.throughput.estimate_bps(), choice, is_live)
        else {
            return;
        };
        let first_byte = loading.first_byte.unwrap_or_default();
        self.throughput.add(loading.received_bytes, loading.elapsed.saturating_sub(first_byte));
        self.throughput.gave_up_for(self.renditions.get(chosen).map_or(0, |r| r.bandwidth_bps));
        self.stop(context);
        self.tracks.drop_received(context);
        self.switch_to(now, context, chosen);
    }

    /// Whether a segment that is under way may be given up.
    pub(super) fn looks_for_late(&self) -> bool {
        let is_whole = matches!(&self.step, Step::Media(media) if !media.segment.is_progressive);
        is_whole
            && self.current > 0
            && self.without_next.is_empty()
            && self.options.policy == RenditionPolicy::Adaptive
    }

    /// Requests what comes next.
    pub(super) fn request(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        wants: bool,
    ) -> Result<(), Failure> {
        if wants && self.without_next.is_empty() {
            self.switch(now, context);
        }
        if self.waits_for_playlist {
            return Ok(());
        }
        for _ in 0..PASSED_MAX {
            let Some(segments) = self.segments() else { return Ok(()) };
            match segments.find(self.next, self.options.low_latency) {
                Found::Piece(segment, after) => {
                    return if wants { self.begin(now, context, segment, after) } else { Ok(()) };
                }
                Found::Gap(next) => self.next = next,
                Found::Gone(next) => {
                    context.meter.missed();
                    context.client.anomaly(format!(
                        "segment {} was not downloaded before it left the playlist",
                        self.next.segment
                    ));
                    self.next = next;
                }
                Found::Broken(failure, next) => {
                    context.meter.missed();
                    context.client.failed();
                    context.client.anomaly(failure.detail);
                    self.next = next;
                }
                Found::Later => {
                    let hinted = segments.window().filter(|_| self.options.preload_hints && wants);
                    let Some((segment, after)) = hinted.and_then(|window| window.hinted(self.next))
                    else {
                        return Ok(());
                    };
                    return self.begin(now, context, Box::new(segment), after);
                }
                Found::End => {
                    self.is_complete = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Requests a segment, or first what it needs.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        segment: Box<Segment>,
        after: Cursor,
    ) -> Result<(), Failure> {
        self.retry.begun();
        if let Some(init) = &segment.init
            && self.init.as_ref().is_none_or(|(known, _)| known != init)
        {
            let whole = WholeDownload::begin(now, context, &init.url, init.range, INIT_LEN_MAX)?;
            self.step = Step::Init(whole, Arc::clone(init));
            return Ok(());
        }
        let key = segment.key.as_ref().and_then(|key| context.keys.get(&key.url));
        if let Some(wanted) = segment.key.as_ref().filter(|_| key.is_none()) {
            // Another lane may be fetching it.
            if !context.keys.is_loading(&wanted.url) {
                let whole = WholeDownload::begin(now, context, &wanted.url, None, KEY_LEN)?;
                context.keys.begin(&wanted.url);
                self.step = Step::Key(whole, wanted.url.clone());
            }
            return Ok(());
        }
        if self.is_for_peers(now, &segment, after) {
            self.step = Step::Peers;
            return Ok(());
        }
        let init = self.init.as_ref().filter(|_| segment.init.is_some()).map(|(_, init)| init);
        let with = (self.options.indexes.clone(), init);
        let of = (self.current, segment.discontinuity);
        let mut media = SegmentDownload::begin(now, context, (segment, after), with, key)?;
        if let Some((_, program)) = self.program.as_ref().filter(|(known, _)| *known == of) {
            media.reader.go_on_with(program.clone());
        }
        self.step = Step::Media(Box::new(media));
        Ok(())
    }

    /// Chooses the rendition of the next segment.
    pub(super) fn switch(&mut self, now: Instant, context: &mut Context<'_>) {
        let chosen = self.throughput.choose(self.options.policy, &self.renditions, self.current);
        if chosen != self.current {
            self.switch_to(now, context, chosen);
        }
    }

    /// Goes on with another rendition where this one does not have the next segment, as hls.js does
    /// when it chooses the rendition itself. False: all were tried.
    pub(super) fn try_another(&mut self, now: Instant, context: &mut Context<'_>) -> bool {
        self.without_next.push(self.current);
        let count = self.renditions.len();
        // From the next lower one on downwards, then from the highest.
        let mut others = (1..count).map(|below| (self.current + count - below) % count);
        let chosen = others.find(|other| !self.without_next.contains(other));
        let may_choose = self.options.policy == RenditionPolicy::Adaptive;
        let Some(chosen) = chosen.filter(|_| may_choose) else { return false };
        self.retry.progressed();
        self.switch_to(now, context, chosen);
        true
    }

    pub(super) fn switch_to(&mut self, now: Instant, context: &mut Context<'_>, chosen: usize) {
        let found =
            self.segments().map(|segments| segments.find(self.next, self.options.low_latency));
        let Some(Found::Piece(segment, after)) = found else { return };
        if self.next.part > 0 && after.part != 1 {
            return; // in the middle of a segment
        }
        // The next segment of the other rendition is the one that covers the same time.
        (self.wanted_us, self.is_sought) = (segment.starts_us, false);
        let before = self.segments().and_then(Segments::window).cloned();
        let is_dynamic = before.is_none() && self.is_live();
        if let Some(rendition) = self.renditions.get(chosen) {
            self.loader.switched(now, context, before.as_ref(), rendition);
        }
        self.waits_for_playlist = before.is_some();
        self.came_from = Some(self.current);
        self.current = chosen;
        if is_dynamic {
            // The present is told to what is played only.
            context.meter.switched();
            return self.switched_by_clock(now, segment.starts_us);
        }
        self.next = self.at(self.wanted_us.saturating_add(self.tolerance_us()));
        context.meter.switched();
    }

    /// The rendition of a live DASH presentation was switched: its place is a time, as in the one
    /// before.
    pub(super) fn switched_by_clock(&mut self, now: Instant, starts_us: i64) {
        self.next = Cursor::at(u64::try_from(starts_us).unwrap_or(0));
        self.tick(now, self.unix_us);
    }
}
