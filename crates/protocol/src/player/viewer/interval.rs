//! What a viewer tells of each second, and when it is to be woken.

use std::time::{Duration, Instant};

use throng_observation::DATES_AHEAD_US_MAX;

use super::Viewer;
use crate::participant::NEVER;
use crate::participant::Why;
use crate::player::lane::Lane;
use crate::player::manifest::ManifestDownload;
use crate::player::p2p::Tracker;
use crate::player::page::Page;
use crate::player::playback::meter::IntervalEnd;

impl Viewer {
    pub(super) fn end_interval(&mut self, now: Instant) {
        let Some(session) = &self.session else { return };
        let position_us = session.playout.position_us() + i64::from(session.playout.has_ended());
        let buffer_us = self.buffer_us(position_us);
        let lasted_us = session.meter.lasted_us(now);
        let edge = self.edge();
        let date_us = self.lanes.iter().find_map(|lane| lane.date_us(position_us));
        let unix_us = self.unix_us(now);
        let Some(session) = &mut self.session else { return };
        let has_begun = session.playout.start_awaited_since().is_none();
        let live = edge.filter(|edge| session.is_positioned && has_begun && !edge.has_ended);
        // Marks are of the clock of the host that publishes, which is that of throng.
        let captured_us = self.timeline.captured_unix_us(position_us);
        let captured_us = captured_us.map(|us| us.saturating_add(self.server_ahead_us));
        let live = live.map(|edge| {
            session.follower.interval(&edge, (now, unix_us), (position_us, date_us), captured_us)
        });
        let ahead_us =
            live.and_then(|live| live.dates_ahead_us).filter(|us| *us > DATES_AHEAD_US_MAX);
        if let Some(ahead_us) = ahead_us
            && !std::mem::replace(&mut session.knows_wrong_dates, true)
        {
            self.client.anomaly(format!(
                "the dates of the playlist are {:.1} s ahead of this host's clock",
                ahead_us as f64 / 1e6
            ));
        }
        let mut counters = session.playout.take_counters();
        session.follower.stalled(counters.stall_count);
        counters += self.client.take_counters();
        self.lanes.iter_mut().for_each(|lane| counters += lane.take_peer_counters(now, lasted_us));
        self.tracker.iter_mut().for_each(|tracker| counters += tracker.take_counters());
        let mut end = IntervalEnd {
            counters,
            timeline: &mut self.timeline,
            position_us,
            buffer_us,
            start_awaited_since: session.playout.start_awaited_since(),
            live,
        };
        let client = &mut self.client;
        session.meter.end_interval(now, &mut end, |observation| client.life.observe(observation));
    }

    pub(super) fn next_deadline(&self) -> (Instant, Why) {
        let never = (self.config.clock.at + NEVER, "nothing");
        let Some(session) = &self.session else { return never };
        let position_us = session.playout.position_us();
        let buffered = self.buffered();
        let mut all = vec![(session.meter.next_timeout(), "end of the interval")];
        all.extend(session.playout.next_timeout(buffered).map(|at| (at, "buffer used up")));
        let user = session.user.next_timeout().filter(|_| session.is_positioned);
        all.extend(user.map(|at| (at, "action of the user")));
        all.extend(
            self.page.as_ref().and_then(Page::next_timeout).map(|at| (at, "request of the page")),
        );
        if self.failure.is_none() {
            let manifest = self.manifest.iter().filter_map(ManifestDownload::next_timeout);
            all.extend(manifest.map(|at| (at, "manifest")));
            let lanes = self.lanes.iter().filter_map(Lane::next_timeout);
            all.extend(lanes.map(|at| (at, "download overdue or repeated")));
        }
        let tracker = self.tracker.as_ref().and_then(Tracker::next_timeout);
        all.extend(tracker.map(|at| (at, "tracker")));
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
        if session.playout.is_playing() && !session.is_filling && self.failure.is_none() {
            // When so much was played that the buffer is filled again.
            let (_, refill_us) = self.buffer_bounds_us();
            let spare_us = self.buffer_us(position_us).saturating_sub(refill_us);
            all.push((
                session.playout.at() + Duration::from_micros(spare_us + 1),
                "buffer is filled again",
            ));
        }
        all.into_iter().min_by_key(|(at, _)| *at).unwrap_or(never)
    }
}
