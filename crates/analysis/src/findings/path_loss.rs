//! Packets leave the server's card and do not arrive: something on the way drops them.
//!
//! Told by comparison: of what the card sends, the part that no user receives grows as the packets do that users miss, and
//! nothing of the server or the generator counts a drop. Where users miss more and the gap stays as it was, the packets were
//! never sent.

use throng_observation::RunTime;
use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{MeasuredSeries, Window};
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading, whole_seconds};

pub(super) const KEY: &str = "path_loss";
/// Missing at first of what was sent, above the floor's: as much as a user-second may lose for good. Packets that were sent
/// again came late, and frames waited for them.
const LOSS_MIN: f64 = 0.01;
/// With so much missing nobody watches.
const LOSS_FULL: f64 = 0.05;
/// Of what users miss more, so much at least is missing between the card and them; the rest is other traffic of the card.
const GAP_OF_LOSS_MIN: f64 = 0.5;
/// With more other traffic than this on the card, what it sends says nothing of the users.
const BESIDE_MAX: f64 = 0.5;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let Some(line) = way_to_users(context) else {
        return CheckResult::NotMonitored("what the server's card sends");
    };
    let interface = line.label("interface");
    let loss = context.users.missing_ratio;
    // Where not even the smallest crowd was served well the floor is no measure: it is what has to be explained.
    let has_floor = context.windows.pass.is_some();
    let floor = loss.before().filter(|_| has_floor).unwrap_or(0.0);
    if loss.fail() - floor < LOSS_MIN {
        return CheckResult::RuledOut(format!(
            "Packets lost on the way: {} of what was sent",
            percent(loss.fail())
        ));
    }
    // The same seconds on both sides, and their mean: a median leaves out the bursts of key frames.
    let of_card = context.reading(|window| line.mean(whole_seconds(window)));
    let sent = of_card.less(own_on(context, interface));
    let gap =
        sent.with(context.users.received, |sent, received| ((sent - received) / sent.max(1.0)).max(0.0));
    let beside = gap.pass.or(gap.base).filter(|_| has_floor).unwrap_or(0.0);
    if beside > BESIDE_MAX {
        return CheckResult::RuledOut(format!(
            "Lost on the way: {interface} sends more to others than to the users ({} of it), so that it cannot be told",
            percent(beside)
        ));
    }
    // The nearer load shares more of what is not media with the failing one.
    let grown = |of: Reading| of.fail() - of.pass.or(of.base).filter(|_| has_floor).unwrap_or(0.0);
    if grown(gap) < GAP_OF_LOSS_MIN * grown(loss) {
        return CheckResult::RuledOut(format!(
            "Lost on the way: no; users miss {} of the packets, and what {interface} sends and nobody receives went from {} to {}: they were not sent",
            percent(loss.fail()),
            percent(gap.pass.or(gap.base).unwrap_or(0.0)),
            percent(gap.fail())
        ));
    }
    let drops = [&metric::QDISC_DROPS, &metric::NIC_TX_DROPPED, &metric::UDP_SNDBUF_ERRORS]
        .map(|metric| context.rate(metric).fail())
        .iter()
        .sum::<f64>();
    if drops >= 1.0 {
        return CheckResult::RuledOut("Packets are lost before they leave the server, not on the way".into());
    }
    let crossed = context.windows.first_bad_s.map(|second| second as f64);
    let own_drops = Reading { fail: Some(drops), ..Reading::default() };
    Candidate {
        used: ((loss.fail() - floor) / LOSS_FULL).clamp(0.0, 1.0),
        queue: if has_floor { loss.growth(0.002) } else { None },
        crossed_at_s: crossed,
        series: vec![line.series.id],
        evidence: vec![
            Evidence::new("packets missing at first, of those expected", Unit::Ratio, loss).crossed(crossed).of_errors(),
            Evidence::new(format!("sent by {interface} and received by nobody, of what it sent"), Unit::Ratio, gap),
            Evidence::new("packets lost for good, of those expected", Unit::Ratio, context.users.loss_ratio),
            Evidence::new(format!("sent by {interface}, without our own packets"), Unit::BytesPerSecond, sent),
            Evidence::new("received by all users", Unit::BytesPerSecond, context.users.received),
            Evidence::new("packets dropped by the server's host", Unit::PerSecond, own_drops).limit(Some(0.0)),
        ],
        change: "Look at the way between server and users: switch and router counters, a shaper or firewall in between, the provider's limit; then at the receiving host's card".into(),
        ..Candidate::new(KEY, "Packets leave the server and are lost on the way", "network path")
    }
    .suspect()
}

/// The card by which the users are served: what it sends is nearest to what they receive, under the load that passed.
fn way_to_users<'a>(context: &Context<'a>) -> Option<MeasuredSeries<'a>> {
    let received = context.users.received;
    let window = context.windows.pass.or(context.windows.base).unwrap_or(context.fail).window;
    let received = received.pass.or(received.base).or(received.fail).unwrap_or(0.0);
    let off = |line: &MeasuredSeries<'_>| {
        let sent = line.mean(whole_seconds(window)).unwrap_or(0.0);
        ((sent + 1.0) / (received + 1.0)).ln().abs()
    };
    context.host.metric(metric::NIC_TX_BYTES.name).iter().copied().min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// What the generator itself sent through the interface, bytes a second: loopback carries both directions, and there our
/// reports and requests for lost packets stand with the server's packets.
fn own_on(context: &Context<'_>, interface: &str) -> Reading {
    if interface != "lo" {
        return Reading::default();
    }
    context.reading(|window: Window| {
        let window = whole_seconds(window);
        let seconds = RunTime(window.from_us).second()..RunTime(window.until_us).second();
        let rows = context.run.generator.iter().filter(|row| seconds.contains(&row.second));
        let bytes: u64 = rows.map(|row| row.sent_bytes).sum();
        Some(bytes as f64 / window.seconds())
    })
}
