//! What this machine allows, and what that means for a crowd: a file for each check, which is a
//! function of what was read ([`Facts`]).

mod browser;
mod clock;
mod clocksource;
mod conntrack;
mod cpus;
mod descriptors;
mod facts;
mod ffmpeg;
mod gstreamer;
mod memory;
mod ports;
mod profiler;
mod receive_buffer;
mod receive_ring;
mod segments;
mod send_buffer;
mod steal;

#[cfg(test)]
mod tests;

pub(crate) use facts::Facts;

use serde::Serialize;

/// What a check found.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// The name of what was looked at; it stays as it is.
    pub(crate) name: &'static str,
    /// What this machine has of it, in words.
    pub(crate) found: String,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// What gives more of it.
    pub(crate) change: String,
}

/// What is made of what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It limits nothing.
    Ok,
    /// It suffices for about so many viewers.
    Limits { viewers: u64 },
    /// A crowd plays without it, and something is off or less reliable.
    Lacks { means: String },
}

impl Verdict {
    fn lacks(means: &str) -> Self {
        Self::Lacks { means: means.to_owned() }
    }

    /// [`Self::Ok`] where something is there, else what lacks without it.
    fn unless(is_there: bool, means: &str) -> Self {
        if is_there { Self::Ok } else { Self::lacks(means) }
    }

    /// The viewers for whom it suffices, where it limits them.
    pub(crate) fn viewers_max(&self) -> Option<u64> {
        match self {
            Self::Limits { viewers } => Some(*viewers),
            Self::Ok | Self::Lacks { .. } => None,
        }
    }
}

/// All checks: first what limits the size of a crowd, then the machine, then what features need.
const CHECKS: [fn(&Facts) -> Check; 16] = [
    descriptors::check,
    ports::check,
    memory::check,
    conntrack::check,
    receive_buffer::check,
    send_buffer::check,
    receive_ring::check,
    segments::check,
    cpus::check,
    steal::check,
    clocksource::check,
    clock::check,
    profiler::check,
    ffmpeg::check,
    browser::check,
    gstreamer::check,
];

/// What this machine allows.
pub(crate) fn checks(facts: &Facts) -> Vec<Check> {
    CHECKS.iter().map(|check| check(facts)).collect()
}
