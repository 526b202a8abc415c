//! The profiler: samples the stacks of a server's processes for a while and names the functions.
//!
//! ```text
//! clocks on all CPUs -> records -> followed processes -> tally -> names -> Profile
//! /proc states of threads -> Profile   (without the right to the clocks)
//! ```

use throng_observation::host::{Profile, ProfileMethod};

mod clock_sampler;
mod options;
mod perf;
mod privileges;
mod processes;
mod shared;
mod stack_counts;
mod state_sampler;
mod symbols;
mod syscalls;
mod unwind;

use options::FREQUENCY_HZ_MAX;
pub use options::{Cost, FREQUENCY_HZ, Options, STATE_FREQUENCY_HZ};
pub use perf::TracepointCounter;
pub use processes::tree::{named as processes_named, with_descendants};
pub(crate) use symbols::elf::is_go;
#[doc(hidden)]
pub use symbols::elf::read_any_elf;
#[doc(hidden)]
pub use symbols::names_in_any_maps;

use clock_sampler::ClockSampler;
use shared::{Control, Shared};
use state_sampler::StateSampler;

/// Why a profile cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ProfilerError {
    /// None of the processes exists.
    #[error("no process to profile: {0}")]
    NoProcess(String),
    /// The frequency is out of range.
    #[error("a frequency of {0} Hz is out of range: use 1 to 10000")]
    Frequency(u32),
    /// The CPU clock was requested but is not permitted; the text names the missing right and how
    /// to grant it.
    #[error("{0}")]
    NotAllowed(String),
    /// The system refused a thread or another resource.
    #[error("the profiler could not start: {0}")]
    Start(#[from] std::io::Error),
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
/// When none of them exists, the frequency is out of range, or the CPU clock was requested
/// explicitly and is not permitted. Without [`Options::method`] a missing right is not an error:
/// thread states are sampled, and the profile's `limits` name the missing right.
pub fn start(pids: &[u32], options: Options) -> Result<RunningProfile, ProfilerError> {
    if !(1..=FREQUENCY_HZ_MAX).contains(&options.frequency_hz) {
        return Err(ProfilerError::Frequency(options.frequency_hz));
    }
    if !pids.iter().any(|pid| processes::tree::exists(*pid)) {
        let text = match pids {
            [] => "none was given".to_owned(),
            _ => format!("no process with PID {}", list(pids)),
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
