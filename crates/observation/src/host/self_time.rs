//! Sums of a profile: the time of each thread and function, and what changed between two moments.
//!
//! Self-time is the time in a function itself, without its callees: it adds up to the total, and
//! needs no stacks.

use super::{Family, Frame, Profile, ProfileMethod, Stack};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A function's own time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SymbolTime {
    /// The function.
    pub frame: Frame,
    /// Its kind of work, where the name shows it.
    pub family: Option<Family>,
    /// Samples in it.
    pub samples: u64,
    /// Its share of the samples looked at, 0 to 1.
    pub share: f64,
}

/// The time of the threads of one name, or of names that differ in numbers only (`queue*:src`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// The name.
    pub thread: String,
    /// How many threads of that name were sampled.
    pub threads: usize,
    /// Samples.
    pub samples: u64,
    /// Their share of the samples looked at, 0 to 1.
    pub share: f64,
    /// CPU time together, in cores; `None` when thread states were sampled.
    pub cores: Option<f64>,
    /// Their functions, the longest first; shares are of these threads' time.
    pub symbols: Vec<SymbolTime>,
}

/// The time of a kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyTime {
    /// The kind.
    pub family: Family,
    /// Share of the samples in functions of the kind itself, 0 to 1.
    pub own_share: f64,
    /// Share of the samples in such functions or in what they called, 0 to 1; never below
    /// [`Self::own_share`].
    pub within_share: f64,
}

/// Where the time of a profile went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTime {
    /// Samples looked at.
    pub samples: u64,
    /// CPU time in cores; `None` when thread states were sampled.
    pub cores: Option<f64>,
    /// Threads by name, the busiest first.
    pub threads: Vec<ThreadTime>,
    /// Functions over all threads, the longest first.
    pub symbols: Vec<SymbolTime>,
    /// Kinds of work that were found, the largest first.
    pub families: Vec<FamilyTime>,
}

/// The share of a function at two moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The function.
    pub frame: Frame,
    /// Its share of the samples before, 0 to 1.
    pub before: f64,
    /// Its share of the samples after.
    pub after: f64,
    /// Its CPU time before, in cores; 0 when thread states were sampled.
    pub before_cores: f64,
    /// Its CPU time after, in cores.
    pub after_cores: f64,
    /// How far the shares may differ by sampling alone: two standard errors of their difference.
    pub chance: f64,
}

impl Change {
    /// Whether the shares differ by more than chance.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        (self.after - self.before).abs() > self.chance
    }
}

impl FamilyTime {
    /// The relevant share: with callees for kinds that are a path ([`Family::is_path`]), else
    /// self-time.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.family.is_path() { self.within_share } else { self.own_share }
    }
}

impl SelfTime {
    /// The time of all threads.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        Self::of_stacks(profile, |_| true)
    }

    /// The time of the threads that `wanted` selects, such as the one that is full.
    #[must_use]
    pub fn of_stacks(profile: &Profile, wanted: impl Fn(&Stack) -> bool) -> Self {
        let stacks: Vec<&Stack> = profile.stacks.iter().filter(|stack| wanted(stack)).collect();
        let samples = count(&stacks);
        let mut threads: Vec<_> = by_name(&stacks, samples)
            .into_iter()
            .map(|(name, stacks)| {
                let own = count(&stacks);
                ThreadTime {
                    thread: name,
                    threads: stacks.iter().map(|s| (s.pid, s.tid)).collect::<BTreeSet<_>>().len(),
                    samples: own,
                    share: ratio(own, samples),
                    cores: profile.cores(own),
                    symbols: symbols(profile, &stacks, own),
                }
            })
            .collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.samples));
        Self {
            samples,
            cores: profile.cores(samples),
            threads,
            symbols: symbols(profile, &stacks, samples),
            families: families(profile, &stacks, samples),
        }
    }

    /// The share of a kind of work; zeros where none was found.
    #[must_use]
    pub fn family(&self, family: Family) -> FamilyTime {
        let met = self.families.iter().find(|time| time.family == family);
        met.cloned().unwrap_or(FamilyTime { family, own_share: 0.0, within_share: 0.0 })
    }
}

impl Profile {
    /// CPU time of this number of samples, in cores; `None` when thread states were sampled, which
    /// do not show it.
    #[must_use]
    pub fn cores(&self, samples: u64) -> Option<f64> {
        let possible = f64::from(self.frequency_hz) * self.duration_us as f64 / 1e6;
        (self.method == ProfileMethod::CpuClock && possible > 0.0)
            .then(|| samples as f64 / possible)
    }

    /// The frames of a stack, innermost first; invalid indices are left out.
    pub fn frames_of<'a>(
        &'a self,
        stack: &'a Stack,
    ) -> impl DoubleEndedIterator<Item = &'a Frame> + 'a {
        stack.frames.iter().filter_map(|frame| self.frames.get(*frame as usize))
    }
}

