//! A media file, downloaded progressively: one request for all of it, read as fast as the player
//! wants, and further ones for its index where that is at the end, for seeks, and after broken
//! connections.

use std::time::Instant;

use throng_media::timing::{IndexCache, TimingReader, Want};
use throng_observation::{Failure, FailureReason, Phase, Url};

use super::unreadable::unreadable;
use super::{Context, Sought, TrackMap};
use crate::participant::{Demand, DownloadEvent, FetchId};
use crate::player::download::retry::{FILE_RETRY, NO_RETRY, Retry};
use crate::player::download::transfer::{Transfer, TransferError, TransferEvent};
use crate::shown_size::Size;

/// Bytes that are asked for at a time: 0.1 s of a stream of 5 Mbit/s, so that a full buffer is
/// exceeded by little.
const DEMAND_BYTES: u64 = 64 * 1024;

/// Media from which a file's rate is estimated.
const RATE_US_MIN: i64 = 500_000;

/// The lane of a file.
pub(in crate::player) struct FileLane {
    url: Url,
    indexes: IndexCache,
    reader: Option<TimingReader>,
    total_bytes: Option<u64>,
    transfer: Option<Transfer>,
    tracks: TrackMap,
    /// Of its pictures, once known.
    size: Option<Size>,
    retry: Retry,
    /// First and last time since the last seek, and where in the file they were.
    first: Option<(i64, u64)>,
    last: Option<(i64, u64)>,
    /// Bytes per second of media, once known.
    bytes_per_s: Option<f64>,
    /// The offset of the last seek, where that was estimated.
    estimated_at: Option<u64>,
    is_complete: bool,
}

impl FileLane {
    pub(in crate::player) fn new(url: Url, indexes: IndexCache) -> Self {
        Self {
            url,
            indexes,
            reader: None,
            total_bytes: None,
            transfer: None,
            tracks: TrackMap::default(),
            size: None,
            // A browser does not repeat the first request of a media element.
            retry: Retry::new(NO_RETRY),
            first: None,
            last: None,
            bytes_per_s: None,
            estimated_at: None,
            is_complete: false,
        }
    }

    pub(in crate::player) fn owns(&self, fetch: FetchId) -> bool {
        self.transfer.as_ref().is_some_and(|transfer| transfer.fetch() == fetch)
    }

    pub(in crate::player) fn handle(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'_>,
    ) -> Result<(), Failure> {
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        match transfer.handle(now, context.client, event) {
            TransferEvent::Begun { total_bytes } => self.begun(now, context, total_bytes),
            // A file is requested with `Range`: never encoded.
            TransferEvent::Bytes { bytes, received } => {
                self.bytes(now, context, Some(&bytes), received)
            }
            TransferEvent::Ignored(count) => self.bytes(now, context, None, count),
            TransferEvent::Complete => self.complete(now, context),
            TransferEvent::Failed(error) => self.failed(now, error),
            TransferEvent::Nothing => Ok(()),
        }
    }

    fn begun(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        total_bytes: Option<u64>,
    ) -> Result<(), Failure> {
        context.client.life.reach(Phase::Playing, now);
        if let (Some(before), Some(total)) = (self.total_bytes, total_bytes)
            && before != total
        {
            let detail = format!("{}: its length changed from {before} to {total} bytes", self.url);
            return Err(Failure::new(FailureReason::Protocol, detail));
        }
        self.total_bytes = self.total_bytes.or(total_bytes);
        if self.reader.is_none() {
            self.reader = Some(TimingReader::new(self.indexes.clone(), self.total_bytes));
            self.retry = Retry::new(FILE_RETRY);
        }
        Ok(())
    }

