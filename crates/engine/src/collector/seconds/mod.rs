//! The open seconds of a run, and the crowd's totals up to the last closed one. What is collected
//! of a family of intervals is in a file of its own.

use std::collections::BTreeMap;

use throng_observation::run::{CohortId, CrowdRow, SentRow, SeriesRow};
use throng_observation::{
    ChatInterval, ChatRow, IceState, PlaybackInterval, PlaybackRow, Received, SentInterval,
    TrackInterval,
};

mod chat;
mod players;
mod sent;
mod tracks;

/// An interval of a family.
pub(super) trait Interval: Sized {
    /// Those of a cohort in a second.
    type Open: Default;
    /// What they become.
    type Row;

    /// The family in a second.
    fn family(second: &mut OpenSecond) -> &mut Family<Self>;

    /// Adds it, as one of participant `id`.
    fn add_to(&self, open: &mut Self::Open, id: u32);

    /// The rows of a cohort in a second.
    fn rows(open: Self::Open, second: i64, cohort: CohortId) -> Vec<Self::Row>;
}

/// A family of intervals in a second, by cohort.
type Family<I> = BTreeMap<u16, <I as Interval>::Open>;

/// Open seconds, by number.
pub(super) struct Seconds {
    cohorts: u16,
    open: BTreeMap<i64, OpenSecond>,
    totals: Vec<CrowdDelta>,
}

/// Changes of a cohort's crowd in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CrowdDelta {
    pub(super) started: i32,
    pub(super) connected: i32,
    pub(super) failed: i32,
    pub(super) left: i32,
    pub(super) playing: i32,
    pub(super) ice: [i32; IceState::ALL.len()],
}

/// A second of which more may come.
#[derive(Default)]
pub(super) struct OpenSecond {
    crowd: BTreeMap<u16, CrowdDelta>,
    series: Family<TrackInterval>,
    sent: Family<SentInterval>,
    playback: Family<PlaybackInterval>,
    chat: Family<ChatInterval>,
}

/// The rows of a closed second.
#[derive(Debug, Default)]
pub(super) struct ClosedSecond {
    pub(super) crowd: Vec<CrowdRow>,
    pub(super) series: Vec<SeriesRow>,
    pub(super) sent: Vec<SentRow>,
    pub(super) playback: Vec<PlaybackRow>,
    pub(super) chat: Vec<ChatRow>,
}

impl ClosedSecond {
    /// Bytes that participants received.
    pub(super) fn received_bytes(&self) -> u64 {
        let received = Received::of(&self.series, &self.playback, &self.chat);
        received.bytes(i64::MIN..i64::MAX)
    }
}

impl Seconds {
    pub(super) fn new(cohorts: u16) -> Self {
        let cohorts = cohorts.max(1);
        Self {
            cohorts,
            open: BTreeMap::new(),
            totals: vec![CrowdDelta::default(); usize::from(cohorts)],
        }
    }

    /// The crowd's changes in `second`. Changes of a closed second are counted in the next one.
    pub(super) fn crowd(&mut self, second: i64, cohort: CohortId) -> &mut CrowdDelta {
        self.open.entry(second).or_default().crowd.entry(cohort.0).or_default()
    }

    /// Adds an interval of participant `id`.
    pub(super) fn add<I: Interval>(
        &mut self,
        second: i64,
        id: u32,
        cohort: CohortId,
        interval: &I,
    ) {
        let family = I::family(self.open.entry(second).or_default());
        interval.add_to(family.entry(cohort.0).or_default(), id);
    }

    /// Closes `second` and all before it; `intended` returns the intended joins of a cohort.
    pub(super) fn close(&mut self, second: i64, intended: impl Fn(u16) -> u32) -> ClosedSecond {
        let later = self.open.split_off(&(second + 1));
        let mut playing = vec![0; usize::from(self.cohorts)];
        let mut closed = ClosedSecond::default();
        for (number, open) in std::mem::replace(&mut self.open, later) {
            for (cohort, change) in open.crowd {
                let cohort = usize::from(cohort);
                if let Some(total) = self.totals.get_mut(cohort) {
                    total.add(&change);
                }
                if let Some(playing) = playing.get_mut(cohort).filter(|_| number == second) {
                    *playing += change.playing;
                }
            }
            closed.series.extend(rows::<TrackInterval>(open.series, second));
            closed.sent.extend(rows::<SentInterval>(open.sent, second));
            closed.playback.extend(rows::<PlaybackInterval>(open.playback, second));
            closed.chat.extend(rows::<ChatInterval>(open.chat, second));
        }
        let crowd =
            (0..self.cohorts).zip(&self.totals).zip(playing).map(|((cohort, total), playing)| {
                CrowdRow {
                    second,
                    cohort: CohortId(cohort),
                    intended: intended(cohort),
                    started: count(total.started),
                    connected: count(total.connected),
                    playing: count(playing),
                    failed: count(total.failed),
                    left: count(total.left),
                    ice: total.ice.map(count),
                }
            });
        closed.crowd = crowd.collect();
        closed
    }
}

/// The rows of a family.
fn rows<I: Interval>(family: Family<I>, second: i64) -> impl Iterator<Item = I::Row> {
    family.into_iter().flat_map(move |(cohort, open)| I::rows(open, second, CohortId(cohort)))
}

impl CrowdDelta {
    fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.connected += other.connected;
        self.failed += other.failed;
        self.left += other.left;
        self.ice.iter_mut().zip(other.ice).for_each(|(mine, theirs)| *mine += theirs);
    }
}

fn count(signed: i32) -> u32 {
    u32::try_from(signed).unwrap_or(0)
}

#[cfg(test)]
mod tests;
