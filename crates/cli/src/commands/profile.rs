//! `throng profile`: where running programs spend their time, as a table, a page, or JSON.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use throng_observation::host::{Change, Profile, ProfileMethod, SelfTime, compare};
use throng_report::{html, profile as words};
use throng_watch::profiler::{self, Cost, Options, ProfilerError, RunningProfile};

use crate::args;
use crate::console::{CliError, Exit, Interrupt, print, print_json, say};

/// The longest sampling time; all stacks are kept in memory until its end.
const DURATION_MAX: Duration = Duration::from_secs(3_600);

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Output<'a> {
    profile: &'a Profile,
    self_time: SelfTime,
    /// The changes against the profile of `--against`.
    changes: Option<Vec<Change>>,
    sampling_cpu_ms: f64,
    naming_cpu_ms: f64,
}

/// The part of that output that `--against` reads.
#[derive(Debug, Deserialize)]
struct EarlierOutput {
    profile: Profile,
}

pub(crate) fn profile(command: &args::Profile) -> Result<Exit, CliError> {
    let duration = args::duration("--for", &command.duration)?;
    if duration.is_zero() || duration > DURATION_MAX {
        return Err(CliError::usage("--for: more than 0s, and at most 1h"));
    }
    let earlier = command.against.as_deref().map(read).transpose()?;
    let pids = processes(command)?;
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let sampling = start(command, &pids)?;
    if !command.json {
        let numbers = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        say(&format!("sampling {numbers} for {}", command.duration));
        for limit in sampling.limits() {
            say(&format!("note: {limit}"));
        }
    }
    let end = Instant::now() + duration;
    while !interrupt.is_set() && Instant::now() < end {
        std::thread::sleep(
            end.saturating_duration_since(Instant::now()).min(Duration::from_millis(100)),
        );
    }
    let (profile, cost) = sampling.stop_with_cost();
    let changes = earlier.as_ref().map(|earlier| compare(earlier, &profile));
    if let Some(path) = &command.output {
        let title = title(command, &pids);
        let profiles: Vec<Profile> = earlier.iter().chain([&profile]).cloned().collect();
        write(path, &html::profile_page(&title, &profiles))?;
    }
    if command.json {
        print_as_json(&profile, changes, &cost)?;
    } else {
        print_as_text(command, &profile, changes.as_deref(), &cost);
    }
    Ok(if interrupt.is_set() { Exit::Interrupted } else { Exit::Met })
}

/// Starts to sample as the flags say.
fn start(command: &args::Profile, pids: &[u32]) -> Result<RunningProfile, CliError> {
    let options = Options {
        moment: command.moment.clone().unwrap_or_default(),
        frequency_hz: command.hz,
        method: command.method.map(|method| match method {
            args::ProfileMethod::Clock => ProfileMethod::CpuClock,
            args::ProfileMethod::State => ProfileMethod::ThreadState,
        }),
        children: !command.no_children,
        unwind: !command.no_unwind,
        ..Options::default()
    };
    profiler::start(pids, options).map_err(|error| {
        let exit = match error {
            ProfilerError::NoProcess(_) | ProfilerError::Frequency(_) => Exit::Usage,
            ProfilerError::NotAllowed(_) | ProfilerError::Start(_) => Exit::Invalid,
        };
        CliError::new(exit, error)
    })
}

fn print_as_json(
    profile: &Profile,
    changes: Option<Vec<Change>>,
    cost: &Cost,
) -> Result<(), CliError> {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let output = Output {
        profile,
        self_time: SelfTime::of(profile),
        changes,
        sampling_cpu_ms: milliseconds(cost.sampling_cpu),
        naming_cpu_ms: milliseconds(cost.naming_cpu),
    };
    let json = serde_json::to_string(&output).map_err(CliError::invalid)?;
    print_json(&format!("{json}\n"));
    Ok(())
}

fn print_as_text(
    command: &args::Profile,
    profile: &Profile,
    changes: Option<&[Change]>,
    cost: &Cost,
) {
    print(&words::text(profile));
    if let Some(changes) = changes {
        print(&format!("\nwhat changed:\n{}", words::changes(changes)));
    }
    let seconds = profile.duration_us as f64 / 1e6;
    print(&format!(
        "\nsampling itself took {:.2} % of a core, symbol lookup {:.0} ms\n",
        100.0 * cost.sampling_cpu.as_secs_f64() / seconds.max(0.001),
        cost.naming_cpu.as_secs_f64() * 1e3,
    ));
    if let Some(path) = &command.output {
        print(&format!("page  {}\n", path.display()));
    }
}

/// The processes that the flags name, by PID or name.
fn processes(command: &args::Profile) -> Result<Vec<u32>, CliError> {
    let mut pids = command.pid.clone();
    for name in &command.process {
        let found = profiler::processes_named(name);
        if found.is_empty() {
            return Err(CliError::usage(format!("--process: there is no process `{name}`")));
        }
        pids.extend(found);
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

fn title(command: &args::Profile, pids: &[u32]) -> String {
    let of = match command.process.as_slice() {
        [] => format!("process {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        names => names.join(", "),
    };
    format!("Profile of {of}")
}

fn read(path: &Path) -> Result<Profile, CliError> {
    let refuse = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("--against {}: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| refuse(&error))?;
    let earlier: EarlierOutput = serde_json::from_str(&text).map_err(|error| {
        refuse(&format!("{error}; it takes what `throng profile --json` printed"))
    })?;
    Ok(earlier.profile)
}

fn write(path: &Path, page: &str) -> Result<(), CliError> {
    std::fs::write(path, page).map_err(|error| {
        CliError::new(Exit::Invalid, anyhow::anyhow!("{}: {error}", path.display()))
    })
}
