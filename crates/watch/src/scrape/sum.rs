//! Adds up series that differ only in labels which name single sessions: hundreds of series for
//! ten viewers say no more than their sum.
//!
//! Counters are rates by then, each of its own session, so that a session that ends is no counter
//! that went back.

use std::collections::BTreeMap;

use crate::reading::{Reading, SeriesValue};

/// The readings without `dropped` labels; those that are the same series then are added up. A
/// series ends when the last of its sessions has.
pub(super) fn without_labels(readings: Vec<Reading>, dropped: &[String]) -> Vec<Reading> {
    if dropped.is_empty() {
        return readings;
    }
    let mut kept = Vec::new();
    let mut sums: BTreeMap<(String, BTreeMap<String, String>), SeriesValue> = BTreeMap::new();
    for reading in readings {
        match reading {
            Reading::Value(mut value) => {
                value.labels.retain(|label, _| !dropped.contains(label));
                let key = (value.metric.clone(), value.labels.clone());
                match sums.get_mut(&key) {
                    Some(sum) => sum.value = added(sum.value, value.value),
                    None => {
                        sums.insert(key, value);
                    }
                }
            }
            Reading::Event(..) => kept.push(reading),
        }
    }
    kept.extend(sums.into_values().map(Reading::Value));
    kept
}

/// NaN ends a series: it adds nothing to those that go on.
fn added(sum: f64, value: f64) -> f64 {
    match (sum.is_nan(), value.is_nan()) {
        (true, _) => value,
        (false, true) => sum,
        (false, false) => sum + value,
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::host::Unit;

    use super::*;

    fn of(id: &str, value: f64) -> Reading {
        Reading::value("sent", Unit::BytesPerSecond, &[("path", "live"), ("id", id)], value)
    }

    #[test]
    fn sessions_are_added_up_and_end_with_the_last() {
        let dropped = ["id".to_owned()];
        let summed = |readings| without_labels(readings, &dropped);
        let whole =
            |value| Reading::value("sent", Unit::BytesPerSecond, &[("path", "live")], value);
        assert_eq!(summed(vec![of("a", 2.0), of("b", 3.0)]), [whole(5.0)]);
        assert_eq!(summed(vec![of("a", f64::NAN), of("b", 3.0)]), [whole(3.0)]);
        assert_eq!(summed(vec![of("b", 3.0), of("a", f64::NAN)]), [whole(3.0)]);
        let ended = summed(vec![of("a", f64::NAN), of("b", f64::NAN)]);
        assert!(matches!(ended.as_slice(), [Reading::Value(value)] if value.value.is_nan()));
    }

    #[test]
    fn nothing_is_added_up_that_no_pack_asks_for_and_events_stay() {
        let event = Reading::unreadable("x");
        let readings = vec![of("a", 2.0), event.clone(), of("b", 3.0)];
        assert_eq!(without_labels(readings.clone(), &[]), readings);
        assert_eq!(without_labels(readings, &["id".to_owned()]).first(), Some(&event));
    }
}