/// What changed by function from one profile to another, the largest change first. Shares compare
/// the distribution of the time; cores compare its amount.
#[must_use]
pub fn compare(before: &Profile, after: &Profile) -> Vec<Change> {
    let mut changes: BTreeMap<(String, String), Change> = BTreeMap::new();
    let [samples_before, samples_after] =
        [before, after].map(|profile| SelfTime::of(profile).samples as f64);
    for (profile, is_after) in [(before, false), (after, true)] {
        for time in SelfTime::of(profile).symbols {
            let key = (time.frame.symbol.clone(), time.frame.module.clone());
            let change = changes.entry(key).or_insert_with(|| Change {
                frame: time.frame,
                before: 0.0,
                after: 0.0,
                before_cores: 0.0,
                after_cores: 0.0,
                chance: 0.0,
            });
            let cores = profile.cores(time.samples).unwrap_or(0.0);
            if is_after {
                (change.after, change.after_cores) = (time.share, cores);
            } else {
                (change.before, change.before_cores) = (time.share, cores);
            }
        }
    }
    let mut changes: Vec<_> = changes.into_values().collect();
    for change in &mut changes {
        // The share of both together, under the hypothesis that nothing changed.
        let all = samples_before + samples_after;
        let share = (change.before * samples_before + change.after * samples_after) / all.max(1.0);
        let each = 1.0 / samples_before.max(1.0) + 1.0 / samples_after.max(1.0);
        change.chance = 2.0 * (share * (1.0 - share) * each).max(0.0).sqrt();
    }
    changes.sort_by(|a, b| (b.after - b.before).abs().total_cmp(&(a.after - a.before).abs()));
    changes
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Names with a smaller share of the samples than this count as one where they differ in numbers
/// only: servers give each client threads of its own. A name with a larger share is shown alone,
/// also if others differ from it in numbers only.
const ALIKE_SHARE_MAX: f64 = 0.2;

fn by_name<'a>(stacks: &[&'a Stack], samples: u64) -> BTreeMap<String, Vec<&'a Stack>> {
    let mut named: BTreeMap<&str, Vec<&Stack>> = BTreeMap::new();
    for stack in stacks {
        named.entry(&stack.thread).or_default().push(stack);
    }
    let mut alike: BTreeMap<String, Vec<(&str, Vec<&Stack>)>> = BTreeMap::new();
    for (name, stacks) in named {
        let is_small = ratio(count(&stacks), samples) < ALIKE_SHARE_MAX;
        let key = if is_small { without_numbers(name) } else { name.to_owned() };
        alike.entry(key).or_default().push((name, stacks));
    }
    let named = alike.into_iter().map(|(key, mut members)| match members.as_mut_slice() {
        [(name, stacks)] => ((*name).to_owned(), std::mem::take(stacks)),
        _ => (key, members.into_iter().flat_map(|(_, stacks)| stacks).collect()),
    });
    named.collect()
}

/// `queue12:src` and `queue7:src` are both `queue*:src`.
fn without_numbers(name: &str) -> String {
    let mut stem = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '0'..='9' if stem.ends_with('*') => {}
            '0'..='9' => stem.push('*'),
            other => stem.push(other),
        }
    }
    stem
}

fn count(stacks: &[&Stack]) -> u64 {
    stacks.iter().map(|stack| u64::from(stack.count)).sum()
}

fn symbols(profile: &Profile, stacks: &[&Stack], whole: u64) -> Vec<SymbolTime> {
    let mut counts: BTreeMap<(&str, &str), (&Frame, u64)> = BTreeMap::new();
    for stack in stacks {
        let Some(leaf) = profile.frames_of(stack).next() else { continue };
        counts.entry((&leaf.symbol, &leaf.module)).or_insert((leaf, 0)).1 += u64::from(stack.count);
    }
    let mut times: Vec<_> = counts
        .into_values()
        .map(|(frame, samples)| SymbolTime {
            frame: frame.clone(),
            family: Family::of(frame),
            samples,
            share: ratio(samples, whole),
        })
        .collect();
    times.sort_by_key(|time| std::cmp::Reverse(time.samples));
    times
}

fn families(profile: &Profile, stacks: &[&Stack], whole: u64) -> Vec<FamilyTime> {
    let family_of: Vec<Option<Family>> = profile.frames.iter().map(Family::of).collect();
    let mut counts: BTreeMap<Family, (u64, u64)> = BTreeMap::new();
    for stack in stacks {
        let family = |frame: &u32| family_of.get(*frame as usize).copied().flatten();
        let within: BTreeSet<Family> = stack.frames.iter().filter_map(family).collect();
        for met in within {
            counts.entry(met).or_default().1 += u64::from(stack.count);
        }
        if let Some(own) = stack.frames.first().and_then(family) {
            counts.entry(own).or_default().0 += u64::from(stack.count);
        }
    }
    let mut times: Vec<_> = counts
        .into_iter()
        .map(|(family, (own, within))| FamilyTime {
            family,
            own_share: ratio(own, whole),
            within_share: ratio(within, whole),
        })
        .collect();
    times.sort_by(|a, b| b.share().total_cmp(&a.share()));
    times
}

#[cfg(test)]
#[path = "self_time_tests.rs"]
mod tests;
