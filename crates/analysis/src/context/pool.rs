//! Thread pools: their use together, and whether work moves between their threads.

use std::collections::BTreeMap;

use throng_observation::host::measured::{MeasuredSeries, Window};

use super::{Context, Reading, Thread, middle, seconds};
use crate::findings::score::USED_FROM;

/// A thread that is the busiest in this share of the seconds has work of its own; below it, work
/// moves between threads.
const STAYS_MIN: f64 = 0.70;
/// The same for a runtime that is known to put any task on any thread.
const STAYS_IN_RUNTIME_MIN: f64 = 0.90;
/// Cores; a second in which no thread used more has no busiest thread.
const BUSY_MIN: f64 = 0.05;

/// The threads of one process that share the same work, the busiest first, without those that are
/// always busy.
pub(crate) struct Pool<'a, 'b> {
    pub(crate) threads: Vec<&'b Thread<'a>>,
}

impl<'a, 'b> Pool<'a, 'b> {
    /// The pool of a thread.
    pub(crate) fn of(context: &'b Context<'a>, thread: &Thread<'a>) -> Self {
        let is_like = |other: &&Thread<'_>| {
            other.pid == thread.pid && other.group == thread.group && !other.is_always_busy()
        };
        Self { threads: context.threads.iter().filter(is_like).collect() }
    }

    /// All pools, by process and group.
    pub(crate) fn all(context: &'b Context<'a>) -> Vec<Self> {
        let mut pools: BTreeMap<(&str, &str), Vec<&'b Thread<'a>>> = BTreeMap::new();
        for thread in context.threads.iter().filter(|thread| !thread.is_always_busy()) {
            pools.entry((thread.pid, &thread.group)).or_default().push(thread);
        }
        pools.into_values().map(|threads| Self { threads }).collect()
    }

    /// Whether the thread belongs to the pool.
    pub(crate) fn holds(&self, thread: &Thread<'_>) -> bool {
        self.threads.iter().any(|one| one.measured.series.id == thread.measured.series.id)
    }

    /// Cores used by all its threads together, the median second, including threads that are too
    /// idle to be listed.
    pub(crate) fn cores(&self, context: &Context<'_>) -> Reading {
        let Some(first) = self.threads.first() else { return Reading::default() };
        let mut all = context.threads_of(first.pid);
        all.retain(|cpu| {
            context.knowledge.group(cpu.label("process"), cpu.label("thread")) == first.group
        });
        context.used_together(&all)
    }

    /// Cores used by its threads, the mean of the failing load: for a choice among pools.
    pub(crate) fn used(&self, context: &Context<'_>) -> f64 {
        self.threads.iter().filter_map(|thread| thread.measured.mean(context.fail.window)).sum()
    }

    /// Whether its work moves between threads, so that a single thread shows nothing: the busiest
    /// thread changes from second to second, or a runtime puts any task on any thread and the
    /// busiest thread is another one than under the load that passed.
    pub(crate) fn wanders(&self, context: &Context<'_>) -> bool {
        let Some(first) = self.threads.first().filter(|_| self.threads.len() > 1) else {
            return false;
        };
        // Threads that are all full share their work evenly: which of them is the busiest means
        // nothing.
        let steady = self.threads.iter().filter(|thread| thread.steady >= USED_FROM).count();
        if steady == self.threads.len() {
            return false;
        }
        let now = Tops::of(&self.threads, context.fail.window);
        if context.knowledge.runtime(first.process, first.name).is_none() {
            return steady == 0 && now.share() < STAYS_MIN;
        }
        let before = context.windows.pass.map(|pass| Tops::of(&self.threads, pass.window).tid);
        now.share() < STAYS_IN_RUNTIME_MIN || before.is_some_and(|before| before != now.tid)
    }
}

impl Context<'_> {
    /// The median second of these threads together; 0 where they did not exist yet.
    pub(crate) fn used_together(&self, list: &[MeasuredSeries<'_>]) -> Reading {
        let none = |window| self.was_read(window).then_some(0.0);
        let of = self.total(list);
        self.reading_or(of, none)
    }

    /// Cores used by the busiest of these threads in the median second of the failing load.
    pub(crate) fn busiest_of_each_second(&self, threads: &[&Thread<'_>]) -> f64 {
        middle(Tops::of(threads, self.fail.window).used).unwrap_or(0.0)
    }

    fn reading_or(&self, of: Reading, otherwise: impl Fn(Window) -> Option<f64>) -> Reading {
        let at = |value: Option<f64>, stretch: Option<crate::windows::LoadWindow>| {
            value.or_else(|| otherwise(stretch?.window))
        };
        Reading { base: at(of.base, self.windows.base), pass: at(of.pass, self.windows.pass), ..of }
    }
}

/// The busiest thread in each second of a window.
struct Tops<'a> {
    /// The thread that was the busiest most often, and in how many seconds.
    tid: &'a str,
    times: usize,
    /// Cores used by the busiest thread, by second.
    used: Vec<f64>,
}

impl<'a> Tops<'a> {
    fn of(threads: &[&Thread<'a>], window: Window) -> Self {
        let grid = seconds(window);
        let mut tops: Vec<(f64, &str)> = vec![(0.0, ""); grid.count];
        for thread in threads {
            for (top, value) in tops.iter_mut().zip(thread.measured.on(grid)) {
                if let Some(value) = value.filter(|value| *value > top.0.max(BUSY_MIN)) {
                    *top = (value, thread.tid);
                }
            }
        }
        tops.retain(|(_, tid)| !tid.is_empty());
        let mut times: BTreeMap<&'a str, usize> = BTreeMap::new();
        tops.iter().for_each(|(_, tid)| *times.entry(tid).or_default() += 1);
        let (tid, times) = times.into_iter().max_by_key(|(_, times)| *times).unwrap_or_default();
        Self { tid, times, used: tops.into_iter().map(|(used, _)| used).collect() }
    }

    /// The share of the seconds in which it was the same thread; 1 if no thread was busy.
    fn share(&self) -> f64 {
        if self.used.is_empty() { 1.0 } else { self.times as f64 / self.used.len() as f64 }
    }
}
