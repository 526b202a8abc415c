//! The crowd: its target, its joins, and how long these took.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use throng_observation::units::duration_ms;

use super::{counts, each, line};
use crate::role_counts::{RoleCounts, is_send_only};
use crate::summary::Summary;
use crate::survival::TimeTo;

/// The target, and the joins.
pub(super) fn lines(out: &mut String, summary: &Summary) {
    line(out, "target", &summary.target);
    let roles = RoleCounts::of(summary);
    line(out, roles.many(), &crowd_line(summary));
    if !summary.failures.is_empty() {
        line(out, "failures", &counts(&summary.failures));
    }
    each(out, "", failure_examples(summary));
    line(out, "connect", &time_to(&summary.connect));
    if !summary.media_paths.is_empty() {
        line(out, "path", &paths_line(&summary.media_paths));
    }
    // That of a name for this machine says nothing.
    let is_own = |address: &String| address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if summary.addresses.len() > 1 || summary.addresses.keys().any(|address| !is_own(address)) {
        line(out, "addresses", &counts(&summary.addresses));
    }
    if let Some(chat) = &summary.chat {
        line(out, "joined", &time_to(&chat.joined));
    }
    // Publishers wait for no frame, nor does who is in a chat only.
    if !is_send_only(summary) && (summary.chat.is_none() || summary.first_frame.reached > 0) {
        line(out, "first frame", &time_to(&summary.first_frame));
    }
    if let Some(playback) = &summary.playback {
        if let Some(page) = &playback.page {
            line(out, "page loaded", &time_to(&page.loaded));
        }
        line(out, "startup", &time_to(&playback.startup));
    }
}

/// A participant of each kind of failure, and what happened to it.
pub(crate) fn failure_examples(summary: &Summary) -> Vec<String> {
    let one = RoleCounts::of(summary).one();
    let examples = summary.failure_examples.iter();
    examples
        .map(|example| {
            format!("{}: {one} {}: {}", example.reason, example.participant, example.detail)
        })
        .collect()
}

/// The crowd in numbers. A search starts and ends participants: it has many more joins than
/// participants at once.
pub(crate) fn crowd_line(summary: &Summary) -> String {
    let (crowd, who) = (&summary.participants, RoleCounts::of(summary));
    let playing = match who.viewers {
        0 => String::new(),
        _ if summary.is_chat_only() => format!(" {} in the room,", crowd.playing),
        _ => format!(" {} playing,", crowd.playing),
    };
    let all = format!("{} connected,{playing} {} failed", crowd.connected, crowd.failed);
    match (summary.capacity.is_some(), who) {
        (true, _) => {
            format!(
                "at most {} at once; {} joins in all: {all}",
                crowd.connected_max, crowd.intended
            )
        }
        (false, RoleCounts { publishers: 1.., viewers: 1.., is_chat: _ }) => {
            format!("{} intended, {all}", who.all())
        }
        (false, _) => format!("{} intended, {all}", crowd.intended),
    }
}

/// Participants by media path, the most common first.
fn paths_line(paths: &BTreeMap<String, u64>) -> String {
    let mut paths: Vec<_> = paths.iter().collect();
    paths.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let path_text = |(path, count): (&String, &u64)| {
        let way = match path.as_str() {
            "host" => "directly (host)",
            "srflx" => "directly through a NAT (srflx)",
            "relay_udp" => "through a relay over UDP",
            "relay_tcp" => "through a relay over TCP",
            "relay_tls" => "through a relay over TLS",
            "rtp_udp" => "by RTP over UDP",
            "rtp_tcp" => "by RTP on the RTSP connection",
            "rtmp" => "by RTMP",
            "rtmp_tls" => "by RTMP over TLS",
            "process" => "by FFmpeg",
            "rtp_tls" => "by RTP on the RTSP connection, over TLS",
            "http1" => "by HTTP/1.1",
            "http2" => "by HTTP/2",
            "http3" => "by HTTP/3",
            other => other,
        };
        format!("{count} {way}")
    };
    paths.into_iter().map(path_text).collect::<Vec<_>>().join(", ")
}

fn time_to(time: &TimeTo) -> String {
    // Without failures a figure is only missing because the run was too short to know it.
    let unknown = if time.failed > 0 { "never" } else { "after the end" };
    let at = |ms: Option<f64>| ms.map_or_else(|| unknown.into(), duration_ms);
    let mut said =
        format!("p50 {}, p95 {}, p99 {}", at(time.ms_p50), at(time.ms_p95), at(time.ms_p99));
    if time.failed > 0 {
        let _ = write!(said, " ({} failed: they count as never)", time.failed);
    }
    if time.censored > 0 {
        let _ = write!(said, " ({} interrupted by the end of the run)", time.censored);
    }
    said
}
