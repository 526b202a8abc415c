//! Samples by the clocks of all CPUs: reads the ring buffers periodically, orders the records, and
//! counts stacks.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use throng_observation::host::{Frame, Profile, ProfileMethod, Stack};

use super::options::{Cost, Options};
use super::perf::{Clocks, Event, Record, RingError};
use super::processes::TrackedProcesses;
use super::shared::{FrameTable, Shared, monotonic, sort_by_count};
use super::stack_counts::StackCounts;
use super::symbols::{self, Names};
use crate::cpu_accounting::thread_cpu;
use crate::proc::scan::cpu_list;

/// Maximum interval between reads, so that short-lived processes are examined while they live or
/// soon after.
const ROUND: Duration = Duration::from_millis(100);

/// The running clocks and the tracked processes.
pub(super) struct ClockSampler {
    clocks: Clocks,
    tracked: TrackedProcesses,
    started: Duration,
}

impl ClockSampler {
    /// Starts the clocks, then reads the processes; changes in between arrive as records.
    pub(super) fn open(pids: &[u32], options: &Options) -> Result<Self, RingError> {
        let clocks = Clocks::start(&online_cpus(), options.frequency_hz, options.unwind)?;
        let started = monotonic();
        let mut tracked = TrackedProcesses::new(options.children);
        for pid in pids {
            tracked.add(*pid);
        }
        Ok(Self { clocks, tracked, started })
    }

