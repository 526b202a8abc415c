//! The tables of a run: which columns each row has.

use std::collections::BTreeMap;

use throng_observation::run::{
    CrowdRow, EventRow, GeneratorRow, LayerSwitchRow, ParticipantRow, SentRow, SeriesRow,
    SourceFps, TrackRow,
};
use throng_observation::{
    CaptureBasis, Failure, FailureReason, IceState, OneWayDelay, Outcome, Phase, RunTime,
};

use crate::cells::{Binder, Cells, current};
use crate::table::{Column, Group, Nested, Part, Stored, Sums, array_columns, columns};

columns! { CrowdRow {
    second, cohort, intended, started, connected, playing, failed, left = "left_orderly",
    ice as ByIceState,
} }

impl Stored for CrowdRow {
    const TABLE: &'static str = "crowd";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "second, cohort";
    const MAY_BE_ABSENT: bool = false;
}

array_columns! {
    ByIceState: [u32; IceState::ALL.len()],
    IceState::ALL.map(|state| Column::new::<u32>(state.column()))
}

// Earlier versions have the mean, which had no weight of its own.
columns! { SourceFps {
    tracks = "source_tracks" or "CASE WHEN source_fps_milli IS NULL THEN 0 ELSE tracks END",
    sum_milli = "source_fps_milli_sum" or "COALESCE(source_fps_milli, 0) * tracks",
} }

columns! { SeriesRow {
    second, cohort, kind, tracks, tracks_below_source_fps, source_fps as Nested, relative_delay_us,
    absolute_delay as AbsoluteDelay, jitter_us, fps_milli, loss_ppm,
    oven_rtc_tester_delay_us or "oven_delay_us", counters as Sums, picture_lines or "NULL",
} }

impl Stored for SeriesRow {
    const TABLE: &'static str = "series";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "second, cohort, kind DESC";
    const MAY_BE_ABSENT: bool = false;
}

columns! { SentRow { second, cohort, kind, tracks, counters as Sums } }

impl Stored for SentRow {
    const TABLE: &'static str = "sent";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "second, cohort, kind DESC";
}

columns! { ParticipantRow {
    participant, cohort, intended_at = "intended_us", ended_at = "ended_us",
    outcome as OutcomeColumns, local_address, reached as ByPhase,
} }

impl Stored for ParticipantRow {
    const TABLE: &'static str = "participant";
    const IS_OF_CROWD: bool = true;
    const KEY: &'static str = "participant";
    const MAY_BE_ABSENT: bool = false;
}

columns! { TrackRow {
    participant, track, kind, codec, from = "sender", first_frame_at = "first_frame_us", fps,
    jitter_us, oven_rtc_tester_delay_us or "oven_delay_us", relative_delay_us,
    absolute_delay as AbsoluteDelay, counters as Sums,
} }

impl Stored for TrackRow {
    const TABLE: &'static str = "track";
    const IS_OF_CROWD: bool = true;
    const KEY: &'static str = "participant, track";
    const MAY_BE_ABSENT: bool = false;

    fn withdraw_sender_clock(&mut self) {
        self.absolute_delay.withdraw(CaptureBasis::SenderReport);
    }
}

columns! { LayerSwitchRow {
    participant, track, layer, requested_at = "requested_us", shown_at = "shown_us", width, height,
} }

impl Stored for LayerSwitchRow {
    const TABLE: &'static str = "layer_switch";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "requested_us, participant, track";
}

// The column `worker` of earlier versions is a thread; what is a worker today has another name, so
// that neither is read as the other.
columns! { GeneratorRow {
    second, thread or "worker", cpu_us, run_queue_wait_us, lag_p99_us, lag_max_us, socket_drops,
    send_drops, sent_bytes, rss_bytes, open_fds, steal_ratio, observations_dropped,
    worker = "fleet_worker" or "0", ring_datagrams or "0", ring_bytes or "0", ring_drops or "0",
} }

impl Stored for GeneratorRow {
    const TABLE: &'static str = "generator";
    const IS_OF_CROWD: bool = true;
    // By second, machine and thread. Columns are numbered here because names differ between
    // versions.
    const ORDER: &'static str = "1, 14, 2";
    const MAY_BE_ABSENT: bool = false;
}

columns! { EventRow { at = "at_us", participant, kind, count, detail } }

impl Stored for EventRow {
    const TABLE: &'static str = "event";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "at_us, rowid";
    const MAY_BE_ABSENT: bool = false;
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

/// The phases that every version has.
const FIRST_PHASES: [Phase; 9] = [
    Phase::Started,
    Phase::Resolved,
    Phase::Connected,
    Phase::Secured,
    Phase::Negotiated,
    Phase::IceConnected,
    Phase::DtlsConnected,
    Phase::FirstPacket,
    Phase::FirstFrame,
];

/// When each phase was reached: a column for each.
struct ByPhase;

impl Group<BTreeMap<Phase, RunTime>> for ByPhase {
    fn columns(out: &mut Vec<Column>) {
        out.extend(Phase::ALL.map(|phase| {
            let column = Column::new::<Option<RunTime>>(phase.column());
            if FIRST_PHASES.contains(&phase) { column } else { column.or("NULL") }
        }));
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
                let samples = Column::new::<throng_observation::Distribution>;
                let basis = Column::new::<Option<String>>("capture_basis");
                out.push(samples($delay));
                out.push(basis.part(Part::Samples("NULL")));
                out.push(Column::new::<u64>($negative).part(Part::Samples("0")));
                out.push(samples($ahead).or("NULL"));
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
