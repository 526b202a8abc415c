//! What is exposed at a moment: families and their series, of which there is a bounded number.

use std::collections::BTreeMap;

use super::declared;
use super::family::Family;
use super::histogram::{BOUNDS, Buckets};

/// The most series of an answer, so that no crowd and no server fills a database of metrics. What
/// is beyond them is left out and counted.
pub const SERIES_MAX: usize = 2_000;

/// The labels of a series: names of throng's, values that anybody may have chosen.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Histogram(Buckets),
}

impl Value {
    /// The series that it takes: of a histogram its buckets with that without bound, sum and count.
    fn series(&self) -> usize {
        match self {
            Self::Number(_) => 1,
            Self::Histogram(_) => BOUNDS.len() + 3,
        }
    }
}

/// Families with their series.
#[derive(Clone, Debug, Default)]
pub struct Exposition {
    families: BTreeMap<String, (Family, BTreeMap<Labels, Value>)>,
    series: usize,
    left_out: usize,
}

impl Exposition {
    /// Adds series of a family; of two with the same labels the first counts.
    pub(crate) fn add(&mut self, family: Family, added: impl IntoIterator<Item = (Labels, Value)>) {
        // One place is for how many are left out.
        const MOST: usize = SERIES_MAX - 1;
        let name = family.name.clone();
        let (_, kept) = self.families.entry(name).or_insert_with(|| (family, BTreeMap::new()));
        for (labels, value) in added {
            let more = value.series();
            if kept.contains_key(&labels) {
                continue;
            }
            if self.series + more > MOST {
                self.left_out += more;
            } else {
                self.series += more;
                kept.insert(labels, value);
            }
        }
    }

    /// The same with how many series are left out.
    pub(super) fn finish(mut self) -> Self {
        let family = Family::of(&declared::LEFT_OUT);
        let left_out = BTreeMap::from([(Labels::new(), Value::Number(self.left_out as f64))]);
        self.families.insert(family.name.clone(), (family, left_out));
        self.series += 1;
        self
    }

    /// How many series it has.
    #[must_use]
    pub fn series(&self) -> usize {
        self.series
    }

    /// The families that have any series, by name.
    pub(crate) fn families(&self) -> impl Iterator<Item = &(Family, BTreeMap<Labels, Value>)> {
        self.families.values().filter(|(_, series)| !series.is_empty())
    }
}
