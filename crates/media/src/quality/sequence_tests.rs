//! Given sequences of sequence numbers.

use super::*;
use proptest::prelude::*;

const PATIENCE_MS: u32 = 200;

fn meter() -> SequenceMeter {
    SequenceMeter::new(1024, 32, PATIENCE_MS)
}

/// Passes `(at_ms, sequence)`, waits for the patience, and returns the result of each plus
/// (arrivals, lost, expected).
fn run(packets: &[(u32, u16)]) -> (Vec<Arrival>, (u64, i64, i64)) {
    let mut meter = meter();
    let mut seen = Vec::new();
    let mut last_ms = 0;
    for &(at_ms, sequence) in packets {
        meter.timeout(at_ms);
        seen.push(meter.packet(sequence, false, at_ms));
        last_ms = at_ms;
    }
    meter.timeout(last_ms + PATIENCE_MS);
    let (lowest, highest) = meter.range().unwrap();
    (seen, (meter.arrivals(), meter.lost(), highest - lowest + 1))
}

#[test]
fn what_came_and_what_did_not() {
    use Arrival::{Duplicate, Filled, Late, Next};
    for (what, packets, arrivals, sums) in [
        ("in order", vec![(0, 7), (1, 8), (2, 9)], vec![Next(7), Next(8), Next(9)], (3, 0, 3)),
        (
            "over the wrap",
            vec![(0, 65534), (1, 65535), (2, 0), (3, 1)],
            vec![Next(65534), Next(65535), Next(65536), Next(65537)],
            (4, 0, 4),
        ),
        ("lost over the wrap", vec![(0, 65534), (2, 1)], vec![Next(65534), Next(65537)], (2, 2, 4)),
        (
            "twice",
            vec![(0, 7), (1, 8), (2, 7), (3, 8)],
            vec![Next(7), Next(8), Duplicate, Duplicate],
            (2, 0, 2),
        ),
        (
            "within the patience",
            vec![(0, 1), (1, 3), (199, 2), (200, 4)],
            vec![Next(1), Next(3), Filled(2), Next(4)],
            (4, 0, 4),
        ),
        (
            "after the patience",
            vec![(0, 1), (1, 3), (201, 4), (202, 2)],
            vec![Next(1), Next(3), Next(4), Late(2)],
            (4, 0, 4),
        ),
        (
            "late, then twice",
            vec![(0, 1), (1, 3), (300, 2), (301, 2)],
            vec![Next(1), Next(3), Late(2), Duplicate],
            (3, 0, 3),
        ),
        (
            "before the first, as the wrap goes",
            vec![(0, 1), (1, 65535), (2, 2)],
            vec![Next(1), Filled(-1), Next(2)],
            (3, 1, 4),
        ),
        (
            "a burst in two holes",
            vec![(0, 10), (5, 13), (9, 20), (10, 12), (11, 16), (12, 11)],
            vec![Next(10), Next(13), Next(20), Filled(12), Filled(16), Filled(11)],
            (6, 5, 11),
        ),
    ] {
        assert_eq!(run(&packets), (arrivals, sums), "{what}");
    }
}

#[test]
fn a_loss_taken_back_is_negative_in_its_interval_and_nothing_over_the_life() {
    let mut meter = meter();
    meter.packet(1, false, 0);
    meter.packet(4, false, 0);
    assert_eq!(meter.take_lost(), 0, "pending is not lost yet");
    assert_eq!(meter.next_timeout_ms(), Some(200));
    meter.timeout(199);
    assert_eq!(meter.take_lost(), 0);
    meter.timeout(200);
    assert_eq!(meter.take_lost(), 2);
    meter.packet(2, false, 900);
    meter.packet(3, false, 900);
    assert_eq!(meter.take_lost(), -2);
    assert_eq!(meter.lost(), 0);
}

