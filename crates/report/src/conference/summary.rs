//! The conference in `summary.json`: `conference.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::MediaKind;
use throng_observation::run::RunData;
use throng_observation::units::bit_rate;

use super::{Cell, Flow, Matrix, Member};
use crate::figures::at_rank;

/// The number of worst streams in the list.
const WORST: usize = 20;

/// The streams between the participants of a conference. `conference.csv` lists all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conference {
    /// Participants whose transport was up.
    pub members: u64,
    /// Participants planned to stay for 5 s and more, failed ones included. `null` when the run's
    /// scenario is unreadable, and in a search, whose crowd is not planned.
    pub members_planned: Option<u64>,
    /// Video.
    pub video: ConferenceMedia,
    /// Audio.
    pub audio: ConferenceMedia,
    /// Rates into and out of the server.
    pub flow: FlowSummary,
    /// The worst streams between connected participants: those never received, then by loss,
    /// freezes and delay; at most 20.
    pub worst: Vec<ConferencePair>,
}

/// The streams of one kind. Percentiles are over pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConferenceMedia {
    /// Expected streams: from every sender to every participant that subscribes to all and was
    /// connected together with it for 5 s. `null` when the run's scenario is unreadable.
    pub expected: Option<u64>,
    /// Of those, streams that played.
    pub playing: u64,
    /// Planned streams: from every planned sender to every planned participant that subscribes to
    /// all, where both were planned to be connected for 5 s, whether they could join or not. `null`
    /// when the run's scenario is unreadable, and in a search, whose crowd is not planned.
    pub planned: Option<u64>,
    /// Of those, streams that played.
    pub planned_playing: Option<u64>,
    /// The share of planned streams that played: failed participants stay in the denominator. In a
    /// search the share of expected streams.
    pub playing_ratio: Option<f64>,
    /// Streams that arrived at all, those of last speakers included.
    pub received: u64,
    /// From both participants being connected to the first frame: median, milliseconds. Only
    /// streams to participants that subscribe to all.
    pub first_frame_ms_p50: Option<f64>,
    /// 95th percentile.
    pub first_frame_ms_p95: Option<f64>,
    /// Slowest.
    pub first_frame_ms_max: Option<f64>,
    /// 95th percentile of a pair's loss.
    pub loss_ratio_p95: Option<f64>,
    /// The worst pair's loss.
    pub loss_ratio_max: Option<f64>,
    /// 95th percentile of a pair's delay p95, milliseconds: from capture to arrival where frames
    /// say when they were captured, else above the stream's own floor.
    pub delay_ms_p95: Option<f64>,
    /// The worst pair's.
    pub delay_ms_max: Option<f64>,
    /// Pairs that froze.
    pub frozen: u64,
}

/// Rates into and out of the server, on the wire; the largest are means of 5 s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSummary {
    /// The highest rate into the server, bits per second (N × b).
    pub in_bps_max: Option<f64>,
    /// The highest rate out of the server; `null` where no participant could receive another one's
    /// stream.
    pub out_bps_max: Option<f64>,
    /// The expected rate out of the server (N × (N − 1) × b): the mean over the stretch without
    /// joins, leaves, failures and mutes in which it was highest. Each stream's payload counts once
    /// for each receiver, times the bytes on the wire that the server sends for a byte of payload.
    /// The first 3 s of such a stretch are left out, while the latest participants subscribe, and
    /// so are its last 2; `null` when less than 5 s remain, when a participant sends simulcast (the
    /// server chooses the forwarded layer) and when the run's scenario is unreadable.
    pub expected_bps_max: Option<f64>,
    /// The rate out of the server in that stretch ÷ the expected rate; 1 when nothing was lost or
    /// held back.
    pub delivered_ratio: Option<f64>,
    /// The line rate of the watched server's busiest interface, bits per second.
    pub line_rate_bps: Option<f64>,
    /// The second of the run from which on the rate in was above that of the best stretch and the
    /// rate out below it; `null` without one.
    pub egress_drop_at_s: Option<f64>,
    /// The same in words.
    pub note: Option<String>,
}

/// A stream from one to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConferencePair {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// `video` or `audio`.
    pub kind: String,
    /// Whether it played.
    pub plays: bool,
    /// From both participants being connected to the first frame, milliseconds.
    pub first_frame_ms: Option<f64>,
    /// Packets lost for good ÷ packets expected.
    pub loss_ratio: Option<f64>,
    /// 95th percentile of delay, milliseconds.
    pub delay_ms_p95: Option<f64>,
    /// Freezes begun.
    pub freeze_count: u64,
    /// Time frozen ÷ time played.
    pub freeze_ratio: Option<f64>,
}

impl Conference {
    /// How many of the planned participants connected, in words; `None` when all did or the plan is
    /// unknown.
    pub(crate) fn missing(&self) -> Option<String> {
        let planned = self.members_planned.filter(|planned| *planned > self.members)?;
        Some(format!("{} of {planned} connected", self.members))
    }
}

