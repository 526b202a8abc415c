use proptest::prelude::*;
use throng_observation::SecondClosed;

use super::*;
use crate::rows_tests::{Numbers, rows, said};

const LIMITS: WireLimits = WireLimits { bytes_max: 4 << 20, rows_max: 1_000 };

fn second(second: i64) -> Row {
    Row::SecondClosed(SecondClosed { second, ..SecondClosed::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_of_every_kind_come_back(rows in rows(60)) {
        let bytes = encode(&rows, LIMITS).unwrap();
        let back = decode(&bytes, LIMITS).unwrap();
        prop_assert_eq!(said(&back), said(&rows));
        let shown = |rows: &[Row]| rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>();
        // The same in memory too, but for those distributions that are lists there and were
        // histograms here.
        if shown(&rows).iter().all(|row| !row.contains("histogram: Some")) {
            prop_assert_eq!(shown(&back), shown(&rows));
        }
    }

    #[test]
    fn hostile_bytes_are_refused_or_rows(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes, LIMITS);
        let inflated = deflate(&bytes).unwrap();
        let _ = decode(&inflated, LIMITS);
    }

    #[test]
    fn a_changed_byte_or_a_missing_end_never_panics(rows in rows(6), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut plain = Vec::new();
        for row in &rows {
            plain = postcard::to_extend(row, plain).unwrap();
        }
        if !plain.is_empty() {
            let at = at.index(plain.len());
            plain[at] = byte;
            let _ = decode(&deflate(&plain).unwrap(), LIMITS);
            let _ = decode(&deflate(&plain[..at]).unwrap(), LIMITS);
        }
        let bytes = encode(&rows, LIMITS).unwrap();
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert!(decode(cut, LIMITS).is_err());
    }
}

#[test]
fn what_is_wrong_is_named() {
    let good = encode(&[second(7), second(8)], LIMITS).unwrap();
    let (mut newer, mut longer) = (good.clone(), good.clone());
    newer[0] = 9;
    longer.push(0);
    let text = |bytes: &[u8], limits| decode(bytes, limits).unwrap_err().to_string();
    assert_eq!(decode(&[], LIMITS).unwrap_err(), WireError::Empty);
    assert_eq!(decode(&newer, LIMITS).unwrap_err(), WireError::Version { found: 9 });
    assert!(text(&longer, LIMITS).contains("bytes after its end"));
    assert!(text(&good[..good.len() - 1], LIMITS).contains("too early"));
    assert!(text(&[VERSION], LIMITS).contains("too early"));
    let tight = WireLimits { rows_max: 1, ..LIMITS };
    assert_eq!(decode(&good, tight).unwrap_err(), WireError::TooManyRows { max: 1 });
    assert_eq!(
        encode(&[second(7), second(8)], tight).unwrap_err(),
        WireError::TooManyRows { max: 1 }
    );
    let plain = [postcard::to_stdvec(&second(1)).unwrap(), vec![200]].concat();
    let bytes = deflate(&plain).unwrap();
    assert!(
        matches!(decode(&bytes, LIMITS), Err(WireError::Row { number: 1, offset: 4, .. })),
        "{}",
        text(&bytes, LIMITS)
    );
    let hold = Row::Hold(Box::default());
    assert!(matches!(
        encode(&[second(1), hold], LIMITS),
        Err(WireError::Unsendable { number: 1, .. })
    ));
}

/// The form has no names: with another sum, the bytes of one version are other rows to the other.
#[test]
fn each_sum_counts_in_the_version() {
    assert_eq!(usize::from(VERSION) - usize::from(ROWS_VERSION), SUMS);
}

#[test]
fn a_bomb_is_refused_at_its_bound() {
    let bomb = deflate(&vec![0; 64 << 20]).unwrap();
    assert!(bomb.len() < 600_000);
    assert_eq!(decode(&bomb, LIMITS).unwrap_err(), WireError::TooLarge { max: 4 << 20 });
    let exact = deflate(&vec![0xff; 4 << 20]).unwrap();
    assert!(matches!(decode(&exact, LIMITS), Err(WireError::Row { number: 0, offset: 0, .. })));
}

#[test]
fn a_second_of_a_thousand_viewers_takes_some_kilobytes() {
    let mut numbers = Numbers(4);
    let mut delays = throng_observation::Distribution::new();
    (0..30_000).for_each(|_| delays.record(20_000 + numbers.below(40_000) * numbers.below(2)));
    let mut row = throng_observation::run::SeriesRow {
        relative_delay_us: delays.clone(),
        ..Default::default()
    };
    row.jitter_us = delays;
    let bytes = encode(&[Row::Series(Box::new(row)), second(1)], LIMITS).unwrap();
    assert!(bytes.len() < 3_000, "{} bytes", bytes.len());
}
