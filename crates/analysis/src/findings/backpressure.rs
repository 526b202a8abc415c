//! The network takes less than the server wants to send: send buffers are full or TCP windows
//! closed.

use throng_observation::MediaKind;
use throng_observation::host::catalogue as metric;

use super::{Candidate, CheckResult, Evidence, NOT_DELIVERED, NoFinding, ruled_out};
use crate::context::Context;

pub(super) const KEY: &str = "backpressure";
/// Errors a second; fewer are a single receiver's problem.
const ERRORS_MIN: f64 = 1.0;
/// Share of segments that were retransmitted: one in fifty means a lossy path or a receiver that
/// stopped reading.
const AGAIN_MIN: f64 = 0.02;
/// From this share on of one kind, the packets that users missed are of that kind.
const OF_ONE_KIND_MIN: f64 = 0.9;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let refused = context.rate(&metric::UDP_SNDBUF_ERRORS);
    let again = context.rate(&metric::TCP_SEGMENTS_RETRANSMITTED);
    if refused.fail.is_none() && again.fail.is_none() {
        return Err(NoFinding::NotMonitored("full send buffers"));
    }
    let sent = context.rate(&metric::TCP_SEGMENTS_OUT);
    let share = again.with(sent, |again, sent| if sent > 0.0 { again / sent } else { 0.0 });
    let is_refused = refused.fail() >= ERRORS_MIN;
    let is_repeated = again.fail() >= ERRORS_MIN && share.fail() >= AGAIN_MIN;
    if !is_refused && !is_repeated {
        return ruled_out(format!(
            "Send buffers: {:.1} datagrams refused a second, {:.1} TCP segments retransmitted",
            refused.fail(),
            again.fail()
        ));
    }
    let crossed = context
        .crossed_metric(&metric::UDP_SNDBUF_ERRORS, ERRORS_MIN)
        .or(context.crossed_metric(&metric::TCP_SEGMENTS_RETRANSMITTED, ERRORS_MIN));
    Ok(Candidate {
        used: if is_refused { 1.0 } else { (share.fail() / (2.0 * AGAIN_MIN)).clamp(0.0, 1.0) },
        queue: refused.growth(0.5).into_iter().chain(share.growth(0.005)).reduce(f64::max),
        refuses: is_refused && refused.begins(),
        crossed_at_s: crossed,
        series: context.ids(&metric::UDP_SNDBUF_ERRORS),
        evidence: [
            Some(
                Evidence::per_second("udp.sndbuf_errors", refused)
                    .limit(0.0)
                    .crossed(crossed)
                    .decides_if(is_refused),
            ),
            context.users.have_packets().then(|| missed(context)),
            Some(
                Evidence::ratio("TCP segments retransmitted, of those sent", share)
                    .of_errors()
                    .decides_if(is_repeated),
            ),
            Some(Evidence::per_second("tcp.timeouts", context.rate(&metric::TCP_TIMEOUTS))),
            Some(Evidence::ratio(NOT_DELIVERED, context.users.shortfall_ratio)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        change: "Use larger send buffers (net.core.wmem_max, SO_SNDBUF) or pacing; find the \
                 receivers that read slowly"
            .into(),
        ..Candidate::new(
            KEY,
            "The network takes less than the server wants to send",
            "send buffers",
        )
    })
}

/// What users missed at first, to lay beside what was refused, and of which streams.
fn missed(context: &Context<'_>) -> Evidence {
    let all = context.missed(None);
    let is_of =
        |kind: &MediaKind| context.missed(Some(*kind)).fail() > OF_ONE_KIND_MIN * all.fail();
    let kind = [MediaKind::Audio, MediaKind::Video].into_iter().find(is_of);
    let packets =
        kind.map_or_else(|| "packets".to_owned(), |kind| format!("{} packets", kind.key()));
    Evidence::per_second(format!("{packets} that users missed at first"), all)
}
