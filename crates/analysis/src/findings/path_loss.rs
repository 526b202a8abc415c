//! Packets leave the server's card and do not arrive: something on the way drops them.
//!
//! Told by comparison: what the card sends to each user stays as it was, what users receive does not, and nothing of the
//! server or the generator counts a drop.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, Evidence, Seen};
use crate::scene::{Reading, Scene};
use crate::windows::Stretch;

pub(super) const KEY: &str = "path_loss";
/// Missing at first of what was sent, above the floor's: as much as a user-second may lose for good. Packets that were sent
/// again came late, and frames waited for them.
const LOSS_MIN: f64 = 0.01;
/// With so much missing nobody watches.
const LOSS_FULL: f64 = 0.05;
/// The card still sends each user nearly what it did.
const STILL_SENT_MIN: f64 = 0.97;

pub(super) fn check(scene: &Scene<'_>) -> Seen {
    let Some((line, sent)) = scene.top(&metric::NIC_TX_BYTES) else {
        return Seen::Unseen("what the server's card sends");
    };
    let loss = scene.users.missing_ratio;
    // Where not even the smallest crowd was served well the floor is no measure: it is what has to be explained.
    let has_floor = scene.windows.pass.is_some();
    let floor = loss.base.or(loss.pass).filter(|_| has_floor).unwrap_or(0.0);
    if loss.fail() - floor < LOSS_MIN {
        return Seen::Fine(format!("Packets lost on the way: {} of what was sent", percent(loss.fail())));
    }
    let each = |value: Option<f64>, stretch: Option<Stretch>| {
        Some(value? / stretch.filter(|stretch| stretch.users > 0.0)?.users)
    };
    let per_user = |of: Reading| Reading {
        base: each(of.base, scene.windows.base),
        pass: each(of.pass, scene.windows.pass),
        fail: each(of.fail, Some(scene.fail)),
    };
    let (sent_each, received_each) = (per_user(sent), per_user(scene.users.received));
    let kept = |of: &Reading| Some(of.fail? / of.pass.or(of.base).filter(|before| *before > 0.0)?);
    let still_sent = kept(&sent_each).is_none_or(|kept| kept >= STILL_SENT_MIN);
    let drops = [&metric::QDISC_DROPS, &metric::NIC_TX_DROPPED, &metric::UDP_SNDBUF_ERRORS]
        .map(|metric| scene.rate(metric).fail())
        .iter()
        .sum::<f64>();
    if !still_sent || drops >= 1.0 {
        return Seen::Fine("Packets are lost before they leave the server, not on the way".into());
    }
    let crossed = scene.windows.first_bad_s.map(|second| second as f64);
    let own_drops = Reading { fail: Some(drops), ..Reading::default() };
    Candidate {
        used: ((loss.fail() - floor) / LOSS_FULL).clamp(0.0, 1.0),
        queue: if has_floor { loss.growth(0.002) } else { None },
        crossed_at_s: crossed,
        series: vec![line.series.id],
        evidence: vec![
            Evidence::new("packets missing at first, of those expected", Unit::Ratio, loss).crossed(crossed),
            Evidence::new("packets lost for good, of those expected", Unit::Ratio, scene.users.loss_ratio),
            Evidence::new(format!("sent by {} for each user", line.label("interface")), Unit::BytesPerSecond, sent_each),
            Evidence::new("received by each user", Unit::BytesPerSecond, received_each),
            Evidence::new("packets dropped by the server's host", Unit::PerSecond, own_drops).limit(Some(0.0)),
        ],
        change: "Look at the way between server and users: switch and router counters, a shaper or firewall in between, the provider's limit; then at the receiving host's card".into(),
        ..Candidate::new(KEY, "Packets leave the server and are lost on the way", "network path")
    }
    .seen()
}