#[test]
fn a_restarted_source_is_a_new_base_and_not_a_loss() {
    let mut meter = meter();
    for sequence in [100, 101] {
        meter.packet(sequence, false, 0);
    }
    assert_eq!(meter.packet(40_000, false, 1), Arrival::Probation);
    assert_eq!(meter.packet(102, false, 1), Arrival::Next(102), "one stray packet changes nothing");
    assert_eq!(meter.packet(40_000, false, 2), Arrival::Probation);
    assert_eq!(meter.packet(40_001, false, 2), Arrival::Restarted);
    meter.restart();
    assert_eq!(meter.packet(40_000, false, 2), Arrival::Next(40_000));
    assert_eq!(meter.packet(40_001, false, 2), Arrival::Next(40_001));
    assert_eq!((meter.arrivals(), meter.lost()), (5, 0));
}

#[test]
fn probing_with_old_retransmissions_is_neither_a_restart_nor_a_loss() {
    let mut meter = meter();
    meter.packet(30_000, false, 0);
    for sequence in [10, 11, 12, 29_998, 29_999, 40_000, 40_001] {
        assert_eq!(meter.packet(sequence, true, 1), Arrival::Duplicate);
    }
    assert_eq!((meter.range(), meter.lost()), (Some((30_000, 30_000)), 0));
}

#[test]
fn a_source_that_restarts_behind_is_seen_too() {
    let mut meter = meter();
    meter.packet(30_000, false, 0);
    assert_eq!(meter.packet(5, false, 1), Arrival::Probation);
    assert_eq!(meter.packet(6, false, 1), Arrival::Restarted);
}

#[test]
fn a_dropout_longer_than_the_window_is_lost_at_once_and_a_longer_one_than_the_rfc_s_is_suspect() {
    let mut meter = meter();
    meter.packet(0, false, 0);
    assert_eq!(meter.packet(2999, false, 0), Arrival::Next(2999));
    assert_eq!(meter.lost(), 2998 - 1023, "what the window cannot recognise any more");
    meter.timeout(200);
    assert_eq!(meter.lost(), 2998);
    assert_eq!(meter.packet(2999 + 3000, false, 201), Arrival::Probation);
}

#[test]
fn everything_below_the_first_open_hole_is_settled() {
    let mut meter = meter();
    meter.packet(10, false, 0);
    meter.packet(11, false, 0);
    assert_eq!(meter.resolved_below(), 12);
    meter.packet(14, false, 0);
    meter.packet(16, false, 50);
    assert_eq!(meter.resolved_below(), 12);
    meter.timeout(200);
    assert_eq!(meter.resolved_below(), 15);
    meter.packet(15, false, 210);
    assert_eq!(meter.resolved_below(), 17);
}

#[test]
fn holes_beyond_memory_are_lost_at_once() {
    let mut meter = meter();
    for i in 0..100 {
        meter.packet(i * 2, false, 0);
    }
    assert_eq!(meter.lost(), 99 - 32);
    meter.give_up_all();
    assert_eq!(meter.lost(), 99);
}

