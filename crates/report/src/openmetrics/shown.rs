//! Series that are added up by their labels.

use std::collections::BTreeMap;

use throng_observation::host::catalogue::Together;

use super::exposition::Labels;

/// Series of a family.
pub(super) type Shown = BTreeMap<Labels, f64>;

/// Adds a value to those with the same labels.
pub(super) fn add(together: Together, shown: &mut Shown, labels: Labels, value: f64) {
    match together {
        Together::Sum => *shown.entry(labels).or_insert(0.0) += value,
        Together::Largest => {
            let most = shown.entry(labels).or_insert(value);
            *most = most.max(value);
        }
        Together::Farthest => {
            let most = shown.entry(labels).or_insert(value);
            if value.abs() > most.abs() {
                *most = value;
            }
        }
    }
}
