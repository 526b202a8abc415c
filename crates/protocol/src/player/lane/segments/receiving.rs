//! What a lane of segments receives: playlists, initialisation segments, keys, media.

use std::time::Instant;

use throng_media::timing::InitSegment;
use throng_observation::{Failure, Phase};

use super::{LOOK_UP_TOLERANCE_US, SegmentLane, Step, UNREADABLE_MAX, WITHOUT_MEDIA_MAX};
use crate::participant::{DownloadEvent, FetchId};
use crate::player::download::transfer::{TransferError, TransferEvent};
use crate::player::download::whole::WholeEvent;
use crate::player::lane::Context;
use crate::player::lane::continuity::is_wrap;
use crate::player::lane::decrypt::KEY_LEN;
use crate::player::lane::segment_download::SegmentDownload;
use crate::player::lane::unreadable::unreadable;
use crate::player::manifest::broken;
use crate::player::manifest::playlist::Loaded;
use crate::player::manifest::presentation::{Cursor, Found, Segments};

impl SegmentLane {
    pub(in crate::player) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        fetch: FetchId,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        if self.loader.owns(fetch) {
            return self.playlist(now, context, event);
        }
        if let Some(peers) = self.peers.as_mut().filter(|peers| peers.owns(fetch)) {
            peers.handle(now, context, fetch, event);
            return Ok(());
        }
        match &mut self.step {
            Step::Nothing | Step::Peers => Ok(()),
            Step::Init(whole, _) | Step::Key(whole, _) => match whole.handle(now, context, event) {
                WholeEvent::Nothing => Ok(()),
                WholeEvent::Complete => self.resource(now, context),
                WholeEvent::Failed(error) => self.failed(now, context, error),
            },
            Step::Media(media) => match media.handle(now, context, event) {
                TransferEvent::Begun { total_bytes } => {
                    media.begun(total_bytes);
                    context.client.life.reach(Phase::Playing, now);
                    Ok(())
                }
                TransferEvent::Bytes { bytes, received } => {
                    self.media(now, context, Some(&bytes), received)
                }
                TransferEvent::Ignored(count) => self.media(now, context, None, count),
                TransferEvent::Complete => self.complete(now, context),
                TransferEvent::Failed(error) => self.failed(now, context, error),
                TransferEvent::Nothing => Ok(()),
            },
        }
    }

    /// Something of the playlist.
    pub(super) fn playlist(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        let Some(rendition) = self.renditions.get_mut(self.current) else { return Ok(()) };
        let loaded =
            match self.loader.handle(now, context, &self.options.playlists, rendition, event) {
                Ok(Loaded::Nothing) => return Ok(()),
                Ok(loaded) => loaded,
                Err(failure) => return self.leave_rendition(now, context, failure),
            };
        if loaded == Loaded::New
            && let Some(peers) = &mut self.peers
        {
            // What is numbered anew is something else.
            peers.stop(now, context);
        }
        if loaded == Loaded::New || self.waits_for_playlist {
            self.next = self.at(self.wanted_us.saturating_add(self.tolerance_us()));
        }
        (self.waits_for_playlist, self.came_from) = (false, None);
        Ok(())
    }

    /// The playlist of a rendition that was switched to is not to be had. The one before is played
    /// on, and this one is not tried again, as by hls.js (`error-controller.ts`).
    pub(super) fn leave_rendition(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        failure: Failure,
    ) -> Result<(), Failure> {
        let before = self.came_from.take().filter(|_| !failure.reason.is_forbidden());
        let Some(before) = before else { return Err(failure) };
        context.client.anomaly(format!("its rendition is left out: {}", failure.detail));
        // Renditions are not numbered any more as other viewers number them.
        if let Some(mut peers) = self.peers.take() {
            peers.rest(now, context, false);
            if matches!(self.step, Step::Peers) {
                self.step = Step::Nothing;
            }
        }
        let left = self.current;
        self.renditions.remove(left);
        (self.program, self.shown) = (None, None);
        let renumbered = |at: usize| at - usize::from(at > left);
        self.current = renumbered(before);
        self.without_next.retain(|at| *at != left);
        self.without_next.iter_mut().for_each(|at| *at = renumbered(*at));
        let is_live = self.is_live();
        self.loader.returned(now, context, is_live);
        self.waits_for_playlist = is_live;
        self.next = self.at(self.wanted_us.saturating_add(self.tolerance_us()));
        context.meter.missed();
        context.meter.switched();
        Ok(())
    }

    /// How much later than a place begins it may be looked up.
    pub(super) fn tolerance_us(&self) -> i64 {
        let part_us = self.edge().and_then(|edge| edge.part_target_us);
        let part_us =
            part_us.and_then(|us| i64::try_from(us / 4).ok()).unwrap_or(LOOK_UP_TOLERANCE_US);
        if self.is_sought { 0 } else { part_us.min(LOOK_UP_TOLERANCE_US) }
    }

    /// An initialisation segment or a key is complete.
    pub(super) fn resource(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        match std::mem::replace(&mut self.step, Step::Nothing) {
            Step::Init(whole, resource) => {
                let init = match InitSegment::parse(whole.bytes()) {
                    Ok(init) => init,
                    Err(error) => {
                        return self.unreadable(context, unreadable(whole.url(), &error));
                    }
                };
                self.tracks.announce(now, context, init.tracks());
                self.init = Some((resource, init));
                // What can be read with it may be asked for.
                self.queue.1 = None;
            }
            Step::Key(whole, url) => {
                let Ok(key) = <[u8; KEY_LEN]>::try_from(whole.bytes()) else {
                    context.keys.end(&url);
                    let what = format!("a key of {} bytes, not {KEY_LEN}", whole.bytes().len());
                    return self.unreadable(context, broken(whole.url(), what));
                };
                context.keys.learn(url, key);
            }
            step => self.step = step,
        }
        Ok(())
    }

    /// The next bytes of a segment.
    pub(super) fn media(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        content: Option<&[u8]>,
        received: u64,
    ) -> Result<(), Failure> {
        let Step::Media(media) = &mut self.step else { return Ok(()) };
        if self.options.is_separate_sound {
            context.meter.separate_sound_bytes(received);
        } else {
            context.meter.media_bytes(received);
        }
        let count = content.map_or(received, |content| content.len() as u64);
        context.client.life.reach(Phase::FirstPacket, now);
        match media.feed(now, content, count) {
            Ok(()) => {
                self.receive_frames(now, context);
                Ok(())
            }
            Err(failure) => {
                self.stop(context);
                self.unreadable(context, failure)
            }
        }
    }

    pub(super) fn receive_frames(&mut self, now: Instant, context: &mut Context<'_>) {
        let Step::Media(media) = &mut self.step else { return };
        if let Some(tracks) = media.reader.tracks() {
            self.tracks.announce(now, context, tracks);
        }
        while let Some(frame) = media.reader.next_frame() {
            let starts_us = media.segment.starts_us;
            let origin_us = match self.tracks.origin_us {
                Some(origin_us) if self.origin_of == Some(media.segment.discontinuity) => origin_us,
                _ => {
                    let late_us = self.continuity.late_us(self.next);
                    frame.decode_us.saturating_sub(starts_us.saturating_add(late_us))
                }
            };
            let goes_on = self.origin_of == Some(media.segment.discontinuity)
                && self.continuity.follows(self.next, starts_us);
            self.origin_of = Some(media.segment.discontinuity);
            self.tracks.origin_us = Some(origin_us);
            if let Some(first_us) = media.begins_with(frame.decode_us.saturating_sub(origin_us)) {
                media.follows = goes_on;
                if let Some(jump_us) = self.continuity.jump_us(self.next, starts_us, first_us) {
                    media.begins_us = Some(first_us.saturating_sub(jump_us));
                    self.tracks.origin_us = Some(origin_us.saturating_add(jump_us));
                    if !is_wrap(jump_us) {
                        context.client.anomaly(media.jumped(jump_us));
                    }
                }
            }
            if let Some(starts_us) = self.tracks.receive(context, &frame) {
                media.spans(starts_us, frame.duration_us);
            }
        }
        if let (Some(marked), Some(origin_us)) = (media.reader.take_marked(), self.tracks.origin_us)
        {
            let unix_us = i64::try_from(marked.mark.captured_unix_ns / 1_000).unwrap_or(i64::MAX);
            context.timeline.captured(marked.decode_us.saturating_sub(origin_us), unix_us);
        }
        if media.segment.is_progressive {
            let filled = media.filled();
            // What was appended of it is followed by what comes now.
            media.follows |= media.span_us().is_some();
            self.tracks.append_received(now, context, filled);
        }
    }

    /// All of a segment was received.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let Step::Media(media) = &mut self.step else { return Ok(()) };
        let finished = media.finish();
        // What comes as it is made comes at its own rate, whatever the line could carry.
        if !media.segment.is_progressive {
            self.throughput.add(media.bytes, now.saturating_duration_since(media.began_at));
        }
        self.receive_frames(now, context);
        let Step::Media(media) = std::mem::replace(&mut self.step, Step::Nothing) else {
            return Ok(());
        };
        if let Some(program) = media.reader.program() {
            self.program = Some(((self.current, media.segment.discontinuity), program));
        }
        let is_whole = finished.is_ok();
        // Part of a segment may have no frame.
        let is_listed_live = self.segments().and_then(Segments::window).is_some();
        let must_have_media = is_listed_live && media.after.part == 0;
        if media.begins_us.is_none() && must_have_media {
            let failure = finished.err().unwrap_or_else(|| media.without_media());
            return self.without_media(context, failure);
        }
        match finished {
            Ok(()) => self.unreadable = 0,
            // What was read before its end is played.
            Err(failure) if !self.tracks.is_empty() => context.client.anomaly(failure.detail),
            Err(failure) => return self.unreadable(context, failure),
        }
        if let Some(detail) = media.wrong_duration() {
            context.client.anomaly(detail);
        }
        self.tracks.append_received(now, context, media.filled());
        self.tell_size(context, &media);
        let ends_us = self.follow_media(context, &media, is_whole);
        self.retry.progressed();
        let took = now.saturating_duration_since(media.began_at);
        context.meter.segment(took, media.segment.duration_us);
        self.go_to(media.after, ends_us);
        Ok(())
    }

    /// How large the pictures of a segment are: by its media, by that before it in the same
    /// rendition, which may be the last to have said it, else by its playlist.
    fn tell_size(&mut self, context: &mut Context<'_>, media: &SegmentDownload) {
        let begins_us = media.begins_us.unwrap_or(media.segment.starts_us);
        let said = self.renditions.get(self.current).and_then(|rendition| rendition.resolution);
        let seen = media.reader.picture_size();
        let before = self.shown.filter(|(rendition, _)| *rendition == self.current);
        let known = seen.or(before.map(|(_, size)| size));
        let lines = known.map(|(width, height)| width.min(height));
        if let Some(lines) = lines.or(said.and_then(|lines| u16::try_from(lines).ok())) {
            context.timeline.sized(begins_us, lines);
        }
        let Some(size) = seen else { return };
        if let Some((rendition, before)) = self.shown.replace((self.current, size))
            && rendition == self.current
            && before != size
        {
            context.timeline.size_changes(begins_us, before, size);
        }
    }

    /// What comes behind a segment begins where its media ended, if all of it came: where that is.
    fn follow_media(
        &mut self,
        context: &Context<'_>,
        media: &SegmentDownload,
        is_whole: bool,
    ) -> i64 {
        let starts_us = media.segment.starts_us;
        let ends_us = starts_us.saturating_add_unsigned(media.segment.duration_us);
        // How long a part of a segment is may be known by its limit only.
        let later_us = media
            .ends_later_us(context.timeline.longest_frame_us())
            .filter(|_| is_whole && media.after.part == 0);
        let said_us = media.segment.duration_us;
        let segments =
            self.renditions.get_mut(self.current).and_then(|known| known.segments.as_mut());
        let moved_us = later_us
            .zip(segments)
            .map_or(0, |(later_us, segments)| segments.ends_later(said_us, later_us));
        if let Some(span_us) = media.span_us() {
            self.continuity.received(media.after, (starts_us, ends_us), span_us, moved_us);
        }
        ends_us.saturating_add(moved_us)
    }

    /// A segment of a live stream has no media. As by hls.js (`updateLevelTiming` of
    /// `base-stream-controller.ts`, `error-controller.ts`) the first one is left out, the next one
    /// is asked for again at once, and what comes then is played where the playlist says.
    fn without_media(
        &mut self,
        context: &mut Context<'_>,
        failure: Failure,
    ) -> Result<(), Failure> {
        self.unreadable += 1;
        if self.unreadable >= WITHOUT_MEDIA_MAX {
            return Err(failure);
        }
        context.client.failed();
        context.client.anomaly(failure.detail);
        self.origin_of = None;
        // Peers do not send a segment twice.
        if self.unreadable == 1 || self.peers.is_some() {
            self.skip(context);
        }
        Ok(())
    }

    /// A segment cannot be read. A live stream is played on behind it.
    pub(super) fn unreadable(
        &mut self,
        context: &mut Context<'_>,
        failure: Failure,
    ) -> Result<(), Failure> {
        self.unreadable += 1;
        if !self.is_live() || self.unreadable >= UNREADABLE_MAX {
            return Err(failure);
        }
        context.client.failed();
        context.client.anomaly(failure.detail);
        self.skip(context);
        Ok(())
    }

    /// Goes on behind the next place: playback will meet a hole.
    pub(super) fn skip(&mut self, context: &mut Context<'_>) {
        self.tracks.drop_received(context);
        let found =
            self.segments().map(|segments| segments.find(self.next, self.options.low_latency));
        if found == Some(Found::Later) {
            // Only a hint led there. What it announced is awaited in the playlist, as all that
            // follows.
            self.options.preload_hints = false;
            return;
        }
        context.meter.missed();
        match found {
            Some(Found::Piece(segment, after)) => {
                self.go_to(after, segment.starts_us.saturating_add_unsigned(segment.duration_us));
            }
            _ => self.next = Cursor::at(self.next.segment.saturating_add(1)),
        }
    }

    pub(super) fn failed(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        error: TransferError,
    ) -> Result<(), Failure> {
        if let Step::Key(_, url) = std::mem::replace(&mut self.step, Step::Nothing) {
            context.keys.end(&url);
        }
        self.tracks.drop_received(context);
        if self.retry.failed(now, &error) {
            return Ok(());
        }
        let is_allowed = !error.failure.reason.is_forbidden();
        if is_allowed && !self.is_live() && self.try_another(now, context) {
            context.client.anomaly(format!("another rendition instead: {}", error.failure.detail));
            return Ok(());
        }
        if !self.is_live() || !is_allowed {
            return Err(error.failure);
        }
        self.retry.progressed();
        context.client.anomaly(format!("left out: {}", error.failure.detail));
        self.skip(context);
        Ok(())
    }
}
