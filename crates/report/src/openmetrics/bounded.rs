//! Label values of which there may be many.

use std::collections::BTreeSet;

/// The label value of all that have no series of their own.
pub(super) const OTHER: &str = "other";

/// The values of a label: the first few have series of their own, the rest share one.
#[derive(Debug)]
pub(super) struct Bounded {
    most: usize,
    known: BTreeSet<String>,
}

impl Bounded {
    pub(super) fn to(most: usize) -> Self {
        Self { most, known: BTreeSet::new() }
    }

    /// The value as it is exposed.
    pub(super) fn label(&mut self, value: String) -> String {
        if self.known.contains(&value) {
            return value;
        }
        if self.known.len() >= self.most {
            return OTHER.to_owned();
        }
        self.known.insert(value.clone());
        value
    }
}