proptest! {
    /// Any loss, duplication and reordering within the window: arrivals + lost = expected, and each
    /// number arrives once.
    #[test]
    fn arrivals_and_losses_make_up_what_was_expected(
        start in any::<u16>(),
        fates in prop::collection::vec((0_u8..10, 0_u32..90), 2..600),
        spacing_ms in 0_u32..30,
    ) {
        let mut packets = Vec::new();
        for (i, &(fate, shift)) in fates.iter().enumerate() {
            let i = i as u32;
            let sequence = start.wrapping_add(i as u16);
            let shift = if fate < 5 { 0 } else { shift };
            if fate != 1 { packets.push((i + shift, sequence)) }
            if fate == 2 || fate == 7 { packets.push((i + shift / 2, sequence)) }
        }
        packets.sort_by_key(|&(order, _)| order);
        let mut unique: Vec<u16> = packets.iter().map(|p| p.1).collect();
        unique.sort_unstable();
        unique.dedup();
        prop_assume!(!packets.is_empty());

        let mut meter = meter();
        let mut duplicates = 0;
        let mut taken = 0;
        for (k, &(_, sequence)) in packets.iter().enumerate() {
            let now_ms = k as u32 * spacing_ms;
            meter.timeout(now_ms);
            duplicates += usize::from(meter.packet(sequence, false, now_ms) == Arrival::Duplicate);
            if k % 50 == 0 { taken += meter.take_lost() }
        }
        meter.give_up_all();
        taken += meter.take_lost();
        let (lowest, highest) = meter.range().unwrap();
        prop_assert_eq!(meter.arrivals() as usize, unique.len());
        prop_assert_eq!(duplicates, packets.len() - unique.len());
        prop_assert_eq!(meter.arrivals() as i64 + meter.lost(), highest - lowest + 1);
        prop_assert_eq!(taken, meter.lost());
    }

    /// Any input: no panic, bounded memory, and the equation holds unless the source restarts.
    #[test]
    fn any_numbers_are_survived(numbers in prop::collection::vec((any::<u16>(), 0_u32..1000), 0..2000)) {
        let mut meter = meter();
        let mut now_ms = 0;
        for (sequence, wait) in numbers {
            now_ms += wait;
            meter.timeout(now_ms);
            if meter.packet(sequence, false, now_ms) == Arrival::Restarted { meter.restart() }
            prop_assert!(meter.holes.len() <= meter.holes_max);
        }
    }
}

#[test]
fn what_is_missing_where_the_sender_moved_on_is_not_lost_and_may_still_come() {
    let mut meter = meter();
    meter.packet(10, false, 0);
    meter.excuse_below(3);
    assert_eq!(meter.packet(15, false, 1), Arrival::Next(15));
    assert_eq!(meter.packet(13, false, 2), Arrival::Filled(13));
    meter.packet(17, false, 3);
    meter.timeout(3 + PATIENCE_MS);
    assert_eq!(meter.lost(), 1, "16 alone");
}

#[test]
fn what_comes_after_it_was_excused_cancels_no_loss_and_what_is_lost_later_does() {
    let mut meter = meter();
    meter.excuse_below(301);
    for (at_ms, sequence) in [(0, 12), (300, 15), (301, 18)] {
        meter.packet(sequence, false, at_ms);
    }
    meter.timeout(301 + PATIENCE_MS);
    assert_eq!(meter.lost(), 2, "16 and 17");
    for (sequence, lost) in [(13, 2), (17, 1), (14, 1), (16, 0)] {
        let late = Arrival::Late(i64::from(sequence));
        assert_eq!((meter.packet(sequence, false, 600), meter.lost()), (late, lost), "{sequence}");
    }
    // The numbers of another source are none of those.
    meter.restart();
    for sequence in [12, 16] {
        meter.packet(sequence, false, 700);
    }
    meter.timeout(700 + PATIENCE_MS);
    assert_eq!(meter.lost(), 3);
    assert_eq!((meter.packet(14, false, 1_000), meter.lost()), (Arrival::Late(14), 2));
}

#[test]
fn what_no_path_does_to_packets_is_far_and_what_one_may_do_is_behind() {
    let mut meter = meter();
    assert!(!meter.is_far(7) && !meter.is_behind(7), "the first");
    for sequence in [65_530, 65_531, 65_534] {
        meter.packet(sequence, false, 0);
    }
    for (sequence, is_far, is_behind) in [
        (65_535, false, false),
        (98, false, false),
        (99, true, false),
        (40_000, true, true),
        (65_533, false, false),
        (65_534, false, true),
        (65_530, false, true),
        (65_529, false, true),
    ] {
        let is = (meter.is_far(sequence), meter.is_behind(sequence));
        assert_eq!(is, (is_far, is_behind), "{sequence}");
    }
}