impl ConferenceMedia {
    /// Streams that played, and of how many: of those planned, or of those expected where no plan
    /// is known.
    pub(crate) fn played(&self) -> Option<(u64, u64)> {
        let of_plan = self.planned_playing.zip(self.planned);
        of_plan.or_else(|| Some((self.playing, self.expected?))).filter(|(_, of)| *of > 0)
    }
}

/// The conference of a run; `None` for other runs.
pub(crate) fn summarise(run: &RunData, line_rate_bps: Option<f64>) -> Option<Conference> {
    let matrix = Matrix::of(run)?;
    let members = |is: &dyn Fn(&Member<'_>) -> bool| {
        matrix.members.iter().filter(|member| is(member)).count() as u64
    };
    Some(Conference {
        members: members(&|member| member.connected()),
        members_planned: matrix
            .knows_plan
            .then(|| members(&|member| member.connected() || member.was_planned())),
        video: media(&matrix, MediaKind::Video),
        audio: media(&matrix, MediaKind::Audio),
        flow: flow(&Flow::of(run), line_rate_bps),
        worst: worst(&matrix),
    })
}

fn media<'a>(matrix: &Matrix<'a>, kind: MediaKind) -> ConferenceMedia {
    let cells: Vec<&Cell<'a>> = matrix.of_kind(kind).map(|(.., cell)| cell).collect();
    let counted = |is: fn(&Cell<'a>) -> bool| {
        let all = || cells.iter().filter(|cell| is(cell));
        (all().count() as u64, all().filter(|cell| cell.plays()).count() as u64)
    };
    let (expected, playing) = counted(|cell| cell.is_expected);
    let (planned, planned_playing) = counted(|cell| cell.is_planned);
    let (of, plays) =
        if matrix.knows_plan { (planned, planned_playing) } else { (expected, playing) };
    let sorted = |of: fn(&Cell<'a>) -> Option<f64>| {
        let mut values: Vec<f64> = cells.iter().filter_map(|cell| of(cell)).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let first_frame = sorted(Cell::first_frame_ms);
    let (loss, delay) = (sorted(Cell::loss_ratio), sorted(Cell::delay_ms_p95));
    ConferenceMedia {
        expected: matrix.knows_roles.then_some(expected),
        playing,
        planned: matrix.knows_plan.then_some(planned),
        planned_playing: matrix.knows_plan.then_some(planned_playing),
        playing_ratio: (of > 0).then(|| plays as f64 / of as f64),
        received: cells.iter().filter(|cell| cell.plays()).count() as u64,
        first_frame_ms_p50: at_rank(&first_frame, 0.5),
        first_frame_ms_p95: at_rank(&first_frame, 0.95),
        first_frame_ms_max: first_frame.last().copied(),
        loss_ratio_p95: at_rank(&loss, 0.95),
        loss_ratio_max: loss.last().copied(),
        delay_ms_p95: at_rank(&delay, 0.95),
        delay_ms_max: delay.last().copied(),
        frozen: cells.iter().filter(|cell| cell.freeze_count() > 0).count() as u64,
    }
}

fn flow(flow: &Flow, line_rate_bps: Option<f64>) -> FlowSummary {
    let (in_bps_max, out_bps_max) = flow.largest();
    let delivered = flow.delivered();
    let fall = flow.fall();
    let note = fall.map(|fall| {
        format!(
            "at {} s the server received {} and sent {}; at {} s it received {} and sent {}: in \
             rises, out falls, the server is full",
            fall.peak.second,
            bit_rate(fall.peak.in_bps),
            bit_rate(fall.peak.out_bps),
            fall.after.second,
            bit_rate(fall.after.in_bps),
            bit_rate(fall.after.out_bps),
        )
    });
    FlowSummary {
        in_bps_max,
        out_bps_max,
        expected_bps_max: delivered.map(|delivered| delivered.expected_bps),
        delivered_ratio: delivered.map(|delivered| delivered.ratio),
        line_rate_bps,
        egress_drop_at_s: fall.map(|fall| fall.after.second as f64),
        note,
    }
}

fn worst(matrix: &Matrix<'_>) -> Vec<ConferencePair> {
    let mut conference: Vec<ConferencePair> = matrix
        .cells
        .iter()
        // A participant that failed to join is listed among the failures, once, and not once a
        // stream.
        .filter(|(_, cell)| cell.is_expected || cell.track.is_some())
        .map(|((kind, from, to), cell)| ConferencePair {
            from: from.0,
            to: to.0,
            kind: kind.key().into(),
            plays: cell.plays(),
            first_frame_ms: cell.first_frame_ms(),
            loss_ratio: cell.loss_ratio(),
            delay_ms_p95: cell.delay_ms_p95(),
            freeze_count: cell.freeze_count(),
            freeze_ratio: cell.freeze_ratio(),
        })
        .collect();
    let badness = |pair: &ConferencePair| {
        let never = if pair.plays { 0.0 } else { 1e6 };
        let lost =
            pair.loss_ratio.unwrap_or(0.0) * 100.0 + pair.freeze_ratio.unwrap_or(0.0) * 100.0;
        never + lost + pair.delay_ms_p95.unwrap_or(0.0) / 1e3
    };
    conference.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
    conference.truncate(WORST);
    conference
}
