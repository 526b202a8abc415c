//! Options of a profile, and what taking it costs.

use std::time::Duration;

use throng_observation::RunTime;
use throng_observation::host::{HostId, Profile, ProfileMethod};

use crate::cpu_accounting::{ChargeGuard, Purpose};
use crate::rows::RowSender;

/// Default sampling frequency on each CPU. Not 100 Hz: many programs act every 10 ms, and a sampler
/// in step with them would always or never see that.
pub const FREQUENCY_HZ: u32 = 99;
/// Maximum frequency of sampling thread states.
pub const STATE_FREQUENCY_HZ: u32 = 20;
/// Maximum frequency; above it the kernel throttles.
pub(super) const FREQUENCY_HZ_MAX: u32 = 10_000;

/// Options of a profile.
#[derive(Clone, Debug)]
pub struct Options {
    /// The host; copied into the profile.
    pub host: HostId,
    /// The moment of the run; copied into the profile.
    pub moment: String,
    /// The start on the run's clock; copied into the profile.
    pub started_at: RunTime,
    /// Sampling frequency on each CPU, 1 to 10,000 Hz. Thread states are sampled at most
    /// [`STATE_FREQUENCY_HZ`] times a second.
    pub frequency_hz: u32,
    /// The method; `None` means the CPU clock if permitted, else thread states.
    pub method: Option<ProfileMethod>,
    /// Whether to sample descendants of the given processes too.
    pub children: bool,
    /// Whether to unwind stacks by the programs' unwind tables. The kernel then copies 16 KiB of
    /// stack for each sample.
    pub unwind: bool,
    /// The run to which the profiler's own CPU time is charged.
    pub rows: Option<RowSender>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: HostId::default(),
            moment: String::new(),
            started_at: RunTime::default(),
            frequency_hz: FREQUENCY_HZ,
            method: None,
            children: true,
            unwind: true,
            rows: None,
        }
    }
}

impl Options {
    pub(super) fn charge(&self) -> Option<ChargeGuard> {
        self.rows.as_ref()?.charge(self.host, Purpose::Profile)
    }

    /// A profile without samples.
    pub(super) fn profile(self, method: ProfileMethod, duration: Duration) -> Profile {
        Profile {
            host: self.host,
            moment: self.moment,
            started_at: self.started_at,
            duration_us: duration.as_micros().try_into().unwrap_or(u64::MAX),
            frequency_hz: self.frequency_hz,
            method,
            ..Profile::default()
        }
    }
}

/// CPU time used by the profiler itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time for reading samples.
    pub sampling_cpu: Duration,
    /// CPU time for symbol lookup after sampling.
    pub naming_cpu: Duration,
}
