//! What a share of a crowd needs of its node: an estimate from its plan, for the requests of a pod.

use throng_observation::limits::THREAD_CPU_RATIO_MAX;
use throng_scenario::Plan;

/// Cores per Mbit/s: 157 packets (of 1,050 bytes of video, 174 of audio) at 8.6 µs, the WebRTC
/// viewers of docs/measurements/webrtc-viewers.md on a slow host. Other protocols cost less.
const CORES_PER_MBIT_PER_S: f64 = 0.001_35;

/// Cores per join within a second: 3.6 ms, the same viewers.
const CORES_PER_JOIN: f64 = 0.003_6;

/// Cores of a process with few participants.
const CORES_OWN: f64 = 0.1;

/// Requests are multiples of this, thousandths of a core.
const CPU_STEP_MILLI: u64 = 100;

/// Memory of a participant, bytes: twice the 131 kB of docs/measurements/hls-viewers.md.
const BYTES_PER_USER: f64 = 262e3;

/// Memory of a process with few participants, and a full spool of rows (`--spool-mb`), bytes.
const BYTES_OWN: f64 = 128e6 + 64e6;

/// A media file is read whole, and again when its hash is compared with the plan's.
const COPIES_OF_MEDIA: f64 = 3.0;

/// Requests are multiples of this, MiB.
const MEMORY_STEP_MIB: u64 = 64;

/// What a pod requests.
pub(super) struct Need {
    pub(super) cpu_milli: u64,
    pub(super) memory_mib: u64,
    /// The figures that it comes from.
    pub(super) load: String,
}

impl Need {
    /// That of a part of a plan, with media files of so many bytes together.
    pub(super) fn of(part: &Plan, media_bytes: u64) -> Self {
        let expected = &part.expected;
        let mbit_per_s = expected.server_in_mbit_per_s + expected.server_out_mbit_per_s;
        let joins = f64::from(expected.joins_per_s);
        let busy = mbit_per_s * CORES_PER_MBIT_PER_S + joins * CORES_PER_JOIN;
        let cores = busy / THREAD_CPU_RATIO_MAX + CORES_OWN;
        let bytes = BYTES_OWN
            + f64::from(expected.users) * BYTES_PER_USER
            + media_bytes as f64 * COPIES_OF_MEDIA;
        Self {
            cpu_milli: rounded_up(cores * 1e3, CPU_STEP_MILLI),
            memory_mib: rounded_up(bytes / f64::from(1 << 20), MEMORY_STEP_MIB),
            load: format!(
                "{} participants at a time, {} joins within a second, {mbit_per_s:.0} Mbit/s",
                expected.users, expected.joins_per_s
            ),
        }
    }
}

fn rounded_up(amount: f64, step: u64) -> u64 {
    (amount / step as f64).ceil() as u64 * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_scenario::Scenario;

    #[test]
    fn a_larger_share_requests_more() {
        let need = |size: u32| {
            let text = format!(
                "[target]\nurl = \"whep+http://127.0.0.1/whep\"\n[crowd]\nsize = {size}\n[run]\nduration = \"200s\"\n\
                 [stream]\nvideo = \"1Mbit/s\"\naudio = \"48kbit/s\"\n"
            );
            let plan = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).plan();
            [0, 150_000_000].map(|media_bytes| Need::of(&plan, media_bytes))
        };
        let ([few, with_media], [many, _]) = (need(1), need(1000));
        assert_eq!((few.cpu_milli, few.memory_mib), (200, 192));
        assert_eq!(
            (with_media.cpu_milli, with_media.memory_mib),
            (200, 640),
            "three times 143 MiB more"
        );
        // 1,120 Mbit/s at 1.35 ms and 10 joins at 3.6 ms, at 70 % of a core.
        assert_eq!((many.cpu_milli, many.memory_mib), (2400, 448));
        assert_eq!(many.load, "1000 participants at a time, 10 joins within a second, 1120 Mbit/s");
    }
}
