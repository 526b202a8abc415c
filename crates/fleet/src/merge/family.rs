//! Rows of one kind that add up: within a second one for each key.

use std::collections::BTreeMap;

/// A row that adds up over the shares of a crowd.
pub(super) trait Adds {
    /// What rows have in common that add up; the order of keys is that of the rows of one machine.
    type Key: Ord;

    fn key(&self) -> Self::Key;

    /// Adds the row of another share, of the same second and key. Sums stay at their largest value.
    fn add(&mut self, other: Self);
}

/// The sums of a second.
#[derive(Debug)]
pub(super) struct Family<R: Adds>(BTreeMap<R::Key, R>);

impl<R: Adds> Default for Family<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: Adds> Family<R> {
    pub(super) fn add(&mut self, row: R) {
        match self.0.get_mut(&row.key()) {
            Some(sum) => sum.add(row),
            None => drop(self.0.insert(row.key(), row)),
        }
    }

    pub(super) fn into_rows(self) -> impl Iterator<Item = R> {
        self.0.into_values()
    }
}

/// Adds counts of people or tracks.
pub(super) fn add(sum: &mut u32, count: u32) {
    *sum = sum.saturating_add(count);
}
