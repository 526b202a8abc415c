//! The line is full, or a shaper holds the packets back.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::MeasuredSeries;
use throng_observation::units::{bit_rate, percent};

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "line_rate";
/// Of a known speed; above, frames wait for each other whatever the mean says.
const FULL_MIN: f64 = 0.93;
/// A queue that is there in half of the seconds does not come from a burst.
const QUEUED_PACKETS_MIN: f64 = 1.0;
/// Packets that the queue threw away, a second.
const DROPS_MIN: f64 = 1.0;
/// A shaper counts each time that it looks at its queue and may not send: as often as it sends, and most packets have waited,
/// also where bursts are over before anybody looks at how long the queue is.
const HELD_MIN: f64 = 1.0;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let Some((line, sent)) = context.top(&metric::NIC_TX_BYTES) else {
        return CheckResult::NotMonitored("the network interfaces");
    };
    let interface = line.label("interface");
    let speed = line.limit().filter(|limit| *limit > 0.0);
    let own: Vec<(&str, Vec<MeasuredSeries<'_>>)> = [
        &metric::QDISC_BACKLOG_PACKETS,
        &metric::QDISC_DROPS,
        &metric::QDISC_OVERLIMITS,
        &metric::NIC_TX_DROPPED,
    ]
    .iter()
    .map(|wanted| {
        let list = context.host.metric(wanted.name).iter();
        (wanted.name, list.filter(|series| series.label("interface") == interface).copied().collect())
    })
    .collect();
    let list =
        |name: &str| own.iter().find(|(own, _)| *own == name).map_or(&[][..], |(_, list)| list.as_slice());
    // A class and its parent count the same packets: the most of them, not their sum.
    let worst = |name: &str, of: &dyn Fn(&MeasuredSeries<'_>) -> Reading| {
        list(name).iter().map(of).max_by(|a, b| a.fail().total_cmp(&b.fail())).unwrap_or_default()
    };
    let mean = |series: &MeasuredSeries<'_>| Reading {
        fail: series.mean(context.fail.window).into_iter().chain(series.mean(context.onset)).reduce(f64::max),
        ..context.reading(|window| series.mean(window))
    };
    let backlog = worst(metric::QDISC_BACKLOG_PACKETS.name, &|series| context.median(series));
    let drops = worst(metric::QDISC_DROPS.name, &mean);
    let held = worst(metric::QDISC_OVERLIMITS.name, &mean);
    let share = speed.map_or(0.0, |speed| sent.fail() / speed);
    let is_shaped = held.fail() > 0.0 || drops.fail() >= DROPS_MIN;
    let packets = context.host.metric(metric::NIC_TX_PACKETS.name).iter();
    let packets = packets.filter(|series| series.label("interface") == interface).map(&mean).next();
    let waits = held.with(packets.unwrap_or_default(), |held, sent| held / sent.max(1.0));
    let is_queueing = backlog.fail() >= QUEUED_PACKETS_MIN
        || drops.fail() >= DROPS_MIN
        || waits.fail.is_some_and(|waits| waits >= HELD_MIN);
    if share < FULL_MIN && !(is_shaped && is_queueing) {
        let of = speed.map_or_else(
            || " (its speed is not known)".into(),
            |speed| format!(" of {}", bit_rate(speed * 8.0)),
        );
        return CheckResult::RuledOut(format!(
            "Line {interface}: {} sent{of}, {:.0} packets queued, {:.0} dropped a second",
            bit_rate(sent.fail() * 8.0),
            backlog.fail(),
            drops.fail()
        ));
    }
    let crossed = speed
        .and_then(|speed| context.crossed(&[line], FULL_MIN * speed))
        .or_else(|| context.crossed(list(metric::QDISC_DROPS.name), DROPS_MIN))
        .or_else(|| context.crossed(list(metric::QDISC_BACKLOG_PACKETS.name), QUEUED_PACKETS_MIN));
    let rate = bit_rate(sent.fail() * 8.0);
    let title = match speed {
        Some(speed) if share >= FULL_MIN => {
            format!("{interface} is full: {rate} of {}", bit_rate(speed * 8.0))
        }
        _ => format!("Packets queue at {interface}: a line or shaper of about {rate}"),
    };
    Candidate {
        used: used_up(share).max(if is_shaped && is_queueing { 1.0 } else { 0.0 }),
        queue: [backlog.growth(0.5), drops.growth(0.1), waits.growth(0.1), context.backlog()].into_iter().flatten().reduce(f64::max),
        refuses: drops.begins() && drops.fail() >= DROPS_MIN,
        demand: context.demand_of(Resource::NicSent, interface).cloned(),
        crossed_at_s: crossed,
        series: vec![line.series.id],
        evidence: vec![
            Evidence::new(format!("nic.tx_bytes of {interface}"), Unit::BytesPerSecond, sent)
                .limit(speed)
                .crossed(crossed)
                .decides_if(share >= FULL_MIN),
            Evidence::new(format!("qdisc.backlog_packets of {interface}"), Unit::Count, backlog).decides(),
            Evidence::new(format!("qdisc.drops of {interface}"), Unit::PerSecond, drops).limit(Some(0.0)).decides(),
            Evidence::new(format!("qdisc.overlimits of {interface}"), Unit::PerSecond, held).decides_if(waits.fail() >= HELD_MIN),
        ],
        change: "A faster line or a wider shaper (tc, the provider's plan), fewer bits for each user (bitrate, codec, layers), or a second server".into(),
        eases: |demand, _| matches!(demand.resource, Resource::NicSent),
        ..Candidate::new(KEY, title, format!("interface {interface}"))
    }
    .suspect()
}

/// What the interface sends, for those who only need the number.
pub(super) fn sent_text(context: &Context<'_>) -> String {
    context.top(&metric::NIC_TX_BYTES).map_or_else(String::new, |(line, sent)| {
        let share = line
            .limit()
            .map_or_else(String::new, |limit| format!(", {} of the line", percent(sent.fail() / limit)));
        format!("{} sent{share}", bit_rate(sent.fail() * 8.0))
    })
}
