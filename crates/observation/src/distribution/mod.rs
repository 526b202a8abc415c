//! A mergeable distribution, so that a percentile of a run is the percentile of all its samples and
//! never an average of averages.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

mod compact;

/// Why a stored distribution could not be read.
#[derive(Debug, thiserror::Error)]
#[error("not a serialised HDR histogram (V2): {0}")]
pub struct DistributionError(String);

/// Most cells of the list; with more the distribution becomes a histogram, which takes no more
/// memory than they would.
const CELLS_MAX: usize = 1024;

/// A full list grows by an eighth, and by eight cells at least: doubling would leave a quarter of
/// the memory of all lists unused.
const GROWTH: usize = 8;

/// Significant bits kept of a value: what a histogram of two significant digits keeps.
const BITS: u32 = 8;

/// Bits of a cell that hold the count; the ones above them are the cell's number.
const COUNT_BITS: u32 = 20;

/// An HDR histogram of non-negative microsecond (or unit-less) values, 2 significant digits,
/// growing as needed.
///
/// Two significant digits bound the error of any quantile to 1 % of its value. A track has several
/// of these, and most hold some dozens or hundreds of different values, which are kept in a list
/// until they are many. Rows of a run have half a dozen, of which most are empty: an empty one
/// takes one word.
#[derive(Clone, Debug, Default)]
pub struct Distribution(Option<Box<Samples>>);

#[derive(Clone, Debug, Default)]
struct Samples {
    /// Which values were seen how often, ascending; empty when there is a histogram.
    cells: Vec<Cell>,
    histogram: Option<Box<Histogram<u32>>>,
}

/// All values that share their [`BITS`] highest bits, and their count: number and count in one
/// word, because cells are most of the memory of a track.
#[derive(Clone, Copy, Debug)]
struct Cell(u32);

/// The quantiles that every report prints, in the unit of the recorded values.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Quantiles {
    /// Number of samples.
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

