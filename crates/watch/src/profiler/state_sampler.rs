//! Samples thread states without privileges: the state of each thread, and where in the kernel it
//! waits.
//!
//! Unlike the clock it sees threads that do not run, but not the function of a running thread.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use throng_observation::host::{Frame, Profile, ProfileMethod, Stack};

use super::options::{Cost, Options, STATE_FREQUENCY_HZ};
use super::perf::Ids;
use super::processes::tree;
use super::shared::{FrameTable, Shared, monotonic, sort_by_count};
use super::syscalls;
use crate::cpu_accounting::thread_cpu;
use crate::proc::stat;

/// CPU budget of sampling, share of one core; with more threads than that allows, they are sampled
/// in turn.
const CPU_SHARE_MAX: f64 = 0.02;
/// How often processes and threads are listed.
const LIST_EVERY: Duration = Duration::from_millis(200);
/// Number of threads sampled in the first round, before the cost is known.
const TURN_FIRST: usize = 32;
/// Maximum number of threads.
const THREADS_MAX: usize = 65_536;

/// The activity of a thread in a sample.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Activity {
    /// State letter of `/proc/PID/stat`.
    state: char,
    /// Kernel function in which it waits, if that may be read.
    waits_in: Option<String>,
    /// Its current system call, if that may be read.
    call: Option<libc::c_long>,
}

/// Samples the states of processes' threads.
pub(super) struct StateSampler {
    roots: Vec<u32>,
    children: bool,
    /// Threads in the order in which they are sampled.
    queue: VecDeque<Ids>,
    samples: HashMap<Ids, ThreadSamples>,
    /// Total number of samples.
    total: u64,
}

#[derive(Default)]
struct ThreadSamples {
    name: String,
    activity: HashMap<Activity, u32>,
}

impl StateSampler {
    pub(super) fn new(pids: &[u32], children: bool) -> Self {
        Self {
            roots: pids.to_vec(),
            children,
            queue: VecDeque::new(),
            samples: HashMap::new(),
            total: 0,
        }
    }

    /// Samples until `shared` signals the end.
    pub(super) fn run(
        mut self,
        shared: &Shared,
        options: Options,
        limits: Vec<String>,
    ) -> (Profile, Cost) {
        let frequency_hz = options.frequency_hz.min(STATE_FREQUENCY_HZ);
        let period = Duration::from_secs(1) / frequency_hz.max(1);
        let (started, cpu_before) = (monotonic(), thread_cpu());
        let mut listed: Option<Duration> = None;
        let mut turn = TURN_FIRST;
        let mut rounds: u32 = 0;
        while !shared.is_over() {
            let round = monotonic();
            let follow = shared.to_follow();
            if !follow.is_empty() || listed.is_none_or(|at| round.saturating_sub(at) >= LIST_EVERY)
            {
                self.roots.extend(follow);
                self.list();
                listed = Some(round);
            }
            let cpu = thread_cpu();
            let looked = self.sample(turn);
            let each = thread_cpu().saturating_sub(cpu).as_secs_f64() / looked.max(1) as f64;
            turn = ((period.as_secs_f64() * CPU_SHARE_MAX / each.max(1e-7)) as usize)
                .clamp(4, THREADS_MAX);
            rounds += 1;
            // Relative to the start, so that a late round does not delay later ones.
            let next = started + period * rounds;
            wait(shared, next.saturating_sub(monotonic()));
        }
        let cost = Cost {
            sampling_cpu: thread_cpu().saturating_sub(cpu_before),
            naming_cpu: Duration::ZERO,
        };
        let duration = monotonic().saturating_sub(started);
        let options = Options { frequency_hz, ..options };
        let mut profile = options.profile(ProfileMethod::ThreadState, duration);
        profile.limits = limits;
        self.finish(rounds, &mut profile);
        (profile, cost)
    }

    /// Lists all threads; new ones join the queue.
    fn list(&mut self) {
        let pids =
            if self.children { tree::with_descendants(&self.roots) } else { self.roots.clone() };
        let queued: std::collections::HashSet<Ids> = self.queue.iter().copied().collect();
        for pid in pids {
            for tid in tree::threads(pid) {
                let ids = Ids { pid, tid };
                if !queued.contains(&ids) && self.queue.len() < THREADS_MAX {
                    self.queue.push_back(ids);
                }
            }
        }
    }

    /// Samples the next `turn` threads; returns how many.
    fn sample(&mut self, turn: usize) -> usize {
        let turn = turn.min(self.queue.len());
        for _ in 0..turn {
            let Some(ids) = self.queue.pop_front() else { break };
            let Some((name, activity)) = read(ids) else { continue }; // It has ended.
            self.queue.push_back(ids);
            self.total += 1;
            if self.samples.len() < THREADS_MAX || self.samples.contains_key(&ids) {
                let samples = self.samples.entry(ids).or_default();
                samples.name = name;
                *samples.activity.entry(activity).or_default() += 1;
            }
        }
        turn
    }

