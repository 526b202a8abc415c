//! Samples thread states without privileges: the state of each thread, and where in the kernel it waits.
//!
//! Unlike the clock it sees threads that do not run, but not the function of a running thread.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use throng_observation::host::{Frame, Profile, ProfileMethod, Stack};

use super::perf::Ids;
use super::processes::tree;
use super::shared::{Shared, monotonic, thread_cpu};
use super::{Cost, Options, STATE_FREQUENCY_HZ, syscalls};

/// CPU budget of sampling, share of one core; with more threads than that allows, they are sampled in turn.
const CPU_SHARE_MAX: f64 = 0.02;
/// How often processes and threads are listed.
const LIST_EVERY: Duration = Duration::from_millis(200);
/// Number of threads sampled in the first round, before the cost is known.
const TURN_FIRST: usize = 32;
/// Maximum number of threads.
const THREADS_MAX: usize = 65_536;

/// The activity of a thread in a sample.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Doing {
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
    seen: HashMap<Ids, Seen>,
    /// Total number of samples.
    looks: u64,
}

#[derive(Default)]
struct Seen {
    name: String,
    doing: HashMap<Doing, u32>,
}

impl StateSampler {
    pub(super) fn new(pids: &[u32], children: bool) -> Self {
        Self { roots: pids.to_vec(), children, queue: VecDeque::new(), seen: HashMap::new(), looks: 0 }
    }

    /// Samples until it is told to end.
    pub(super) fn run(mut self, shared: &Shared, options: Options, limits: Vec<String>) -> (Profile, Cost) {
        let frequency_hz = options.frequency_hz.min(STATE_FREQUENCY_HZ);
        let period = Duration::from_secs(1) / frequency_hz.max(1);
        let (started, cpu_before) = (monotonic(), thread_cpu());
        let mut listed: Option<Duration> = None;
        let mut turn = TURN_FIRST;
        let mut rounds: u32 = 0;
        while !shared.is_over() {
            let round = monotonic();
            let follow = shared.to_follow();
            if !follow.is_empty() || listed.is_none_or(|at| round.saturating_sub(at) >= LIST_EVERY) {
                self.roots.extend(follow);
                self.list();
                listed = Some(round);
            }
            let cpu = thread_cpu();
            let looked = self.look(turn);
            let each = thread_cpu().saturating_sub(cpu).as_secs_f64() / looked.max(1) as f64;
            turn = ((period.as_secs_f64() * CPU_SHARE_MAX / each.max(1e-7)) as usize).clamp(4, THREADS_MAX);
            rounds += 1;
            // Relative to the start, so that a late round does not delay later ones.
            let next = started + period * rounds;
            wait(shared, next.saturating_sub(monotonic()));
        }
        let cost = Cost { sampling_cpu: thread_cpu().saturating_sub(cpu_before), naming_cpu: Duration::ZERO };
        let duration = monotonic().saturating_sub(started);
        let mut profile = Profile {
            host: options.host,
            moment: options.moment,
            started_at: options.started_at,
            duration_us: duration.as_micros().try_into().unwrap_or(u64::MAX),
            frequency_hz,
            method: ProfileMethod::ThreadState,
            frames: Vec::new(),
            stacks: Vec::new(),
            samples_lost: 0,
            limits,
        };
        self.finish(rounds, &mut profile);
        (profile, cost)
    }