impl Distribution {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        Self(None)
    }

    /// Adds one sample; the histogram grows to hold it.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds `count` samples of the same value.
    pub fn record_many(&mut self, value: u64, count: u32) {
        if !self.list(value, count) {
            add(self.laid_out(), value, count);
        }
    }

    /// Adds to the list, if there is one with room for it.
    fn list(&mut self, value: u64, count: u32) -> bool {
        let Some(number) = Cell::number_of(value) else { return false };
        let Samples { cells, histogram: None } = &mut **self.0.get_or_insert_default() else {
            return false;
        };
        match cells.binary_search_by_key(&number, |cell| cell.number()) {
            Ok(at) => {
                let more = cells.get(at).and_then(|cell| cell.more(count));
                let place = cells.get_mut(at).zip(more);
                place.map(|(cell, more)| *cell = more).is_some()
            }
            Err(at) if cells.len() < CELLS_MAX => {
                let Some(cell) = Cell::new(number, count) else { return false };
                if cells.len() == cells.capacity() {
                    cells.reserve_exact((cells.len() / GROWTH).max(GROWTH));
                }
                cells.insert(at, cell);
                true
            }
            Err(_) => false,
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Some(other) = other.0.as_deref() else { return };
        if let Some(histogram) = &other.histogram {
            // Both grow automatically, so adding cannot fail.
            let _ = self.laid_out().add(&**histogram);
        }
        other.cells.iter().for_each(|cell| self.record_many(cell.lowest(), cell.count()));
    }

    /// How many samples were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        let Some(samples) = self.0.as_deref() else { return 0 };
        let listed: u64 = samples.cells.iter().map(|cell| u64::from(cell.count())).sum();
        listed + samples.histogram.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// Calls `take` with each value and how many samples have it, ascending. Values that cannot be
    /// told from each other are one: the lowest of them.
    pub fn each(&self, mut take: impl FnMut(u64, u32)) {
        self.each_cell(|number, count| take(lowest_of(number), count));
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

    /// The value at `quantile` divided by `scale` (1000.0 turns microseconds into milliseconds);
    /// `None` when empty.
    #[must_use]
    pub fn quantile_in(&self, quantile: f64, scale: f64) -> Option<f64> {
        self.quantile(quantile).map(|value| value as f64 / scale)
    }

    /// The least value that cannot be told from that at `quantile`; `None` when empty. It is exact
    /// for values whose bits below the highest eight are zero, such as the usual heights of
    /// pictures.
    #[must_use]
    pub fn lowest_at(&self, quantile: f64) -> Option<u64> {
        (!self.is_empty()).then(|| {
            let histogram = self.histogram();
            histogram.lowest_equivalent(histogram.value_at_quantile(quantile))
        })
    }

    /// The usual quantiles divided by `scale` (1000.0 turns microseconds into milliseconds); `None`
    /// when empty.
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

    /// Removes all samples and keeps the memory.
    pub fn clear(&mut self) {
        let Some(samples) = self.0.as_deref_mut() else { return };
        samples.cells.clear();
        if let Some(histogram) = &mut samples.histogram {
            histogram.reset();
        }
    }

    /// The same samples as a histogram.
    fn histogram(&self) -> Cow<'_, Histogram<u32>> {
        match self.0.as_deref() {
            Some(Samples { histogram: Some(histogram), .. }) => Cow::Borrowed(histogram),
            Some(Samples { cells, histogram: None }) => Cow::Owned(lay_out(cells)),
            None => Cow::Owned(lay_out(&[])),
        }
    }

    /// The histogram, which takes all samples from now on.
    fn laid_out(&mut self) -> &mut Histogram<u32> {
        let Samples { cells, histogram } = &mut **self.0.get_or_insert_default();
        histogram.get_or_insert_with(|| Box::new(lay_out(&std::mem::take(cells))))
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
        if !is_of_ours(bytes) {
            return Err(DistributionError("its head is not one of throng's".to_owned()));
        }
        let mut histogram: Histogram<u32> = Deserializer::new()
            .deserialize(&mut bytes)
            .map_err(|e| DistributionError(e.to_string()))?;
        histogram.auto(true);
        let mut few = Self::new();
        let listed = histogram.iter_recorded().all(|seen| {
            // Several values share a count there; the lowest of them is the one that a list keeps.
            let lowest = histogram.lowest_equivalent(seen.value_iterated_to());
            few.list(lowest, seen.count_at_value())
        });
        Ok(if listed { few } else { Self::of(histogram) })
    }

    fn of(histogram: Histogram<u32>) -> Self {
        Self(Some(Box::new(Samples { cells: Vec::new(), histogram: Some(Box::new(histogram)) })))
    }
}

impl Cell {
    /// The number of the cell that `value` falls into; `None` for values of more than 32 bits.
    fn number_of(value: u64) -> Option<u32> {
        u32::try_from(value).ok().map(|value| number_of(value.into()))
    }

    /// `None` when the count needs too many bits.
    fn new(number: u32, count: u32) -> Option<Self> {
        (count < 1 << COUNT_BITS).then_some(Self(number << COUNT_BITS | count))
    }

    fn number(self) -> u32 {
        self.0 >> COUNT_BITS
    }

    fn count(self) -> u32 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    /// The same with `count` more; `None` when the sum needs too many bits.
    fn more(self, count: u32) -> Option<Self> {
        self.count().checked_add(count).and_then(|count| Self::new(self.number(), count))
    }

    /// The lowest value that falls into it.
    fn lowest(self) -> u64 {
        lowest_of(self.number())
    }

    /// The cell of that number, as lists have it: with a value of at most 32 bits, and not empty.
    fn new_listed(number: u32, count: u32) -> Option<Self> {
        (number <= number_of(u32::MAX.into()) && count > 0)
            .then(|| Self::new(number, count))
            .flatten()
    }
}

/// The number of the cell that `value` falls into, ascending with it: the magnitude above the bits
/// that are kept, then those bits without the highest, which is always set.
fn number_of(value: u64) -> u32 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
    // At most [`BITS`] bits are left of the value.
    (shift << (BITS - 1)) + (value >> shift) as u32
}

/// The lowest value that falls into the cell of that number.
fn lowest_of(number: u32) -> u64 {
    let shift = (number >> (BITS - 1)).saturating_sub(1);
    u64::from(number - (shift << (BITS - 1))) << shift
}

/// Bytes of the head of the "V2" encoding.
const HEAD: usize = 40;

