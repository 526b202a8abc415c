//! Where a server spends its time: stacks of its processes, sampled for a while, with the names of the functions.
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

/// Samples a second on each CPU unless asked otherwise. Not 100: many programs do things every 10 ms, and a sampler in
/// step with them sees always or never what they do.
pub const FREQUENCY_HZ: u32 = 99;
/// Looks a second at the state of each thread, at most.
pub const STATE_FREQUENCY_HZ: u32 = 20;
/// The most that may be asked for; beyond it the kernel throttles.
const FREQUENCY_HZ_MAX: u32 = 10_000;

/// What to sample, and what to call it.
#[derive(Clone, Debug)]
pub struct Options {
    /// On which host this is; goes into the profile.
    pub host: HostId,
    /// What moment of the run this shows; goes into the profile.
    pub moment: String,
    /// When that is on the run's clock; goes into the profile.
    pub started_at: RunTime,
    /// Samples a second on each CPU, 1 to 10,000. Thread states are looked at [`STATE_FREQUENCY_HZ`] times at most.
    pub frequency_hz: u32,
    /// How; `None` takes the clock where it is allowed, else the states of threads.
    pub method: Option<ProfileMethod>,
    /// Also sample the processes that the given ones start, or started before.
    pub children: bool,
    /// Unwind programs without frame pointers by their own tables. The kernel then copies 16 KiB of stack a sample.
    pub unwind: bool,
    /// The run on whose account for the host the profiler's own CPU time goes.
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
}

/// Why sampling could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ProfilerError {
    /// None of the processes exists.
    #[error("no process to profile: {0}")]
    NoProcess(String),
    /// The frequency cannot be had.
    #[error("a frequency of {0} Hz: it must be 1 to 10000")]
    Frequency(u32),
    /// The clocks were asked for, and are not allowed; the text says which right is missing and how to give it.
    #[error("{0}")]
    NotAllowed(String),
    /// A thread, or something like it, could not be had from the system.
    #[error("the profiler could not start: {0}")]
    Start(#[from] std::io::Error),
}

/// What profiling cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of reading samples.
    pub sampling_cpu: Duration,
    /// CPU time of finding names, after the sampling.
    pub naming_cpu: Duration,
}

/// Sampling that goes on in a thread of its own until it is stopped. Dropped, it ends without a profile.
#[derive(Debug)]
pub struct RunningProfile {
    method: ProfileMethod,
    limits: Vec<String>,
    control: Control,
}

/// Begins to sample the processes `pids` (and their children, see [`Options::children`]).
///
/// # Errors
/// When none of them exists, the frequency is out of range, or the clocks were asked for by name and are not allowed.
/// Without [`Options::method`] a missing right is no error: the states of threads are sampled, and the profile's `limits`
/// say which right is missing.
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
    /// How it samples.
    #[must_use]
    pub fn method(&self) -> ProfileMethod {
        self.method
    }

    /// What is known from the start not to be possible, and which right is missing.
    #[must_use]
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// Also samples this process from here on.
    pub fn follow(&self, pid: u32) {
        self.control.follow(pid);
    }

    /// Ends sampling and finds the names: some 100 ms of CPU time, more for large programs.
    #[must_use]
    pub fn stop(self) -> Profile {
        self.stop_with_cost().0
    }

    /// As [`Self::stop`], and says what it cost.
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
