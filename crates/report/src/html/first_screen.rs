//! The first screen: the answer, whether the objectives were met, and the figures that matter.

use std::fmt::Write as _;

use throng_observation::calendar;
use throng_observation::run::{Ending, RunData};
use throng_observation::units::{bit_rate, bytes, count, duration_ms, grouped, percent};

use super::markup::{Cell, Table, escape, known, notes};
use crate::chat::Chat;
use crate::health::{self, Share};
use crate::playback::Playback;
use crate::role_counts::{RoleCounts, is_send_only};
use crate::summary::Summary;

pub(crate) fn render(run: &RunData, summary: &Summary) -> String {
    let key = summary.outcome.key();
    // Neither has a verdict, and with a run in progress nothing is wrong.
    let (badge, verdict) = match run.ending {
        Ending::Unfinished if summary.in_progress => ("", "in progress"),
        Ending::Unfinished => (key, "unfinished"),
        Ending::Complete | Ending::Interrupted | Ending::Aborted => (key, key),
    };
    let mut out = format!(
        "<header><p class=\"over\"><span class=\"badge {badge}\">{verdict}</span>{} · {:.0} s · \
         {}</p><h1>{}</h1>",
        escape(&summary.target),
        summary.duration_s,
        calendar::shown(summary.started_at_unix_us),
        escape(&summary.headline)
    );
    let others = summary
        .other_processes_cpu
        .as_ref()
        .map(throng_analysis::bottleneck::OtherProcessesCpu::sentence);
    let caveats = summary.capacity.iter().flat_map(|capacity| &capacity.caveats);
    if let Some(answer) = &summary.answer {
        let _ = write!(out, "<p class=\"answer\">{}</p>", escape(answer));
    }
    let all = caveats.chain(&others).chain(&summary.partial_reasons).chain(&summary.warnings);
    out.push_str(&notes(all));
    out.push_str("</header>");
    out.push_str(&super::cause::render(run, summary));
    out.push_str(&objectives(summary));
    out.push_str(&figures(summary));
    out
}

fn objectives(summary: &Summary) -> String {
    if summary.objectives.is_empty() && summary.capacity.is_some() {
        return String::new();
    }
    if summary.objectives.is_empty() {
        return "<p class=\"over\">No objectives were set.</p>".into();
    }
    let mut table = Table::new("", &["Objective", "Measured", "Verdict"], &[]);
    for objective in &summary.objectives {
        let sign = if objective.met { "✓" } else { "✗" };
        let verdict = format!("{sign} {}", objective.result.replace('_', " "));
        table.row(
            "",
            [
                Cell::text(&objective.text),
                Cell::text(&objective.measured_text),
                Cell::text(&verdict).classed(&objective.result),
            ],
        );
    }
    format!("<h2 class=\"unseen\">Objectives</h2>{}", table.finish())
}

/// A figure: its name, its value, and the small print below it.
type Figure = (&'static str, String, String);

fn figures(summary: &Summary) -> String {
    let mut list: Vec<Figure> = vec![crowd(summary)];
    match summary.sent.as_ref().filter(|_| is_send_only(summary)) {
        Some(sent) => {
            list.push(("sent", bit_rate(sent.bps), format!("at most {}", bit_rate(sent.bps_max))));
        }
        None => list.extend(received(summary)),
    }
    let [p50, p99] = [summary.connect_ms_p50, summary.connect_ms_p99]
        .map(|value| value.map_or_else(|| "never".into(), duration_ms));
    list.extend([("connect, p50", p50, format!("p99 {p99}")), generator(summary)]);
    let mut out = String::from("<h2 class=\"unseen\">Key figures</h2><dl class=\"figures\">");
    for (name, value, more) in list {
        let [name, value, more] = [name, &value, &more].map(escape);
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}<small>{more}</small></dd></div>");
    }
    out.push_str("</dl>");
    if summary.warm_up_s > 0.0 {
        let warm_up_s = summary.warm_up_s;
        let _ = write!(
            out,
            "<p class=\"over\">Media figures leave out the first {warm_up_s:.0} s.</p>"
        );
    }
    out
}

fn crowd(summary: &Summary) -> Figure {
    let crowd = &summary.participants;
    if summary.capacity.is_some() {
        // A search has many more joins than participants at once.
        let most = format!("at most {} at once", crowd.connected_max);
        return (
            RoleCounts::of(summary).many(),
            most,
            format!("{} joins in all, {} failed", crowd.intended, crowd.failed),
        );
    }
    match RoleCounts::of(summary) {
        RoleCounts { viewers: 0, publishers: publishers @ 1.., .. } => (
            "publishers connected",
            format!("{} of {publishers}", crowd.connected),
            format!("{} failed", crowd.failed),
        ),
        RoleCounts { viewers, publishers, is_chat } => {
            let publish = if publishers > 0 {
                format!(", and {}", count(publishers, "publishers"))
            } else {
                String::new()
            };
            let title = if is_chat { "chatters in the room" } else { "viewers playing" };
            (
                title,
                format!("{} of {viewers}", crowd.playing),
                format!("{} connected, {} failed{publish}", crowd.connected, crowd.failed),
            )
        }
    }
}

