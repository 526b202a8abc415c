//! A mergeable distribution, so that a percentile of a run is the percentile of all its samples and never an
//! average of averages.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// Why a stored distribution could not be read.
#[derive(Debug, thiserror::Error)]
#[error("not a serialised HDR histogram (V2): {0}")]
pub struct DistributionError(String);

/// Cells held one by one; with more a histogram is laid out.
const CELLS_MAX: usize = 256;

/// Significant bits kept of a value: what a histogram of two significant digits keeps.
const BITS: u32 = 8;

/// An HDR histogram of non-negative microsecond (or unit-less) values, 2 significant digits, growing as needed.
///
/// Two significant digits bound the error of any quantile to 1 % of its value. There are several of these a track, and
/// most hold some dozens of different values: until they are many, they are kept in a list.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The lowest value of each cell and how often it was seen, ascending; empty when there is a histogram.
    cells: Vec<(u32, u32)>,
    histogram: Option<Box<Histogram<u32>>>,
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
    #[must_use]
    pub fn new() -> Self {
        Self { cells: Vec::new(), histogram: None }
    }

    /// Adds one sample; the histogram grows to hold it.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds `count` samples of the same value.
    pub fn record_many(&mut self, value: u64, count: u32) {
        if self.histogram.is_none()
            && let Ok(value) = u32::try_from(value)
        {
            let shift = (u32::BITS - value.leading_zeros()).saturating_sub(BITS);
            let cell = value >> shift << shift;
            match self.cells.binary_search_by_key(&cell, |(cell, _)| *cell) {
                Ok(at) => {
                    if let Some((_, sum)) = self.cells.get_mut(at) {
                        *sum = sum.saturating_add(count);
                    }
                    return;
                }
                Err(at) if self.cells.len() < CELLS_MAX => return self.cells.insert(at, (cell, count)),
                Err(_) => {}
            }
        }
        add(self.laid_out(), value, count);
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        if let Some(histogram) = &other.histogram {
            // Both grow automatically, so adding cannot fail.
            let _ = self.laid_out().add(&**histogram);
        }
        other.cells.iter().for_each(|(cell, count)| self.record_many(u64::from(*cell), *count));
    }

    /// How many samples were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        let listed: u64 = self.cells.iter().map(|(_, count)| u64::from(*count)).sum();
        listed + self.histogram.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The value at `quantile` (0.0–1.0); `None` when empty.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.histogram().value_at_quantile(quantile))
    }

    /// The usual quantiles divided by `scale` (1000.0 turns microseconds into milliseconds); `None` when empty.
    #[must_use]
    pub fn quantiles(&self, scale: f64) -> Option<Quantiles> {
        if self.is_empty() {
            return None;
        }
        let histogram = self.histogram();
        let at = |q| histogram.value_at_quantile(q) as f64 / scale;
        Some(Quantiles {
            count: histogram.len(),
            p50: at(0.50),
            p95: at(0.95),
            p99: at(0.99),
            max: histogram.max() as f64 / scale,
        })
    }

    /// Mean of all samples; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.histogram().mean())
    }

    /// Forgets all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        if let Some(histogram) = &mut self.histogram {
            histogram.reset();
        }
    }

    /// The same as a histogram.
    fn histogram(&self) -> Cow<'_, Histogram<u32>> {
        match &self.histogram {
            Some(histogram) => Cow::Borrowed(histogram),
            None => Cow::Owned(lay_out(&self.cells)),
        }
    }

    /// The histogram, which takes all samples from here on.
    fn laid_out(&mut self) -> &mut Histogram<u32> {
        let cells = &mut self.cells;
        self.histogram.get_or_insert_with(|| Box::new(lay_out(&std::mem::take(cells))))
    }

    /// The HDR "V2" encoding, uncompressed; readable by every HdrHistogram library.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to a Vec does not fail.
        let _ = V2Serializer::new().serialize(&*self.histogram(), &mut bytes);
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
        Ok(Self { cells: Vec::new(), histogram: Some(Box::new(histogram)) })
    }
}

fn lay_out(cells: &[(u32, u32)]) -> Histogram<u32> {
    let mut histogram = Histogram::new(2).expect("2 significant digits are allowed");
    cells.iter().for_each(|(cell, count)| add(&mut histogram, u64::from(*cell), *count));
    histogram
}

fn add(histogram: &mut Histogram<u32>, value: u64, count: u32) {
    // Only a value beyond what memory can index fails to record, and then it counts as the largest so far.
    if histogram.record_n(value, count).is_err() {
        histogram.saturating_record_n(value, count);
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
    fn few_cells_and_many_are_the_same_distribution() {
        // All magnitudes, well mixed; ever more of them, so that the list becomes a histogram on the way.
        let mixed = |n: u32| u64::from(n.wrapping_mul(2_654_435_761) >> (n % 32));
        let edges = [0, 1, 255, 256, 257, 511, 512, u64::from(u32::MAX), u64::from(u32::MAX) + 1];
        for samples in [0, 1, 9, 100, 200, 5_000] {
            let all = || edges.into_iter().chain((0..samples).map(mixed)).take(samples as usize);
            let (mut distribution, mut histogram) = (Distribution::new(), lay_out(&[]));
            all().for_each(|value| distribution.record(value));
            all().for_each(|value| histogram.record(value).unwrap());
            assert_eq!(distribution.count(), histogram.len());
            for quantile in (0..=1000).map(|n| f64::from(n) / 1000.0).filter(|_| samples > 0) {
                assert_eq!(distribution.quantile(quantile), Some(histogram.value_at_quantile(quantile)));
            }
            let whole = Distribution { cells: Vec::new(), histogram: Some(Box::new(histogram)) };
            assert_eq!(distribution.quantiles(1.0), whole.quantiles(1.0), "{samples}");
            assert_eq!(distribution.mean(), whole.mean());
            for (mut a, b) in [(distribution.clone(), &whole), (whole.clone(), &distribution)] {
                a.merge(b);
                assert_eq!(a.count(), 2 * u64::from(samples));
                assert_eq!(a.quantile(0.5), whole.quantile(0.5));
                a.clear();
                assert!(a.is_empty());
            }
        }
    }

    #[test]
    fn few_values_take_little_memory() {
        let mut d = Distribution::new();
        (0..1_000_000).for_each(|n| d.record(20_000 + n % 5_000));
        assert!(d.histogram.is_none() && d.cells.len() <= 5_000 / 128 + 1);
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
