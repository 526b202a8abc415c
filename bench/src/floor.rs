//! Runs the floor: receives and decrypts packets like those of the stream, and does nothing else.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use throng_sim::namespace::Namespace;

use crate::generator::Receive;
use crate::process::{GENERATOR_CPU, SERVER_CPU};
use crate::stream::Rate;

/// The cost of the floor in one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Floor {
    /// How it received.
    pub receive: Receive,
    /// Sockets.
    pub viewers: u32,
    /// Packets received and decrypted.
    pub packets: u64,
    /// The same, a second.
    pub packets_per_s: f64,
    /// CPU time per packet, microseconds.
    pub cpu_us_per_packet: f64,
    /// Packets for which the ring had no room; `None` of sockets, whose drops are not counted.
    pub drops: Option<u64>,
    /// The share of its CPU that the hypervisor withheld.
    pub steal_ratio: f64,
}

impl Floor {
    /// Its name in tables.
    #[must_use]
    pub fn name(receive: Receive) -> &'static str {
        match receive {
            Receive::Sockets => "floor",
            Receive::Ring => "floor, by the ring",
        }
    }
}

/// Runs `program` with packets of the stream's size and rate.
///
/// # Errors
/// When it fails, or received nothing.
pub fn run(
    program: &Path,
    namespace: &Namespace,
    receive: Receive,
    viewers: u32,
    rate: &Rate,
    window: Duration,
) -> Result<Floor> {
    // The floor counts payload bytes; a header of RTP has 12.
    let payload = |bytes: f64| (bytes.round() as u64).saturating_sub(12).to_string();
    let a_frame = (rate.video_packets_per_s / rate.fps as f64).round().max(1.0);
    let mut command = namespace.command("taskset");
    command.args(["-c", &GENERATOR_CPU.to_string()]).arg(program);
    command.args((receive == Receive::Ring).then_some("--ring"));
    for (flag, value) in [
        ("-n", viewers.to_string()),
        ("--seconds", window.as_secs().to_string()),
        ("--fps", rate.fps.to_string()),
        ("--packets-per-frame", a_frame.to_string()),
        ("--video-bytes", payload(rate.video_packet_bytes)),
        ("--audio-bytes", payload(rate.audio_packet_bytes)),
        ("--sender-cpu", SERVER_CPU.to_string()),
    ] {
        command.args([flag, &value]);
    }
    let output = command.output().context("cannot start the floor")?;
    ensure!(
        output.status.success(),
        "the floor failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout)
        .context("the floor printed something else than its result")
}
