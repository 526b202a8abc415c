//! The streams of a conference: a cell for each (sender, receiver) and kind. A conference of 25 has
//! 600 video streams; one stream that never arrives shows in no mean. Five participants that cannot
//! join remove 220 of the 600, so streams are counted against the plan too: between the
//! participants that joined all may be well.

use std::collections::{BTreeMap, BTreeSet};

use throng_observation::run::{ParticipantId, ParticipantRow, RunData, TrackRow};
use throng_observation::{
    MediaKind, PlannedCohort, RunPlan, RunTime, SubscribePolicy, TrackCounters,
};

mod flow;
mod planned;
mod stay;
pub(crate) use flow::{Flow, FlowSecond};
pub(crate) use planned::planned_in_bps;
use stay::{PlannedStays, Stay};

mod summary;
pub(crate) use summary::summarise;
pub use summary::{Conference, ConferenceMedia, ConferencePair, FlowSummary};

/// The streams that the participants of a conference received from each other.
pub(crate) struct Matrix<'a> {
    /// Participants, connected or planned, in the order of their numbers.
    pub(crate) members: Vec<Member<'a>>,
    /// The streams that arrived, or were expected.
    pub(crate) cells: BTreeMap<(MediaKind, ParticipantId, ParticipantId), Cell<'a>>,
    /// Whether it is known which streams were expected.
    pub(crate) knows_roles: bool,
    /// Whether the planned participants and their stays are known.
    pub(crate) knows_plan: bool,
}

/// A participant, connected or planned.
pub(crate) struct Member<'a> {
    pub(crate) row: &'a ParticipantRow,
    role: PlannedCohort,
    /// From its connection to its end; `None` when it never connected.
    there: Option<Stay>,
    /// When it was planned to be connected, whether it was or not; `None` if unknown.
    planned: Option<Stay>,
}

/// A stream from one to another.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cell<'a> {
    /// Whether it was expected: both were connected, one sent and the other subscribed to all.
    pub(crate) is_expected: bool,
    /// Whether it was planned: expected, had all participants joined as planned.
    pub(crate) is_planned: bool,
    /// When both had joined.
    pub(crate) since: Option<RunTime>,
    /// The received track.
    pub(crate) track: Option<&'a TrackRow>,
}

impl Cell<'_> {
    /// Some frame was decodable.
    pub(crate) fn plays(&self) -> bool {
        self.track.is_some_and(|track| track.counters.frames_decodable > 0)
    }

    /// From both being connected to the first frame, milliseconds.
    pub(crate) fn first_frame_ms(&self) -> Option<f64> {
        Some(self.track?.first_frame_at?.millis_since(self.since?).max(0.0))
    }

    /// What was counted of it; nothing where no track was received.
    pub(crate) fn counters(&self) -> TrackCounters {
        self.track.map(|track| track.counters).unwrap_or_default()
    }

    pub(crate) fn loss_ratio(&self) -> Option<f64> {
        self.track?.counters.loss_ratio()
    }

    /// The 95th percentile of delay: from capture to arrival where that is known, else above the
    /// stream's own floor.
    pub(crate) fn delay_ms_p95(&self) -> Option<f64> {
        let track = self.track?;
        let from_capture = track.absolute_delay.quantile_ms(0.95);
        from_capture.or_else(|| track.relative_delay_us.quantile_in(0.95, 1e3))
    }

    pub(crate) fn freeze_ratio(&self) -> Option<f64> {
        self.track?.counters.freeze_ratio()
    }

    pub(crate) fn freeze_count(&self) -> u64 {
        self.track.map_or(0, |track| track.counters.freeze_count)
    }
}

impl Member<'_> {
    /// It was connected at some time.
    pub(crate) fn connected(&self) -> bool {
        self.there.is_some()
    }

    /// It was planned to stay long enough for a stream to be expected.
    pub(crate) fn was_planned(&self) -> bool {
        self.planned.is_some_and(Stay::is_long)
    }
}

