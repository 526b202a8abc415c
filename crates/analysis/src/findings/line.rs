//! The line is full, or a shaper delays the packets.

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::MeasuredSeries;
use throng_observation::units::{bit_rate, percent};

use super::score::used_up;
use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "line_rate";
/// Share of a known speed above which frames wait for each other, whatever the mean.
const FULL_MIN: f64 = 0.93;
/// Median backlog, packets: a queue in half of the seconds is no burst.
const QUEUED_PACKETS_MIN: f64 = 1.0;
/// Packets that the queue dropped, a second.
const DROPS_MIN: f64 = 1.0;
/// Overlimits per packet sent. A shaper counts an overlimit each time it has to delay its queue: at
/// one per packet most packets waited, also if bursts are over before the backlog is read.
const OVERLIMITS_MIN: f64 = 1.0;
/// The least share of the load that an interface must send to be what holds it up: of what the
/// users receive, or of the growth of the one that grew most, whichever is less. Another service
/// may have a small shaper of its own.
const OF_LOAD_MIN: f64 = 0.1;
/// What is sent, of the speed, above which that is none: tunnels say 10 Mbit/s, pairs of virtual
/// interfaces 10 Gbit/s, and send what they can.
const OF_SPEED_MAX: f64 = 1.05;

/// An interface and its queue.
struct Line<'a> {
    series: MeasuredSeries<'a>,
    interface: &'a str,
    sent: Reading,
    /// Bytes a second, if known.
    speed: Option<f64>,
    backlog: Reading,
    drops: Reading,
    overlimits: Reading,
    /// Overlimits per packet sent.
    delayed: Reading,
}

impl<'a> Line<'a> {
    /// The interface that sends a share of the load and holds packets back. If there is none, that
    /// which sends the load: what feeds the server may come by one that is busier.
    fn of_load(context: &Context<'a>) -> Option<Self> {
        let all = context.host.metric(metric::NIC_TX_BYTES.name).iter();
        let mut lines: Vec<Self> = all.map(|series| Self::of(context, *series)).collect();
        let growth = |line: &Self| line.sent.growth_at_failure();
        lines.sort_by(|a, b| growth(a).total_cmp(&growth(b)));
        let most = lines.last().map(growth)?;
        let least = OF_LOAD_MIN * most.min(context.users.received.fail());
        let holds = |line: &Self| growth(line) >= least && (line.is_full() || line.is_shaped());
        let at = lines.iter().rposition(holds);
        at.map(|at| lines.swap_remove(at)).or_else(|| lines.pop())
    }