/// Whether head and counts are such as [`Distribution::to_bytes`] writes. The reader of the crate
/// takes memory by what the head says, before it has read the counts: 4 GiB for a length, 25 MB for
/// five significant digits. And it negates a count of 64 bits, which overflows.
fn is_of_ours(bytes: &[u8]) -> bool {
    /// `V2_COOKIE` of the crate; the compressed form has another.
    const COOKIE: u32 = 0x1c84_9313;
    /// Bytes of a count of 32 bits and its sign in LEB128.
    const COUNT_BYTES: usize = 5;
    let word = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|word| word.first_chunk::<4>())
            .map(|word| u32::from_be_bytes(*word))
    };
    let length = bytes.len().checked_sub(HEAD).and_then(|length| u32::try_from(length).ok());
    // Significant digits, then the lowest value, of 64 bits.
    let is_fine = word(12) == Some(2) && word(16) == Some(0) && word(20) == Some(1);
    // All bytes of a number but its last have the highest bit.
    let mut counts = bytes.get(HEAD..).unwrap_or_default().split(|byte| byte & 0x80 == 0);
    word(0) == Some(COOKIE)
        && length.is_some()
        && word(4) == length
        && is_fine
        && counts.all(|begin| begin.len() < COUNT_BYTES)
}

fn lay_out(cells: &[Cell]) -> Histogram<u32> {
    let mut histogram = Histogram::new(2).expect("2 significant digits are allowed");
    cells.iter().for_each(|cell| add(&mut histogram, cell.lowest(), cell.count()));
    histogram
}

