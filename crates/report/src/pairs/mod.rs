//! Who received whom in a conference: a cell for each (from, to) and kind. A lesson of 25 has 600 pictures to show; that one
//! pupil never sees another is in no mean.

use std::collections::{BTreeMap, BTreeSet};

use throng_observation::run::{ParticipantId, ParticipantRow, RunData, TrackRow};
use throng_observation::{MediaKind, Phase, RunTime};
use throng_scenario::{Role, Scenario, Subscribe};

use crate::figures::{freeze_ratio, loss_ratio};

mod flow;
pub(crate) use flow::{Flow, FlowSecond};

mod summary;
pub(crate) use summary::summarise;
pub use summary::{FlowSummary, Pair, PairMedia, Pairs};

/// A stream that two people had less time than this for is not expected to have come.
const OVERLAP_MIN_US: i64 = 5_000_000;

/// What the participants of a conference received of each other.
pub(crate) struct Matrix<'a> {
    /// Who took part, in the order of their numbers.
    pub(crate) members: Vec<Member<'a>>,
    /// The streams that came, or should have come.
    pub(crate) cells: BTreeMap<(MediaKind, ParticipantId, ParticipantId), Cell<'a>>,
    /// Whether it is known which streams should have come.
    pub(crate) knows_roles: bool,
}

/// Somebody who took part.
pub(crate) struct Member<'a> {
    pub(crate) row: &'a ParticipantRow,
    role: Role,
    /// When it was there: from its connection to its end.
    there: (RunTime, RunTime),
}

/// A stream from one to another.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cell<'a> {
    /// It should have come: both were there, one sent and the other wanted all.
    pub(crate) is_expected: bool,
    /// Since when both were there.
    pub(crate) since: Option<RunTime>,
    /// What came.
    pub(crate) track: Option<&'a TrackRow>,
}

impl Cell<'_> {
    /// Something was seen or heard.
    pub(crate) fn plays(&self) -> bool {
        self.track.is_some_and(|track| track.counters.frames_decodable > 0)
    }

    /// From both being there to the first frame, milliseconds.
    pub(crate) fn first_frame_ms(&self) -> Option<f64> {
        Some(self.track?.first_frame_at?.millis_since(self.since?).max(0.0))
    }

    pub(crate) fn loss_ratio(&self) -> Option<f64> {
        loss_ratio(&self.track?.counters)
    }

    /// The 95th percentile of delay: from capture to arrival where that is known, else above the stream's own floor.
    pub(crate) fn delay_ms_p95(&self) -> Option<f64> {
        let track = self.track?;
        let us = track.absolute_delay.quantile_us(0.95).or_else(|| track.relative_delay_us.quantile(0.95));
        us.map(|us| us as f64 / 1e3)
    }

    pub(crate) fn freeze_ratio(&self) -> Option<f64> {
        freeze_ratio(&self.track?.counters)
    }

    pub(crate) fn freeze_count(&self) -> u64 {
        self.track.map_or(0, |track| track.counters.freeze_count)
    }
}

/// The roles of a run by cohort, where its scenario can still be read.
pub(crate) fn roles(run: &RunData) -> Option<Vec<Role>> {
    let scenario = Scenario::parse_stored(&run.info.scenario).ok()?;
    Some(scenario.cohorts().map(|(_, role)| role).collect())
}

impl<'a> Matrix<'a> {
    /// The matrix of a run; `None` where nobody received anybody by name and nobody sent.
    pub(crate) fn of(run: &'a RunData) -> Option<Self> {
        if run.sent.is_empty() {
            return None;
        }
        let roles = roles(run);
        let knows_roles = roles.is_some();
        let end = run.ended_at.unwrap_or(RunTime(run.info.planned_duration_us));
        let member = |row: &'a ParticipantRow| {
            let from = *row.reached.get(&Phase::DtlsConnected)?;
            let role = roles.as_ref().and_then(|roles| roles.get(usize::from(row.cohort.0))).cloned();
            Some(Member { row, role: role.unwrap_or_default(), there: (from, row.ended_at.unwrap_or(end)) })
        };
        let mut members: Vec<Member<'a>> = run.participants.iter().filter_map(member).collect();
        members.sort_by_key(|member| member.row.participant);
        let mut matrix = Self { members, cells: BTreeMap::new(), knows_roles };
        matrix.expect();
        matrix.fill(run);
        Some(matrix)
    }

    /// The streams that should come.
    fn expect(&mut self) {
        for to in &self.members {
            let is_other = |from: &&Member<'_>| {
                from.role.room == to.role.room && from.row.participant != to.row.participant
            };
            for from in self.members.iter().filter(is_other) {
                let Some(publish) = &from.role.publish else { continue };
                let since = from.there.0.max(to.there.0);
                let is_long = from.there.1.min(to.there.1).0 - since.0 >= OVERLAP_MIN_US;
                let kinds = [
                    (MediaKind::Video, publish.has_video(), to.role.video),
                    (MediaKind::Audio, publish.audio, to.role.audio),
                ];
                for (kind, _, whom) in kinds.into_iter().filter(|(_, is_sent, _)| *is_sent) {
                    let cell = Cell {
                        is_expected: self.knows_roles && is_long && whom == Subscribe::All,
                        since: (whom == Subscribe::All).then_some(since),
                        track: None,
                    };
                    if cell.is_expected {
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
            .map(|member| {
                let all = |whom| whom == Subscribe::All;
                (member.row.participant, (member.there.0, all(member.role.video), all(member.role.audio)))
            })
            .collect();
        for track in &run.tracks {
            let Some(from) = track.from.as_deref().and_then(ParticipantId::from_name) else { continue };
            let cell = self.cells.entry((track.kind, from, track.participant)).or_default();
            // A stream on several tracks, as after a server's restart: the one that brought most stands for it.
            let brought = |track: &TrackRow| track.counters.packets_received;
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
        let of_kind = move |((of, from, to), cell): (&(MediaKind, ParticipantId, ParticipantId), _)| {
            (*of == kind).then_some((*from, *to, cell))
        };
        self.cells.iter().filter_map(of_kind)
    }

    /// Everybody who is in a cell, in order.
    pub(crate) fn people(&self, kind: MediaKind) -> Vec<ParticipantId> {
        let both: BTreeSet<ParticipantId> = self.of_kind(kind).flat_map(|(from, to, _)| [from, to]).collect();
        both.into_iter().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
