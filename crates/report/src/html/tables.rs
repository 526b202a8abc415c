//! Joins by phase, failures, the worst participants, and what was run where.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use throng_observation::run::{RunData, TrackRow};
use throng_observation::units::{bit_rate, bytes, count, duration_ms, percent};
use throng_observation::{MediaKind, TrackCounters};
use throng_scenario::masked_toml;

use super::markup::{AFTER_THE_END, NEVER, escape, known, table, titled_table};
use super::page::{Bar, bars};
use crate::role_counts::RoleCounts;
use crate::summary::{Media, PhaseTime, Summary};
use crate::workers::WorkerHealth;

/// How many of the worst participants are listed.
pub(crate) const WORST_MAX: usize = 10;

pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let worst = if summary.has_packets() { worst(run) } else { String::new() };
    [
        joins(summary),
        failures(summary),
        events(run, summary),
        media(summary),
        worst,
        about(run, summary),
    ]
    .concat()
}

fn joins(summary: &Summary) -> String {
    let mut out = String::from("<h2>Joining</h2>");
    let page = summary.playback.as_ref().and_then(|playback| playback.page.as_ref());
    let page = page.map(|page| ("page around the player", &page.loaded));
    let startup =
        summary.playback.as_ref().map(|playback| ("playback (startup)", &playback.startup));
    let joined = summary.chat.as_ref().map(|chat| ("in the room", &chat.joined));
    // A chat has no frames.
    let first_frame = (!summary.is_chat_only()).then_some(("first frame", &summary.first_frame));
    let rows: Vec<_> = std::iter::once(("transport up (connect)", &summary.connect))
        .chain(first_frame)
        .chain(joined)
        .chain(page)
        .chain(startup)
        .map(|(name, time)| {
            // Without failures a figure is only missing because the run was too short to know it.
            let unknown = if time.failed > 0 { NEVER } else { AFTER_THE_END };
            let at = |ms: Option<f64>| ms.map_or_else(|| unknown.into(), duration_ms);
            vec![
                name.to_owned(),
                time.reached.to_string(),
                time.failed.to_string(),
                at(time.ms_p50),
                at(time.ms_p95),
                at(time.ms_p99),
                ms(time.ms_max),
            ]
        })
        .collect();
    out.push_str(&table(
        &["from intended join to", "reached", "failed", "p50", "p95", "p99", "slowest"],
        &rows,
    ));
    if !summary.phases.is_empty() {
        out.push_str(
            "<h3>Where the time goes <small>median of each phase, from the one before \
             it</small></h3>",
        );
        let bar = |phase: &PhaseTime| {
            let text = duration_ms(phase.ms_p50);
            Bar { name: phase.name(), value: phase.ms_p50, text, colour: 1 }
        };
        out.push_str(&bars(&summary.phases.iter().map(bar).collect::<Vec<_>>()));
    }
    out
}

fn failures(summary: &Summary) -> String {
    let mut out = String::from("<h2>Failures by reason</h2>");
    if summary.failure_examples.is_empty() {
        out.push_str("<p>No participant failed.</p>");
        return out;
    }
    let bar = |(reason, count): (&String, &u64)| Bar {
        name: reason.clone(),
        value: *count as f64,
        text: count.to_string(),
        colour: 2,
    };
    out.push_str(&bars(&summary.failures.iter().map(bar).collect::<Vec<_>>()));
    let roles = RoleCounts::of(summary);
    let rows: Vec<_> = summary
        .failure_examples
        .iter()
        .map(|e| {
            vec![
                e.reason.clone(),
                e.count.to_string(),
                format!("{} {}: {}", roles.one(), e.participant, e.detail),
            ]
        })
        .collect();
    out.push_str(&table(&["reason", roles.many(), "for example"], &rows));
    out
}

fn events(run: &RunData, summary: &Summary) -> String {
    if summary.events.is_empty() {
        return String::new();
    }
    let noun = RoleCounts::of(summary).one();
    let rows: Vec<_> = summary
        .events
        .iter()
        .map(|(kind, count)| {
            let first = run.events.iter().find(|event| event.kind == *kind);
            let example = first.map_or_else(String::new, |event| match event.participant {
                Some(who) => {
                    format!("{:.1} s, {noun} {}: {}", event.at.as_secs_f64(), who.0, event.detail)
                }
                None => format!("{:.1} s: {}", event.at.as_secs_f64(), event.detail),
            });
            vec![kind.replace('_', " "), count.to_string(), example]
        })
        .collect();
    format!("<h2>Events</h2>{}", table(&["what", "times", "first"], &rows))
}

