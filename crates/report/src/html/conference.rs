//! The part of the page about a conference: its streams, and the rates into and out of the server.

use throng_analysis::experiment::mean;
use throng_observation::MediaKind;
use throng_observation::run::{ParticipantId, RunData};
use throng_observation::units::{bit_rate, duration_ms, percent};

use super::chart::{Chart, Line, Scale};
use super::heatmap::Heatmap;
use super::markup::{NEVER, escape, known, table};
use crate::conference::{
    Cell, Conference, ConferenceMedia, ConferencePair, Flow, Matrix, planned_in_bps,
};
use crate::summary::Summary;

/// Most points of the chart: more than a screen has pixels for only make the page larger.
const POINTS_MAX: usize = 600;
/// Rows of the table of the worst streams.
const WORST: usize = 10;

/// A heat map's figure: its title, unit, the bounds of its levels and how they read.
struct Measure {
    title: &'static str,
    unit: &'static str,
    bounds: [f64; 5],
    levels: [&'static str; 7],
    of: fn(&Cell<'_>) -> Option<f64>,
}

const MEASURES: [Measure; 4] = [
    Measure {
        title: "time to first frame",
        unit: "since both were connected",
        bounds: [200.0, 500.0, 1_000.0, 2_000.0, 5_000.0],
        levels: ["≤ 200 ms", "≤ 500 ms", "≤ 1 s", "≤ 2 s", "≤ 5 s", "> 5 s", "never came"],
        of: |cell| cell.first_frame_ms(),
    },
    Measure {
        title: "loss",
        unit: "of packets expected",
        bounds: [0.0, 0.001, 0.01, 0.05, 0.2],
        levels: ["none", "≤ 0.1 %", "≤ 1 %", "≤ 5 %", "≤ 20 %", "> 20 %", "never came"],
        of: |cell| cell.loss_ratio(),
    },
    Measure {
        title: "delay",
        unit: "p95",
        bounds: [20.0, 50.0, 100.0, 200.0, 400.0],
        levels: [
            "≤ 20 ms",
            "≤ 50 ms",
            "≤ 100 ms",
            "≤ 200 ms",
            "≤ 400 ms",
            "> 400 ms",
            "never came",
        ],
        of: |cell| cell.delay_ms_p95(),
    },
    Measure {
        title: "freezes",
        unit: "share of time frozen",
        bounds: [0.0, 0.005, 0.02, 0.05, 0.2],
        levels: ["none", "≤ 0.5 %", "≤ 2 %", "≤ 5 %", "≤ 20 %", "> 20 %", "never came"],
        of: |cell| cell.freeze_ratio(),
    },
];

/// The section; nothing for a run that was no conference.
pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let (Some(conference), Some(matrix)) = (&summary.conference, Matrix::of(run)) else {
        return String::new();
    };
    let flow = Flow::of(run);
    if !flow.has_receivers && matrix.cells.is_empty() {
        let charts = flow_chart(run, &flow, conference);
        return format!("<h2>Into the server</h2><div class=\"charts\">{charts}</div>");
    }
    let heats =
        [(MediaKind::Video, "Video", &MEASURES[..]), (MediaKind::Audio, "Audio", &MEASURES[..2])]
            .into_iter()
            .flat_map(|(kind, name, measures)| {
                measures.iter().map(move |measure| (kind, name, measure))
            })
            .map(|(kind, name, measure)| heat(&matrix, kind, name, measure))
            .collect::<String>();
    let media = [
        media("video streams", conference, &conference.video),
        media("audio streams", conference, &conference.audio),
        conference
            .flow
            .note
            .as_ref()
            .map(|note| format!("<p><b>In rises, out falls</b>: {}.</p>", escape(note))),
    ];
    format!(
        "<h2>Streams between participants</h2>{}<div class=\"charts\">{}{heats}</div><h3>The \
         worst streams</h3>{}",
        media.into_iter().flatten().collect::<String>(),
        flow_chart(run, &flow, conference),
        worst(&conference.worst),
    )
}

fn media(what: &str, conference: &Conference, media: &ConferenceMedia) -> Option<String> {
    let planned = if media.planned.is_some() { "planned " } else { "" };
    let streams = match media.played() {
        Some((playing, of)) => format!("<b>{playing} of {of} {planned}{what}</b> played"),
        None if media.received > 0 => format!("<b>{} {what}</b> were received", media.received),
        None => return None,
    };
    let missing = conference.missing().map(|missing| format!(" ({missing})")).unwrap_or_default();
    let mut parts = vec![streams + &missing];
    if let Some((p50, p95)) = media.first_frame_ms_p50.zip(media.first_frame_ms_p95) {
        let (p50, p95) = (duration_ms(p50), duration_ms(p95));
        parts.push(format!("first frame {p50} after both were connected (p95 {p95})"));
    }
    if let Some((p95, max)) = media.loss_ratio_p95.zip(media.loss_ratio_max) {
        parts.push(format!("loss of a stream p95 {}, at most {}", percent(p95), percent(max)));
    }
    if media.frozen > 0 {
        parts.push(format!("{} froze", media.frozen));
    }
    Some(format!("<p>{}.</p>", parts.join("; ")))
}

fn heat(matrix: &Matrix<'_>, kind: MediaKind, name: &str, measure: &Measure) -> String {
    let people = matrix.people(kind);
    if people.len() < 2 || !matrix.of_kind(kind).any(|(.., cell)| (measure.of)(cell).is_some()) {
        return String::new();
    }
    let numbers: Vec<u32> = people.iter().map(|who| who.0).collect();
    let at = |place: usize| people.get(place).copied().unwrap_or(ParticipantId(u32::MAX));
    let level = |from: usize, to: usize| {
        let cell = matrix.cells.get(&(kind, at(from), at(to)))?;
        match (measure.of)(cell) {
            Some(value) => Some(measure.bounds.iter().filter(|bound| value > **bound).count()),
            None if (cell.is_expected || cell.is_planned) && !cell.plays() => {
                Some(measure.levels.len() - 1)
            }
            None => None,
        }
    };
    let title = format!("{name}: {}", measure.title);
    Heatmap {
        title: &title,
        unit: measure.unit,
        levels: &measure.levels,
        people: &numbers,
        cells: &level,
    }
    .render()
}

/// The rates in, out and expected out, over time; only the rate in where no participant could
/// receive a stream.
fn flow_chart(run: &RunData, flow: &Flow, conference: &Conference) -> String {
    let width = flow.seconds.len().div_ceil(POINTS_MAX).max(1);
    let points: Vec<_> = flow.seconds.chunks(width).collect();
    let starts: Vec<i64> =
        points.iter().filter_map(|seconds| seconds.first()).map(|s| s.second).collect();
    let each = |rate: &dyn Fn(&crate::conference::FlowSecond) -> Option<f64>| -> Vec<Option<f64>> {
        let mbit = |seconds: &&[crate::conference::FlowSecond]| {
            mean(seconds.iter().filter_map(rate)).map(|bps| bps / 1e6)
        };
        points.iter().map(mbit).collect()
    };
    let mut lines = vec![Line::solid("into the server", 2, each(&|s| Some(s.in_bps)))];
    if flow.has_receivers {
        lines.insert(0, Line::solid("out of the server", 1, each(&|s| Some(s.out_bps))));
        lines.insert(0, Line::dashed("expected: N × (N − 1) × b", 6, each(&|s| s.expected_bps)));
    }
    if let Some(planned) = planned_in_bps(run, &starts) {
        let planned = planned.into_iter().map(|bps| Some(bps / 1e6));
        lines.push(Line::dashed("plan: N × b in", 3, planned.collect()));
    }
    let (title, note) = if flow.has_receivers {
        let due = "Expected: every stream that came in, times its receivers. A participant that \
                   has just joined is still subscribing.";
        ("Into the server and out of it", due)
    } else {
        ("Into the server", "No participant was there to receive it.")
    };
    let mut note = note.to_owned();
    if let Some(rate) = conference.flow.line_rate_bps {
        note += &format!(" The server's line carries {}.", bit_rate(rate));
        let largest = conference
            .flow
            .expected_bps_max
            .unwrap_or(0.0)
            .max(conference.flow.out_bps_max.unwrap_or(0.0));
        // A line rate far above the other lines would flatten them.
        if rate < 2.0 * largest {
            lines.push(Line::dashed("line rate", 5, each(&|_| Some(rate))));
        }
    }
    let unit = "Mbit/s on the wire";
    Chart { title, unit, note: &note, scale: Scale::Plain, seconds: &starts, lines }.render()
}

fn worst(conference: &[ConferencePair]) -> String {
    let has_trouble = |pair: &&ConferencePair| {
        !pair.plays
            || pair.loss_ratio.unwrap_or(0.0) > 0.0
            || pair.freeze_count > 0
            || pair.delay_ms_p95.unwrap_or(0.0) > 200.0
    };
    let rows: Vec<Vec<String>> = conference
        .iter()
        .filter(has_trouble)
        .take(WORST)
        .map(|pair| {
            vec![
                pair.from.to_string(),
                pair.to.to_string(),
                pair.kind.clone(),
                if pair.plays { known(pair.first_frame_ms, duration_ms) } else { NEVER.into() },
                known(pair.loss_ratio, percent),
                known(pair.delay_ms_p95, duration_ms),
                pair.freeze_count.to_string(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "<p class=\"none\">Every stream played without loss, freezes or long delay.</p>"
            .into();
    }
    table(&["from", "to", "kind", "first frame", "loss", "delay p95", "freezes"], &rows)
}
