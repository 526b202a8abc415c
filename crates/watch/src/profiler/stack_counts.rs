//! Counts samples by thread and stack. Addresses are resolved to files and offsets at once, because
//! the process may end; their symbols are looked up when sampling is over.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::perf::{Ids, Sample};
use super::processes::TrackedProcesses;
use super::processes::maps::Backing;
use super::unwind::Rules;

/// Maximum number of stacks; beyond it only the innermost function is kept (64 CPUs at 99 Hz take
/// at least 40 s to fill it).
const STACKS_MAX: usize = 262_144;
/// Maximum number of code locations.
const PLACES_MAX: usize = 1 << 20;

/// The location of sampled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CodeLocation {
    /// A kernel address.
    Kernel(u64),
    /// An offset in a file.
    Image { image: u32, offset: u64 },
    /// An address in a process's code without a file.
    Anonymous { process: u32, address: u64 },
    /// An unknown address.
    Unknown,
}

impl fmt::Display for CodeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(address) => write!(f, "kernel {address:#x}"),
            Self::Image { image, offset } => write!(f, "file {image}, offset {offset:#x}"),
            Self::Anonymous { process, address } => {
                write!(f, "process {process}, address {address:#x}")
            }
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// A thread with the name that it had.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NamedThread {
    pub(crate) ids: Ids,
    pub(crate) name: Arc<str>,
}

/// Counted samples.
#[derive(Default)]
pub(crate) struct StackCounts {
    pub(crate) threads: Vec<NamedThread>,
    pub(crate) places: Vec<CodeLocation>,
    /// Sample counts by thread and stack, innermost location first.
    pub(crate) stacks: HashMap<(u32, Box<[u32]>), u32>,
    /// Number of samples of which only the innermost function was kept.
    pub(crate) cut: u64,
    known_threads: HashMap<NamedThread, u32>,
    known_places: HashMap<CodeLocation, u32>,
    rules: Rules,
}

impl StackCounts {
    /// Counts a sample of a tracked process; ignores others.
    pub(crate) fn add(&mut self, sample: &Sample, tracked: &mut TrackedProcesses) {
        let Some(user) = self.user_stack(sample, tracked) else { return };
        let name = tracked.thread_name(sample.ids);
        let thread = self.thread(NamedThread { ids: sample.ids, name });
        let kernel = sample
            .kernel
            .iter()
            .enumerate()
            .map(|(nth, address)| CodeLocation::Kernel(within_call(nth, *address)));
        let mut jit = false;
        let mut places = Vec::with_capacity(sample.kernel.len() + user.len());
        for place in kernel.chain(user) {
            let is_new = !self.known_places.contains_key(&place);
            jit |= is_new && matches!(place, CodeLocation::Anonymous { .. });
            places.push(self.place(place));
        }
        if jit {
            tracked.look_for_jit_map(sample.ids.pid);
        }
        if self.stacks.len() >= STACKS_MAX
            && !self.stacks.contains_key(&(thread, places.as_slice().into()))
        {
            self.cut += 1;
            places.truncate(1);
        }
        *self.stacks.entry((thread, places.into())).or_default() += 1;
    }

    /// The user space stack: by unwind tables if the sample has a copy of the stack, else by frame
    /// pointers.
    fn user_stack(
        &mut self,
        sample: &Sample,
        tracked: &mut TrackedProcesses,
    ) -> Option<Vec<CodeLocation>> {
        let (process, images) = tracked.process(sample.ids.pid)?;
        let unwound = sample
            .stack
            .as_ref()
            .map(|stack| process.unwinding.unwind(&mut self.rules, &process.memory, images, stack))
            .unwrap_or_default();
        let by_frame_pointer =
            || sample.user.iter().enumerate().map(|(nth, address)| within_call(nth, *address));
        let addresses: Vec<u64> =
            if unwound.is_empty() { by_frame_pointer().collect() } else { unwound };
        let place = |address: u64| match process.memory.at(address) {
            Some((start, mapping)) => match mapping.backing {
                Backing::Image(image) => CodeLocation::Image {
                    image,
                    offset: mapping.offset.wrapping_add(address - start),
                },
                Backing::Anonymous => CodeLocation::Anonymous { process: process.serial, address },
            },
            None => CodeLocation::Unknown,
        };
        // A frame pointer register used for other purposes leads to addresses that are not code:
        // the stack ends there.
        let is_code =
            |(nth, place): &(usize, CodeLocation)| *nth == 0 || *place != CodeLocation::Unknown;
        Some(
            addresses
                .into_iter()
                .map(place)
                .enumerate()
                .take_while(is_code)
                .map(|(_, place)| place)
                .collect(),
        )
    }

    fn thread(&mut self, thread: NamedThread) -> u32 {
        *self.known_threads.entry(thread).or_insert_with_key(|thread| {
            self.threads.push(thread.clone());
            self.threads.len() as u32 - 1
        })
    }

    fn place(&mut self, place: CodeLocation) -> u32 {
        let place = if self.places.len() < PLACES_MAX { place } else { CodeLocation::Unknown };
        *self.known_places.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        })
    }
}

/// A return address follows its call and may lie in the next function; one less lies within the
/// call.
fn within_call(nth: usize, address: u64) -> u64 {
    if nth == 0 { address } else { address.saturating_sub(1) }
}
