//! CPU profile of a transport: sampled stacks of its processes, classified by their innermost
//! functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::{Profile, ProfileMethod};
use throng_watch::profiler::{self, Options};

use crate::Transport;

/// Samples per second: one second gives enough for shares of a percent. Not 1000, which frame rates
/// divide.
const FREQUENCY_HZ: u32 = 997;
/// Functions kept for a row.
const TOP: usize = 5;

/// CPU profile of all processes of a transport, by samples of running functions (user and kernel).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuProfile {
    /// Number of samples.
    pub samples: u64,
    /// Share of copying bytes (memcpy, memmove, the kernel's copies from and to user memory), 0
    /// to 1.
    pub copying_ratio: f64,
    /// Share of masking and unmasking (the XOR of each byte that WebSocket requires of a client),
    /// with the code inlined around it, 0 to 1.
    pub masking_ratio: f64,
    /// Share of writing or reading the payload itself (filling a picture, checking it), 0 to 1.
    pub payload_ratio: f64,
    /// The most frequent functions of all processes.
    pub functions: Vec<FunctionShare>,
    /// Why nothing could be sampled, or which permission would have shown more.
    pub missing: Option<String>,
}

/// A function and how often it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionShare {
    /// Name of the function.
    pub function: String,
    /// Its file, or `[kernel]`.
    pub module: String,
    /// Share of the samples in which it was the innermost, 0 to 1.
    pub ratio: f64,
}

/// A profile that is being recorded.
pub(crate) struct Sampling {
    sampling: Result<profiler::RunningProfile, String>,
    is_masked: bool,
}

impl Sampling {
    pub(crate) fn start(transport: Transport, pids: &[u32]) -> Self {
        let options = Options {
            frequency_hz: FREQUENCY_HZ,
            // Thread states, the method without privileges, show what threads wait for and not what
            // runs.
            method: Some(ProfileMethod::CpuClock),
            children: false,
            unwind: false,
            ..Options::default()
        };
        Self {
            sampling: profiler::start(pids, options).map_err(|error| error.to_string()),
            is_masked: matches!(transport, Transport::Websocket | Transport::WebsocketPython),
        }
    }

    pub(crate) fn spent(self) -> CpuProfile {
        match self.sampling {
            Ok(sampling) => CpuProfile::of(&sampling.stop(), self.is_masked),
            Err(missing) => CpuProfile { missing: Some(missing), ..CpuProfile::default() },
        }
    }
}

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FunctionKind {
    Copying,
    Masking,
    Payload,
    Other,
}

impl FunctionKind {
    /// By the function's name, in glibc, the kernel, tungstenite, the websockets package and this
    /// program.
    ///
    /// Of a masked WebSocket, what remains in this program's calls into tungstenite is its masking
    /// loop: it is inlined there, while copies and system calls are functions of their own.
    fn of(function: &str, is_masked: bool) -> Self {
        const COPYING: [&str; 9] = [
            "memcpy",
            "memmove",
            "copy_user",
            "copy_to_user",
            "copy_from_user",
            "copy_to_iter",
            "copy_from_iter",
            "rep_movs",
            "copy_page",
        ];
        let is = |names: &[&str]| names.iter().any(|name| function.contains(name));
        // Without its C extension the package `websockets` masks by numbers of as many digits as
        // the frame has bytes.
        let masks = [
            "apply_mask",
            "_mask_fast",
            "_PyLong_FromByteArray",
            "_PyLong_AsByteArray",
            "long_bitwise",
        ];
        let masks_inlined = is_masked && is(&["websocket::Client", "websocket::Server"]);
        if is(&masks) || masks_inlined {
            Self::Masking
        } else if is(&COPYING) {
            Self::Copying
        } else if is(&[
            "ipc::frame::fill",
            "ipc::frame::check_body",
            "ipc::frame::advance",
            "adler32",
        ]) {
            Self::Payload
        } else {
            Self::Other
        }
    }
}

