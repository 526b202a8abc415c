//! The collector's record of one participant.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use throng_observation::run::{CohortId, CrowdRow, ParticipantId, ParticipantRow, Row};
use throng_observation::{
    BadIf, ChatInterval, Clause, Codec, FailureReason, IceState, MediaKind, Outcome, Phase,
    PlaybackInterval, RunTime, TrackCounters, TrackId, TrackInterval,
};

use super::chat_record::ChatRecord;
use super::experience::{SecondQuality, broken_clauses};
use super::last_seconds::{LastSeconds, SecondNote};
use super::mute_period::MutePeriod;
use super::pauses;
use super::player_record::{IntervalTimes, PlayerRecord};
use super::seconds::Seconds;
use super::track_record::Track;
use crate::config::Join;
use crate::live::ParticipantFigures;

/// Most tracks kept per participant; a conference has a hundred.
const TRACKS_MAX: usize = 1024;

/// Tracks of most participants; a vector would allocate four at first.
const TRACKS_USUAL: usize = 2;

/// The record of one participant.
pub(super) struct ParticipantRecord {
    join: Join,
    reached: [Option<RunTime>; Phase::ALL.len()],
    pub(super) local_address: Option<SocketAddr>,
    ice: Option<IceState>,
    connected: bool,
    state: State,
    /// Seconds, modulo four, in which it received media.
    played: [i64; 4],
    /// The first second in which it received media.
    began_s: Option<i64>,
    /// Violations that its receiver reported for its last seconds; for participants that only send.
    remote_reports: LastSeconds,
    /// How long its own video paused in its last seconds.
    pauses: LastSeconds,
    /// Whether it sends media.
    pub(super) sends: bool,
    /// When it was last muted, by media kind.
    mute_periods: [MutePeriod; 2],
    /// When it was removed; from then on it need not be served.
    removed_at: Option<RunTime>,
    tracks: Vec<Track>,
    /// Its player, if it plays from a buffer.
    player: Option<Box<PlayerRecord>>,
    /// Its chat, if it is in one.
    chat: Option<Box<ChatRecord>>,
    pub(super) is_changed: bool,
    /// Whether any row of it was written.
    pub(super) is_written: bool,
    /// Whether a track without a written row has reported.
    pub(super) has_unwritten_tracks: bool,
}

enum State {
    Awaited,
    Alive,
    Ended(RunTime, Outcome),
}

impl ParticipantRecord {
    pub(super) fn new(join: &Join) -> Self {
        Self {
            join: *join,
            reached: [None; Phase::ALL.len()],
            local_address: None,
            ice: None,
            connected: false,
            state: State::Awaited,
            played: [i64::MIN; 4],
            began_s: None,
            remote_reports: LastSeconds::default(),
            pauses: LastSeconds::default(),
            sends: false,
            mute_periods: Default::default(),
            removed_at: None,
            tracks: Vec::new(),
            player: None,
            chat: None,
            is_changed: false,
            is_written: false,
            has_unwritten_tracks: false,
        }
    }

    pub(super) fn participant(&self) -> ParticipantId {
        self.join.participant
    }

    pub(super) fn cohort(&self) -> CohortId {
        self.join.cohort
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(self.state, State::Alive)
    }

    /// Whether its join was intended before `at` and did not begin.
    pub(super) fn is_overdue(&self, at: RunTime) -> bool {
        matches!(self.state, State::Awaited) && self.join.at < at
    }

    pub(super) fn was_connected(&self) -> bool {
        Phase::ALL.iter().zip(&self.reached).any(|(phase, at)| phase.is_connected() && at.is_some())
    }

    fn reached_before(&self, phase: Phase, at: RunTime) -> bool {
        self.reached[phase as usize].is_some_and(|reached| reached < at)
    }

