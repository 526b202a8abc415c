//! A socket's receive buffer is full: datagrams arrive faster than its reader takes them.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::limits::BURST_DROPS_EVENT;
use throng_observation::units::bytes;

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading, Thread};

pub(super) const KEY: &str = "udp_receive_buffer";
/// Fewer drops a second than this are a hiccup: one in a thousand at a thousand packets a second.
const DROPS_MIN: f64 = 0.5;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let of_host = context.rate(&metric::UDP_RCVBUF_ERRORS);
    let of_sockets = context.rate(&metric::SOCKET_DROPS);
    if of_host.fail.is_none() && of_sockets.fail.is_none() {
        return CheckResult::NotMonitored("full receive buffers of UDP sockets");
    }
    // In one namespace with the generator, its drops stand in the host's counter.
    let own_us = context.reading(|window| {
        let (from, until) = (window.from_us.div_euclid(1_000_000), window.until_us.div_euclid(1_000_000));
        let rows = context
            .run
            .generator
            .iter()
            .filter(|row| row.thread.is_some() && (from..until).contains(&row.second));
        let bursts =
            context.run.events.iter().filter(|event| {
                event.kind == BURST_DROPS_EVENT && (from..until).contains(&event.at.second())
            });
        let own = rows.map(|row| row.socket_drops as f64).sum::<f64>()
            + bursts.map(|event| f64::from(event.count)).sum::<f64>();
        Some(own / window.seconds().max(1.0))
    });
    let drops = if of_sockets.fail() > 0.0 {
        of_sockets
    } else {
        of_host.with(own_us, |all, own| (all - own).max(0.0))
    };
    // Sockets are only looked at while something is dropped: before that the host's counter knows of nothing.
    let drops = Reading {
        base: drops.base.or(of_host.base),
        pass: drops.pass.or(of_host.pass),
        fail: drops.fail.or(of_host.fail),
        most: drops.most.or(of_host.most),
    };
    let fullest = context.fullest(&metric::SOCKET_RECEIVE_QUEUE);
    let share = fullest.as_ref().map_or(0.0, |(_, reading, limit)| reading.fail() / limit);
    if drops.fail() < DROPS_MIN {
        return CheckResult::RuledOut(format!(
            "UDP receive buffers: {:.1} datagrams dropped a second",
            drops.fail()
        ));
    }
    let memory = context.rate(&metric::UDP_MEM_ERRORS);
    let is_udp_mem = memory.fail() > 0.0;
    let crossed = context
        .crossed_metric(&metric::SOCKET_DROPS, DROPS_MIN)
        .or(context.crossed_metric(&metric::UDP_RCVBUF_ERRORS, DROPS_MIN));
    let rmem = context.host.info.and_then(|info| info.facts.get("net.core.rmem_max"));
    let rmem = rmem.map_or_else(String::new, |max| format!(" (net.core.rmem_max is {max})"));
    let port = fullest
        .as_ref()
        .map_or_else(String::new, |(series, ..)| format!(" of port {}", series.label("port")));
    let hot = context.hottest();
    let mut evidence = vec![
        Evidence::new("datagrams dropped at full receive buffers", Unit::PerSecond, drops)
            .limit(Some(0.0))
            .crossed(crossed),
        Evidence::new("udp.in_datagrams", Unit::PerSecond, context.sum(&metric::UDP_IN_DATAGRAMS)),
    ];
    if let Some((series, reading, limit)) = &fullest {
        evidence.push(
            Evidence::new(
                format!("socket.receive_queue of port {}", series.label("port")),
                Unit::Bytes,
                *reading,
            )
            .limit(Some(*limit)),
        );
    }
    evidence.extend(hot.map(|thread| {
        Evidence::new(format!("thread.cpu of {}", thread.label()), Unit::Ratio, thread.cpu).limit(Some(1.0))
    }));
    let change = if is_udp_mem {
        "Raise net.ipv4.udp_mem: all UDP sockets of the host together have used up what they may".to_owned()
    } else {
        let larger = fullest.map_or_else(String::new, |(_, _, limit)| format!(" beyond {}", bytes(limit)));
        format!(
            "A larger receive buffer{larger}: net.core.rmem_max{rmem} and the server's SO_RCVBUF; more readers (SO_REUSEPORT) where it is full all the time"
        )
    };
    Candidate {
        used: share.clamp(0.0, 1.0),
        queue: Some(1.0),
        refuses: drops.begins(),
        crossed_at_s: crossed,
        series: context.ids(if of_sockets.fail() > 0.0 {
            &metric::SOCKET_DROPS
        } else {
            &metric::UDP_RCVBUF_ERRORS
        }),
        evidence,
        change,
        // A thread that is full does not read: the buffer is then where it shows.
        at_most: if hot.is_some_and(is_full) { 65.0 } else { 100.0 },
        ..Candidate::new(
            KEY,
            format!("The UDP receive buffer{port} is full: datagrams are thrown away"),
            "UDP receive buffer",
        )
    }
    .suspect()
}

fn is_full(thread: &Thread<'_>) -> bool {
    thread.cpu.fail() >= super::threads::FULL_MIN
}
