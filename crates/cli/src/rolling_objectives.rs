//! The objectives during a run, judged by the last seconds of media and by the last joins. The rows
//! for them are kept in memory, because reading the run folder would take longer and longer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use throng_observation::run::{ParticipantId, Row, RunData, RunInfo, TrackRow};
use throng_observation::{Distribution, OneWayDelay, PlayerRow, Players, TrackId};
use throng_report::ObjectiveResult;

use crate::report;

/// The window of media that is judged, seconds.
const SECONDS: i64 = 10;
/// The most participants, tracks, and players that are kept: the newest.
const KEPT_MAX: usize = 20_000;

/// The rows of the window; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RollingObjectives(Arc<Mutex<RunSoFar>>);

#[derive(Debug)]
struct RunSoFar {
    run: RunData,
    participants: Places<ParticipantId>,
    tracks: Places<(ParticipantId, TrackId)>,
    /// The players, whose stalls are added up when they are judged.
    players: Vec<PlayerRow>,
    player_places: Places<ParticipantId>,
}

/// The index of each key's row in a list of rows.
#[derive(Debug)]
struct Places<K> {
    by_key: HashMap<K, usize>,
    keys: Vec<K>,
    /// The index that is overwritten next when the list is full.
    next: usize,
}

impl RollingObjectives {
    pub(crate) fn new(info: RunInfo) -> Self {
        Self(Arc::new(Mutex::new(RunSoFar {
            run: RunData { info, ..RunData::default() },
            participants: Places::new(),
            tracks: Places::new(),
            players: Vec::new(),
            player_places: Places::new(),
        })))
    }

    /// Adds a row.
    pub(crate) fn take(&self, row: &Row) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(row);
    }

    /// Judges the objectives.
    pub(crate) fn judge(&self) -> Vec<ObjectiveResult> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut players = Players::default();
        kept.players.iter().for_each(|player| players.add(player));
        kept.run.players = players;
        report::summary(&kept.run).objectives
    }
}