    fn finish(self, rounds: u32, profile: &mut Profile) {
        let each = self.total as f64 / self.samples.len().max(1) as f64;
        let seconds = profile.duration_us as f64 / 1e6;
        if each < 0.8 * f64::from(rounds) && seconds > 0.0 && !self.samples.is_empty() {
            profile.limits.push(format!(
                "{} threads were sampled in turn, each {:.1} times a second, so that sampling \
                 stays below {:.0} % of a core",
                self.samples.len(),
                each / seconds,
                CPU_SHARE_MAX * 100.0
            ));
        }
        let waits = |known: fn(&Activity) -> bool| {
            let mut waiting = self
                .samples
                .values()
                .flat_map(|s| s.activity.keys())
                .filter(|d| d.state != 'R')
                .peekable();
            waiting.peek().is_none() || waiting.any(known)
        };
        if !waits(|activity| activity.waits_in.is_some() || activity.call.is_some()) {
            profile.limits.push(
                "the places where threads wait could not be read, because the processes belong to \
                 another user; run as that user or as root, or give the binary CAP_SYS_PTRACE"
                    .to_owned(),
            );
        }
        let mut table = FrameTable::default();
        for (ids, samples) in self.samples {
            for (activity, count) in samples.activity {
                let frames =
                    activity.frames().into_iter().map(|frame| table.index(frame)).collect();
                let Ids { pid, tid } = ids;
                profile.stacks.push(Stack {
                    pid,
                    tid,
                    thread: samples.name.clone(),
                    frames,
                    count,
                });
            }
        }
        profile.frames = table.into_frames();
        sort_by_count(&mut profile.stacks);
    }
}

impl Activity {
    /// Kernel function, system call, state: innermost first.
    fn frames(&self) -> Vec<Frame> {
        let state = match self.state {
            'R' => "running or ready to run",
            'S' | 'I' => "waiting",
            'D' => "waiting for I/O (uninterruptible)",
            'T' | 't' => "stopped",
            'Z' | 'X' => "ended",
            _ => "in another state",
        };
        let frame = |symbol: String, module: &str| Frame { symbol, module: module.to_owned() };
        let mut frames: Vec<Frame> =
            self.waits_in.iter().map(|name| frame(name.clone(), "[kernel]")).collect();
        frames.extend(self.call.map(|number| frame(syscalls::name(number), "[syscall]")));
        frames.push(frame(state.to_owned(), "[state]"));
        frames
    }
}

fn wait(shared: &Shared, at_most: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::from_borrowed_fd(shared.wake(), PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: at_most.as_secs().try_into().unwrap_or(0),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    // An interrupted wait only makes the round start early.
    let _ = poll(&mut fds, Some(&timeout));
}

/// Name and activity of a thread; `None` if it has ended.
fn read(ids: Ids) -> Option<(String, Activity)> {
    let file = |name: &str| {
        let bytes = std::fs::read(format!("/proc/{}/task/{}/{name}", ids.pid, ids.tid)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = std::fs::read(format!("/proc/{}/task/{}/stat", ids.pid, ids.tid)).ok()?;
    let stat = stat::parse(&text)?;
    let (name, state) = (String::from_utf8_lossy(stat.name).into_owned(), char::from(stat.state));
    let mut activity = Activity { state, waits_in: None, call: None };
    if state != 'R' {
        activity.waits_in =
            file("wchan").map(|text| text.trim().to_owned()).filter(|f| !f.is_empty() && f != "0");
        activity.call = file("syscall").and_then(|text| call(&text));
    }
    Some((name, activity))
}

/// The number in `/proc/PID/syscall`; `None` while the thread runs, or waits outside a system call
/// (-1).
fn call(text: &str) -> Option<libc::c_long> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|number| *number >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_are_read() {
        assert_eq!(call("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f12"), Some(202));
        assert_eq!(call("running"), None);
        assert_eq!(call("-1 0x7ffd 0x7f12"), None);
        assert_eq!(call(""), None);
    }

    #[test]
    fn a_waiting_thread_reads_from_the_kernel_outwards() {
        let activity = Activity {
            state: 'S',
            waits_in: Some("futex_do_wait".into()),
            call: Some(libc::SYS_futex),
        };
        let frames = activity.frames();
        let frames: Vec<_> =
            frames.iter().map(|f| (f.symbol.as_str(), f.module.as_str())).collect();
        let expect =
            [("futex_do_wait", "[kernel]"), ("futex", "[syscall]"), ("waiting", "[state]")];
        assert_eq!(frames, expect);
    }
}