    /// Lists all threads; new ones join the queue.
    fn list(&mut self) {
        let pids = if self.children { tree::with_descendants(&self.roots) } else { self.roots.clone() };
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
    fn look(&mut self, turn: usize) -> usize {
        let turn = turn.min(self.queue.len());
        for _ in 0..turn {
            let Some(ids) = self.queue.pop_front() else { break };
            let Some((name, doing)) = read(ids) else { continue }; // It has ended.
            self.queue.push_back(ids);
            self.looks += 1;
            if self.seen.len() < THREADS_MAX || self.seen.contains_key(&ids) {
                let seen = self.seen.entry(ids).or_default();
                seen.name = name;
                *seen.doing.entry(doing).or_default() += 1;
            }
        }
        turn
    }

    fn finish(self, rounds: u32, profile: &mut Profile) {
        let each = self.looks as f64 / self.seen.len().max(1) as f64;
        let seconds = profile.duration_us as f64 / 1e6;
        if each < 0.8 * f64::from(rounds) && seconds > 0.0 && !self.seen.is_empty() {
            profile.limits.push(format!(
                "{} threads took turns: each was looked at {:.1} times a second, so that looking stays below {:.0} % of a \
                 core",
                self.seen.len(),
                each / seconds,
                CPU_SHARE_MAX * 100.0
            ));
        }
        let waits = |known: fn(&Doing) -> bool| {
            let mut waiting =
                self.seen.values().flat_map(|s| s.doing.keys()).filter(|d| d.state != 'R').peekable();
            waiting.peek().is_none() || waiting.any(known)
        };
        if !waits(|doing| doing.waits_in.is_some() || doing.call.is_some()) {
            profile.limits.push(
                "where threads wait is hidden: it may be read of one's own processes only; run as the server's user or \
                 root, or give the binary CAP_SYS_PTRACE"
                    .to_owned(),
            );
        }
        let mut numbers: HashMap<Frame, u32> = HashMap::new();
        for (ids, seen) in self.seen {
            for (doing, count) in seen.doing {
                let frames = doing.frames().into_iter().map(|frame| {
                    let next = numbers.len() as u32;
                    *numbers.entry(frame).or_insert(next)
                });
                let frames = frames.collect();
                let Ids { pid, tid } = ids;
                profile.stacks.push(Stack { pid, tid, thread: seen.name.clone(), frames, count });
            }
        }
        let mut frames: Vec<_> = numbers.into_iter().map(|(frame, number)| (number, frame)).collect();
        frames.sort_unstable_by_key(|(number, _)| *number);
        profile.frames = frames.into_iter().map(|(_, frame)| frame).collect();
        profile.stacks.sort_unstable_by(|a, b| {
            b.count.cmp(&a.count).then_with(|| (a.tid, &a.frames).cmp(&(b.tid, &b.frames)))
        });
    }
}

impl Doing {
    /// Kernel function, system call, state: innermost first.
    fn frames(&self) -> Vec<Frame> {
        let state = match self.state {
            'R' => "running or ready to run",
            'S' | 'I' => "waiting",
            'D' => "waiting for a disk or the like",
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
fn read(ids: Ids) -> Option<(String, Doing)> {
    let file = |name: &str| {
        let bytes = std::fs::read(format!("/proc/{}/task/{}/{name}", ids.pid, ids.tid)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let stat = file("stat")?;
    let name = tree::name_and_parent(&stat)?.0.to_owned();
    let state = state(&stat)?;
    let mut doing = Doing { state, waits_in: None, call: None };
    if state != 'R' {
        doing.waits_in =
            file("wchan").map(|text| text.trim().to_owned()).filter(|f| !f.is_empty() && f != "0");
        doing.call = file("syscall").and_then(|text| call(&text));
    }
    Some((name, doing))
}

/// The state letter of a line of `/proc/PID/stat`.
fn state(stat: &str) -> Option<char> {
    stat.get(stat.rfind(')')? + 1..)?.trim_start().chars().next()
}

/// The number in `/proc/PID/syscall`; `None` while the thread runs, or waits outside a system call (-1).
fn call(text: &str) -> Option<libc::c_long> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|number| *number >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_calls_are_read() {
        assert_eq!(state("5 (a) b) S 1"), Some('S'));
        assert_eq!(state("5 (a)"), None);
        assert_eq!(state(""), None);
        assert_eq!(call("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f12"), Some(202));
        assert_eq!(call("running"), None);
        assert_eq!(call("-1 0x7ffd 0x7f12"), None);
        assert_eq!(call(""), None);
    }

    #[test]
    fn a_waiting_thread_reads_from_the_kernel_outwards() {
        let doing = Doing { state: 'S', waits_in: Some("futex_do_wait".into()), call: Some(libc::SYS_futex) };
        let frames = doing.frames();
        let frames: Vec<_> = frames.iter().map(|f| (f.symbol.as_str(), f.module.as_str())).collect();
        let expect = [("futex_do_wait", "[kernel]"), ("futex", "[syscall]"), ("waiting", "[state]")];
        assert_eq!(frames, expect);
    }
}
