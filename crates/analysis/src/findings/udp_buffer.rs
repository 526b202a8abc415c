//! The receive buffer of a UDP socket is full: datagrams arrive faster than the server reads them.

use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::MeasuredSeries;
use throng_observation::limits::BURST_DROPS_EVENT;
use throng_observation::units::bytes;

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading, Thread};
use crate::windows::second_range;

pub(super) const KEY: &str = "udp_receive_buffer";
/// Drops a second: at a thousand packets a second, fewer than one in two thousand are no problem.
const DROPS_MIN: f64 = 0.5;

/// The fullest receive queue: its series, its size and the size of the buffer.
type Fullest<'a> = Option<(MeasuredSeries<'a>, Reading, f64)>;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let of_host = context.rate(&metric::UDP_RCVBUF_ERRORS);
    let of_sockets = context.rate(&metric::SOCKET_DROPS);
    if of_host.fail.is_none() && of_sockets.fail.is_none() {
        return Err(NoFinding::NotMonitored("full receive buffers of UDP sockets"));
    }
    let drops = server_drops(context, of_host, of_sockets);
    if drops.fail() < DROPS_MIN {
        return ruled_out(format!(
            "UDP receive buffers: {:.1} datagrams dropped a second",
            drops.fail()
        ));
    }
    let fullest = context.fullest(&metric::SOCKET_RECEIVE_QUEUE);
    let share = fullest.as_ref().map_or(0.0, |(_, reading, limit)| reading.fail() / limit);
    let crossed = context
        .crossed_metric(&metric::SOCKET_DROPS, DROPS_MIN)
        .or(context.crossed_metric(&metric::UDP_RCVBUF_ERRORS, DROPS_MIN));
    let port = fullest
        .as_ref()
        .map_or_else(String::new, |(series, ..)| format!(" of port {}", series.label("port")));
    let hottest = context.hottest();
    let source =
        if of_sockets.fail() > 0.0 { &metric::SOCKET_DROPS } else { &metric::UDP_RCVBUF_ERRORS };
    let dropped = Evidence::per_second("datagrams dropped at full receive buffers", drops);
    Ok(Candidate {
        used: share.clamp(0.0, 1.0),
        queue: Some(1.0),
        refuses: drops.begins(),
        crossed_at_s: crossed,
        series: context.ids(source),
        evidence: evidence(context, dropped.limit(0.0).crossed(crossed), &fullest, hottest),
        change: change(context, &fullest),
        // A full thread does not read its socket in time: the buffer is a symptom.
        at_most: if hottest.is_some_and(is_full) { 65.0 } else { 100.0 },
        ..Candidate::new(
            KEY,
            format!("The UDP receive buffer{port} is full: datagrams are dropped"),
            "UDP receive buffer",
        )
    })
}

/// Datagrams that the server's sockets dropped, a second.
fn server_drops(context: &Context<'_>, of_host: Reading, of_sockets: Reading) -> Reading {
    let drops = if of_sockets.fail() > 0.0 {
        of_sockets
    } else {
        of_host.with(generator_drops(context), |all, own| (all - own).max(0.0))
    };
    // Sockets are read only while something is dropped: before that the host's counter shows that
    // nothing was.
    Reading {
        base: drops.base.or(of_host.base),
        pass: drops.pass.or(of_host.pass),
        fail: drops.fail.or(of_host.fail),
        most: drops.most.or(of_host.most),
        felt: drops.felt,
    }
}

/// Datagrams that the generator's own sockets dropped, a second: in the server's namespace the
/// host's counter includes them.
fn generator_drops(context: &Context<'_>) -> Reading {
    context.reading(|window| {
        let seconds = second_range(window);
        let rows = context.run.generator.iter();
        let sockets: f64 = rows
            .filter(|row| row.thread.is_some() && seconds.contains(&row.second))
            .map(|row| row.socket_drops.saturating_sub(row.ring_drops) as f64)
            .sum();
        let events = context.run.events.iter();
        let bursts: f64 = events
            .filter(|event| event.kind == BURST_DROPS_EVENT && seconds.contains(&event.at.second()))
            .map(|event| f64::from(event.count))
            .sum();
        Some((sockets + bursts) / window.seconds().max(1.0))
    })
}

fn evidence(
    context: &Context<'_>,
    dropped: Evidence,
    fullest: &Fullest<'_>,
    hottest: Option<&Thread<'_>>,
) -> Vec<Evidence> {
    let received = Evidence::per_second("udp.in_datagrams", context.sum(&metric::UDP_IN_DATAGRAMS));
    let queue = fullest.as_ref().map(|(series, reading, limit)| {
        let name = format!("socket.receive_queue of port {}", series.label("port"));
        Evidence::bytes(name, *reading).limit(*limit)
    });
    let cpu = hottest.map(|thread| {
        Evidence::ratio(format!("thread.cpu of {}", thread.label()), thread.cpu).limit(1.0)
    });
    [Some(dropped), Some(received), queue, cpu].into_iter().flatten().collect()
}

fn change(context: &Context<'_>, fullest: &Fullest<'_>) -> String {
    if context.rate(&metric::UDP_MEM_ERRORS).fail() > 0.0 {
        return "Raise net.ipv4.udp_mem: all UDP sockets of the host together have reached it"
            .to_owned();
    }
    let larger =
        fullest.as_ref().map_or_else(String::new, |(.., limit)| format!(" than {}", bytes(*limit)));
    let rmem = context.host.info.and_then(|info| info.facts.get("net.core.rmem_max"));
    let rmem = rmem.map_or_else(String::new, |max| format!(" (it is {max})"));
    format!(
        "Use a larger receive buffer{larger}: net.core.rmem_max{rmem} and the server's SO_RCVBUF; \
         more readers (SO_REUSEPORT) if it is full all the time"
    )
}

fn is_full(thread: &Thread<'_>) -> bool {
    thread.cpu.fail() >= super::threads::FULL_MIN
}