impl CpuProfile {
    /// From the stacks of a profile.
    fn of(profile: &Profile, is_masked: bool) -> Self {
        let mut spent = Self { missing: profile.limits.first().cloned(), ..Self::default() };
        let mut counts = std::collections::HashMap::<u32, u64>::new();
        for stack in &profile.stacks {
            if let Some(innermost) = stack.frames.first() {
                *counts.entry(*innermost).or_default() += u64::from(stack.count);
            }
        }
        spent.samples = counts.values().sum();
        let ratio = |count: u64| count as f64 / spent.samples.max(1) as f64;
        let mut functions: Vec<_> = counts
            .iter()
            .filter_map(|(frame, count)| {
                let frame = profile.frames.get(usize::try_from(*frame).ok()?)?;
                Some(FunctionShare {
                    function: frame.symbol.clone(),
                    module: frame.module.clone(),
                    ratio: ratio(*count),
                })
            })
            .collect();
        functions
            .sort_by(|a, b| b.ratio.total_cmp(&a.ratio).then_with(|| a.function.cmp(&b.function)));
        let share_of = |doing| {
            let does = |f: &&FunctionShare| FunctionKind::of(&f.function, is_masked) == doing;
            functions.iter().filter(does).fold(0.0, |sum, f| sum + f.ratio)
        };
        spent.copying_ratio = share_of(FunctionKind::Copying);
        spent.masking_ratio = share_of(FunctionKind::Masking);
        spent.payload_ratio = share_of(FunctionKind::Payload);
        functions.truncate(TOP);
        spent.functions = functions;
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::RunTime;
    use throng_observation::host::{Frame, HostId, Stack};

    #[test]
    fn functions_are_classified_by_what_they_do() {
        for (function, doing) in [
            ("__memmove_avx_unaligned_erms", FunctionKind::Copying),
            ("__memcpy_avx512_unaligned_erms", FunctionKind::Copying),
            ("rep_movs_alternative", FunctionKind::Copying),
            ("_copy_from_iter", FunctionKind::Copying),
            ("tungstenite::protocol::frame::mask::apply_mask_fast32", FunctionKind::Masking),
            ("apply_mask", FunctionKind::Masking),
            ("_PyLong_FromByteArray", FunctionKind::Masking),
            ("throng_ipc::frame::fill", FunctionKind::Payload),
            ("tcp_sendmsg_locked", FunctionKind::Other),
            ("__umask", FunctionKind::Other),
        ] {
            assert_eq!(FunctionKind::of(function, false), doing, "{function}");
        }
    }

    #[test]
    fn what_is_inlined_into_a_masked_websocket_is_its_masking() {
        let receive = "<throng_ipc::transport::websocket::Server as throng_ipc::transport::Receiver>::receive";
        assert_eq!(
            (FunctionKind::of(receive, true), FunctionKind::of(receive, false)),
            (FunctionKind::Masking, FunctionKind::Other)
        );
    }

    #[test]
    fn shares_are_of_the_innermost_functions() {
        let frame = |symbol: &str| Frame { symbol: symbol.into(), module: "a".into() };
        let stack = |frames: &[u32], count| Stack {
            pid: 1,
            tid: 1,
            thread: "t".into(),
            frames: frames.into(),
            count,
        };
        let profile = Profile {
            host: HostId::default(),
            moment: String::new(),
            started_at: RunTime::default(),
            duration_us: 1,
            frequency_hz: 997,
            method: ProfileMethod::CpuClock,
            frames: vec![frame("memcpy"), frame("apply_mask"), frame("main")],
            stacks: vec![
                stack(&[0, 2], 50),
                stack(&[1, 2], 30),
                stack(&[2], 15),
                stack(&[0], 5),
                stack(&[], 9),
            ],
            samples_lost: 0,
            limits: Vec::new(),
        };
        let spent = CpuProfile::of(&profile, false);
        assert_eq!((spent.samples, spent.copying_ratio, spent.masking_ratio), (100, 0.55, 0.3));
        assert_eq!(
            spent.functions.iter().map(|f| f.function.as_str()).collect::<Vec<_>>(),
            ["memcpy", "apply_mask", "main"]
        );
        assert_eq!(
            CpuProfile::of(&Profile { stacks: Vec::new(), ..profile }, false).copying_ratio,
            0.0
        );
    }
}