    pub(super) fn started(&mut self, at: RunTime, seconds: &mut Seconds) {
        self.state = State::Alive;
        self.is_changed = true;
        if let Some(started) = self.reached.get_mut(Phase::Started as usize) {
            started.get_or_insert(at);
        }
        seconds.crowd(at.second(), self.join.cohort).started += 1;
    }

    /// Records a phase; returns the microseconds since the intended join if it was reached for the
    /// first time.
    pub(super) fn reached(
        &mut self,
        phase: Phase,
        at: RunTime,
        seconds: &mut Seconds,
    ) -> Option<u64> {
        let place = self.reached.get_mut(phase as usize)?;
        if place.is_some() {
            return None;
        }
        *place = Some(at);
        self.is_changed = true;
        if phase.is_connected() && !self.connected && self.is_alive() {
            self.connected = true;
            seconds.crowd(at.second(), self.join.cohort).connected += 1;
        }
        u64::try_from(at.0 - self.join.at.0).ok()
    }

    pub(super) fn ice(&mut self, state: IceState, at: RunTime, seconds: &mut Seconds) {
        let before = self.ice.replace(state);
        let row = seconds.crowd(at.second(), self.join.cohort);
        if let Some(before) = before {
            row.ice[CrowdRow::ice_index(before)] -= 1;
        }
        row.ice[CrowdRow::ice_index(state)] += 1;
    }

    /// Records its end; false when it had ended before.
    pub(super) fn ended(&mut self, at: RunTime, outcome: &Outcome, seconds: &mut Seconds) -> bool {
        if matches!(self.state, State::Ended(..)) {
            return false;
        }
        // An ended connection counts as closed unless ICE reported how it failed.
        if matches!(self.ice, Some(state) if state != IceState::Failed && state != IceState::Closed)
        {
            self.ice(IceState::Closed, at, seconds);
        }
        let row = seconds.crowd(at.second(), self.join.cohort);
        if std::mem::take(&mut self.connected) {
            row.connected -= 1;
        }
        match outcome {
            Outcome::Completed => row.left += 1,
            Outcome::Failed(failure) if failure.reason == FailureReason::NotStarted => {}
            Outcome::Failed(_) => row.failed += 1,
        }
        self.state = State::Ended(at, outcome.clone());
        true
    }

    /// It was removed.
    pub(super) fn removed(&mut self, at: RunTime) {
        self.removed_at.get_or_insert(at);
    }

    /// It muted or unmuted a kind of media.
    pub(super) fn mutes(&mut self, kind: MediaKind, is_muted: bool, at: RunTime) {
        self.mute_periods[kind as usize].changed(is_muted, at);
    }

    /// When it was last muted.
    pub(super) fn mute_period(&self, kind: MediaKind) -> MutePeriod {
        self.mute_periods[kind as usize]
    }

