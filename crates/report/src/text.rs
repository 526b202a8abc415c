//! The summary that a terminal shows when a run is over.

use std::fmt::Write as _;

use throng_observation::units::{bit_rate, bytes, duration_ms, percent};

use crate::summary::{Media, Summary, TimeTo};

/// About fifteen lines: the answer, the objectives, the figures that matter. Plain text, newline at the end.
#[must_use]
pub fn summary(summary: &Summary) -> String {
    let mut out = format!("{}\n\n", summary.headline);
    for objective in &summary.objectives {
        let sign = if objective.met { "met   " } else { "MISSED" };
        let _ = writeln!(out, "  {sign}  {:<32} {}", objective.text, objective.measured_text);
    }
    if !summary.objectives.is_empty() {
        out.push('\n');
    }
    let crowd = &summary.participants;
    line(&mut out, "target", &summary.target);
    line(
        &mut out,
        "viewers",
        &format!(
            "{} intended, {} connected, {} playing, {} failed",
            crowd.intended, crowd.connected, crowd.playing, crowd.failed
        ),
    );
    if !summary.failures.is_empty() {
        let failures: Vec<_> =
            summary.failures.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        line(&mut out, "failures", &failures.join(", "));
    }
    line(&mut out, "connect", &time_to(&summary.connect));
    line(&mut out, "first frame", &time_to(&summary.first_frame));
    line(
        &mut out,
        "received",
        &format!("{} mean, {} at most", bit_rate(summary.received_bps), bit_rate(summary.received_bps_max)),
    );
    for (name, media) in [("video", &summary.video), ("audio", &summary.audio)] {
        if media.tracks > 0 || media.packets_received > 0 {
            line(&mut out, name, &media_line(media));
        }
    }
    line(&mut out, "generator", &generator(summary));
    for because in &summary.partial_because {
        line(&mut out, "partial", because);
    }
    for warning in &summary.warnings {
        line(&mut out, "warning", warning);
    }
    out
}

fn line(out: &mut String, name: &str, what: &str) {
    let _ = writeln!(out, "  {name:<12} {what}");
}

fn time_to(time: &TimeTo) -> String {
    let at = |ms: Option<f64>| ms.map_or_else(|| "never".into(), duration_ms);
    format!(
        "p50 {}, p95 {}, p99 {} (failures count as never)",
        at(time.ms_p50),
        at(time.ms_p95),
        at(time.ms_p99)
    )
}

fn media_line(media: &Media) -> String {
    let mut parts = Vec::new();
    if let Some(fps) = media.fps_p50 {
        let source = media.source_fps.map_or_else(String::new, |source| format!(" of {source:.1}"));
        parts.push(format!("{fps:.1}{source} fps"));
    }
    if let Some(loss) = media.loss_ratio {
        parts.push(format!("loss {}", percent(loss)));
    }
    if let (Some(p50), Some(p95), Some(p99)) = (media.delay_ms_p50, media.delay_ms_p95, media.delay_ms_p99) {
        parts.push(format!(
            "delay p50 {}, p95 {}, p99 {}",
            duration_ms(p50),
            duration_ms(p95),
            duration_ms(p99)
        ));
    }
    if let Some(freeze) = media.freeze_ratio {
        parts.push(format!("frozen {}", percent(freeze)));
    }
    parts.join(", ")
}

fn generator(summary: &Summary) -> String {
    let health = &summary.generator;
    let cost = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
    format!(
        "{}; {} CPU ms per viewer-second, {} per viewer",
        if health.limited { "WAS THE LIMIT" } else { "was not the limit" },
        cost(health.cpu_ms_per_participant_s.map(|ms| format!("{ms:.2}"))),
        cost(health.rss_bytes_per_participant.map(bytes)),
    )
}

#[cfg(test)]
mod tests {
    use crate::{example, summarise};
    use std::time::Duration;

    #[test]
    fn the_terminal_shows_the_answer_first_and_about_fifteen_lines() {
        let text = super::summary(&summarise(&example::degraded(), &example::objectives(), Duration::ZERO));
        assert!(text.starts_with("Objectives missed: video.loss p95 < 1%"), "{text}");
        assert!(text.lines().count() <= 18 && text.contains("100 intended, 97 connected"), "{text}");
    }
}
