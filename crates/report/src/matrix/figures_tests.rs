//! What a run of a cell received, by whatever protocol.

use std::time::Duration;

use throng_observation::host::catalogue as metric;
use throng_observation::host::{HostId, HostSample, HostSeries, SeriesId};
use throng_observation::run::RunData;
use throng_observation::{ChatCounters, ChatRow, PlaybackCounters, PlaybackRow, RunTime};

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

#[test]
fn the_servers_processes_count_on_all_hosts_that_are_watched() {
    let mut run = example::healthy(4, 30);
    for (id, cores) in [(0_u8, 0.5), (1, 1.25)] {
        let series = SeriesId(id.into());
        run.host.series.push(HostSeries {
            id: series,
            host: HostId(id),
            metric: metric::PROCESS_CPU.name.into(),
            unit: metric::PROCESS_CPU.unit,
            ..HostSeries::default()
        });
        run.host.samples.extend((0..30).map(|second| HostSample {
            series,
            at: RunTime(second * 1_000_000),
            value: cores,
        }));
    }
    let summary = summarise(&run, &[], Duration::ZERO);
    let cores = figures(&run, &summary, Some((10, 20))).server_cpu_cores;
    assert!(cores.is_some_and(|cores| (cores - 1.75).abs() < 1e-9), "{cores:?}");
}