/// A row of the table of received media: its name, and its figure.
struct Row {
    name: &'static str,
    /// Whether media that does not come as packets has none.
    is_of_packets: bool,
    figure: fn(&Media) -> String,
}

const fn any(name: &'static str, figure: fn(&Media) -> String) -> Row {
    Row { name, is_of_packets: false, figure }
}

const fn of_packets(name: &'static str, figure: fn(&Media) -> String) -> Row {
    Row { name, is_of_packets: true, figure }
}

const ROWS: &[Row] = &[
    any("codec", |media| media.codecs.join(", ")),
    any("tracks", |media| media.tracks.to_string()),
    of_packets("never received / time missing", |media| {
        let missing = known(media.missing_ratio, percent);
        format!("{} / {missing}", media.tracks_missing)
    }),
    any("payload rate of a track", |media| known(media.track_bps, bit_rate)),
    of_packets("packets received, first transmissions", |media| {
        media.sums.packets_original.to_string()
    }),
    of_packets("lost for good", |media| media.sums.packets_lost.to_string()),
    of_packets("recovered by retransmission", |media| media.sums.packets_recovered.to_string()),
    of_packets("late", |media| media.sums.packets_late.to_string()),
    of_packets("duplicate", |media| media.sums.packets_duplicate.to_string()),
    of_packets("reordered", |media| media.sums.packets_reordered.to_string()),
    of_packets("unreadable", |media| media.sums.packets_unreadable.to_string()),
    of_packets("NACK / PLI / FIR sent", |media| {
        let sums = &media.sums;
        format!("{} / {} / {}", sums.nack_sent, sums.pli_sent, sums.fir_sent)
    }),
    any("jitter p95", |media| ms(media.jitter_ms_p95)),
    any("frames decodable / abandoned", |media| {
        format!("{} / {}", media.sums.frames_decodable, media.sums.frames_dropped)
    }),
    any("OvenRtcTester's “delay” (drift) p50 / max", |media| {
        let (p50, max) = (media.oven_rtc_tester_delay_ms_p50, media.oven_rtc_tester_delay_ms_max);
        format!("{} / {}", ms(p50), ms(max))
    }),
];

fn ms(value: Option<f64>) -> String {
    known(value, duration_ms)
}

fn media(summary: &Summary) -> String {
    let has_packets = summary.has_packets();
    let rows: Vec<_> = ROWS
        .iter()
        .map(|row| {
            let is_known = has_packets || !row.is_of_packets;
            let cell =
                |media: &Media| if is_known { (row.figure)(media) } else { "–".to_owned() };
            vec![row.name.to_owned(), cell(&summary.video), cell(&summary.audio)]
        })
        .collect();
    format!("<h2>Media in figures</h2>{}", table(&["", "video", "audio"], &rows))
}

/// How bad a track was; `None` where a viewer would notice nothing.
pub(crate) fn trouble(track: &TrackRow) -> Option<f64> {
    let frozen = track.counters.freeze_ratio().unwrap_or(0.0);
    let delay_ms = track.relative_delay_us.quantile(0.95).unwrap_or(0) as f64 / 1e3;
    // One scale: 1 % of loss, 1 % frozen and 100 ms of delay weigh the same.
    let bad =
        track.counters.loss_ratio().unwrap_or(1.0) * 100.0 + frozen * 100.0 + delay_ms / 100.0;
    is_troubled(track).then_some(bad)
}

fn worst(run: &RunData) -> String {
    let mut by_participant: BTreeMap<_, (f64, &TrackRow)> = BTreeMap::new();
    for track in &run.tracks {
        let Some(bad) = trouble(track) else { continue };
        let entry = by_participant.entry(track.participant).or_insert((bad, track));
        if bad > entry.0 {
            *entry = (bad, track);
        }
    }
    let mut list: Vec<_> = by_participant.into_values().collect();
    list.sort_by(|a, b| b.0.total_cmp(&a.0));
    list.truncate(WORST_MAX);
    if list.is_empty() {
        let all_well = if run.tracks.is_empty() && run.aggregated.is_empty() {
            ""
        } else {
            "<h2>Worst viewers</h2><p>No viewer had noticeable loss, freezes or delay.</p>"
        };
        return all_well.into();
    }
    let rows: Vec<_> = list.into_iter().map(|(_, track)| worst_row(track)).collect();
    format!(
        "<h2>Worst viewers</h2>{}<p class=\"over\">By loss, freezes and delay of the worst track \
         together.</p>",
        table(&["viewer", "track", "loss", "lost", "delay p95", "fps", "frozen", "payload"], &rows)
    )
}

