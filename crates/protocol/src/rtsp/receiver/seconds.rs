//! The intervals of tracks, which end with each second.

use std::time::Instant;

use throng_media::quality::TrackMeter;
use throng_observation::TrackInterval;

use super::Receiver;
use super::ends::{Expected, over_since};
use crate::reports::next_second;

impl Receiver {
    /// Performs due actions: gives up late packets, and ends the interval when its second is over.
    pub(in crate::rtsp) fn timeout(&mut self, now: Instant) {
        // What arrived since may be still to come.
        let heard = now.checked_sub(self.lag).unwrap_or(now);
        for track in self.tracks.iter_mut().filter(|_| !self.is_paused) {
            if track.meter.next_timeout().is_some_and(|at| heard >= at) {
                track.meter.timeout(heard);
                // The request is for feedback that was not negotiated; taking it sets its next
                // time.
                let _ = track.meter.wants_key_frame(heard);
            }
        }
        if heard >= self.next_interval_at {
            if !self.is_paused {
                self.end_seconds(heard);
            }
            self.next_interval_at = next_second(self.next_interval_at, heard);
        }
    }

    /// The server plays: every track that was set up has media until the recording ends, if it
    /// does.
    pub(in crate::rtsp) fn expect(&mut self, since: Instant, until: Option<Instant>) {
        self.expected = Some(Expected { since, until, is_stopping: false });
    }

    /// The server was asked to stop.
    pub(in crate::rtsp) fn expect_nothing(&mut self) {
        self.expected.iter_mut().for_each(|expected| expected.is_stopping = true);
    }

    /// Ends the intervals of a second. That of a track that may be over is put off: if it is, its
    /// silence does not count, and if it is not, all of it does.
    fn end_seconds(&mut self, now: Instant) {
        let second = self.next_interval_at;
        let over_since = over_since(&self.tracks, self.expected, now);
        for (track, over_since) in self.tracks.iter_mut().zip(over_since) {
            if over_since.is_some() {
                let (first, _) = track.put_off.unwrap_or((second, second));
                track.put_off = Some((first, second));
                continue;
            }
            track.goes_on(self.expected, &mut self.observed);
            let interval = track.interval(self.expected, now, TrackMeter::take_interval);
            self.observed.push(interval);
        }
    }

    /// Ends the intervals of all tracks; of one that may be over, where its silence began.
    pub(super) fn end_intervals(
        &mut self,
        now: Instant,
        take: fn(&mut TrackMeter, Instant) -> TrackInterval,
    ) {
        let over_since = over_since(&self.tracks, self.expected, now);
        for (track, over_since) in self.tracks.iter_mut().zip(over_since) {
            if over_since.is_some() {
                track.meter.pause();
                track.put_off = None;
            }
            track.goes_on(self.expected, &mut self.observed);
            let ends_at = over_since.unwrap_or(now);
            self.observed.push(track.interval(self.expected, ends_at, take));
        }
    }

    /// Ends every track's last interval, as of the time until which all that arrived is known.
    pub(in crate::rtsp) fn finish(&mut self, now: Instant) {
        let heard = now.checked_sub(self.lag).unwrap_or(now);
        if !self.is_paused {
            self.end_intervals(heard, TrackMeter::finish);
        }
    }

    /// When to call [`Self::timeout`] and [`Self::poll_report`] next.
    pub(in crate::rtsp) fn next_timeout(&self) -> Instant {
        let tracks = self.tracks.iter().map(|track| {
            let meter = track.meter.next_timeout().filter(|_| !self.is_paused);
            meter.map_or(track.next_report_at, |at| (at + self.lag).min(track.next_report_at))
        });
        tracks.fold(self.next_interval_at + self.lag, Instant::min)
    }
}
