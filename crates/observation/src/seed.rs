//! Seeds of what is drawn: the same draws every time, others for each participant.

/// The seed of what a scenario gives none.
pub const USUAL: u64 = 1;

/// 2^64 divided by the golden ratio, odd: its multiples spread neighbouring numbers over all seeds.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seed of participant, stream or visit `number` of those that share `seed`.
#[must_use]
pub fn of(seed: u64, number: u64) -> u64 {
    seed ^ number.wrapping_mul(GOLDEN)
}

/// The same by addition, a Weyl sequence: the states of SplitMix64.
#[must_use]
pub fn weyl(seed: u64, number: u64) -> u64 {
    seed.wrapping_add(number.wrapping_mul(GOLDEN))
}

/// `number` as bits that look random, other ones for each number (the finalizer of SplitMix64).
#[must_use]
pub fn mixed(number: u64) -> u64 {
    let bits = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Number `number` of SplitMix64 from `seed`; another one for each number. For seeds from which
/// [`of`] makes others: of two calls of `of` the order does not matter, and the third connection of
/// participant 5 would have the seed of the fifth of participant 3.
#[must_use]
pub fn step(seed: u64, number: u64) -> u64 {
    mixed(weyl(seed, number))
}

/// The next number of SplitMix64, which `state` counts.
pub fn next(state: &mut u64) -> u64 {
    *state = weyl(*state, 1);
    mixed(*state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_those_of_splitmix64() {
        // The reference implementation from state 0.
        let expect = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        let mut state = 0;
        assert_eq!(expect.map(|_| next(&mut state)), expect);
        assert_eq!([1, 2, 3].map(|number| step(0, number)), expect);
    }

    #[test]
    fn neighbouring_numbers_have_seeds_far_apart() {
        for seed in [0, USUAL, u64::MAX] {
            assert_eq!((of(seed, 0), weyl(seed, 0)), (seed, seed));
            for number in 0..1_000 {
                let apart = |give: fn(u64, u64) -> u64| {
                    (give(seed, number) ^ give(seed, number + 1)).count_ones()
                };
                assert!(apart(of) > 8 && apart(weyl) > 8, "{seed} {number}");
            }
        }
    }
}
