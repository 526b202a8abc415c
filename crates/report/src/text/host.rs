//! A watched host in the terminal.

use throng_observation::units::{bit_rate, bytes, percent};
use throng_observation::untrusted;

use super::line;
use crate::requests::grouped;
use crate::server::{ServerErrors, WatchedHost};

/// 3 to 7 lines.
pub(super) fn lines(out: &mut String, host: &WatchedHost, is_one_of_several: bool) {
    let name = if is_one_of_several {
        format!("{}: ", untrusted::name(&host.name))
    } else {
        String::new()
    };
    let processes: Vec<_> = host
        .processes
        .iter()
        .take(3)
        .map(|process| {
            let memory =
                process.rss_bytes_max.map_or_else(String::new, |rss| format!(", {}", bytes(rss)));
            format!(
                "{} CPU p50 {}, max {}{memory}",
                untrusted::name(&process.name),
                percent(process.cpu_p50),
                percent(process.cpu_max)
            )
        })
        .collect();
    let processes =
        if processes.is_empty() { "no process was seen".into() } else { processes.join("; ") };
    line(out, "server", &format!("{name}{processes}"));
    if let Some(thread) = &host.hottest_thread {
        let meaning =
            thread.meaning.as_ref().map_or_else(String::new, |meaning| format!(": {meaning}"));
        let (p50, max) = (percent(thread.cpu_p50), percent(thread.cpu_max));
        line(
            out,
            "",
            &format!(
                "hottest thread {} (tid {}): p50 {p50} of a core, max {max}{meaning}",
                untrusted::name(&thread.name),
                thread.tid
            ),
        );
        if let Some(help) = thread.help.as_ref().filter(|_| thread.cpu_max > FULL_THREAD_RATIO) {
            line(out, "", &format!("to give it room: {help}"));
        }
    }
    network(out, host);
    traffic(out, host);
    server_errors(out, host);
    ended(out, host);
    for why in host.unreadable.iter().take(1) {
        let more = host.unreadable.len() - 1;
        let more =
            if more > 0 { format!(" (and {more} more, see the report)") } else { String::new() };
        line(out, "", &format!("unreadable: {why}{more}"));
    }
}

/// What its busiest interface carried, and what was dropped.
fn network(out: &mut String, host: &WatchedHost) {
    let mut network = Vec::new();
    if let Some(busiest) = host.network.first() {
        let rate = busiest
            .line_rate_bps
            .map_or_else(String::new, |rate| format!(" of {}", bit_rate(rate)));
        let (tx, rx) = (bit_rate(busiest.tx_bps_max), bit_rate(busiest.rx_bps_max));
        let peak = busiest.tx_bps_peak.filter(|peak| *peak > PEAK_MIN * busiest.tx_bps_max);
        let peak =
            peak.map_or_else(String::new, |peak| format!(" ({} for 100 ms)", bit_rate(peak)));
        let name = untrusted::name(&busiest.name);
        network.push(format!("{name} sent at most {tx}{rate}{peak}, received {rx}"));
    }
    let dropped = [
        ("packets dropped", host.nic_drops),
        ("UDP receive buffer errors", host.udp_receive_buffer_errors),
        ("UDP send buffer errors", host.udp_send_buffer_errors),
    ];
    let counted = dropped
        .into_iter()
        .filter_map(|(what, count)| Some(format!("{} {what}", count.filter(|n| *n > 0)?)));
    network.extend(counted);
    if !network.is_empty() {
        line(out, "", &network.join(", "));
    }
}

/// What the access logs explain of the traffic, the groups with most bytes.
fn traffic(out: &mut String, host: &WatchedHost) {
    let groups =
        host.traffic.iter().filter(|group| group.bytes > 0).take(TRAFFIC_MAX).filter_map(|group| {
            Some(format!("{} {}", untrusted::name(&group.uri_group), percent(group.ratio?)))
        });
    let groups: Vec<_> = groups.collect();
    if groups.is_empty() {
        return;
    }
    let all: u64 = host.traffic.iter().map(|group| group.bytes).sum();
    let unexplained = host.unaccounted_tx_ratio.map_or_else(String::new, |ratio| {
        format!("; {} of what its interfaces sent is in no access log", percent(ratio))
    });
    line(
        out,
        "",
        &format!("access log: {}: {}{unexplained}", bytes(all as f64), groups.join(", ")),
    );
}

/// Answers 5xx of the access logs, those with most.
fn server_errors(out: &mut String, host: &WatchedHost) {
    let refused = host.server_errors.iter().take(3).map(|errors| {
        let ServerErrors { uri_group, status, .. } = errors;
        let (answers, most) = (grouped(errors.answers), grouped(errors.per_minute_max));
        format!("{status} ×{answers} on {}, at most {most} a minute", untrusted::name(uri_group))
    });
    let refused: Vec<_> = refused.collect();
    if !refused.is_empty() {
        line(out, "", &format!("answers 5xx: {}", refused.join("; ")));
    }
}

/// What ended, and how: the last ones.
fn ended(out: &mut String, host: &WatchedHost) {
    let told = host.ended.iter().rev().take(ENDED_MAX).rev().map(|process| {
        let (name, how) = (untrusted::name(&process.name), untrusted::line(&process.how));
        format!("{name} (PID {}) at {:.1} s {how}", process.pid, process.at_s)
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() {
        return;
    }
    let before = match host.ended.len() - told.len() {
        0 => String::new(),
        before => format!("{before} and then "),
    };
    line(out, "", &format!("ended: {before}{}", told.join("; ")));
}

/// Ended processes in a line.
const ENDED_MAX: usize = 3;

/// Groups of URIs in a line.
const TRAFFIC_MAX: usize = 5;

/// The peak of a 100 ms reading is shown when it is so many times the maximum of a second.
const PEAK_MIN: f64 = 1.1;

/// From here on a thread counts as full.
const FULL_THREAD_RATIO: f64 = 0.8;