impl RunSoFar {
    fn take(&mut self, row: &Row) {
        let run = &mut self.run;
        match row {
            Row::Crowd(row) => {
                run.crowd.retain(|kept| kept.second > row.second - SECONDS);
                run.crowd.push(*row);
            }
            Row::Series(row) => {
                run.series.retain(|kept| kept.second > row.second - SECONDS);
                run.series.push((**row).clone());
            }
            Row::Playback(row) => {
                // A run has one basis of latency, which seconds that are forgotten decide as well.
                let vote = &mut run.forgotten_latency_vote;
                run.playback.retain(|kept| {
                    let is_kept = kept.second > row.second - SECONDS;
                    if !is_kept {
                        vote.add(kept);
                    }
                    is_kept
                });
                run.playback.push((**row).clone());
            }
            Row::Chat(row) => {
                run.chat.retain(|kept| kept.second > row.second - SECONDS);
                run.chat.push((**row).clone());
            }
            Row::Player(row) => {
                self.player_places.put(&mut self.players, row.participant, **row);
            }
            Row::Participant(row) => {
                self.participants.put(&mut run.participants, row.participant, (**row).clone());
            }
            Row::Track(row) => {
                // Objectives use only the sums of a track.
                let sums = TrackRow {
                    relative_delay_us: Distribution::default(),
                    absolute_delay: OneWayDelay::default(),
                    ..(**row).clone()
                };
                self.tracks.put(&mut run.tracks, (row.participant, row.track), sums);
            }
            // No objective is about these.
            Row::Sent(_)
            | Row::SecondClosed(_)
            | Row::HttpRequests(_)
            | Row::LayerSwitch(_)
            | Row::Generator(_)
            | Row::Event(_)
            | Row::Hold(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }
}

impl<K: Copy + Eq + Hash> Places<K> {
    fn new() -> Self {
        Self { by_key: HashMap::new(), keys: Vec::new(), next: 0 }
    }

    /// Replaces the row with the same key, or, in a full list, the oldest.
    fn put<R>(&mut self, rows: &mut Vec<R>, key: K, row: R) {
        if let Some(kept) = self.by_key.get(&key).and_then(|at| rows.get_mut(*at)) {
            *kept = row;
        } else if rows.len() < KEPT_MAX {
            self.by_key.insert(key, rows.len());
            self.keys.push(key);
            rows.push(row);
        } else if let (Some(given_up), Some(kept)) =
            (self.keys.get_mut(self.next), rows.get_mut(self.next))
        {
            self.by_key.remove(given_up);
            self.by_key.insert(key, self.next);
            (*given_up, *kept) = (key, row);
            self.next = (self.next + 1) % KEPT_MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::run::SeriesRow;
    use throng_observation::{
        ChatCounters, ChatRow, MediaKind, PlaybackCounters, PlaybackRow, TrackCounters,
    };
    use throng_scenario::Scenario;

    /// Of a run that is judged by `objective` and has its target at `url`.
    fn rolling(objective: &str, url: &str) -> RollingObjectives {
        let scenario = format!(
            "objectives = [\"{objective}\"]\n[target]\nurl = \"{url}\"\n[crowd]\nsize = 1\n"
        );
        let plan = Scenario::run_plan_of_stored(&scenario);
        assert!(plan.is_some(), "{scenario}");
        RollingObjectives::new(RunInfo { plan, ..RunInfo::default() })
    }

    #[test]
    fn a_chat_whose_messages_are_missing_is_missed_while_it_runs() {
        let url = "xmpp+ws://127.0.0.1:5280/xmpp-websocket?room=stage@conference.localhost\
                   &domain=localhost";
        let rolling = rolling("chat.missing < 1%", url);
        let second = |second, messages_missing| {
            let counters =
                ChatCounters { messages_due: 119, messages_missing, ..ChatCounters::default() };
            Row::Chat(Box::new(ChatRow { second, members: 1, counters, ..ChatRow::default() }))
        };
        assert_eq!(rolling.judge()[0].result, "not_measured");
        rolling.take(&second(0, 119));
        let judged = rolling.judge();
        assert!(judged[0].is_missed(), "{}", judged[0].result);
        (1..=SECONDS).for_each(|at| rolling.take(&second(at, 0)));
        assert_eq!(rolling.judge()[0].result, "met", "the window moves on");
    }

    #[test]
    fn the_players_that_are_kept_are_the_newest_as_they_were_last() {
        let rolling = rolling("stall_ratio < 1%", "https://127.0.0.1:8443/live.m3u8");
        let player = |number, stall_us| {
            let counters = PlaybackCounters { stall_us, ..PlaybackCounters::default() };
            Row::Player(Box::new(PlayerRow {
                participant: ParticipantId(number),
                startup_us: None,
                buffer_us: 0,
                delivery_ppm_min: None,
                counters,
            }))
        };
        let most = u32::try_from(KEPT_MAX).unwrap();
        (0..=most).for_each(|number| rolling.take(&player(number, 0)));
        rolling.take(&player(7, 70));
        let kept = rolling.0.lock().unwrap();
        assert_eq!(kept.players.len(), KEPT_MAX);
        let of =
            |number| kept.players.iter().find(|player| player.participant == ParticipantId(number));
        assert!(of(0).is_none() && of(most).is_some());
        assert_eq!(of(7).map(|player| player.counters.stall_us), Some(70));
    }

    #[test]
    fn the_basis_of_latency_is_that_of_all_seconds_of_the_run() {
        let rolling = rolling("latency p95 < 20s", "https://127.0.0.1:8443/live.m3u8");
        let second = |second, dates_ahead| {
            let mut row = PlaybackRow {
                second,
                players: 10,
                dates_ahead: Some(dates_ahead),
                ..PlaybackRow::default()
            };
            (0..10).for_each(|_| row.edge_latency_us.record(12_000_000));
            (0..10).for_each(|_| row.latency_us.record(30_000_000));
            Row::Playback(Box::new(row))
        };
        // Their dates are ahead of the clock at first, and good in all seconds that are kept.
        (0..20).for_each(|at| rolling.take(&second(at, 10)));
        (20..20 + SECONDS).for_each(|at| rolling.take(&second(at, 0)));
        assert_eq!(rolling.judge()[0].result, "met", "12 s to the end of the playlist");
    }

    #[test]
    fn of_a_day_of_comers_and_goers_the_last_are_kept() {
        let (mut places, mut rows) = (Places::new(), Vec::new());
        for key in 0..3 * KEPT_MAX {
            places.put(&mut rows, key, (key, false));
            places.put(&mut rows, key, (key, true));
        }
        assert_eq!(
            (rows.len(), places.by_key.len(), places.keys.len()),
            (KEPT_MAX, KEPT_MAX, KEPT_MAX)
        );
        assert!(rows.iter().all(|(key, is_new)| *is_new && *key >= 2 * KEPT_MAX));
    }

    #[test]
    fn the_present_forgets_what_is_past() {
        let rolling = rolling("video.loss < 1%", "whep+http://127.0.0.1/whep");
        let second = |second, packets_lost| {
            let counters =
                TrackCounters { packets_original: 100, packets_lost, ..TrackCounters::default() };
            let kind = Some(MediaKind::Video);
            Row::Series(Box::new(SeriesRow {
                second,
                kind,
                tracks: 1,
                counters,
                ..SeriesRow::default()
            }))
        };
        assert_eq!(rolling.judge()[0].result, "not_measured");
        rolling.take(&second(0, 50));
        assert_eq!(rolling.judge()[0].result, "missed");
        (1..=SECONDS).for_each(|at| rolling.take(&second(at, 0)));
        assert_eq!(rolling.judge()[0].result, "met");
        assert!(rolling.0.lock().unwrap().run.series.len() <= SECONDS as usize);
    }
}