    /// Samples until `shared` signals the end.
    pub(super) fn run(mut self, shared: &Shared, options: Options) -> (Profile, Cost) {
        let cpu_before = thread_cpu();
        let mut count = Count::default();
        // Records of one CPU may be read before earlier ones of another: each round processes only
        // records older than the start of the previous round.
        let mut pending: Vec<Record> = Vec::new();
        let mut horizon_ns = 0;
        let mut failure = None;
        while !shared.is_over() {
            if let Err(error) = self.clocks.wait(shared.wake(), ROUND) {
                failure = Some(format!("sampling ended early: {error}"));
                break;
            }
            for pid in shared.to_follow() {
                self.tracked.add(pid);
            }
            let round_ns = nanos(monotonic());
            count.lost += self.clocks.read(&mut pending);
            pending.sort_by_key(|record| record.at_ns);
            let ready = pending.partition_point(|record| record.at_ns < horizon_ns);
            for record in pending.drain(..ready) {
                count.take(&record, &mut self.tracked);
            }
            horizon_ns = round_ns;
        }
        self.clocks.stop();
        let duration = monotonic().saturating_sub(self.started);
        count.lost += self.clocks.read(&mut pending);
        pending.sort_by_key(|record| record.at_ns);
        for record in pending.drain(..) {
            count.take(&record, &mut self.tracked);
        }
        let sampling_cpu = thread_cpu().saturating_sub(cpu_before);
        let mut profile = options.profile(ProfileMethod::CpuClock, duration);
        profile.samples_lost = count.lost;
        profile.limits.extend(failure);
        if shared.is_wanted() {
            count.finish(&mut self.tracked, &mut profile);
        }
        let naming_cpu = thread_cpu().saturating_sub(cpu_before).saturating_sub(sampling_cpu);
        (profile, Cost { sampling_cpu, naming_cpu })
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Results so far.
#[derive(Default)]
struct Count {
    counts: StackCounts,
    lost: u64,
    throttled: u64,
}

impl Count {
    fn take(&mut self, record: &Record, tracked: &mut TrackedProcesses) {
        match &record.event {
            Event::Sample(sample) => self.counts.add(sample, tracked),
            Event::Lost(records) => self.lost = self.lost.saturating_add(*records),
            Event::Throttled => self.throttled += 1,
            event => tracked.note(event),
        }
    }

    /// Looks up all symbols and fills the profile.
    fn finish(self, tracked: &mut TrackedProcesses, profile: &mut Profile) {
        let StackCounts { threads, places, stacks, cut, .. } = self.counts;
        // The symbol readers parse files of the watched processes: if a file makes them panic, the
        // addresses remain.
        let named = catch_unwind(AssertUnwindSafe(|| symbols::name(&places, tracked)));
        let Names { frames: of_place, limits, debug_files } = named.unwrap_or_else(|_| Names {
            frames: places
                .iter()
                .map(|place| Frame { symbol: place.to_string(), module: String::new() })
                .collect(),
            limits: vec![
                "functions have no names: symbol lookup failed; this is a fault of throng"
                    .to_owned(),
            ],
            debug_files: HashMap::new(),
        });
        profile.limits.extend(limits);
        // Many addresses lie in one function.
        let mut table = FrameTable::default();
        let frame_of: Vec<u32> = of_place.into_iter().map(|frame| table.index(frame)).collect();
        profile.frames = table.into_frames();

        let mut merged: HashMap<(u32, Vec<u32>), u32> = HashMap::new();
        for ((thread, places), count) in stacks {
            let frames =
                places.iter().filter_map(|place| frame_of.get(*place as usize).copied()).collect();
            *merged.entry((thread, frames)).or_default() += count;
        }
        profile.stacks = merged
            .into_iter()
            .filter_map(|((thread, frames), count)| {
                let thread = threads.get(thread as usize)?;
                let (pid, tid) = (thread.ids.pid, thread.ids.tid);
                Some(Stack { pid, tid, thread: thread.name.to_string(), frames, count })
            })
            .collect();
        sort_by_count(&mut profile.stacks);
        profile.limits.extend(unnamed(profile, &debug_files));
        add_limits(tracked, cut, self.throttled, profile);
    }
}

/// Files without symbols in which much of the time was spent.
fn unnamed(profile: &Profile, debug_files: &HashMap<String, String>) -> Vec<String> {
    /// Below this share missing names do not change the conclusions.
    const PERCENT_MIN: u64 = 10;
    let mut files: HashMap<&str, u64> = HashMap::new();
    let mut all = 0;
    for stack in &profile.stacks {
        all += u64::from(stack.count);
        let Some(leaf) = profile.frames_of(stack).next() else { continue };
        if leaf.symbol.starts_with("0x") {
            *files.entry(&leaf.module).or_default() += u64::from(stack.count);
        }
    }
    let mut files: Vec<_> =
        files.into_iter().filter(|(_, samples)| samples * 100 >= all * PERCENT_MIN).collect();
    files.sort_by_key(|(file, samples)| (std::cmp::Reverse(*samples), *file));
    let say = |(file, samples): (&str, u64)| {
        let percent = samples * 100 / all.max(1);
        let place = debug_files
            .get(file)
            .map_or_else(String::new, |path| format!("; they belong at {path}"));
        format!(
            "{percent} % of the samples are in functions of {file} that have no names: its \
             symbols are stripped; install its debug symbols (a -dbgsym, -dbg or -debuginfo \
             package, the .debug.xz of a release of throng), or a build that keeps them{place}"
        )
    };
    files.into_iter().map(say).collect()
}

fn add_limits(tracked: &TrackedProcesses, cut: u64, throttled: u64, profile: &mut Profile) {
    let mut say = |text: String| profile.limits.push(text);
    if tracked.unreadable > 0 {
        say(format!(
            "the mappings of {} processes could not be read, so their functions have no names: \
             they belong to another user; run as root, or give the binary CAP_SYS_PTRACE",
            tracked.unreadable
        ));
    }
    if tracked.refused > 0 {
        say(format!("{} processes were not sampled: there were too many", tracked.refused));
    }
    if !tracked.images.unreadable.is_empty() {
        say(format!(
            "files that could not be opened for symbols: {}",
            tracked.images.unreadable.join(", ")
        ));
    }
    if cut > 0 {
        say(format!(
            "{cut} samples are kept without callers: there were too many different stacks"
        ));
    }
    if throttled > 0 {
        say(format!(
            "the kernel paused sampling {throttled} times to bound its cost \
             (kernel.perf_cpu_time_max_percent); use a lower frequency"
        ));
    }
}

/// The CPUs that are online.
fn online_cpus() -> Vec<u32> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus: Vec<u32> = cpu_list(list.trim()).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}