    fn of(context: &Context<'a>, series: MeasuredSeries<'a>) -> Self {
        let sent = context.median(&series);
        let interface = series.label("interface");
        let mean = |series: &MeasuredSeries<'_>| Reading {
            fail: [context.fail.window, context.onset]
                .into_iter()
                .filter_map(|w| series.mean(w))
                .reduce(f64::max),
            ..context.reading(|window| series.mean(window))
        };
        // A class and its parent count the same packets: the highest of them, not their sum.
        let worst = |metric: &Metric, of: &dyn Fn(&MeasuredSeries<'_>) -> Reading| {
            let list = context.on_interface(metric, &series);
            Reading::worst(list.iter().map(of))
        };
        let overlimits = worst(&metric::QDISC_OVERLIMITS, &mean);
        let packets = context.on_interface(&metric::NIC_TX_PACKETS, &series).first().map(mean);
        Self {
            series,
            interface,
            sent,
            speed: series
                .limit()
                .filter(|limit| *limit > 0.0 && sent.fail() <= OF_SPEED_MAX * limit),
            backlog: worst(&metric::QDISC_BACKLOG_PACKETS, &|series| context.median(series)),
            drops: worst(&metric::QDISC_DROPS, &|series| {
                context.felt_by_users(&metric::QDISC_DROPS, &[*series], mean(series))
            }),
            overlimits,
            delayed: overlimits
                .with(packets.unwrap_or_default(), |delayed, sent| delayed / sent.max(1.0)),
        }
    }

    fn used_ratio(&self) -> f64 {
        self.speed.map_or(0.0, |speed| self.sent.fail() / speed)
    }

    fn is_full(&self) -> bool {
        self.used_ratio() >= FULL_MIN
    }

    fn is_shaped(&self) -> bool {
        let is_queueing = self.backlog.fail() >= QUEUED_PACKETS_MIN
            || self.drops.fail() >= DROPS_MIN
            || self.delayed.fail() >= OVERLIMITS_MIN;
        (self.overlimits.fail() > 0.0 || self.drops.fail() >= DROPS_MIN) && is_queueing
    }

    fn crossed(&self, context: &Context<'_>) -> Option<f64> {
        let of = |metric: &Metric, level: f64| {
            context.crossed(&context.on_interface(metric, &self.series), level)
        };
        self.speed
            .and_then(|speed| context.crossed(&[self.series], FULL_MIN * speed))
            .or_else(|| of(&metric::QDISC_DROPS, DROPS_MIN))
            .or_else(|| of(&metric::QDISC_BACKLOG_PACKETS, QUEUED_PACKETS_MIN))
    }

    fn title(&self) -> String {
        let (interface, rate) = (self.interface, bit_rate(self.sent.fail() * 8.0));
        match self.speed.filter(|_| self.is_full()) {
            Some(speed) => format!("{interface} is full: {rate} of {}", bit_rate(speed * 8.0)),
            None => format!("Packets queue at {interface}: a line or shaper of about {rate}"),
        }
    }

    fn evidence(&self, crossed: Option<f64>) -> Vec<Evidence> {
        let name = |counter: &str| format!("{counter} of {}", self.interface);
        vec![
            Evidence::bytes_per_second(name("nic.tx_bytes"), self.sent)
                .limit(self.speed)
                .crossed(crossed)
                .decides_if(self.is_full()),
            Evidence::count(name("qdisc.backlog_packets"), self.backlog).decides(),
            Evidence::per_second(name("qdisc.drops"), self.drops).limit(0.0).decides(),
            Evidence::per_second(name("qdisc.overlimits"), self.overlimits)
                .decides_if(self.delayed.fail() >= OVERLIMITS_MIN),
        ]
    }
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let line = Line::of_load(context).ok_or(NoFinding::NotMonitored("the network interfaces"))?;
    if !line.is_full() && !line.is_shaped() {
        let of = line.speed.map_or_else(
            || " (its speed is not known)".into(),
            |speed| format!(" of {}", bit_rate(speed * 8.0)),
        );
        return ruled_out(format!(
            "Line {}: {} sent{of}, {:.0} packets queued, {:.0} dropped a second",
            line.interface,
            bit_rate(line.sent.fail() * 8.0),
            line.backlog.fail(),
            line.drops.fail()
        ));
    }
    let crossed = line.crossed(context);
    let queues = [
        line.backlog.growth(0.5),
        line.drops.growth(0.1),
        line.delayed.growth(0.1),
        context.backlog(),
    ];
    Ok(Candidate {
        used: used_up(line.used_ratio()).max(if line.is_shaped() { 1.0 } else { 0.0 }),
        queue: queues.into_iter().flatten().reduce(f64::max),
        refuses: line.drops.begins() && line.drops.fail() >= DROPS_MIN,
        demand: context.demand_of(Resource::NicSent, line.interface).cloned(),
        crossed_at_s: crossed,
        series: vec![line.series.series.id],
        evidence: line.evidence(crossed),
        change: "Use a faster line or a wider shaper (tc, the provider's plan), fewer bits for \
                 each user (bitrate, codec, layers), or a second server"
            .into(),
        eases: |demand, _| matches!(demand.resource, Resource::NicSent),
        ..Candidate::new(KEY, line.title(), format!("interface {}", line.interface))
    })
}

/// What is sent by the interface that sends the load, and its share of the line, for evidence of
/// other findings.
pub(super) fn sent_text(context: &Context<'_>) -> String {
    context.most_grown(&metric::NIC_TX_BYTES).map_or_else(String::new, |(line, sent)| {
        let share = line.limit().map_or_else(String::new, |limit| {
            format!(", {} of the line", percent(sent.fail() / limit))
        });
        format!("{} sent{share}", bit_rate(sent.fail() * 8.0))
    })
}
