//! The tables of a run: which columns each row has.

use std::collections::BTreeMap;

use throng_observation::run::{
    CrowdRow, EventRow, GeneratorRow, LayerSwitchRow, ParticipantRow, SentRow, SeriesRow,
    SourceFps, TrackRow,
};
use throng_observation::{
    CaptureBasis, Failure, FailureReason, OneWayDelay, Outcome, Phase, RunTime, SentCounters,
    TrackCounters,
};

use crate::cells::{Binder, Cells, current};
use crate::table::{Column, Group, Nested, Stored, array_columns, columns};

columns! { TrackCounters {
    packets_received, payload_bytes, header_bytes, wire_bytes, packets_lost, packets_late, packets_duplicate,
    packets_reordered, packets_recovered, nack_sent, pli_sent, fir_sent, frames_complete, frames_decodable, key_frames,
    frames_dropped, freeze_count, freeze_us, active_us, packets_discarded, missing_us, rtx_packets_received,
} }

/// Default values of the counters and names that folders of earlier versions lack.
const OLDER_TRACKS: &[(&str, &str)] = &[
    ("missing_us", "0"),
    ("rtx_packets_received", "0"),
    ("oven_rtc_tester_delay_us", "oven_delay_us"),
    ("absolute_delay_ahead_us", "NULL"),
    ("picture_lines", "NULL"),
    // A mean that had no weight of its own.
    ("source_tracks", "CASE WHEN source_fps_milli IS NULL THEN 0 ELSE tracks END"),
    ("source_fps_milli_sum", "COALESCE(source_fps_milli, 0) * tracks"),
];

columns! { CrowdRow {
    second, cohort, intended, started, connected, playing, failed, left = "left_orderly", ice as ByIceState,
} }

impl Stored for CrowdRow {
    const TABLE: &'static str = "crowd";
    const ORDER: &'static str = "second, cohort";
}

array_columns! {
    ByIceState: [u32; 6],
    ["ice_new", "ice_checking", "ice_connected", "ice_disconnected", "ice_failed", "ice_closed"]
}

columns! { SourceFps { tracks = "source_tracks", sum_milli = "source_fps_milli_sum" } }

columns! { SeriesRow {
    second, cohort, kind, tracks, tracks_below_source_fps, source_fps as Nested, relative_delay_us,
    absolute_delay as AbsoluteDelay, jitter_us, fps_milli, loss_ppm, oven_rtc_tester_delay_us, counters as Nested,
    picture_lines,
} }

impl Stored for SeriesRow {
    const TABLE: &'static str = "series";
    const ORDER: &'static str = "second, cohort, kind DESC";
    const OLDER: Option<&'static [(&'static str, &'static str)]> = Some(OLDER_TRACKS);
}

columns! { SentCounters {
    packets_sent, payload_bytes, wire_bytes, retransmitted_packets, retransmitted_bytes, frames_sent, key_frames_sent,
    nack_received, pli_received, fir_received, blocked_us,
} }

columns! { SentRow { second, cohort, kind, tracks, counters as Nested } }

impl Stored for SentRow {
    const TABLE: &'static str = "sent";
    const ORDER: &'static str = "second, cohort, kind DESC";
    const OLDER: Option<&'static [(&'static str, &'static str)]> = Some(&[("blocked_us", "0")]);
}

columns! { ParticipantRow {
    participant, cohort, intended_at = "intended_us", ended_at = "ended_us", outcome as OutcomeColumns, local_address,
    reached as ByPhase,
} }

impl Stored for ParticipantRow {
    const TABLE: &'static str = "participant";
    const KEY: &'static str = "participant";
    const ORDER: &'static str = "participant";
    const OLDER: Option<&'static [(&'static str, &'static str)]> = Some(&[
        ("page_loaded_us", "NULL"),
        ("described_us", "NULL"),
        ("playing_us", "NULL"),
        ("playback_started_us", "NULL"),
        ("joined_us", "NULL"),
    ]);
}

columns! { TrackRow {
    participant, track, kind, codec, from = "sender", first_frame_at = "first_frame_us", fps, jitter_us,
    oven_rtc_tester_delay_us, relative_delay_us, absolute_delay as AbsoluteDelay, counters as Nested,
} }

impl Stored for TrackRow {
    const TABLE: &'static str = "track";
    const KEY: &'static str = "participant, track";
    const ORDER: &'static str = "participant, track";
    const OLDER: Option<&'static [(&'static str, &'static str)]> = Some(OLDER_TRACKS);
}

columns! { LayerSwitchRow {
    participant, track, layer, requested_at = "requested_us", shown_at = "shown_us", width, height,
} }

impl Stored for LayerSwitchRow {
    const TABLE: &'static str = "layer_switch";
    const ORDER: &'static str = "requested_us, participant, track";
    const OLDER: Option<&'static [(&'static str, &'static str)]> = Some(&[]);
}

columns! { GeneratorRow {
    second, thread, cpu_us, run_queue_wait_us, lag_p99_us, lag_max_us, socket_drops, send_drops, sent_bytes, rss_bytes,
    open_fds, steal_ratio, observations_dropped, worker = "fleet_worker", ring_datagrams, ring_bytes,
    ring_drops,
} }

