use proptest::prelude::*;

use super::*;

/// As chronyc 4.3 prints it.
const FOLLOWS: &str = "7F000001,127.0.0.1,2,1795730363.735641169,-0.000004111,0.000000258,0.000001846,2.461,0.015,17.546,\
                       0.000010348,0.000009834,0.3,Normal\n";

fn word(bound_us: u64) -> ClockWord {
    ClockWord { bound_us, source: WordSource::Chrony }
}

fn of(offset_us: i64, bound_us: u64, a: u64, b: u64) -> (i64, u64, ClockBasis) {
    let (offset, basis) = combined(Offset { offset_us, bound_us }, Some((word(a), word(b))));
    (offset.offset_us, offset.bound_us, basis)
}

proptest! {
    #[test]
    fn the_truth_stays_within_the_bound_which_does_not_grow(
        ours_us in -50_000..50_000_i64,
        theirs_us in -50_000..50_000_i64,
        slack in (0..50_000_u64, 0..50_000_u64),
        error_us in -60_000..60_000_i64,
        more_us in 0..60_000_u64,
    ) {
        // Each clock is off true time by less than its word, and the exchanges are off the truth by
        // less than their bound.
        let truth = theirs_us - ours_us;
        let exchanges = Offset { offset_us: truth + error_us, bound_us: error_us.unsigned_abs() + more_us };
        let words = (word(ours_us.unsigned_abs() + slack.0), word(theirs_us.unsigned_abs() + slack.1));
        let (both, basis) = combined(exchanges, Some(words));
        prop_assert!(both.offset_us.abs_diff(truth) <= both.bound_us, "{both:?} for {truth}");
        prop_assert!(both.bound_us <= exchanges.bound_us && basis != ClockBasis::Contradicted);
    }
}

#[test]
fn the_offset_lies_where_exchanges_and_words_meet() {
    assert_eq!(of(12_000, 30_000, 300, 200), (0, 500, ClockBasis::HostClocks));
    assert_eq!(
        of(30_100, 30_000, 300, 200),
        (300, 200, ClockBasis::HostClocks),
        "they overlap at one end"
    );
    assert_eq!(of(-30_500, 30_000, 300, 200), (-500, 0, ClockBasis::HostClocks), "they touch");
    assert_eq!(of(100, 300, 400, 500), (100, 300, ClockBasis::Exchanges), "words that say less");
    assert_eq!(of(-1, 2, 0, 2), (0, 2, ClockBasis::HostClocks), "an odd width is rounded up");
}

#[test]
fn words_that_contradict_the_exchanges_do_not_count() {
    assert_eq!(of(4_000_000, 30_000, 300, 200), (4_000_000, 30_000, ClockBasis::Contradicted));
    assert_eq!(of(-30_501, 30_000, 300, 200), (-30_501, 30_000, ClockBasis::Contradicted));
    let (least, most, large) = (i64::MIN, i64::MAX, u64::MAX);
    for (offset_us, bound_us, a, b) in [(least, large, large, large), (most, 0, 0, large)] {
        let (offset, bound, _) = of(offset_us, bound_us, a, b);
        assert!(offset.abs_diff(offset_us) <= bound_us.max(bound), "no overflow");
    }
    let alone = Offset { offset_us: 7, bound_us: 9 };
    assert_eq!(combined(alone, None), (alone, ClockBasis::Exchanges));
}

#[test]
fn chrony_is_right_within_correction_half_the_delay_and_dispersion() {
    // 4.111 + 10.348 / 2 + 9.834
    assert_eq!(chrony_word(FOLLOWS), Some(word(21)));
    assert_eq!(chrony_word(&FOLLOWS.replace("Normal", "Insert second")), Some(word(21)));
}

#[test]
fn a_chrony_that_follows_nobody_has_no_word() {
    for (what, by) in [
        ("Normal", "Not synchronised"),
        ("Normal", ""),
        (",0.3,Normal", ""),
        ("7F000001,127.0.0.1", "7F7F0101,"),
        ("0.000010348", "-0.000010348"),
        ("0.000009834", "-0.1"),
        ("0.000009834", "inf"),
        ("-0.000004111", "NaN"),
        ("-0.000004111", "-86400.0"),
    ] {
        assert!(FOLLOWS.contains(what));
        assert_eq!(chrony_word(&FOLLOWS.replace(what, by)), None, "{what} as {by}");
    }
    for said in ["", "\n", "506 Cannot talk to daemon\n"] {
        assert_eq!(chrony_word(said), None, "{said}");
    }
}

#[test]
fn the_word_of_chrony_ages_and_that_of_an_owner_does_not() {
    let minute = Duration::from_mins(1);
    assert_eq!(word(100).aged(minute).bound_us, 100 + 61 * 15);
    let declared = ClockWord { bound_us: 1, source: WordSource::Declared };
    assert_eq!(declared.aged(minute), declared);
    assert_eq!(word(u64::MAX).wider(1).bound_us, u64::MAX);
}
