//! In what figures of a run are kept.

use std::collections::{BTreeMap, HashMap};

use throng_observation::Counters;
use throng_observation::run::ParticipantId;

use crate::openmetrics::declared::Declared;
use crate::openmetrics::exposition::{Exposition, Labels, Value};
use crate::openmetrics::family::Family;

/// Sums by labels.
pub(super) type Sums<C> = BTreeMap<Labels, C>;

/// Values of declared families.
#[derive(Debug)]
pub(super) struct ByFamily<V>(BTreeMap<&'static str, BTreeMap<Labels, V>>);

impl<V> Default for ByFamily<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: Default> ByFamily<V> {
    pub(super) fn of(&mut self, family: &Declared, labels: Labels) -> &mut V {
        self.0.entry(family.name).or_default().entry(labels).or_default()
    }

    pub(super) fn get(&self, family: &Declared) -> impl Iterator<Item = (&Labels, &V)> {
        self.0.get(family.name).into_iter().flatten()
    }
}

/// Participants, a bit each: their rows come again and again.
#[derive(Debug, Default)]
pub(super) struct Seen(HashMap<u32, u64>);

impl Seen {
    pub(super) fn is_new(&mut self, participant: ParticipantId) -> bool {
        let bits = self.0.entry(participant.0 / u64::BITS).or_default();
        let bit = 1_u64 << (participant.0 % u64::BITS);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }
}

/// Adds the families of sums.
pub(super) fn add_sums<C: Counters>(out: &mut Exposition, prefix: &str, sums: &Sums<C>) {
    for (index, counter) in C::COUNTERS.iter().enumerate() {
        let (family, scale) = Family::of_sum(prefix, counter);
        let series = sums.iter().filter_map(|(labels, sums)| {
            let (_, sum) = sums.sums().nth(index)?;
            Some((labels.clone(), Value::Number(sum as f64 * scale)))
        });
        out.add(family, series);
    }
}
