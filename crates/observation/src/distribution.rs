//! A mergeable distribution, so that a percentile of a run is the percentile of all its samples and never an
//! average of averages.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// Why a stored distribution could not be read.
#[derive(Debug, thiserror::Error)]
#[error("not a serialised HDR histogram (V2): {0}")]
pub struct DistributionError(String);

/// An HDR histogram of non-negative microsecond (or unit-less) values, 2 significant digits, growing as needed.
///
/// Two significant digits bound the error of any quantile to 1 % of its value.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u32>,
}

/// The quantiles that every report prints, in the unit of the recorded values.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Quantiles {
    /// How many samples the figures stand on.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest sample.
    pub max: f64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// An empty distribution.
    ///
    /// # Panics
    /// Never: two significant digits are within the range that the histogram accepts.
    #[must_use]
    pub fn new() -> Self {
        Self { histogram: Histogram::new(2).expect("2 significant digits are allowed") }
    }

    /// Adds one sample; the histogram grows to hold it.
    pub fn record(&mut self, value: u64) {
        // Only a value beyond what memory can index fails to record, and then it counts as the largest so far.
        if self.histogram.record(value).is_err() {
            self.histogram.saturating_record(value);
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        // Both grow automatically, so adding cannot fail.
        let _ = self.histogram.add(&other.histogram);
    }

    /// How many samples were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The value at `quantile` (0.0–1.0); `None` when empty.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.histogram.value_at_quantile(quantile))
    }

    /// The usual quantiles divided by `scale` (1000.0 turns microseconds into milliseconds); `None` when empty.
    #[must_use]
    pub fn quantiles(&self, scale: f64) -> Option<Quantiles> {
        let at = |q| self.histogram.value_at_quantile(q) as f64 / scale;
        (!self.is_empty()).then(|| Quantiles {
            count: self.count(),
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
            max: self.histogram.max() as f64 / scale,
        })
    }

    /// Mean of all samples; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.histogram.mean())
    }

    /// Forgets all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// The HDR "V2" encoding, uncompressed; readable by every HdrHistogram library.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to a Vec does not fail.
        let _ = V2Serializer::new().serialize(&self.histogram, &mut bytes);
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// When the bytes are not a V2 histogram.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, DistributionError> {
        let mut histogram: Histogram<u32> =
            Deserializer::new().deserialize(&mut bytes).map_err(|e| DistributionError(format!("{e:?}")))?;
        histogram.auto(true);
        Ok(Self { histogram })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_recording_everything_in_one() {
        let (mut a, mut b, mut both) = (Distribution::new(), Distribution::new(), Distribution::new());
        for v in 0..1000 {
            if v % 3 == 0 {
                a.record(v);
            } else {
                b.record(v * 100);
            }
            both.record(if v % 3 == 0 { v } else { v * 100 });
        }
        a.merge(&b);
        assert_eq!(a.quantiles(1.0), both.quantiles(1.0));
    }

    #[test]
    fn quantiles_stay_within_one_percent() {
        let mut d = Distribution::new();
        (1..=10_000).for_each(|v| d.record(v));
        let q = d.quantiles(1.0).unwrap();
        assert!((q.p50 - 5000.0).abs() <= 50.0 && (q.p99 - 9900.0).abs() <= 99.0, "{q:?}");
    }

    #[test]
    fn the_mean_is_of_all_samples() {
        let mut d = Distribution::new();
        assert_eq!(d.mean(), None);
        [10, 20, 60].into_iter().for_each(|v| d.record(v));
        assert_eq!(d.mean(), Some(30.0));
    }

    #[test]
    fn bytes_round_trip_and_rubbish_is_refused() {
        let mut d = Distribution::new();
        [1, 70_000, 5_000_000].into_iter().for_each(|v| d.record(v));
        let mut back = Distribution::from_bytes(&d.to_bytes()).unwrap();
        assert_eq!(back.quantiles(1.0), d.quantiles(1.0));
        back.record(u64::from(u32::MAX)); // still grows
        assert!(Distribution::from_bytes(b"rubbish").is_err());
    }
}
