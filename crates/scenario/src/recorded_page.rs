//! The page around the player, which viewers of HTTP video load before they play: where its
//! recording is, and whose cache is warm.

use std::time::Duration;

/// A recorded page (HAR 1.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedPage {
    /// The path of the HAR file.
    pub har: String,
    /// Share of viewers whose cache is warm, in thousandths.
    pub warm_milli: u32,
    /// How long before their visit warm caches were filled.
    pub warm_age: Duration,
    /// Where the requests of further recorded origins go.
    pub origins: Vec<OriginRule>,
}

/// Requests of one origin of a recording go to another one, or to the same. Both are ASCII
/// serialisations (RFC 6454 section 6.2), such as `https://static.example:8443`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OriginRule {
    /// As recorded.
    pub recorded: String,
    /// Where they go.
    pub requested: String,
}

impl RecordedPage {
    /// Whether viewer `number` has a warm cache. Multiples of the square root of 2 modulo 1 fill
    /// the interval evenly from any number on (a Kronecker sequence), and independently of those of
    /// the golden ratio, by which versions of HTTP are given: each version has its share of warm
    /// caches.
    #[must_use]
    pub fn is_warm(&self, seed: u64, number: u32) -> bool {
        // Fixed-point: 2^64 stands for 1.
        let begin = seed.wrapping_mul(0xaef1_7502_108e_f2d9);
        let point = begin.wrapping_add(u64::from(number).wrapping_mul(0x6a09_e667_f3bc_c909));
        (u128::from(point) * 1_000) >> 64 < u128::from(self.warm_milli)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpMix, HttpVersionPolicy};

    fn page(warm_milli: u32) -> RecordedPage {
        RecordedPage {
            har: "a.har".into(),
            warm_milli,
            warm_age: Duration::ZERO,
            origins: Vec::new(),
        }
    }

    #[test]
    fn any_hundred_viewers_have_the_share_of_warm_caches_and_so_have_those_of_each_version() {
        for (seed, first) in [(1, 0), (1, 917), (7, 12_345), (u64::MAX, 4_000_000_000)] {
            let warm =
                |milli: u32| (first..first + 100).filter(|n| page(milli).is_warm(seed, *n)).count();
            assert!(warm(300).abs_diff(30) <= 2, "{seed} {first}: {}", warm(300));
            assert_eq!((warm(0), warm(1_000)), (0, 100));
        }
        let mix =
            HttpMix::weighted([(HttpVersionPolicy::Http3, 500), (HttpVersionPolicy::Http2, 500)]);
        let both = (0..1_000)
            .filter(|n| mix.of(1, *n) == HttpVersionPolicy::Http3 && page(300).is_warm(1, *n));
        let both = both.count();
        assert!(both.abs_diff(150) <= 10, "{both}");
    }
}