impl Stored for GeneratorRow {
    const TABLE: &'static str = "generator";
    // By second, machine and thread. Columns are numbered here because names differ between
    // versions.
    const ORDER: &'static str = "1, 14, 2";
    // The column `worker` of earlier versions is a thread; what is a worker today has another name,
    // so that neither is read as the other.
    const OLDER: Option<&'static [(&'static str, &'static str)]> = Some(&[
        ("thread", "worker"),
        ("fleet_worker", "0"),
        ("ring_datagrams", "0"),
        ("ring_bytes", "0"),
        ("ring_drops", "0"),
    ]);
}

columns! { EventRow { at = "at_us", participant, kind, count, detail } }

impl Stored for EventRow {
    const TABLE: &'static str = "event";
    const ORDER: &'static str = "at_us, rowid";
}

/// How a participant ended: `outcome`, `failure_reason`, `failure_detail`; all NULL until it ends.
struct OutcomeColumns;

impl Group<Option<Outcome>> for OutcomeColumns {
    fn columns(out: &mut Vec<Column>) {
        out.extend(
            ["outcome", "failure_reason", "failure_detail"].map(Column::new::<Option<String>>),
        );
    }

    fn bind(outcome: &Option<Outcome>, to: &mut Binder<'_, '_>) -> rusqlite::Result<()> {
        let (outcome, failure) = match outcome {
            None => (None, None),
            Some(Outcome::Completed) => (Some("completed".to_owned()), None),
            Some(Outcome::Failed(failure)) => (Some("failed".to_owned()), Some(failure)),
        };
        to.put(&outcome)?;
        to.put(&failure.map(|failure| failure.reason.key()))?;
        to.put(&failure.map(|failure| failure.detail.clone()))
    }

    fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<Option<Outcome>> {
        let (outcome, reason, detail): (Option<String>, Option<String>, Option<String>) =
            (from.take()?, from.take()?, from.take()?);
        let failed = || {
            // A reason that this version does not know is still a failure.
            let reason =
                reason.as_deref().and_then(|reason| FailureReason::from_key(current(reason)));
            Outcome::Failed(Failure::new(
                reason.unwrap_or(FailureReason::Protocol),
                detail.unwrap_or_default(),
            ))
        };
        Ok(outcome
            .map(|outcome| if outcome == "completed" { Outcome::Completed } else { failed() }))
    }
}

/// When each phase was reached: a column for each [`Phase`], its key with `_us`.
struct ByPhase;

impl Group<BTreeMap<Phase, RunTime>> for ByPhase {
    fn columns(out: &mut Vec<Column>) {
        let names = [
            "started_us",
            "resolved_us",
            "connected_us",
            "secured_us",
            "page_loaded_us",
            "described_us",
            "negotiated_us",
            "ice_connected_us",
            "dtls_connected_us",
            "playing_us",
            "first_packet_us",
            "first_frame_us",
            "playback_started_us",
            "joined_us",
        ];
        out.extend(names.map(Column::new::<Option<RunTime>>));
    }

    fn bind(reached: &BTreeMap<Phase, RunTime>, to: &mut Binder<'_, '_>) -> rusqlite::Result<()> {
        Phase::ALL.iter().try_for_each(|phase| to.put(&reached.get(phase).copied()))
    }

    fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<BTreeMap<Phase, RunTime>> {
        let times =
            Phase::ALL.map(|phase| from.take().map(|at: Option<RunTime>| Some((phase, at?))));
        times.into_iter().filter_map(Result::transpose).collect()
    }
}

/// A one-way delay: the histogram, the basis of its capture times, how many delays were negative,
/// and by how much.
macro_rules! one_way_columns {
    ($($group:ident: $delay:literal, $negative:literal, $ahead:literal;)*) => {$(
        pub(crate) struct $group;

        impl Group<OneWayDelay> for $group {
            fn columns(out: &mut Vec<Column>) {
                out.push(Column::new::<throng_observation::Distribution>($delay));
                out.push(Column::new::<Option<String>>("capture_basis"));
                out.push(Column::new::<u64>($negative));
                out.push(Column::new::<throng_observation::Distribution>($ahead));
            }

            fn bind(delay: &OneWayDelay, to: &mut Binder<'_, '_>) -> rusqlite::Result<()> {
                to.put(delay.distribution())?;
                to.put(&delay.basis().map(|basis| basis.key().to_owned()))?;
                to.put(&delay.negative())?;
                to.put(delay.ahead())
            }

            fn read(from: &mut Cells<'_, '_>) -> rusqlite::Result<OneWayDelay> {
                let (delay_us, basis) = (from.take()?, from.take::<Option<String>>()?);
                let basis = basis.as_deref().and_then(CaptureBasis::from_key);
                Ok(OneWayDelay::from_parts(basis, delay_us, from.take()?, from.take()?))
            }
        }
    )*};
}

one_way_columns! {
    AbsoluteDelay: "absolute_delay_us", "absolute_delay_negative", "absolute_delay_ahead_us";
    GlassDelay: "glass_delay_us", "glass_delay_negative", "glass_delay_ahead_us";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::columns_of;

    #[test]
    fn each_phase_has_the_column_of_its_key() {
        let columns = columns_of::<ParticipantRow>();
        let names: Vec<_> =
            columns.iter().rev().take(Phase::ALL.len()).rev().map(|column| column.name).collect();
        assert_eq!(names, Phase::ALL.map(|phase| format!("{}_us", phase.key())));
    }
}
