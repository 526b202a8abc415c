//! The cost of a conference on the real Janus VideoRoom in which all participants send to all.

use std::process::Stdio;
use std::time::Duration;

use anyhow::ensure;
use throng_sim::namespace::Namespace;

use crate::planted::FRAME_RATIO;
use crate::search::Lab;
use crate::stage::CpuOf;

/// Each participant sends the test card of this size (256 kbit/s) and audio.
const PICTURE: &str = "crowd.publish.video=240p";
/// The sizes from which the cost of a participant and of a pair are computed. They are near the
/// limit, since a small conference costs Janus more per participant: its threads sleep and wake for
/// every packet.
const SIZES: [u32; 2] = [6, 12];

/// The cost of a conference, as `a·n + b·n·(n − 1)`: each participant, and each pair.
pub(crate) struct Cost {
    each: f64,
    pair: f64,
}

impl Cost {
    /// From two measured conferences.
    fn of([few, many]: [(u32, f64); 2]) -> Self {
        let each = |(n, used): (u32, f64)| used / f64::from(n);
        let pair = (each(many) - each(few)) / f64::from(many.0 - few.0);
        Self { pair, each: each(few) - pair * f64::from(few.0 - 1) }
    }

    /// The size whose cost is `whole`.
    pub(crate) fn limit(&self, whole: f64) -> f64 {
        let half = (self.each - self.pair) / (2.0 * self.pair);
        (half * half + whole / self.pair).sqrt() - half
    }
}

/// The CPU cost of conferences at `url` in the process `pid`.
pub(crate) fn cpu(lab: &Lab, crowd: &Namespace, url: &str, pid: u32) -> anyhow::Result<Cost> {
    let mut seen = [(0, 0.0); 2];
    for (place, size) in seen.iter_mut().zip(SIZES) {
        let folder = tempfile::tempdir()?;
        let mut command = lab.command(Some(crowd));
        command.args([
            "view",
            url,
            "-n",
            &size.to_string(),
            "--every",
            "200ms",
            "--for",
            "13s",
            "--quiet",
        ]);
        command.args(["--set", PICTURE, "--allow-target", "10.78.0.0/16", "--output"]);
        let mut command = command.arg(folder.path().join("run")).stdout(Stdio::null()).spawn()?;
        std::thread::sleep(Duration::from_secs(5));
        let before = CpuOf::Process.on_cpu_s(pid)?;
        std::thread::sleep(Duration::from_secs(7));
        *place = (size, (CpuOf::Process.on_cpu_s(pid)? - before) / 7.0);
        ensure!(command.wait()?.success(), "the probe of {size} failed");
        // Janus keeps sessions for a short time.
        std::thread::sleep(Duration::from_secs(2));
    }
    Ok(Cost::of(seen))
}

/// The traffic of conferences at `url`, bits a second on the wire, with frame headers.
pub(crate) fn line(lab: &Lab, crowd: &Namespace, url: &str) -> anyhow::Result<Cost> {
    let mut seen = [(0, 0.0); 2];
    for (place, size) in seen.iter_mut().zip(SIZES) {
        let more = ["--set", PICTURE, "--every", "200ms"];
        *place = (size, lab.bits(Some(crowd), url, size, &more)? * FRAME_RATIO);
    }
    Ok(Cost::of(seen))
}

/// The arguments of a search with a conference.
pub(crate) const ASKED: [&str; 4] = ["--set", PICTURE, "--ceiling", "60"];