    /// The next bytes of the file; without their content where it was not wanted.
    fn bytes(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        content: Option<&[u8]>,
        count: u64,
    ) -> Result<(), Failure> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        self.retry.progressed();
        context.meter.media_bytes(count);
        context.client.life.reach(Phase::FirstPacket, now);
        match content {
            Some(bytes) => {
                reader.feed(bytes).map_err(|error| unreadable(&self.url, &error))?;
            }
            None => reader.ignored(count),
        }
        self.take_frames(now, context);
        Ok(())
    }

    fn take_frames(&mut self, now: Instant, context: &mut Context<'_>) {
        let Some(reader) = &mut self.reader else { return };
        if self.tracks.is_empty()
            && let Some(tracks) = reader.tracks()
        {
            self.tracks.announce(now, context, tracks);
        }
        if self.size.is_none()
            && let Some((width, height)) = reader.picture_size()
        {
            self.size = Some((width, height));
            context.timeline.sized(i64::MIN, width.min(height));
        }
        let position = reader.position();
        while let Some(frame) = reader.next_frame() {
            self.tracks.origin_us.get_or_insert(frame.decode_us);
            if let Some(at_us) = self.tracks.push(now, context, &frame) {
                self.first.get_or_insert((at_us, position));
                self.last = Some((at_us, position));
            }
        }
        if let (Some((first_us, from)), Some((last_us, to))) = (self.first, self.last)
            && last_us - first_us >= RATE_US_MIN
        {
            self.bytes_per_s =
                Some(to.saturating_sub(from) as f64 * 1e6 / (last_us - first_us) as f64);
        }
    }

    /// The response is complete. If it was not the whole rest of the file, the rest is requested.
    fn complete(&mut self, now: Instant, context: &mut Context<'_>) -> Result<(), Failure> {
        self.transfer = None;
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let position = reader.position();
        let is_rest_needed = match reader.want() {
            Want::Done => false,
            Want::Jump(_) => true,
            Want::Deliver(_) | Want::Ignore(_) => {
                self.total_bytes.is_some_and(|total| position < total)
            }
        };
        if is_rest_needed {
            return Ok(());
        }
        self.is_complete = true;
        if let Err(error) = reader.finish() {
            context.client.anomaly(format!("{}: {error}", self.url));
        }
        self.take_frames(now, context);
        if self.tracks.is_empty() {
            let detail = format!("{}: no audio or video was found in {position} bytes", self.url);
            return Err(Failure::new(FailureReason::Protocol, detail));
        }
        if self.first.is_none()
            && let Some(offset) = self.estimated_at.filter(|offset| *offset > 0)
        {
            // Nothing that is played begins so near the end.
            let rest = position.saturating_sub(offset).max(DEMAND_BYTES);
            self.estimate(context, offset.saturating_sub(rest));
        }
        Ok(())
    }

    /// Goes on at an offset where nothing is known to begin.
    fn estimate(&mut self, context: &mut Context<'_>, offset: u64) {
        (self.estimated_at, self.is_complete) = (Some(offset), false);
        self.jump(context, offset);
    }

    fn failed(&mut self, now: Instant, error: TransferError) -> Result<(), Failure> {
        self.transfer = None;
        if self.retry.failed(now, &error) { Ok(()) } else { Err(error.failure) }
    }

    pub(in crate::player) fn pump(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        wants: bool,
    ) -> Result<(), Failure> {
        if self.transfer.as_ref().and_then(Transfer::next_timeout).is_some_and(|at| now >= at)
            && let Some(transfer) = self.transfer.take()
        {
            let error = transfer.stuck();
            context.client.failed();
            transfer.cancel(context.client);
            self.failed(now, error)?;
        }
        if self.is_complete || self.retry.waits(now) {
            return Ok(());
        }
        match self.reader.as_ref().map(TimingReader::want) {
            // A response that has come whole is ended by the driver, which keeps its connection.
            Some(Want::Jump(_)) if self.transfer.as_ref().is_some_and(Transfer::is_received) => {
                return Ok(());
            }
            Some(Want::Jump(offset)) if self.comes_to(offset) => {}
            Some(Want::Jump(offset)) => self.jump(context, offset),
            // What comes behind the last frame is not needed.
            Some(Want::Done) => {
                self.stop(context);
                self.complete(now, context)?;
                if self.is_complete {
                    return Ok(());
                }
            }
            _ => {}
        }
        if self.transfer.is_none() {
            let offset = self.reader.as_ref().map_or(0, TimingReader::position);
            if self.total_bytes.is_some_and(|total| offset >= total) {
                return self.complete(now, context);
            }
            self.retry.begun();
            let range = Some((offset, None));
            self.transfer = Some(Transfer::begin(now, context.client, &self.url, range)?);
        }
        self.demand(now, context, wants);
        Ok(())
    }

    /// Whether the response in progress has what is at `offset`, in its turn: a browser asks for no
    /// parts where the server sends all of the file.
    fn comes_to(&self, offset: u64) -> bool {
        let position = self.reader.as_ref().map_or(0, TimingReader::position);
        position <= offset && self.transfer.as_ref().is_some_and(Transfer::is_whole)
    }

    /// Gives up the request in progress.
    pub(in crate::player) fn stop(&mut self, context: &mut Context<'_>) {
        if let Some(transfer) = self.transfer.take() {
            transfer.cancel(context.client);
        }
    }

    /// Goes on at another offset of the file, with a request of its own.
    fn jump(&mut self, context: &mut Context<'_>, offset: u64) {
        self.stop(context);
        if let Some(reader) = &mut self.reader {
            reader.jumped(offset);
        }
    }

    /// Keeps enough of the body asked for, so that the download never waits for the player while it
    /// wants more.
    fn demand(&mut self, now: Instant, context: &mut Context<'_>, wants: bool) {
        let (Some(reader), Some(transfer)) = (&self.reader, &mut self.transfer) else { return };
        let outstanding = transfer.outstanding();
        // Until the tracks are known there is no time, and no buffer that could be full. Until the
        // head is there, it is not known which bytes the first ones of the body are.
        let is_asked = !transfer.has_head() || outstanding > DEMAND_BYTES / 2;
        if is_asked || !wants && !self.tracks.is_empty() {
            return;
        }
        let (demand, bytes): (fn(u64) -> Demand, u64) = match reader.want() {
            Want::Deliver(bytes) => (Demand::Deliver, bytes),
            Want::Ignore(bytes) => (Demand::Ignore, bytes),
            Want::Jump(offset) if transfer.is_whole() => {
                (Demand::Ignore, offset.saturating_sub(reader.position()))
            }
            Want::Jump(_) | Want::Done => return,
        };
        if bytes > outstanding {
            let bytes = (bytes - outstanding).min(DEMAND_BYTES);
            transfer.demand(now, context.client, demand(bytes));
        }
    }

    pub(in crate::player) fn seek(
        &mut self,
        context: &mut Context<'_>,
        position_us: i64,
    ) -> Sought {
        let Some(reader) = &self.reader else { return Sought::Impossible };
        let time_us = u64::try_from(position_us).unwrap_or(0);
        let (offset, sought) = match (reader.offset_for(time_us), self.bytes_per_s) {
            (Some((offset, _)), _) => (offset, Sought::Exact),
            (None, _) if position_us == 0 => (0, Sought::Exact),
            (None, Some(rate)) => ((time_us as f64 / 1e6 * rate) as u64, Sought::Estimated),
            (None, None) => return Sought::Impossible,
        };
        // The beginning of the last bytes, where the estimate goes behind the end.
        let offset = self.total_bytes.map_or(offset, |total| offset.min(total.saturating_sub(1)));
        // What begins elsewhere says nothing about the beginning.
        self.tracks.origin_us.get_or_insert(0);
        (self.first, self.last) = (None, None);
        if sought == Sought::Estimated {
            self.estimate(context, offset);
        } else {
            (self.estimated_at, self.is_complete) = (None, false);
            self.jump(context, offset);
        }
        sought
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        let stuck = self.transfer.as_ref().and_then(Transfer::next_timeout);
        [stuck, self.retry.next_timeout()].into_iter().flatten().min()
    }

    pub(in crate::player) fn is_described(&self) -> bool {
        !self.tracks.is_empty()
    }

    pub(in crate::player) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether all of this track of the presentation was received.
    pub(in crate::player) fn has_ended(&self, track: usize) -> bool {
        let of_file = self.tracks.in_file(track).zip(self.reader.as_ref());
        self.is_complete || of_file.is_some_and(|(track, reader)| reader.has_ended(track))
    }

    pub(in crate::player) fn brings(&self, track: usize) -> bool {
        self.tracks.brings(track)
    }

    pub(in crate::player) fn duration_us(&self) -> Option<u64> {
        let reader = self.reader.as_ref()?;
        let by_rate = || {
            let seconds = self.total_bytes? as f64 / self.bytes_per_s?;
            Some((seconds * 1e6) as u64)
        };
        reader.duration_us().or_else(by_rate)
    }

    pub(in crate::player) fn first_frame_us(&self) -> Option<i64> {
        self.first.map(|(at_us, _)| at_us)
    }
}
