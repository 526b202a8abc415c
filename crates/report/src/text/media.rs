//! Received and sent media.

use std::fmt::Write as _;

use throng_observation::SENDER_CLOCK_EVENT;
use throng_observation::units::{bit_rate, duration_ms, percent};

use super::{each, line};
use crate::conference::Conference;
use crate::role_counts::is_send_only;
use crate::sent::{LayerSwitches, Sent};
use crate::summary::{Media, Summary, clock_disagreement, one_way_basis};

/// Received and sent media.
pub(super) fn lines(out: &mut String, summary: &Summary) {
    if !is_send_only(summary) {
        let (mean, most) = (bit_rate(summary.received_bps), bit_rate(summary.received_bps_max));
        line(out, "received", &format!("{mean} mean, {most} at most"));
    }
    each(out, "sent", summary.sent.as_ref().map(sent_line));
    each(out, "layers", summary.layer_switches.as_ref().map(layers_line));
    if let Some(playback) = &summary.playback {
        line(out, "playback", &playback.playback_line());
        line(out, "transfer", &playback.transfer_line());
        each(out, "page", playback.page_line());
        each(out, "requests", playback.requests_line());
        if let Some(peers) = &playback.peers {
            line(out, "peers", &peers.line());
            each(out, "channels", peers.channel_line());
            each(out, "hashes", peers.hashes_line());
            each(out, "tracker", peers.tracker_line());
        }
        each(out, "behind live", playback.latency_line());
    }
    if let Some(chat) = &summary.chat {
        line(out, "messages", &chat.messages_line());
        line(out, "chat", &chat.frames_line());
    }
    for (name, media) in summary.media() {
        let figures = media_line(media);
        // Of a player's audio there is no figure that its playback does not have.
        if (media.tracks > 0 || media.sums.packets_original > 0) && !figures.is_empty() {
            line(out, name, &figures);
        }
    }
    if let Some(conference) = &summary.conference {
        let streams = conference_line(conference);
        // A run of publishers alone has no stream from one to another.
        if !streams.is_empty() {
            line(out, "conference", &streams);
        }
        each(out, "", &conference.flow.note);
    }
    each(out, "one-way", one_way_line(summary));
}

/// The streams of a conference that played, and the rates into and out of the server.
fn conference_line(conference: &Conference) -> String {
    let kinds = [("video", &conference.video), ("audio", &conference.audio)];
    let mut parts: Vec<String> = kinds
        .into_iter()
        .filter(|(_, media)| media.received > 0 || media.played().is_some())
        .map(|(name, media)| match media.played() {
            Some((playing, of)) => format!("{name} {playing} of {of} play"),
            None => format!("{name} {} seen", media.received),
        })
        .collect();
    parts.extend(conference.missing());
    if let (Some(into), Some(out)) = (conference.flow.in_bps_max, conference.flow.out_bps_max) {
        parts.push(format!("in {}, out {}", bit_rate(into), bit_rate(out)));
    }
    if let Some((due, ratio)) =
        conference.flow.expected_bps_max.zip(conference.flow.delivered_ratio)
    {
        parts.push(format!("{} of the expected {}", percent(ratio), bit_rate(due)));
    }
    parts.join("; ")
}

fn sent_line(sent: &Sent) -> String {
    let mut said = format!(
        "{} mean, {} at most, as {} streams of video and {} of audio",
        bit_rate(sent.bps),
        bit_rate(sent.bps_max),
        sent.video_streams,
        sent.audio_streams
    );
    if sent.sums.packets_repeated > 0 {
        let ratio = sent.sums.packets_repeated as f64 / sent.sums.packets.max(1) as f64;
        let _ = write!(said, ", {} sent again", percent(ratio));
    }
    if let Some(ratio) = sent.blocked_ratio {
        let _ = write!(said, ", {} of the time the connection took no bytes", percent(ratio));
    }
    said
}

fn layers_line(switches: &LayerSwitches) -> String {
    let mut said = format!("{} of {} changes shown", switches.shown, switches.requested);
    if let (Some(p50), Some(p95), Some(max)) = (switches.ms_p50, switches.ms_p95, switches.ms_max) {
        let [p50, p95, max] = [p50, p95, max].map(duration_ms);
        let _ = write!(said, ", after p50 {p50}, p95 {p95}, at most {max}");
    }
    said
}

fn media_line(media: &Media) -> String {
    let mut parts = Vec::new();
    if let Some(fps) = media.fps_p50 {
        let source = media.source_fps.map_or_else(String::new, |source| format!(" of {source:.1}"));
        parts.push(format!("{fps:.1}{source} fps"));
    }
    if media.tracks_missing > 0 {
        parts.push(format!("{} of {} tracks never received", media.tracks_missing, media.tracks));
    }
    if let Some(missing) = media.missing_ratio.filter(|missing| *missing > 0.0) {
        parts.push(format!("missing {}", percent(missing)));
    }
    if let Some(loss) = media.loss_ratio {
        parts.push(format!("loss {}", percent(loss)));
    }
    if let (Some(p50), Some(p95), Some(p99)) =
        (media.delay_ms_p50, media.delay_ms_p95, media.delay_ms_p99)
    {
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

/// The one-way delay with its basis and error; `None` when no frame carried a capture time.
fn one_way_line(summary: &Summary) -> Option<String> {
    let (media, clock) = (&summary.video, &summary.clock_error);
    let Some(basis) = one_way_basis(media) else {
        let has_none = summary.events.contains_key(SENDER_CLOCK_EVENT);
        return has_none.then(|| "not known: sender reports have no wall clock".to_owned());
    };
    let disagreement = clock_disagreement(media, clock);
    // Percentiles among frames that seem to be too early.
    let early = if disagreement.is_some() { "below zero" } else { "within the clock error" };
    let mut line = match (media.one_way_delay_ms_p50, media.one_way_delay_ms_p95) {
        (Some(p50), Some(p95)) => format!("p50 {}, p95 {}", duration_ms(p50), duration_ms(p95)),
        (None, Some(p95)) => format!("p50 {early}, p95 {}", duration_ms(p95)),
        _ => early.to_owned(),
    };
    let _ = write!(line, " by {}", basis.text());
    match clock.bound_ms {
        Some(ms) => {
            let _ = write!(line, "; clock error at most {ms:.1} ms");
        }
        None => line.push_str("; clock error not known"),
    }
    if let Some(disagreement) = disagreement {
        let _ = write!(line, "; {}", disagreement.text(basis));
    }
    Some(line)
}
