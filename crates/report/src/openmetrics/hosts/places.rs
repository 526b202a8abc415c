//! Which values of labels have series of their own.

use std::collections::BTreeMap;

use throng_observation::host::HostId;

use crate::openmetrics::bounded::OTHER;
use crate::openmetrics::exposition::Labels;

/// The most values of a label below the same labels before it; the rest are one series.
fn values_max(label: &str) -> usize {
    if label == "cpu" { 16 } else { 8 }
}

/// Where values are counted: the host, the labels before, the name of the label.
type Place = (HostId, Labels, &'static str);

/// The values that have series of their own, and of how many series each is. The sums of one whose
/// series have ended stay until another value needs its place.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<Place, BTreeMap<String, u32>>);

impl Places {
    /// The labels by which a new series is shown, and those that began the labels of ended series
    /// whose place it has now.
    pub(super) fn enter(&mut self, host: HostId, labels: Labels) -> (Labels, Option<Labels>) {
        let (mut shown, mut gone) = (Labels::new(), None);
        for (name, value) in labels {
            let values = self.0.entry((host, shown.clone(), name)).or_default();
            let is_full = values.len() >= values_max(name) && !values.contains_key(&value);
            let ended = values.iter().find(|(_, series)| is_full && **series == 0);
            if let Some(ended) = ended.map(|(ended, _)| ended.clone()) {
                values.remove(&ended);
                // Below a value that is new there is room: this happens at most once.
                gone = Some([shown.clone(), vec![(name, ended)]].concat());
            }
            let has_room = values.contains_key(&value) || values.len() < values_max(name);
            let value = if has_room && value != OTHER {
                let series = values.entry(value.clone()).or_default();
                *series = series.saturating_add(1);
                value
            } else {
                OTHER.to_owned()
            };
            shown.push((name, value));
        }
        if let Some(gone) = &gone {
            self.0.retain(|(of, before, _), _| *of != host || !before.starts_with(gone));
        }
        (shown, gone)
    }

    /// A series that was shown by these labels has ended.
    pub(super) fn leave(&mut self, host: HostId, shown: &Labels) {
        let mut before = Labels::new();
        for (name, value) in shown {
            let values = self.0.get_mut(&(host, before.clone(), *name));
            if let Some(series) = values.and_then(|values| values.get_mut(value)) {
                *series = series.saturating_sub(1);
            }
            before.push((*name, value.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(process: &str, thread: &str) -> Labels {
        vec![("process", process.to_owned()), ("thread", thread.to_owned())]
    }

    #[test]
    fn a_value_has_the_place_of_one_that_ended_and_those_below_it_go() {
        let (host, mut places) = (HostId(0), Places::default());
        for n in 0..8 {
            let own = labels(&format!("p{n}"), "main");
            assert_eq!(places.enter(host, own.clone()), (own, None));
        }
        // Another host has places of its own.
        assert_eq!(places.enter(HostId(1), labels("p9", "main")).0, labels("p9", "main"));
        assert_eq!(places.enter(host, labels("p9", "main")).0, labels(OTHER, "main"));
        // Two series of a value: it has ended with the second.
        assert_eq!(places.enter(host, labels("p3", "main")).0, labels("p3", "main"));
        places.leave(host, &labels("p3", "main"));
        assert_eq!(places.enter(host, labels("p9", "main")).0, labels(OTHER, "main"));
        places.leave(host, &labels("p3", "main"));
        let gone = vec![("process", "p3".to_owned())];
        let begun = places.enter(host, labels("p9", "main"));
        assert_eq!(begun, (labels("p9", "main"), Some(gone)));
        assert_eq!(places.enter(host, labels("p3", "main")).0, labels(OTHER, "main"));
    }
}
