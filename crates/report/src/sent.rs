//! Media sent by the crowd, and how fast simulcast layers changed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::run::RunData;
use throng_observation::{Distribution, MediaKind, SentCounters};

use crate::planned;
use crate::sums::summed;

/// Media sent by participants, warm-up left out. Absent in runs of viewers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// Bits per second as SRTP, repeats left out, from the first second in which a publisher was
    /// there to the end; a second without any counts as nothing sent.
    pub bps: f64,
    /// The best second of the same.
    pub bps_max: f64,
    /// The most streams of video that were sent within one second; each layer of a simulcast is
    /// one.
    pub video_streams: u32,
    /// The most streams of audio.
    pub audio_streams: u32,
    /// What was counted.
    #[serde(flatten)]
    pub sums: SentSums,
    /// Share of the publishers' time in which their TCP connections took no bytes, because the
    /// server did not read or the line was too slow; FFmpeg shows 1 less this as `speed=`. Absent
    /// if there was no such time.
    #[serde(default)]
    pub blocked_ratio: Option<f64>,
}

summed! {
    /// Sums over the sent tracks, warm-up left out.
    SentSums of SentCounters {
        packets = packets_sent;
        packets_repeated = retransmitted_packets;
        key_frames = key_frames_sent;
        /// Key frames requested (PLI and FIR).
        key_frames_requested: u64 = |sums| sums.pli_received.saturating_add(sums.fir_received);
    }
}

/// Layer changes that participants requested, warm-up included. Absent without requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerSwitches {
    /// Requests for another layer than the one shown.
    pub requested: u64,
    /// Requests after which the layer was shown.
    pub shown: u64,
    /// From the request to the first decodable frame of the layer, milliseconds; the median of
    /// those that were shown.
    pub ms_p50: Option<f64>,
    /// 95th percentile of the same.
    pub ms_p95: Option<f64>,
    /// The slowest.
    pub ms_max: Option<f64>,
}

pub(crate) fn sent(run: &RunData, warm_up_s: f64) -> Option<Sent> {
    let (mut sent, mut counters) = (Sent::default(), SentCounters::default());
    let mut bits_by_second: BTreeMap<i64, f64> = BTreeMap::new();
    let seconds = planned::counted_seconds(run, warm_up_s);
    let counted: Vec<_> = run.sent.iter().filter(|row| seconds.contains(&row.second)).collect();
    for row in &counted {
        *bits_by_second.entry(row.second).or_insert(0.0) += row.counters.wire_bytes as f64 * 8.0;
        counters += row.counters;
    }
    sent.sums = SentSums::of(&counters);
    let blocked_us = counters.blocked_us;
    let streams = |kind| {
        let mut by_second: BTreeMap<i64, u32> = BTreeMap::new();
        for row in counted.iter().filter(|row| row.kind == kind) {
            *by_second.entry(row.second).or_default() += row.tracks;
        }
        by_second.into_values().max().unwrap_or(0)
    };
    (sent.video_streams, sent.audio_streams) =
        (streams(MediaKind::Video), streams(MediaKind::Audio));
    // Each publisher counts it on one of its tracks.
    let tracks = |kind| {
        counted.iter().filter(|row| row.kind == kind).map(|row| u64::from(row.tracks)).sum::<u64>()
    };
    let publisher_us = tracks(MediaKind::Video).max(tracks(MediaKind::Audio)) as f64 * 1e6;
    sent.blocked_ratio =
        (blocked_us > 0 && publisher_us > 0.0).then(|| (blocked_us as f64 / publisher_us).min(1.0));
    let sum = bits_by_second.values().fold(0.0, |sum, bits| sum + bits);
    let first = bits_by_second.keys().next().copied().unwrap_or(seconds.end);
    sent.bps = sum / seconds.end.abs_diff(first).max(1) as f64;
    sent.bps_max = bits_by_second.values().copied().fold(0.0, f64::max);
    (sent.sums.packets > 0).then_some(sent)
}

