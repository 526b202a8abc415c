//! A real Chromium and throng's viewers, both on the stage, agree on frame rate and on induced
//! loss.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::Value;
use throng_sim::chromium::Chromium;
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::throng::{Running, Stage, figure, valid};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);

/// The video track from `getStats()`: packets received, packets lost, frames decoded, milliseconds
/// of the clock.
const INBOUND_VIDEO: &str = "(async () => {
    const stats = [...(await window.pc.getStats()).values()];
    const video = stats.find(s => s.type === 'inbound-rtp' && s.kind === 'video');
    return video ? [video.packetsReceived, video.packetsLost, video.framesDecoded, video.timestamp] : null;
})()";

fn inbound(browser: &mut Chromium) -> [f64; 4] {
    let given_up_at = std::time::Instant::now() + Duration::from_secs(20);
    while std::time::Instant::now() < given_up_at {
        if let Ok(Value::Array(figures)) = browser.evaluate(INBOUND_VIDEO)
            && figures.len() == 4
            && figures[2].as_f64() > Some(0.0)
        {
            return std::array::from_fn(|at| figures[at].as_f64().unwrap_or(0.0));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("Chromium shows no video");
}

/// What Chromium measured between two readings: loss ratio (before retransmission), frames per
/// second.
fn between(before: [f64; 4], after: [f64; 4]) -> (f64, f64) {
    let [received, lost, frames, ms] = std::array::from_fn(|at| after[at] - before[at]);
    (lost / (received + lost), frames / ms * 1e3)
}

/// `canary` compares the same figures with the browsers of a run.
mod long {
    use super::*;

    /// 50 s: a run of 10 s, and one of 35 s, in which enough packets are lost to compare.
    #[test]
    #[ignore = "50 s of Chromium and eight viewers: scripts/proof.sh long, make proof"]
    fn chromium_and_our_viewers_agree_on_frame_rate_and_loss() {
        if !requires_root() {
            return;
        }
        let namespace = Namespace::with_veth("browser", ADDRESS).unwrap();
        let stage = Stage::start(Some(&namespace), &format!("{ADDRESS}:7080"), &["--listen-any"]);
        let mut browser = Chromium::start(&namespace).unwrap();
        browser.load(&format!("http://{ADDRESS}:7080/player")).unwrap();
        inbound(&mut browser);
        // At 2 % the 3,000 packets that one browser gets in 30 s leave a standard error of 0.26
        // points.
        for (per_mille, seconds) in [(0, 5), (20, 30)] {
            if per_mille > 0 {
                namespace.lose(per_mille, None).unwrap();
                std::thread::sleep(Duration::from_secs(2));
            }
            let length = format!("{}s", seconds + 5);
            let view = [
                "view",
                &stage.target(),
                "-n",
                "8",
                "--every",
                "50ms",
                "--for",
                &length,
                "--warm-up",
                "3s",
            ];
            let (ran, (chromium_loss, chromium_fps)) = valid(|| {
                let mut running = Running::start(Some(&namespace), &view);
                running.when_playing(8);
                let before = inbound(&mut browser);
                std::thread::sleep(Duration::from_secs(seconds));
                let seen = between(before, inbound(&mut browser));
                (running.wait(), seen)
            });
            let ran = ran.expect_code(0);
            let summary = ran.summary();
            let [received, recovered, lost] = ["original", "recovered", "lost"]
                .map(|what| figure(&summary, &format!("video.packets_{what}")));
            let our_loss = (recovered + lost) / (received + recovered + lost);
            let our_fps = figure(&summary, "video.fps_p50");
            let both = format!(
                "Chromium {chromium_loss:.4} {chromium_fps:.1} fps, \
                 ours {our_loss:.4} {our_fps:.1} fps"
            );
            assert!((chromium_loss - our_loss).abs() < 0.01, "{both}\n{ran}");
            assert!((chromium_fps - our_fps).abs() < 2.0, "{both}\n{ran}");
            assert!((our_loss - f64::from(per_mille) / 1e3).abs() < 0.01, "{both}\n{ran}");
        }
    }
}
