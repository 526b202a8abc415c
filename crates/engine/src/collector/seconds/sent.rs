//! Sent tracks.

use std::collections::{BTreeMap, HashSet};

use throng_observation::run::{CohortId, SentRow};
use throng_observation::{MediaKind, SentCounters, SentInterval, TrackId};

use super::{Family, Interval, OpenSecond};

#[derive(Default)]
pub(in crate::collector) struct SentTracks {
    by_kind: BTreeMap<MediaKind, OfKind>,
    /// Publishers whose connection took nothing for a while; the time is counted with one of their
    /// tracks.
    blocked: HashSet<u32>,
}

#[derive(Default)]
struct OfKind {
    counters: SentCounters,
    /// Tracks that sent packets.
    sending: HashSet<(u32, TrackId)>,
    /// Tracks with an interval in which they sent none.
    silent: HashSet<(u32, TrackId)>,
}

impl Interval for SentInterval {
    type Open = SentTracks;
    type Row = SentRow;

    fn family(second: &mut OpenSecond) -> &mut Family<Self> {
        &mut second.sent
    }

    fn add_to(&self, open: &mut SentTracks, id: u32) {
        let of = open.by_kind.entry(self.kind).or_default();
        of.counters += self.counters;
        let tracks = if self.counters.packets_sent > 0 { &mut of.sending } else { &mut of.silent };
        tracks.insert((id, self.track));
        if self.counters.blocked_us > 0 {
            open.blocked.insert(id);
        }
    }

    fn rows(open: SentTracks, second: i64, cohort: CohortId) -> Vec<SentRow> {
        let row = |(kind, of): (_, OfKind)| {
            // Those of publishers whose connection took nothing are no less streams. Any other that
            // sent nothing was muted.
            let silent = of.silent.difference(&of.sending);
            let blocked = silent.filter(|(id, _)| open.blocked.contains(id)).count();
            let tracks = u32::try_from(of.sending.len() + blocked).unwrap_or(u32::MAX);
            SentRow { second, cohort, kind, tracks, counters: of.counters }
        };
        open.by_kind.into_iter().map(row).collect()
    }
}