/// What players got: rate, startup, stalls, buffers.
fn played(summary: &Summary, playback: &Playback) -> Vec<Figure> {
    let ms = |value| known(value, duration_ms);
    let startup = &playback.startup;
    let mut list: Vec<Figure> = vec![
        (
            "received",
            bit_rate(summary.received_bps),
            format!("at most {}", bit_rate(summary.received_bps_max)),
        ),
        (
            "startup, p95",
            startup.ms_p95.map_or_else(|| "never".into(), duration_ms),
            format!("p50 {}", startup.ms_p50.map_or_else(|| "never".into(), duration_ms)),
        ),
        (
            "time stalled",
            known(playback.stall_ratio, percent),
            format!(
                "{}, {} of {}",
                count(playback.stalls, "stalls"),
                playback.viewers_stalled,
                count(playback.players, "viewers")
            ),
        ),
        ("buffer, p5", ms(playback.buffer_ms_p5), format!("p50 {}", ms(playback.buffer_ms_p50))),
    ];
    if let Some(ratio) = playback.delivery_ratio_p5 {
        list.push(("delivery, p5", percent(ratio), "of the media's bit rate".into()));
    }
    if let Some(latency) = &playback.latency {
        let median = format!("p50 {}", duration_ms(latency.ms_p50));
        list.push(("behind live, p95", duration_ms(latency.ms_p95), median));
    }
    list
}

/// What came of a chat: its rate, how late messages were, and which did not come.
fn chatted(summary: &Summary, chat: &Chat) -> Vec<Figure> {
    let ms = |value| known(value, duration_ms);
    let sums = &chat.sums;
    vec![
        (
            "received",
            bit_rate(summary.received_bps),
            format!("at most {}", bit_rate(summary.received_bps_max)),
        ),
        (
            "delivery, p95",
            ms(chat.delivery_ms_p95),
            format!("p50 {}, slowest {}", ms(chat.delivery_ms_p50), ms(chat.delivery_ms_max)),
        ),
        (
            "messages missing",
            known(sums.missing_ratio, percent),
            format!("{} of {}", sums.messages_missing, sums.messages_due),
        ),
    ]
}

/// The time in which no packet was there to be lost.
fn silence(missing_ratio: Option<f64>) -> String {
    match missing_ratio.filter(|missing| *missing > 0.0) {
        Some(missing) => format!("; nothing came for {} of the time", percent(missing)),
        None => String::new(),
    }
}

/// What viewers received: rate, delay, loss, and of video the frames.
fn received(summary: &Summary) -> Vec<Figure> {
    if let Some(chat) = summary.chat.as_ref().filter(|_| summary.is_chat_only()) {
        return chatted(summary, chat);
    }
    if let Some(playback) = summary.playback.as_ref().filter(|_| !summary.has_packets()) {
        return played(summary, playback);
    }
    let video = &summary.video;
    let media = if video.sums.packets_original > 0 { video } else { &summary.audio };
    let sums = &media.sums;
    let ms = |value| known(value, duration_ms);
    let (mean, most) = (bit_rate(summary.received_bps), bit_rate(summary.received_bps_max));
    let packets = sums.packets();
    let mut list: Vec<Figure> = vec![
        ("received", mean, format!("at most {most}")),
        (
            "delay above floor, p95",
            ms(media.delay_ms_p95),
            format!("p50 {}, p99 {}", ms(media.delay_ms_p50), ms(media.delay_ms_p99)),
        ),
        (
            "packet loss",
            known(packets.packet_loss_ratio(), percent),
            format!(
                "{} of {} packets{}",
                grouped(sums.packets_lost as f64, 0),
                grouped(packets.packets_expected() as f64, 0),
                silence(media.missing_ratio)
            ),
        ),
    ];
    if let Some(fps) = video.fps_p50 {
        let source = video.source_fps.map_or_else(String::new, |fps| format!(", source {fps:.1}"));
        let low = [("p5", video.fps_p5), ("p1", video.fps_p1)]
            .into_iter()
            .filter_map(|(name, fps)| Some(format!("{name} {:.1}", fps?)))
            .collect::<Vec<_>>()
            .join(", ");
        list.push(("frames per second, p50", format!("{fps:.1}"), format!("{low}{source}")));
        let frozen = known(video.freeze_ratio, percent);
        list.push(("time frozen", frozen, format!("{} freezes", video.freeze_count)));
    }
    list
}

fn generator(summary: &Summary) -> Figure {
    let (health, one) = (&summary.generator, RoleCounts::of(summary).one());
    let state = match health::share(summary) {
        Share::None => "not the limit",
        Share::LeftOut => "at times the limit",
        Share::All => "was the limit",
    };
    let cpu = known(health.cpu_ms_per_participant_s, |ms| format!("{ms:.2}"));
    let rss = known(health.rss_bytes_per_participant, bytes);
    ("generator", state.into(), format!("{cpu} CPU ms a {one}-second, {rss} a {one}"))
}

#[cfg(test)]
mod tests {
    use super::silence;

    #[test]
    fn time_in_which_nothing_came_is_told_beside_the_packets() {
        assert_eq!(silence(Some(0.25)), "; nothing came for 25.0 % of the time");
        assert_eq!([None, Some(0.0)].map(silence), ["", ""]);
    }
}
