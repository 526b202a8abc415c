//! Where a viewer plays: at the beginning, near the end of a live stream, where its user wants to
//! be.

use std::time::Instant;

use throng_observation::Outcome;
use throng_scenario::AtEnd;

use super::Viewer;
use crate::player::lane::{Lane, Sought};
use crate::player::playback::user::UserAction;

impl Viewer {
    /// Chooses where playback begins, once the media is described.
    pub(super) fn position(&mut self, now: Instant) {
        let is_described = !self.lanes.is_empty() && self.lanes.iter().all(Lane::is_described);
        let duration_us = self.lanes.iter().filter_map(Lane::duration_us).max();
        let edge = self.edge();
        let player = &self.config.player;
        let Some(session) =
            self.session.as_mut().filter(|session| is_described && !session.is_positioned)
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
            edge.iter().for_each(|edge| session.follower.synchronised(edge, now));
            session.is_positioned = true;
        }
    }

    /// Moves all lanes to `position_us`; the worst of what they say.
    pub(super) fn seek_lanes(&mut self, position_us: i64) -> Sought {
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
    pub(super) fn moved(&mut self, now: Instant, (from_us, to_us): (i64, i64), sought: Sought) {
        let is_estimated = sought == Sought::Estimated;
        self.timeline.clear(from_us, if is_estimated { i64::MIN } else { to_us });
        if let Some(session) = &mut self.session {
            session.meter.moved();
            session.meter.wants(now, true);
            session.is_filling = true;
            session.follows_first_frame = is_estimated;
        }
    }

    /// Where playback stops at a hole and media goes on behind it, it goes on there, as hls.js's
    /// does; and it begins where the media begins, or goes on, if there is none at its position.
    pub(super) fn jump_over_hole(&mut self) {
        let Some(session) = self.session.as_mut().filter(|session| session.is_positioned) else {
            return;
        };
        if let Some(begins_us) = self.timeline.begins_behind_us(session.playout.position_us()) {
            session.playout.starts_at(begins_us);
        }
        let Some(after_us) = self.timeline.after_hole_us(session.playout.position_us()) else {
            return;
        };
        if session.playout.is_stalled() {
            session.playout.jump(after_us);
        } else {
            // Only where it has not begun.
            session.playout.starts_at(after_us);
        }
    }

    /// Returns to a live stream that has left playback behind, and plays faster where that is
    /// wanted.
    pub(super) fn follow_live(&mut self, now: Instant) {
        // Who has failed plays what it has, from where it is.
        let Some(edge) = self.edge().filter(|_| self.failure.is_none()) else { return };
        let Some(session) = self.session.as_ref().filter(|session| session.is_positioned) else {
            return;
        };
        let position_us = session.playout.position_us();
        let waits = session.playout.waits_since().is_some();
        let buffer_us = self.buffer_us(position_us);
        // What is buffered will be played, however short the playlist is.
        let starves = waits && buffer_us == 0;
        let Some(session) = &mut self.session else { return };
        let rate_milli = session.follower.rate_milli(&edge, now, position_us, buffer_us);
        session.playout.set_rate(rate_milli);
        if session.follower.must_jump(&edge, now, position_us, starves) {
            let sync_us = session.follower.sync_position_us(&edge, now);
            let sought = self.seek_lanes(sync_us);
            if let Some(session) = &mut self.session {
                session.playout.jump(sync_us);
                session.follower.synchronised(&edge, now);
            }
            self.moved(now, (position_us, sync_us), sought);
        }
    }

    pub(super) fn follow_first_frame(&mut self) {
        let first_us = self.lanes.iter().filter_map(Lane::first_frame_us).min();
        if let Some(session) = &mut self.session
            && session.follows_first_frame
            && let Some(first_us) = first_us
        {
            session.follows_first_frame = false;
            session.playout.starts_at(first_us);
        }
    }

    pub(super) fn act_as_user(&mut self, now: Instant) {
        let duration_us = self.lanes.iter().filter_map(Lane::duration_us).max();
        let Some(session) = self.session.as_mut().filter(|session| session.is_positioned) else {
            return;
        };
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
    pub(super) fn at_end(&mut self, now: Instant) {
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
}
