//! The server could send and the way out does not take it: send buffers are full, windows are closed.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;

use super::{Candidate, CheckResult, Evidence};
use crate::context::Context;

pub(super) const KEY: &str = "backpressure";
/// A second; fewer are somebody's bad moment.
const ERRORS_MIN: f64 = 1.0;
/// Of the segments that were sent: one in fifty again is a way that loses or a receiver that stopped.
const AGAIN_MIN: f64 = 0.02;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let refused = context.rate(&metric::UDP_SNDBUF_ERRORS);
    let again = context.rate(&metric::TCP_SEGMENTS_RETRANSMITTED);
    if refused.fail.is_none() && again.fail.is_none() {
        return CheckResult::NotMonitored("full send buffers");
    }
    let sent = context.rate(&metric::TCP_SEGMENTS_OUT);
    let share = again.with(sent, |again, sent| if sent > 0.0 { again / sent } else { 0.0 });
    let is_refused = refused.fail() >= ERRORS_MIN;
    let is_repeated = again.fail() >= ERRORS_MIN && share.fail() >= AGAIN_MIN;
    if !is_refused && !is_repeated {
        return CheckResult::RuledOut(format!(
            "Send buffers: {:.1} datagrams refused a second, {:.1} TCP segments sent again",
            refused.fail(),
            again.fail()
        ));
    }
    let crossed = context
        .crossed_metric(&metric::UDP_SNDBUF_ERRORS, ERRORS_MIN)
        .or(context.crossed_metric(&metric::TCP_SEGMENTS_RETRANSMITTED, ERRORS_MIN));
    Candidate {
        used: if is_refused { 1.0 } else { (share.fail() / (2.0 * AGAIN_MIN)).clamp(0.0, 1.0) },
        queue: refused.growth(0.5).into_iter().chain(share.growth(0.005)).reduce(f64::max),
        refuses: is_refused && refused.begins(),
        crossed_at_s: crossed,
        series: context.ids(&metric::UDP_SNDBUF_ERRORS),
        evidence: vec![
            Evidence::new("udp.sndbuf_errors", Unit::PerSecond, refused)
                .limit(Some(0.0))
                .crossed(crossed)
                .decides_if(is_refused),
            Evidence::new("TCP segments sent again, of those sent", Unit::Ratio, share)
                .of_errors()
                .decides_if(is_repeated),
            Evidence::new("tcp.timeouts", Unit::PerSecond, context.rate(&metric::TCP_TIMEOUTS)),
        ],
        change:
            "Larger send buffers (net.core.wmem_max, SO_SNDBUF), or pacing; look at who is slow to receive"
                .into(),
        ..Candidate::new(KEY, "The way out takes less than the server wants to send", "send buffers")
    }
    .suspect()
}
