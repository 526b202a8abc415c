//! Rows of one kind that add up: within a second one for each key.

use std::collections::BTreeMap;

use throng_observation::SecondRow;

/// The sums of a second.
#[derive(Debug)]
pub(super) struct Family<R: SecondRow>(BTreeMap<R::Key, R>);

impl<R: SecondRow> Default for Family<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: SecondRow> Family<R> {
    pub(super) fn add(&mut self, row: R) {
        match self.0.get_mut(&row.key()) {
            Some(sum) => sum.add(&row),
            None => drop(self.0.insert(row.key(), row)),
        }
    }

    pub(super) fn into_rows(self) -> impl Iterator<Item = R> {
        self.0.into_values()
    }
}
