//! When the segments of a representation begin: of equal length, or listed in a timeline (ISO/IEC
//! 23009-1 section 5.3.9.6). A run of equal segments takes the same memory whatever its length.

use super::xml::Element;
use crate::manifest::ManifestError;

/// Segments of equal length that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of the first, from 0 on.
    pub(super) index: u64,
    /// When it begins, ticks.
    pub(super) time: u64,
    /// How long each is, ticks; never 0.
    pub(super) ticks: u64,
    /// How many; `None`: up to the end, which is not known.
    pub(super) count: Option<u64>,
}

/// The runs of a representation, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline(pub(super) Vec<Run>);

impl Timeline {
    /// Segments of equal length from `time` on, up to `end` where there is one.
    pub(super) fn equal(ticks: u64, time: u64, end: Option<u64>) -> Self {
        let count = end.map(|end| end.saturating_sub(time).div_ceil(ticks.max(1)));
        Self(vec![Run { index: 0, time, ticks: ticks.max(1), count }])
    }

    /// Reads a `SegmentTimeline`, of which the last run may go on to `end`.
    pub(super) fn read(element: &Element, end: Option<u64>) -> Result<Self, ManifestError> {
        let mut runs: Vec<Run> = Vec::new();
        let (mut index, mut time) = (0_u64, 0_u64);
        for entry in element.children_of("S") {
            let start = entry.number::<u64>("t")?;
            let ticks = entry.number::<u64>("d")?.filter(|ticks| *ticks > 0);
            let ticks = ticks.ok_or_else(|| entry.error("has no duration d, or one of 0"))?;
            let repeats = entry.number::<i64>("r")?.unwrap_or_default();
            if let (Some(start), Some(run)) =
                (start, runs.last_mut().filter(|run| run.count.is_none()))
            {
                // It goes on to where this one begins.
                let count = start.saturating_sub(run.time).div_ceil(run.ticks);
                (run.count, index) = (Some(count), run.index.saturating_add(count));
            }
            if runs.last().is_some_and(|run| run.count.is_none()) {
                return Err(
                    entry.error("follows a run without end (r is negative) and has no time t")
                );
            }
            let start = start.unwrap_or(time);
            let count = u64::try_from(repeats).ok().map(|repeats| repeats.saturating_add(1));
            let run_end = count
                .and_then(|count| count.checked_mul(ticks))
                .and_then(|all| all.checked_add(start));
            if count.is_some() && run_end.is_none() {
                return Err(entry.error("ends beyond any time"));
            }
            runs.push(Run { index, time: start, ticks, count });
            (index, time) =
                (index.saturating_add(count.unwrap_or_default()), run_end.unwrap_or(start));
        }
        if let (Some(end), Some(run)) = (end, runs.last_mut().filter(|run| run.count.is_none())) {
            run.count = Some(end.saturating_sub(run.time).div_ceil(run.ticks));
        }
        Ok(Self(runs))
    }

    /// The segment at this time: that which contains it, or the last one before, or the first. A
    /// last run without end goes on to `end`, or for ever.
    pub(super) fn at_time(&self, time: u64, end: Option<u64>) -> Option<Entry> {
        let is_before = |run: &&Run| run.time <= time && run.count != Some(0);
        let mut run = *self.0.iter().rev().find(is_before).or(self.0.first())?;
        run.count = run.count.or(end.map(|end| end.saturating_sub(run.time).div_ceil(run.ticks)));
        let within = time.saturating_sub(run.time) / run.ticks;
        let last = run.count.map_or(Some(u64::MAX), |count| count.checked_sub(1))?;
        run.entry(within.min(last))
    }

    /// The segment with this index.
    pub(super) fn get(&self, index: u64) -> Option<Entry> {
        let run = self.0.iter().rev().find(|run| run.index <= index && run.count != Some(0))?;
        let within = index - run.index;
        run.entry(within).filter(|_| run.count.is_none_or(|count| within < count))
    }

