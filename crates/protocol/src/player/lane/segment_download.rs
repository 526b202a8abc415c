//! The download of one segment of media, or of a part of one: its bytes are decrypted where they
//! are encrypted, and their timing is read.

use std::time::{Duration, Instant};

use throng_media::timing::{
    Container, IndexCache, InitSegment, SegmentId, TimingReader, Want, WholeSegment,
};
use throng_observation::{Failure, FailureReason, Url};

use super::Context;
use super::abandon::Loading;
use super::decrypt::{Decryption, KEY_LEN};
use super::kept::Kept;
use super::unreadable::unreadable;
use crate::participant::{Demand, DownloadEvent, FetchId};
use crate::player::download::client::HttpClient;
use crate::player::download::transfer::{Transfer, TransferError, TransferEvent};
use crate::player::manifest::presentation::{Cursor, Segment};
use crate::player::playback::timeline::Filled;

/// Bytes that are asked for at a time; the next are asked for when half of them have come.
const DEMAND_BYTES: u64 = 128 * 1024;

/// What a segment must differ from its announced duration by to be wrong: more than frames that
/// belong to a neighbour.
const DURATION_TOLERANCE_US: u64 = 1_000_000;

/// How long it may take in all (`maxLoadTimeMs` of hls.js' fragments).
const LOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// A segment under way.
pub(in crate::player) struct SegmentDownload {
    /// `None`: peers sent it.
    transfer: Option<Transfer>,
    pub(in crate::player) reader: TimingReader,
    pub(in crate::player) segment: Box<Segment>,
    /// The place behind it.
    pub(in crate::player) after: Cursor,
    pub(in crate::player) began_at: Instant,
    /// Its bytes so far, decoded: the rates of renditions are those of media, not of the wire.
    pub(in crate::player) bytes: u64,
    /// Length of its body, where the server says it.
    pub(in crate::player) total_bytes: Option<u64>,
    first_byte_at: Option<Instant>,
    /// When it is looked at whether it comes in time.
    pub(in crate::player) next_look_at: Instant,
    decryption: Option<Decryption>,
    /// Where its first frame is on the time axis, microseconds.
    pub(in crate::player) begins_us: Option<i64>,
    /// It goes on where the one before ended.
    pub(in crate::player) follows: bool,
    /// First and last moment of its frames, microseconds.
    span_us: Option<(i64, i64)>,
    /// Its bytes, where they are for others.
    kept: Option<Kept>,
}

impl SegmentDownload {
    /// Requests `segment`.
    pub(in crate::player) fn begin(
        now: Instant,
        context: &mut Context<'_>,
        (segment, after): (Box<Segment>, Cursor),
        (indexes, init): (IndexCache, Option<&InitSegment>),
        key: Option<[u8; KEY_LEN]>,
    ) -> Result<Self, Failure> {
        // An open end is one that the server knows (`EXT-X-PRELOAD-HINT`).
        let range = segment
            .media
            .range
            .map(|(first, last)| (first, Some(last).filter(|last| *last < u64::MAX)));
        let transfer = Transfer::begin(now, context.client, &segment.media.url, range)?;
        let iv = segment.key.as_ref().map(|key| key.iv);
        let decryption = key.zip(iv).and_then(|(key, iv)| Decryption::new(key, iv));
        let reader = TimingReader::segment(indexes, init);
        let next_look_at = now + Loading::looked_at_after(segment.duration_us, None);
        Ok(Self {
            transfer: Some(transfer),
            reader,
            segment,
            after,
            began_at: now,
            bytes: 0,
            total_bytes: None,
            first_byte_at: None,
            next_look_at,
            decryption,
            begins_us: None,
            follows: false,
            span_us: None,
            kept: None,
        })
    }

    /// A segment that came from peers, or is kept for them, all of it, after `took`.
    pub(in crate::player) fn received(
        now: Instant,
        (segment, after): (Box<Segment>, Cursor),
        whole: &WholeSegment,
        took: Duration,
    ) -> Self {
        Self {
            transfer: None,
            reader: TimingReader::received(whole),
            segment,
            after,
            began_at: now.checked_sub(took).unwrap_or(now),
            bytes: whole.bytes(),
            total_bytes: Some(whole.bytes()),
            first_byte_at: Some(now),
            next_look_at: now,
            decryption: None,
            begins_us: None,
            follows: false,
            span_us: None,
            kept: None,
        }
    }

    /// It is read for others too.
    pub(in crate::player) fn share_alike(&mut self) {
        self.reader.share_alike();
    }

    /// Its bytes are kept, so that they can be sent to others.
    pub(in crate::player) fn keep_bytes(&mut self) {
        self.kept = Some(Kept::of(self.segment.media.range));
    }