impl<'a> Matrix<'a> {
    /// The matrix of a run; `None` where no participant sent, or none receives what another sends.
    pub(crate) fn of(run: &'a RunData) -> Option<Self> {
        // A participant that publishes at a URL of its own is no member of the conference.
        let is_none = |plan: &RunPlan| {
            plan.cohorts.iter().any(|cohort| !cohort.confers || cohort.has_own_url)
        };
        let plan = run.info.plan.as_ref();
        if run.sent.is_empty() || plan.is_some_and(is_none) {
            return None;
        }
        let roles = plan.map(|plan| plan.cohorts.as_slice());
        let planned = PlannedStays::of(run);
        let (knows_roles, knows_plan) = (roles.is_some(), planned.is_some());
        let member = |row: &'a ParticipantRow| {
            let there = Stay::observed(run, row);
            let planned = planned.as_ref().map(|planned| planned.stay(row));
            let role = roles.and_then(|roles| roles.get(usize::from(row.cohort.0))).copied();
            (there.is_some() || planned.is_some()).then(|| Member {
                row,
                role: role.unwrap_or_default(),
                there,
                planned,
            })
        };
        let mut members: Vec<Member<'a>> = run.participants.iter().filter_map(member).collect();
        members.sort_by_key(|member| member.row.participant);
        let mut matrix = Self { members, cells: BTreeMap::new(), knows_roles, knows_plan };
        matrix.expect();
        matrix.fill(run);
        Some(matrix)
    }

    /// The expected streams.
    fn expect(&mut self) {
        if !self.knows_roles {
            return;
        }
        for to in &self.members {
            let is_other = |from: &&Member<'_>| {
                from.role.room == to.role.room && from.row.participant != to.row.participant
            };
            for from in self.members.iter().filter(is_other) {
                if !from.role.sends() {
                    continue;
                }
                let both = |one: Option<Stay>, other: Option<Stay>| Some(one?.and(other?));
                let (there, planned) = (both(from.there, to.there), both(from.planned, to.planned));
                let is_expected = there.is_some_and(Stay::is_long);
                // A participant that leaves later than planned may have more streams than planned.
                let is_planned =
                    self.knows_plan && (is_expected || planned.is_some_and(Stay::is_long));
                if !is_expected && !is_planned {
                    continue;
                }
                let cell = Cell {
                    is_expected,
                    is_planned,
                    since: there.map(|there| there.from),
                    track: None,
                };
                let kinds = [
                    (MediaKind::Video, from.role.sends_video, to.role.video),
                    (MediaKind::Audio, from.role.sends_audio, to.role.audio),
                ];
                for (kind, is_sent, policy) in kinds {
                    if is_sent && policy == SubscribePolicy::All {
                        self.cells.insert((kind, from.row.participant, to.row.participant), cell);
                    }
                }
            }
        }
    }

    fn fill(&mut self, run: &'a RunData) {
        let since: BTreeMap<ParticipantId, (RunTime, bool, bool)> = self
            .members
            .iter()
            .filter_map(|member| {
                let all = |policy| policy == SubscribePolicy::All;
                let present = (member.there?.from, all(member.role.video), all(member.role.audio));
                Some((member.row.participant, present))
            })
            .collect();
        for track in &run.tracks {
            let Some(from) = track.from.as_deref().and_then(ParticipantId::from_name) else {
                continue;
            };
            let cell = self.cells.entry((track.kind, from, track.participant)).or_default();
            // A stream on several tracks, as after a server's restart: the one with most packets is
            // used.
            let brought = |track: &TrackRow| track.counters.packets_original;
            if cell.track.is_none_or(|before| brought(before) < brought(track)) {
                cell.track = Some(track);
            }
            if let (Some((sent, ..)), Some((received, video, audio))) =
                (since.get(&from), since.get(&track.participant))
            {
                let is_all = if track.kind == MediaKind::Video { *video } else { *audio };
                cell.since = is_all.then(|| *sent.max(received));
            }
        }
    }

    /// The cells of a kind.
    pub(crate) fn of_kind(
        &self,
        kind: MediaKind,
    ) -> impl Iterator<Item = (ParticipantId, ParticipantId, &Cell<'a>)> {
        let of_kind =
            move |((of, from, to), cell): (&(MediaKind, ParticipantId, ParticipantId), _)| {
                (*of == kind).then_some((*from, *to, cell))
            };
        self.cells.iter().filter_map(of_kind)
    }

    /// All participants of a kind's cells, in order.
    pub(crate) fn people(&self, kind: MediaKind) -> Vec<ParticipantId> {
        let both: BTreeSet<ParticipantId> =
            self.of_kind(kind).flat_map(|(from, to, _)| [from, to]).collect();
        both.into_iter().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