    /// Whether it failed.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, State::Ended(_, Outcome::Failed(_)))
    }

    /// Until when it should be served; `None`: to the end of the run.
    pub(super) fn served_until(&self) -> Option<RunTime> {
        [self.join.leave_at, self.removed_at].into_iter().flatten().min()
    }

    /// Whether it had ended by `at`.
    pub(super) fn ended_before(&self, at: RunTime) -> bool {
        matches!(&self.state, State::Ended(ended, _) if *ended <= at)
    }

    /// The sender of a track, if it is a participant of this run.
    pub(super) fn sender_of(&self, id: TrackId) -> Option<ParticipantId> {
        self.tracks.iter().find(|track| track.live == Some(id))?.sender
    }

    /// Whether it has received no track so far.
    pub(super) fn receives_nothing(&self) -> bool {
        self.tracks.is_empty()
    }

    /// Records the violations that its receiver reported for a second.
    pub(super) fn add_remote_report(&mut self, second: i64, bits: u16) {
        self.remote_reports.add(second, SecondNote::new(bits, 0));
    }

    /// Records how long its video paused in a second.
    pub(super) fn paused(&mut self, second: i64, pause_us: u64) {
        self.pauses.add(second, SecondNote::new(0, pause_us));
    }

    /// How long its own video paused in a second, microseconds.
    pub(super) fn pause_us(&self, second: i64) -> u64 {
        self.pauses.of(second).map_or(0, SecondNote::still_us)
    }

    /// The quality of a second by its tracks. Tracks are grouped by sender; tracks of unknown
    /// senders, such as those of a stream, form one group.
    fn quality_of_tracks(
        &self,
        second: i64,
        pause_us: impl Fn(ParticipantId) -> u64,
    ) -> SecondQuality {
        let mut quality = SecondQuality::default();
        let (mut people, mut badly): (Vec<Option<ParticipantId>>, Vec<Option<ParticipantId>>) =
            Default::default();
        for track in &self.tracks {
            let Some(noted) = track.quality.of(second) else { continue };
            let mut bits = noted.bits;
            let is_paused = bits & Clause::Freeze.bit() != 0
                && track
                    .sender
                    .is_some_and(|sender| pauses::explains(pause_us(sender), noted.still_us()));
            if is_paused {
                // Frames missing from a paused sender also lower the frame rate.
                bits &= !(Clause::Freeze.bit() | Clause::Fps.bit());
                quality.paused += 1;
            }
            quality.bits |= bits;
            if !people.contains(&track.sender) {
                people.push(track.sender);
            }
            if bits != 0 && !badly.contains(&track.sender) {
                badly.push(track.sender);
            }
        }
        quality.badly_milli = (badly.len() * 1_000 / people.len().max(1)) as u32;
        quality
    }

    /// The quality of a second by its player and its tracks. A stalled or starting player shows no
    /// frames: that explains a low frame rate.
    fn quality_of_player(&self, second: i64, player: &PlayerRecord) -> SecondQuality {
        let of_tracks = self.quality_of_tracks(second, |_| 0).bits;
        let of_player = player.broken_clauses(second);
        let waits = of_player & (Clause::Stall.bit() | Clause::Startup.bit()) != 0;
        let explained = if waits { Clause::Fps.bit() } else { 0 };
        SecondQuality::whole(of_player | (of_tracks & !explained))
    }

    /// The quality of `second`; `None` if the participant need not be served throughout it. Until
    /// `join_ms_max` has passed it may be without media, and its player without playback. After a
    /// failure all seconds are bad until its planned leave or its removal. `pause_us` returns how
    /// long a sender's video paused in the second.
    pub(super) fn experience(
        &self,
        second: i64,
        bad_if: &BadIf,
        pause_us: impl Fn(ParticipantId) -> u64,
    ) -> Option<SecondQuality> {
        let end = RunTime((second + 1) * 1_000_000);
        let is_over = |at: &RunTime| *at < end;
        // A second is judged a while after its end: later changes do not count.
        let (has_left, has_failed) = match &self.state {
            State::Ended(at, Outcome::Completed) => (is_over(at), false),
            State::Ended(at, Outcome::Failed(_)) => {
                (self.join.leave_at.as_ref().is_some_and(is_over), is_over(at))
            }
            State::Awaited | State::Alive => (false, false),
        };
        if has_left || self.removed_at.as_ref().is_some_and(is_over) {
            return None;
        }
        // Once there are tracks, they decide whether media was expected in a second without any.
        let has_played = self.played.contains(&second)
            || (!has_failed && self.began_s.is_some_and(|began| began <= second));
        let patience = RunTime(self.join.at.0 + (bad_if.join_ms_max * 1e3) as i64);
        let player = self.player.as_deref().filter(|_| !has_failed);
        let is_serving =
            player.map_or(has_played, |_| self.reached_before(Phase::PlaybackStarted, end));
        if let Some(chat) =
            self.chat.as_deref().filter(|chat| player.is_none() && !has_failed && chat.has_joined())
        {
            return (self.join.at.second() < second)
                .then(|| SecondQuality::whole(chat.broken_clauses(second)));
        }
        if is_serving {
            // The second of its join is incomplete.
            return (self.join.at.second() < second).then(|| match player {
                Some(player) => {
                    let is_due = |chat: &&ChatRecord| {
                        chat.has_joined() || patience < RunTime(second * 1_000_000)
                    };
                    let chat = self.chat.as_deref().filter(is_due);
                    let of_chat = chat.map_or(0, |chat| chat.broken_clauses_beside(second));
                    SecondQuality::whole(self.quality_of_player(second, player).bits | of_chat)
                }
                None => self.quality_of_tracks(second, pause_us),
            });
        }
        // A participant that has left since then was connected.
        let was_connected =
            self.connected || matches!(self.state, State::Ended(..)) && self.was_connected();
        if was_connected && !has_failed && self.sends && self.receives_nothing() {
            return Some(SecondQuality::whole(
                self.remote_reports.of(second).map_or(0, |noted| noted.bits),
            ));
        }
        let is_lost = has_failed || patience < RunTime(second * 1_000_000);
        let lacks = match was_connected && !has_failed {
            true if player.is_some() && self.reached_before(Phase::FirstPacket, end) => {
                Clause::Startup
            }
            true => Clause::NoMedia,
            false => Clause::NotConnected,
        };
        is_lost.then(|| SecondQuality::whole(lacks.bit()))
    }

    /// Marks `second` as played; true the first time.
    pub(super) fn mark_played(&mut self, second: i64) -> bool {
        self.began_s = Some(self.began_s.map_or(second, |began| began.min(second)));
        let place = &mut self.played[second.rem_euclid(4) as usize];
        std::mem::replace(place, second) != second
    }

    pub(super) fn track_opened(
        &mut self,
        id: TrackId,
        kind: MediaKind,
        codec: Codec,
        is_recording: bool,
    ) {
        if let Some(track) = self.live(id) {
            (track.kind, track.codec, track.is_recording) = (kind, codec, is_recording);
        } else if self.tracks.len() < TRACKS_MAX {
            if self.tracks.is_empty() {
                self.tracks.reserve_exact(TRACKS_USUAL);
            }
            self.tracks.push(Track::new(id, kind, codec, is_recording));
        }
    }

    /// The row of a track that is being measured.
    fn live(&mut self, id: TrackId) -> Option<&mut Track> {
        self.tracks.iter_mut().find(|track| track.live == Some(id))
    }

    /// Sets the sender of a track from now on; without one, the last sender stays.
    pub(super) fn track_from(&mut self, id: TrackId, from: Option<String>) {
        let Some(from) = from.map(String::into_boxed_str) else { return };
        let sender = ParticipantId::from_name(&from);
        let Some(track) = self.live(id) else { return };
        if track.from.as_ref().is_none_or(|before| *before == from) {
            (track.from, track.sender) = (Some(from), sender);
            return;
        }
        track.live = None;
        let (kind, codec, is_recording) = (track.kind, track.codec, track.is_recording);
        let is_theirs = |track: &&mut Track| {
            track.live.is_none() && track.kind == kind && track.from.as_ref() == Some(&from)
        };
        if let Some(again) = self.tracks.iter_mut().find(is_theirs) {
            again.live = Some(id);
        } else if self.tracks.len() < TRACKS_MAX {
            // The participant numbers its own tracks from 0 upward.
            let row = TrackId(u16::MAX - u16::try_from(self.tracks.len()).unwrap_or(0));
            let mut track = Track::new(row, kind, codec, is_recording);
            (track.live, track.from, track.sender) = (Some(id), Some(from), sender);
            self.tracks.push(track);
        }
    }

    pub(super) fn track_first_frame(&mut self, id: TrackId, at: RunTime) {
        if let Some(track) = self.live(id) {
            track.first_frame_at.get_or_insert(at);
        }
    }

    /// Adds an interval of a track, which counts to `second`.
    pub(super) fn interval(&mut self, interval: &TrackInterval, second: i64, bad_if: &BadIf) {
        if self.live(interval.track).is_none() {
            self.track_opened(interval.track, interval.kind, Codec::Other, false);
        }
        let mut is_first = false;
        if let Some(track) = self.live(interval.track) {
            is_first = track.counters.active_us == 0;
            track.add(interval);
            let bits = broken_clauses(interval, bad_if, track.is_recording, &mut track.loss);
            track.quality.add(second, SecondNote::new(bits, interval.counters.freeze_us));
        }
        self.has_unwritten_tracks |= is_first;
    }

    /// Adds an interval of its player.
    pub(super) fn playback(
        &mut self,
        interval: &PlaybackInterval,
        times: IntervalTimes,
        bad_if: &BadIf,
    ) {
        let had_begun = self.reached_before(Phase::PlaybackStarted, times.began);
        let first_start_since = (!had_begun).then_some(self.join.at);
        self.has_unwritten_tracks |= self.player.is_none();
        self.player.get_or_insert_default().add(interval, times, first_start_since, bad_if);
    }

    /// Adds an interval of its chat, which counts to `second`.
    pub(super) fn chat(&mut self, interval: &ChatInterval, second: i64, bad_if: &BadIf) {
        self.chat.get_or_insert_default().add(interval, second, bad_if);
    }

    /// Its row, and those of its tracks and its player if `with_tracks`.
    pub(super) fn rows(&mut self, with_tracks: bool) -> Vec<Row> {
        (self.is_changed, self.is_written) = (false, true);
        self.has_unwritten_tracks &= !with_tracks;
        let (ended_at, outcome) = match &self.state {
            State::Ended(at, outcome) => (Some(*at), Some(outcome.clone())),
            State::Awaited | State::Alive => (None, None),
        };
        let reached: BTreeMap<_, _> = Phase::ALL
            .into_iter()
            .zip(self.reached)
            .filter_map(|(phase, at)| Some((phase, at?)))
            .collect();
        let row = ParticipantRow {
            participant: self.join.participant,
            cohort: self.join.cohort,
            intended_at: self.join.at,
            reached,
            ended_at,
            outcome,
            local_address: self.local_address.map(|address| address.to_string()),
        };
        // A track without an interval has nothing to report.
        let has_reported = |track: &&Track| track.counters != TrackCounters::default();
        let tracks = self
            .tracks
            .iter()
            .filter(|track| with_tracks && has_reported(track))
            .map(|track| track.row(self.join.participant));
        let startup_us = self.reached[Phase::PlaybackStarted as usize];
        let startup_us = startup_us.and_then(|at| u64::try_from(at.0 - self.join.at.0).ok());
        let player = self.player.as_ref().filter(|_| with_tracks);
        let player = player.map(|player| player.row(self.join.participant, startup_us));
        std::iter::once(Row::Participant(Box::new(row))).chain(tracks).chain(player).collect()
    }

    /// Payload bits per second over its life. Tracks run in parallel, so their times are not added.
    pub(super) fn payload_bps(&self) -> Option<f64> {
        let mut sum = TrackCounters::default();
        self.tracks.iter().for_each(|track| sum.add_concurrent(&track.counters));
        sum.payload_bps()
    }

    /// Rank of its latest interval; larger is worse.
    pub(super) fn badness(&self) -> f64 {
        let of_player = self.player.as_ref().map_or(0.0, |player| player.badness());
        self.tracks.iter().map(Track::badness).fold(of_player, f64::max)
    }

    pub(super) fn figures(&self) -> ParticipantFigures {
        ParticipantFigures {
            participant: self.join.participant,
            ice: self.ice.unwrap_or_default(),
            intended_at: self.join.at,
            tracks: self.tracks.iter().map(Track::figures).collect(),
            player: self.player.as_ref().map(|player| player.figures()),
        }
    }
}

#[cfg(test)]
#[path = "participant_record_tests.rs"]
mod tests;
