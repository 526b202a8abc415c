//! Packets leave the server's network card and are lost on the path.
//!
//! Detected by comparison: the part of the card's traffic that no user receives grows with the
//! packets that users miss, and no counter of the server or the generator shows a drop. If users
//! miss more and that gap does not grow, the packets were never sent.

use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::{MeasuredSeries, Window};
use throng_observation::units::percent;

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading, accounts_for};
use crate::windows::{second_range, whole_seconds};

pub(super) const KEY: &str = "path_loss";
/// Growth of the packets missing at first over the baseline: as much as a user-second may lose for
/// good. Retransmitted packets come late, and frames wait for them.
const LOSS_MIN: f64 = 0.01;
/// Loss at which no stream is watchable.
const LOSS_FULL: f64 = 0.05;
/// The least share of the additional loss that is missing between the card and the users; other
/// traffic of the card hides the rest.
const GAP_OF_LOSS_MIN: f64 = 0.5;
/// Above this share of other traffic, what the card sends is no measure of what the users should
/// receive.
const OTHER_TRAFFIC_MAX: f64 = 0.5;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let line = card_to_users(context)
        .ok_or(NoFinding::NotMonitored("the traffic of the server's network card"))?;
    if !context.users.have_packets() {
        // TCP and QUIC repeat what is lost: the server's retransmissions show it (backpressure).
        return Err(NoFinding::NotApplicable);
    }
    let interface = line.label("interface");
    let loss = context.users.missed_ratio;
    // If even the smallest crowd had bad service, its loss is what has to be explained and no
    // baseline.
    let has_baseline = context.windows.pass.is_some();
    let baseline = loss.before().filter(|_| has_baseline).unwrap_or(0.0);
    if loss.fail() - baseline < LOSS_MIN {
        return ruled_out(format!(
            "Packets lost on the path: {} of what was sent",
            percent(loss.fail())
        ));
    }
    // The mean of the same seconds on both sides: a median would leave out bursts of key frames.
    let of_card = context.reading(|window| line.mean(whole_seconds(window)));
    let sent = of_card.less(own_on(context, interface));
    let gap = sent.with(context.users.received, |sent, received| {
        ((sent - received) / sent.max(1.0)).max(0.0)
    });
    let other_traffic = gap.pass.or(gap.base).filter(|_| has_baseline).unwrap_or(0.0);
    if other_traffic > OTHER_TRAFFIC_MAX {
        return ruled_out(format!(
            "Loss on the path: not known, because {interface} sends more to others than to the \
             users ({} of its traffic)",
            percent(other_traffic)
        ));
    }
    // The load that passed has more of the non-media traffic in common with the failing one.
    let grown =
        |of: Reading| of.fail() - of.pass.or(of.base).filter(|_| has_baseline).unwrap_or(0.0);
    // Loss that grows evenly through the limit was nearly as high where service just passed: then
    // both loads show where it arose, and users felt it.
    let is_accounted = loss.begins() && accounts_for(gap, loss);
    if !is_accounted && grown(gap) < GAP_OF_LOSS_MIN * grown(loss) {
        return ruled_out(format!(
            "Loss on the path: no; users miss {} of the packets, but the part of {interface}'s \
             traffic that no user receives went from {} to {}: they were not sent",
            percent(loss.fail()),
            percent(gap.pass.or(gap.base).unwrap_or(0.0)),
            percent(gap.fail())
        ));
    }
    // Another interface may drop what is for others.
    let of_line = [&metric::QDISC_DROPS, &metric::NIC_TX_DROPPED]
        .map(|metric| context.rate_of(metric, &context.on_interface(metric, &line)).fail());
    let drops = of_line.iter().sum::<f64>() + context.rate(&metric::UDP_SNDBUF_ERRORS).fail();
    if drops >= 1.0 {
        return ruled_out("Packets are lost before they leave the server, not on the path");
    }
    let loss = Reading { felt: Some(is_accounted), ..loss };
    let (crossed, own_drops) = (context.first_bad_s(), Reading::at_failure(drops));
    Ok(Candidate {
        used: ((loss.fail() - baseline) / LOSS_FULL).clamp(0.0, 1.0),
        queue: if has_baseline { loss.growth(0.002) } else { None },
        crossed_at_s: crossed,
        series: vec![line.series.id],
        evidence: vec![
            Evidence::ratio("packets missing at first, of those expected", loss)
                .crossed(crossed)
                .of_errors(),
            Evidence::ratio(
                format!("sent by {interface} and received by no user, of what it sent"),
                gap,
            ),
            Evidence::ratio("packets lost for good, of those expected", context.users.loss_ratio),
            Evidence::bytes_per_second(
                format!("sent by {interface}, without the generator's packets"),
                sent,
            ),
            Evidence::bytes_per_second("received by all users", context.users.received),
            Evidence::per_second("packets dropped by the server's host", own_drops).limit(0.0),
        ],
        change: "Check the path between server and users: switch and router counters, a shaper or \
                 firewall, the provider's limit; then the receiving host's network card"
            .into(),
        ..Candidate::new(KEY, "Packets leave the server and are lost on the path", "network path")
    })
}

/// The card that serves the users: under the load that passed, or else that which failed, what it
/// sends is nearest to what they receive. No users are there at the baseline.
fn card_to_users<'a>(context: &Context<'a>) -> Option<MeasuredSeries<'a>> {
    let received = context.users.received;
    let passed = context.windows.pass.map(|pass| pass.window).zip(received.pass);
    let failed = (context.fail.window, received.fail.unwrap_or(0.0));
    let (window, received) = passed.unwrap_or(failed);
    let off = |line: &MeasuredSeries<'_>| {
        let sent = line.mean(whole_seconds(window)).unwrap_or(0.0);
        ((sent + 1.0) / (received + 1.0)).ln().abs()
    };
    context
        .host
        .metric(metric::NIC_TX_BYTES.name)
        .iter()
        .copied()
        .min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// What the generator itself sent through the interface, bytes a second: loopback carries both
/// directions, so that its counter includes the generator's reports and NACKs.
fn own_on(context: &Context<'_>, interface: &str) -> Reading {
    if interface != "lo" {
        return Reading::default();
    }
    context.reading(|window: Window| {
        let window = whole_seconds(window);
        let seconds = second_range(window);
        let rows = context.run.generator.iter().filter(|row| seconds.contains(&row.second));
        let bytes: u64 = rows.map(|row| row.sent_bytes).sum();
        Some(bytes as f64 / window.seconds())
    })
}
