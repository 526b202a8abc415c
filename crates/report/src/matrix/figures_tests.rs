//! What a run of a cell received, by whatever protocol.

use std::time::Duration;

use throng_observation::run::RunData;
use throng_observation::{ChatCounters, ChatRow, PlaybackCounters, PlaybackRow};

use super::figures;
use crate::{example, summarise};

/// Received in the seconds 10 to 20.
fn received_bps(run: &RunData) -> f64 {
    figures(run, &summarise(run, &[], Duration::ZERO), Some((10, 20))).received_bps
}

/// A player that receives so many bytes in a second.
fn player(second: i64, media_bytes: u64) -> PlaybackRow {
    let counters =
        PlaybackCounters { media_bytes, other_bytes: 100, ..PlaybackCounters::default() };
    PlaybackRow { second, players: 1, counters, ..PlaybackRow::default() }
}

#[test]
fn a_hold_over_http_has_its_own_rate_and_not_that_of_the_whole_run() {
    let mut run = example::healthy(4, 30);
    run.series.clear();
    run.playback =
        (0..30).map(|second| player(second, if second < 10 { 9_900 } else { 900 })).collect();
    assert_eq!(received_bps(&run), 8_000.0);
    run.playback.retain(|row| row.second < 10);
    assert_eq!(received_bps(&run), 0.0, "nothing came in the hold");
}

#[test]
fn a_hold_counts_to_its_end_where_all_of_its_crowd_failed() {
    let mut run = example::healthy(4, 30);
    run.series.clear();
    run.playback = (10..12).map(|second| player(second, 9_900)).collect();
    assert_eq!(received_bps(&run), 16_000.0, "a fifth of 80 kbit/s");
}

#[test]
fn a_mixed_crowd_receives_packets_bodies_and_frames() {
    let mut run = example::healthy(4, 30);
    let packets = received_bps(&run);
    assert!(packets > 0.0);
    run.playback = (0..30).map(|second| player(second, 900)).collect();
    run.chat = (0..30)
        .map(|second| {
            let counters = ChatCounters { bytes_received: 50, ..ChatCounters::default() };
            ChatRow { second, members: 1, counters, ..ChatRow::default() }
        })
        .collect();
    assert!((received_bps(&run) - packets - 8_400.0).abs() < 1e-6);
}