    /// All of its bytes, where they were kept.
    pub(in crate::player) fn take_bytes(&mut self) -> Option<Vec<u8>> {
        self.kept.take()?.whole()
    }

    pub(in crate::player) fn owns(&self, fetch: FetchId) -> bool {
        self.transfer.as_ref().is_some_and(|transfer| transfer.fetch() == fetch)
    }

    /// Handles what the driver reports of its download.
    pub(in crate::player) fn handle<'a>(
        &mut self,
        now: Instant,
        context: &mut Context<'_>,
        event: DownloadEvent<'a>,
    ) -> TransferEvent<'a> {
        self.transfer
            .as_mut()
            .map_or(TransferEvent::Nothing, |transfer| transfer.handle(now, context.client, event))
    }

    /// Gives it up.
    pub(in crate::player) fn cancel(self, client: &mut HttpClient) {
        if let Some(transfer) = self.transfer {
            transfer.cancel(client);
        }
    }

    /// Where its bytes come from: after redirects not where it was requested.
    fn url(&self) -> &Url {
        self.transfer.as_ref().map_or(&self.segment.media.url, Transfer::url)
    }

    /// When it is given up, though bytes of it may still come.
    pub(in crate::player) fn overdue_at(&self) -> Instant {
        let late_at = self.began_at + LOAD_TIMEOUT;
        let silent_at = self.transfer.as_ref().and_then(Transfer::next_timeout);
        silent_at.map_or(late_at, |at| at.min(late_at))
    }

    /// Why it is given up at `now`, if it is.
    pub(in crate::player) fn overdue(&self, now: Instant) -> Option<TransferError> {
        self.transfer.as_ref()?.overdue(now, self.began_at + LOAD_TIMEOUT, LOAD_TIMEOUT)
    }

    /// Its response is usable. What others have read of the same version is not read again.
    pub(in crate::player) fn begun(&mut self, total_bytes: Option<u64>) {
        self.total_bytes = total_bytes.filter(|_| self.segment.media.range.is_none());
        let is_plain = self.decryption.is_none() && !self.segment.is_progressive;
        let version = self.transfer.as_ref().and_then(Transfer::version);
        if let Some((validator, bytes)) = version.filter(|_| is_plain) {
            let (url, range) = (self.url().in_clear(), self.segment.media.range);
            // The query says who asks.
            let place = format!("{}{}", url.authority(), url.path());
            self.reader.identify(SegmentId {
                place,
                range,
                validator: validator.clone(),
                bytes: *bytes,
            });
        }
    }

    /// How far it has come.
    pub(in crate::player) fn loading(&self, now: Instant) -> Loading {
        Loading {
            elapsed: now.saturating_duration_since(self.began_at),
            first_byte: self.first_byte_at.map(|at| at.saturating_duration_since(self.began_at)),
            received_bytes: self.bytes,
            total_bytes: self.total_bytes,
            duration_us: self.segment.duration_us,
        }
    }

    /// Reads the next bytes; without their content where it was not wanted.
    pub(in crate::player) fn feed(
        &mut self,
        now: Instant,
        content: Option<&[u8]>,
        count: u64,
    ) -> Result<(), Failure> {
        self.bytes += count;
        self.first_byte_at.get_or_insert(now);
        if self.kept.as_mut().is_some_and(|kept| !kept.add(content)) {
            self.kept = None;
        }
        match (content, &mut self.decryption) {
            (None, _) => self.reader.ignored(count),
            (Some(bytes), None) => {
                self.reader.feed(bytes).map_err(|error| unreadable(self.url(), &error))?;
            }
            (Some(bytes), Some(decryption)) => {
                let clear =
                    decryption.update(bytes).ok_or_else(|| self.broken("cannot be decrypted"))?;
                self.reader.feed(&clear).map_err(|error| unreadable(self.url(), &error))?;
            }
        }
        Ok(())
    }

    /// All bytes were received.
    pub(in crate::player) fn finish(&mut self) -> Result<(), Failure> {
        if let Some(decryption) = self.decryption.take() {
            let clear = decryption.finish().ok_or_else(|| {
                self.broken(
                    "does not end as an encrypted segment does: a wrong key, or it is cut off",
                )
            })?;
            self.reader.feed(&clear).map_err(|error| unreadable(self.url(), &error))?;
        }
        self.reader.finish().map_err(|error| unreadable(self.url(), &error))
    }

    /// A frame from `starts_us` on belongs to it.
    pub(in crate::player) fn spans(&mut self, starts_us: i64, duration_us: u32) {
        let ends_us = starts_us.saturating_add(i64::from(duration_us));
        let (first, last) = self.span_us.unwrap_or((starts_us, ends_us));
        self.span_us = Some((first.min(starts_us), last.max(ends_us)));
    }

    /// `frame_us`, where a frame is, if it is the first one.
    pub(in crate::player) fn begins_with(&mut self, frame_us: i64) -> Option<i64> {
        let is_first = self.begins_us.is_none();
        self.begins_us.get_or_insert(frame_us);
        is_first.then_some(frame_us)
    }

    /// Where its first frame is, and where its frames end.
    pub(in crate::player) fn span_us(&self) -> Option<(i64, i64)> {
        Some((self.begins_us?, self.span_us?.1))
    }

    /// How much later its media ends than its playlist says. A single frame that does not say how
    /// long it lasts, lasts for `frame_us`, but no longer than the segment.
    pub(in crate::player) fn ends_later_us(&self, frame_us: Option<u64>) -> Option<i64> {
        let (first_us, last_us) = self.span_us()?;
        let said_us = self.segment.duration_us;
        let least_us = first_us.saturating_add_unsigned(frame_us.unwrap_or(said_us).min(said_us));
        let ends_us = if last_us > first_us { last_us } else { least_us };
        Some(ends_us.saturating_sub(self.segment.starts_us.saturating_add_unsigned(said_us)))
    }

    /// It has no media, or none that can be read.
    pub(in crate::player) fn without_media(&self) -> Failure {
        let scrambled = self.reader.anomalies().scrambled_packets;
        if scrambled > 0 {
            let what =
                format!("{scrambled} of its packets are scrambled, which throng cannot undo");
            return Failure::new(FailureReason::Unsupported, format!("{}: {what}", self.url()));
        }
        self.broken(&format!("no audio or video was found in its {} bytes", self.bytes))
    }

    /// Which times without a frame are no holes of it: players make MP4 of transport streams and
    /// packed audio, and put silence into sound that comes with pictures or beside them.
    pub(in crate::player) fn filled(&self) -> Filled {
        match self.reader.container() {
            Container::TransportStream | Container::PackedAudio if self.follows => {
                Filled::Throughout
            }
            Container::TransportStream | Container::PackedAudio => Filled::Within,
            Container::Mp4 | Container::Matroska | Container::Other(_) | Container::Unknown => {
                Filled::Nothing
            }
        }
    }

    /// Its time stamps jumped, in words.
    pub(in crate::player) fn jumped(&self, by_us: i64) -> String {
        let by_s = by_us as f64 / 1e6;
        format!("{}: time stamps jump by {by_s:+.1} s without a discontinuity", self.url())
    }

    /// What is wrong with its length, if something is.
    pub(in crate::player) fn wrong_duration(&self) -> Option<String> {
        let (first, last) = self.span_us?;
        let has_us = last.abs_diff(first);
        let (said_s, has_s) = (self.segment.duration_us as f64 / 1e6, has_us as f64 / 1e6);
        // A single frame, such as a slide, does not say how long it lasts.
        let is_known = has_us > 0;
        (is_known && has_us.abs_diff(self.segment.duration_us) > DURATION_TOLERANCE_US).then(|| {
            format!("{}: its playlist says {said_s:.1} s, its frames last {has_s:.1} s", self.url())
        })
    }

    fn broken(&self, what: &str) -> Failure {
        Failure::new(FailureReason::Protocol, format!("{}: {what}", self.url()))
    }

    /// Keeps enough of the body asked for. A segment is read as fast as it comes: only between
    /// segments does a player hold the server back.
    pub(in crate::player) fn demand(&mut self, now: Instant, context: &mut Context<'_>) {
        let Some(transfer) = &mut self.transfer else { return };
        let outstanding = transfer.outstanding();
        if !transfer.has_head() || outstanding > DEMAND_BYTES / 2 {
            return;
        }
        let (demand, bytes): (fn(u64) -> Demand, u64) = match self.reader.want() {
            _ if self.decryption.is_some() || self.kept.is_some() || transfer.is_encoded() => {
                (Demand::Deliver, DEMAND_BYTES)
            }
            Want::Deliver(bytes) => (Demand::Deliver, bytes.min(DEMAND_BYTES)),
            // What comes behind the last frame is received too.
            Want::Done => (Demand::Ignore, DEMAND_BYTES),
            Want::Ignore(bytes) => (Demand::Ignore, bytes),
            // An index elsewhere in a segment has nothing that its own time stamps do not say.
            Want::Jump(_) => (Demand::Deliver, DEMAND_BYTES),
        };
        if bytes > outstanding {
            transfer.demand(now, context.client, demand(bytes - outstanding));
        }
    }
}