    /// Segments from this index on, for ever when the last run has no end.
    pub(super) fn from(&self, index: u64) -> impl Iterator<Item = Entry> + '_ {
        self.0.iter().flat_map(move |run| {
            let first = index.saturating_sub(run.index);
            (first..run.count.unwrap_or(u64::MAX)).map_while(|within| run.entry(within))
        })
    }

    /// The index of the run whose end is not known, if there is one, else that after the last.
    pub(super) fn open_index(&self) -> u64 {
        self.0.last().map_or(0, |run| run.index.saturating_add(run.count.unwrap_or_default()))
    }

    /// How many segments there are; `None` when that is not known.
    pub(super) fn count(&self) -> Option<u64> {
        self.0.last().map_or(Some(0), |run| run.index.checked_add(run.count?))
    }
}

/// One segment of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// From 0 on.
    pub(super) index: u64,
    pub(super) time: u64,
    pub(super) ticks: u64,
}

impl Entry {
    pub(super) fn end(&self) -> u64 {
        self.time.saturating_add(self.ticks)
    }
}

impl Run {
    fn entry(&self, within: u64) -> Option<Entry> {
        let time = self.ticks.checked_mul(within)?.checked_add(self.time)?;
        Some(Entry { index: self.index.checked_add(within)?, time, ticks: self.ticks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::dash::xml;

    fn read(entries: &str, end: Option<u64>) -> Result<Timeline, ManifestError> {
        Timeline::read(
            &xml::read(&format!("<SegmentTimeline>{entries}</SegmentTimeline>")).unwrap(),
            end,
        )
    }

    fn all(timeline: &Timeline) -> Vec<(u64, u64, u64)> {
        timeline.from(0).take(20).map(|entry| (entry.index, entry.time, entry.ticks)).collect()
    }

    #[test]
    fn runs_repeat_to_the_next_or_the_end() {
        let timeline =
            read("<S t='10' d='5' r='1'/><S d='3'/><S t='30' d='4' r='-1'/>", Some(39)).unwrap();
        let expect = [(0, 10, 5), (1, 15, 5), (2, 20, 3), (3, 30, 4), (4, 34, 4), (5, 38, 4)];
        assert_eq!(all(&timeline), expect);
        assert_eq!(timeline.count(), Some(6));
        for (index, time, ticks) in expect {
            let entry = Some(Entry { index, time, ticks });
            assert_eq!(timeline.get(index), entry);
            assert_eq!(timeline.at_time(time, None), entry);
            assert_eq!(timeline.at_time(time + ticks - 1, None), entry);
            assert_eq!(timeline.from(index).next(), entry);
        }
        assert_eq!(timeline.get(6), None);
        assert_eq!(timeline.at_time(0, None).unwrap().index, 0);
        assert_eq!(timeline.at_time(25, None).unwrap().index, 2, "a gap");
        assert_eq!(timeline.at_time(u64::MAX, None).unwrap().index, 5);

        let between = read("<S d='4' r='-1'/><S t='10' d='4'/>", None).unwrap();
        assert_eq!(all(&between), [(0, 0, 4), (1, 4, 4), (2, 8, 4), (3, 10, 4)]);
    }

    #[test]
    fn a_run_without_end_takes_no_memory_and_does_not_overflow() {
        let endless = read("<S d='4' r='-1'/>", None).unwrap();
        assert_eq!((all(&endless).len(), endless.count()), (20, None));
        assert_eq!(endless.at_time(41, None).unwrap().index, 10);
        assert_eq!(endless.at_time(41, Some(20)).unwrap().index, 4);
        let many = read("<S t='18446744073709551000' d='1' r='500'/><S d='9'/>", None).unwrap();
        assert_eq!(many.count(), Some(502));
        for (entries, expect) in [
            ("<S d='0'/>", "line 1: S has no duration d, or one of 0"),
            (
                "<S d='4' r='-1'/><S d='4'/>",
                "line 1: S follows a run without end (r is negative) and has no time t",
            ),
            (
                "<S d='9223372036854775807' r='9223372036854775807'/>",
                "line 1: S ends beyond any time",
            ),
            ("<S d='x'/>", "line 1: S has d=\"x\", which is not a number"),
        ] {
            assert_eq!(read(entries, None).unwrap_err().to_string(), expect);
        }
    }
}