/// Whether a viewer would notice something on this track, or nearly: packets lost for good, a
/// freeze, or a twentieth of its frames later than a jitter buffer usually waits.
fn is_troubled(track: &TrackRow) -> bool {
    const LATE_US: u64 = 50_000;
    if track.counters.is_fetched() {
        return false; // a player's: its stalls are in the playback rows
    }
    track.counters.packets_lost > 0
        || track.counters.freeze_us > 0
        || track.counters.packets_original == 0
        || track.relative_delay_us.quantile(0.95).is_some_and(|delay_us| delay_us > LATE_US)
}

fn worst_row(track: &TrackRow) -> Vec<String> {
    let c: &TrackCounters = &track.counters;
    vec![
        track.participant.0.to_string(),
        format!("{} {}", track.kind.key(), track.codec.name()),
        known(c.loss_ratio(), percent),
        c.packets_lost_for_good().to_string(),
        known(track.relative_delay_us.quantile(0.95), |us| duration_ms(us as f64 / 1e3)),
        known(track.fps.filter(|_| track.kind == MediaKind::Video), |fps| format!("{fps:.1}")),
        known(c.freeze_ratio(), percent),
        known(c.payload_bps(), bit_rate),
    ]
}

/// One line of a machine's fingerprint: `memory_bytes`, `3221225472` as `memory`, `3.22 GB`.
fn host_row(of: &str, name: &str, value: &str) -> Vec<String> {
    let (name, value) = match (name.replace("_bytes", ""), value.parse::<f64>()) {
        (short, Ok(count)) if short != name => (short, bytes(count)),
        (name, _) => (name, value.to_owned()),
    };
    vec![format!("{of}: {}", name.replace("cpu", "CPU").replace('_', " ")), value]
}

/// Who played the crowd, where several machines did.
fn workers(summary: &Summary) -> String {
    let known =
        |figure: Option<f64>, shown: fn(f64) -> String| figure.map_or_else(String::new, shown);
    let row = |worker: &WorkerHealth| {
        vec![
            worker.name.clone(),
            worker.cores.to_string(),
            worker.participants.to_string(),
            known(worker.thread_cpu_ratio_max, percent),
            known(worker.lag_ms_p99_max, duration_ms),
            worker.rss_bytes_max.map_or_else(String::new, |rss| bytes(rss as f64)),
            format!("{} of {}", worker.limited_seconds, worker.seconds),
            format!("{:+.1}", worker.clock_offset_ms),
            worker.clock_bounds(),
            worker.clock_basis.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = summary.generator.workers.iter().map(row).collect();
    let header = [
        "worker",
        "cores",
        "share",
        "busiest thread",
        "late, p99",
        "memory",
        "seconds at its limit",
        "clock offset, ms",
        "right to",
        "by",
    ];
    titled_table("<h3>Workers</h3>", &header, &rows)
}

/// Who generated the load, in one line; `None` where one machine did.
fn generators(summary: &Summary) -> Option<String> {
    let names: Vec<&str> =
        summary.generator.workers.iter().map(|worker| worker.name.as_str()).collect();
    let workers = count(names.len() as u64, "workers");
    (!names.is_empty()).then(|| format!("{workers} ({}), in the table below", names.join(", ")))
}

fn about(run: &RunData, summary: &Summary) -> String {
    let clock = match summary.clock_error.bound_ms {
        Some(ms) => format!("at most {ms:.1} ms ({})", summary.clock_error.basis),
        None => format!("not known ({})", summary.clock_error.basis),
    };
    let mut rows = vec![
        vec!["throng".to_owned(), summary.throng_version.clone()],
        vec!["target".into(), summary.target.clone()],
        vec!["planned".into(), format!("{:.0} s", summary.planned_duration_s)],
        vec!["ended".into(), summary.ending.clone()],
        vec!["clock error of one-way delays".into(), clock],
    ];
    rows.extend(generators(summary).map(|who| vec!["generator".to_owned(), who]));
    rows.extend(
        summary.generator.receive.iter().map(|way| vec!["receives".to_owned(), way.clone()]),
    );
    // Of a fleet the machine that is known here only coordinated.
    let of = if summary.generator.workers.is_empty() { "generator" } else { "coordinator" };
    rows.extend(run.info.generator_host.iter().map(|(name, value)| host_row(of, name, value)));
    let mut out =
        format!("<h2>This run</h2>{}{}", table(&["fact", "value"], &rows), workers(summary));
    if !run.info.scenario.is_empty() {
        // Earlier versions stored the secrets of commands.
        let scenario = masked_toml(&run.info.scenario);
        let _ = write!(out, "<h3>Scenario as run</h3><pre>{}</pre>", escape(&scenario));
    }
    out
}
