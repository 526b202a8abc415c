//! The profiler: samples the stacks of a server's processes for a while and names the functions.
//!
//! ```text
//! clocks on all CPUs -> records -> followed processes -> tally -> names -> Profile
//! /proc states of threads ---------------------------------------------> Profile   (without the right to the clocks)
//! ```

use std::time::Duration;

use throng_observation::RunTime;
use throng_observation::host::{HostId, Profile, ProfileMethod};

mod clock_sampler;
mod perf;
mod privileges;
mod processes;
mod shared;
mod stack_counts;
mod state_sampler;
mod symbols;
mod syscalls;
mod unwind;

pub use processes::tree::{named as processes_named, with_descendants};
pub(crate) use symbols::elf::is_go;

use crate::cpu_accounting::{ChargeGuard, Purpose};
use crate::rows::RowSender;
use clock_sampler::ClockSampler;
use shared::{Control, Shared};
use state_sampler::StateSampler;

/// Default sampling frequency on each CPU. Not 100 Hz: many programs act every 10 ms, and a sampler in step with them
/// would always or never see that.
pub const FREQUENCY_HZ: u32 = 99;
/// Maximum frequency of sampling thread states.
pub const STATE_FREQUENCY_HZ: u32 = 20;
/// Maximum frequency; above it the kernel throttles.
const FREQUENCY_HZ_MAX: u32 = 10_000;

/// Options of a profile.
#[derive(Clone, Debug)]
pub struct Options {
    /// The host; copied into the profile.
    pub host: HostId,
    /// The moment of the run; copied into the profile.
    pub moment: String,
    /// The start on the run's clock; copied into the profile.
    pub started_at: RunTime,
    /// Sampling frequency on each CPU, 1 to 10,000 Hz. Thread states are sampled at most [`STATE_FREQUENCY_HZ`] times a
    /// second.
    pub frequency_hz: u32,
    /// The method; `None` means the CPU clock if permitted, else thread states.
    pub method: Option<ProfileMethod>,
    /// Whether to sample descendants of the given processes too.
    pub children: bool,
    /// Whether to unwind stacks by the programs' unwind tables. The kernel then copies 16 KiB of stack for each sample.
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
    fn charge(&self) -> Option<ChargeGuard> {
        self.rows.as_ref()?.charge(self.host, Purpose::Profile)
    }

    /// A profile without samples.
    fn profile(self, method: ProfileMethod, duration: Duration) -> Profile {
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

/// Why a profile cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ProfilerError {
    /// None of the processes exists.
    #[error("no process to profile: {0}")]
    NoProcess(String),
    /// The frequency is out of range.
    #[error("a frequency of {0} Hz: it must be 1 to 10000")]
    Frequency(u32),
    /// The CPU clock was requested but is not permitted; the text names the missing right and how to grant it.
    #[error("{0}")]
    NotAllowed(String),
    /// The system refused a thread or another resource.
    #[error("the profiler could not start: {0}")]
    Start(#[from] std::io::Error),
}

/// CPU time used by the profiler itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time for reading samples.
    pub sampling_cpu: Duration,
    /// CPU time for symbol lookup after sampling.
    pub naming_cpu: Duration,
}

/// A profile that is being taken on a thread of its own. Dropping it discards the profile.
#[derive(Debug)]
pub struct RunningProfile {
    method: ProfileMethod,
    limits: Vec<String>,
    control: Control,
}

/// Starts sampling the processes `pids` (and their descendants, see [`Options::children`]).
///
/// # Errors
/// When none of them exists, the frequency is out of range, or the CPU clock was requested explicitly and is not
/// permitted. Without [`Options::method`] a missing right is not an error: thread states are sampled, and the profile's
/// `limits` name the missing right.
pub fn start(pids: &[u32], options: Options) -> Result<RunningProfile, ProfilerError> {
    if !(1..=FREQUENCY_HZ_MAX).contains(&options.frequency_hz) {
        return Err(ProfilerError::Frequency(options.frequency_hz));
    }
    if !pids.iter().any(|pid| processes::tree::exists(*pid)) {
        let text = match pids {
            [] => "none was named".to_owned(),
            _ => format!("none runs with the number {}", list(pids)),
        };
        return Err(ProfilerError::NoProcess(text));
    }
    let mut limits = Vec::new();
    if options.method != Some(ProfileMethod::ThreadState) {
        match ClockSampler::open(pids, &options) {
            Ok(sampler) => {
                let method = ProfileMethod::CpuClock;
                let control = Control::spawn(move |shared: &Shared| {
                    let _cost = options.charge();
                    sampler.run(shared, options)
                })?;
                return Ok(RunningProfile { method, limits, control });
            }
            Err(error) => {
                let why = privileges::Privileges::read().explain(&error);
                if options.method.is_some() {
                    return Err(ProfilerError::NotAllowed(why));
                }
                limits.push(why);
            }
        }
    }
    let sampler = StateSampler::new(pids, options.children);
    let known = limits.clone();
    let control = Control::spawn(move |shared: &Shared| {
        let _cost = options.charge();
        sampler.run(shared, options, known)
    })?;
    Ok(RunningProfile { method: ProfileMethod::ThreadState, limits, control })
}

impl RunningProfile {
    /// The sampling method in use.
    #[must_use]
    pub fn method(&self) -> ProfileMethod {
        self.method
    }

    /// Limitations known at the start, with the missing rights.
    #[must_use]
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// Samples this process too from now on.
    pub fn follow(&self, pid: u32) {
        self.control.follow(pid);
    }

    /// Ends sampling and looks up symbols: about 100 ms of CPU time, more for large programs.
    #[must_use]
    pub fn stop(self) -> Profile {
        self.stop_with_cost().0
    }

    /// As [`Self::stop`], and returns the cost.
    #[must_use]
    pub fn stop_with_cost(self) -> (Profile, Cost) {
        self.control.stop()
    }
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "profiler_tests.rs"]
mod tests;