pub(crate) fn layer_switches(run: &RunData) -> Option<LayerSwitches> {
    let mut took_us = Distribution::new();
    for row in &run.layer_switches {
        if let Some(shown_at) = row.shown_at {
            took_us.record(u64::try_from(shown_at.0 - row.requested_at.0).unwrap_or(0));
        }
    }
    let at_ms = |quantile| took_us.quantile_in(quantile, 1e3);
    (!run.layer_switches.is_empty()).then(|| LayerSwitches {
        requested: run.layer_switches.len() as u64,
        shown: took_us.count(),
        ms_p50: at_ms(0.5),
        ms_p95: at_ms(0.95),
        ms_max: at_ms(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::run::{CohortId, LayerSwitchRow, ParticipantId, SentRow};
    use throng_observation::{Layer, RunTime, TrackId};

    fn row(second: i64, cohort: u16, kind: MediaKind, tracks: u32) -> SentRow {
        let counters = SentCounters {
            packets_sent: 10,
            wire_bytes: 1_250,
            retransmitted_packets: 1,
            key_frames_sent: 2,
            pli_received: 1,
            fir_received: 1,
            ..SentCounters::default()
        };
        SentRow { second, cohort: CohortId(cohort), kind, tracks, counters }
    }

    #[test]
    fn what_was_sent_is_summed_after_the_warm_up() {
        let video = MediaKind::Video;
        let mut run = RunData { sent: vec![row(0, 0, video, 9)], ..RunData::default() };
        run.ended_at = Some(RunTime(3_000_000));
        run.sent[0].counters.blocked_us = 9_000_000;
        run.sent.extend([row(1, 0, video, 2), row(1, 1, video, 3), row(1, 1, MediaKind::Audio, 3)]);
        run.sent.push(row(2, 0, video, 2));
        let sent = sent(&run, 1.0).unwrap();
        assert_eq!((sent.bps, sent.bps_max), (20_000.0, 30_000.0));
        assert_eq!((sent.video_streams, sent.audio_streams), (5, 3));
        assert_eq!((sent.sums.packets, sent.sums.packets_repeated), (40, 4));
        assert_eq!((sent.sums.key_frames, sent.sums.key_frames_requested), (8, 8));
        assert_eq!(sent.blocked_ratio, None, "only in the warm-up");
        assert_eq!(super::sent(&RunData::default(), 0.0), None);
    }

    #[test]
    fn an_outage_counts_and_the_wait_before_the_first_and_after_the_end_does_not() {
        let video = MediaKind::Video;
        let sent = [2, 5, 9].map(|second| row(second, 0, video, 1)).to_vec();
        let mut run = RunData { sent, ended_at: Some(RunTime(9_800_000)), ..RunData::default() };
        run.info.planned_duration_us = 7_000_000;
        let sent = super::sent(&run, 0.0).unwrap();
        assert_eq!((sent.bps, sent.sums.packets), (20_000.0 / 5.0, 20), "of the seconds 2 to 6");
    }

    #[test]
    fn switches_that_never_showed_count_as_asked_for() {
        let switch = |shown_at| LayerSwitchRow {
            participant: ParticipantId(0),
            track: TrackId(1),
            layer: Layer::High,
            requested_at: RunTime(1_000_000),
            shown_at,
            width: 640,
            height: 360,
        };
        let shown = [1_200_000, 1_300_000].map(|at| switch(Some(RunTime(at))));
        let layer_switches = [shown.as_slice(), &[switch(None)]].concat();
        let of = super::layer_switches(&RunData { layer_switches, ..RunData::default() }).unwrap();
        assert_eq!((of.requested, of.shown), (3, 2));
        assert!(of.ms_p50.is_some_and(|ms| (199.0..202.0).contains(&ms)), "{of:?}");
        assert!(of.ms_max.is_some_and(|ms| (299.0..303.0).contains(&ms)), "{of:?}");
        assert_eq!(super::layer_switches(&RunData::default()), None);
    }
}
