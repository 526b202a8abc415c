//! A limit inside the server that no counter of the host shows: the right answer is that no
//! measured resource is the limit.

use super::Planted;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

const RATE_BPS: f64 = 20e6;

pub(super) const PLANTED: Planted = Planted {
    name: "hidden",
    what: "stage, 20 Mbit/s by its own shaper",
    expects: &[],
    verdict: "found",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let probe = Stage::start(lab, None, &["--workers", "1"])?;
    let per_viewer = lab.bits_per_viewer(None, &probe.url)?;
    drop(probe);
    let stage = Stage::start(lab, None, &["--workers", "1", "--egress-cap", "20Mbit/s"])?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "hidden", &stage.url, &watch, &["--ceiling", "200"])?;
    // The shaper counts UDP payloads, the meters also IP and UDP headers: 28 bytes of about 1,100.
    Ok(Outcome { answer, truth: Some(RATE_BPS / (per_viewer * (1.0 - 28.0 / 1100.0))) })
}