fn add(histogram: &mut Histogram<u32>, value: u64, count: u32) {
    // Only a value beyond the range that memory can index fails to record; it counts as the largest
    // so far.
    if histogram.record_n(value, count).is_err() {
        histogram.saturating_record_n(value, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_recording_everything_in_one() {
        let (mut a, mut b, mut both) =
            (Distribution::new(), Distribution::new(), Distribution::new());
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
        // Values of all magnitudes, mixed; their number grows, so that the list becomes a histogram
        // on the way.
        let mixed = |n: u32| u64::from(n.wrapping_mul(2_654_435_761) >> (n % 32));
        let edges = [0, 1, 255, 256, 257, 511, 512, u64::from(u32::MAX), u64::from(u32::MAX) + 1];
        for samples in [0, 1, 9, 100, 200, 5_000] {
            let all = || edges.into_iter().chain((0..samples).map(mixed)).take(samples as usize);
            let (mut distribution, mut histogram) = (Distribution::new(), lay_out(&[]));
            all().for_each(|value| distribution.record(value));
            all().for_each(|value| histogram.record(value).unwrap());
            assert_eq!(distribution.count(), histogram.len());
            for quantile in (0..=1000).map(|n| f64::from(n) / 1000.0).filter(|_| samples > 0) {
                assert_eq!(
                    distribution.quantile(quantile),
                    Some(histogram.value_at_quantile(quantile))
                );
            }
            let whole = Distribution::of(histogram);
            assert_eq!(distribution.quantiles(1.0), whole.quantiles(1.0), "{samples}");
            assert_eq!(distribution.mean(), whole.mean());
            let values = seen(&distribution);
            assert_eq!(values, seen(&whole), "{samples}");
            let counted: u64 = values.iter().map(|(_, count)| u64::from(*count)).sum();
            assert_eq!(counted, distribution.count());
            for (mut a, b) in [(distribution.clone(), &whole), (whole.clone(), &distribution)] {
                a.merge(b);
                assert_eq!(a.count(), 2 * u64::from(samples));
                assert_eq!(a.quantile(0.5), whole.quantile(0.5));
                let back = Distribution::from_bytes(&a.to_bytes()).unwrap();
                assert_eq!((back.quantiles(1.0), back.mean()), (a.quantiles(1.0), a.mean()));
                a.clear();
                assert!(a.is_empty());
            }
        }
    }

    #[test]
    fn few_values_take_little_memory() {
        let mut d = Distribution::new();
        (0..1_000_000).for_each(|n| d.record(20_000 + n % 5_000));
        assert!(listed(&d).is_some_and(|cells| cells <= 5_000 / 128 + 1));
        // Delays of up to a second, as on a machine that is too busy.
        let mut wide = Distribution::new();
        (0..1_000_000).for_each(|n| wide.record(10_000 + n));
        assert!(listed(&wide).is_some_and(|cells| cells * size_of::<Cell>() <= 4096));
        // A distribution read back from a run takes as little memory.
        let back = Distribution::from_bytes(&wide.to_bytes()).unwrap();
        assert_eq!((listed(&back), size_of::<Distribution>()), (listed(&wide), size_of::<usize>()));
    }

    /// The length of its list, while it is one.
    fn listed(distribution: &Distribution) -> Option<usize> {
        distribution
            .0
            .as_deref()
            .filter(|samples| samples.histogram.is_none())
            .map(|samples| samples.cells.len())
    }

    #[test]
    fn a_cell_is_numbered_by_its_value_and_gives_its_lowest_back() {
        let edges = (0..32).flat_map(|bit| [0, 1, 2].map(|near| (1_u64 << bit) + near - 1));
        let mut before = None;
        for value in edges.chain([u64::from(u32::MAX)]) {
            let cell = Cell::new(Cell::number_of(value).unwrap(), 1).unwrap();
            assert!(
                cell.lowest() <= value && value - cell.lowest() <= value / 128,
                "{value}: {cell:?}"
            );
            assert!(Cell::number_of(cell.lowest()) == Some(cell.number()), "{value}: {cell:?}");
            assert!(before.is_none_or(|before| value <= 1 || before <= cell.number()), "{value}");
            before = Some(cell.number());
        }
        assert_eq!(Cell::number_of(1 << 32), None);
    }

    #[test]
    fn a_count_that_its_cell_cannot_hold_is_kept_all_the_same() {
        for (first, second) in
            [(1 << COUNT_BITS, 1), (1, 1 << COUNT_BITS), ((1 << COUNT_BITS) - 1, 1)]
        {
            let mut d = Distribution::new();
            d.record_many(7, first);
            d.record_many(7, second);
            d.record(u64::from(u32::MAX));
            assert_eq!(d.count(), u64::from(first) + u64::from(second) + 1);
            assert_eq!(d.quantile(0.5), Some(7));
        }
    }

    /// Its values and how often they were seen.
    fn seen(distribution: &Distribution) -> Vec<(u64, u32)> {
        let mut seen = Vec::new();
        distribution.each(|value, count| seen.push((value, count)));
        seen
    }

    #[test]
    fn each_value_comes_once_as_the_lowest_that_it_cannot_be_told_from() {
        let mut d = Distribution::new();
        assert!(seen(&d).is_empty());
        [1_000_000, 5_003, 5_000, 0, 255, 5_100, 0].into_iter().for_each(|v| d.record(v));
        // Of 13 bits eight are kept, of 20 bits, too.
        let expected = [(0, 2), (255, 1), (4_992, 2), (5_088, 1), (999_424, 1)];
        assert_eq!(seen(&d), expected);
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

    #[test]
    fn a_few_bytes_never_stand_for_a_large_histogram_and_overflow_nothing() {
        let mut d = Distribution::new();
        [1, 70_000, 5_000_000].into_iter().for_each(|v| d.record(v));
        let good = d.to_bytes();
        let changed = |at: usize, bytes: &[u8]| {
            let mut changed = good.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            Distribution::from_bytes(&changed)
        };
        // A length of 4 GiB, five significant digits, another lowest value.
        assert!(changed(4, &[0xff; 4]).is_err());
        assert!(changed(15, &[5]).is_err());
        assert!(changed(23, &[2]).is_err());
        // The smallest number of 64 bits, which has no positive one.
        let mut smallest = good[..40].to_vec();
        smallest.extend([0xff; 9]);
        smallest[4..8].copy_from_slice(&9_u32.to_be_bytes());
        assert!(Distribution::from_bytes(&smallest).is_err());
        // Counts of the largest kind are read.
        let mut many = Distribution::new();
        (0..3).for_each(|value| many.record_many(value * 70_000, u32::MAX));
        assert_eq!(Distribution::from_bytes(&many.to_bytes()).unwrap().count(), many.count());
    }
}
