//! Symbol lookup for code locations, after sampling: one pass over each file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::ops::Range;

use throng_observation::host::Frame;

mod demangle;
pub(crate) mod elf;
mod imports;
pub(crate) mod jit;
mod kernel;
pub(crate) mod vdso;

use super::processes::TrackedProcesses;
use super::stack_counts::CodeLocation;
use elf::{Source, Symbol};

/// The kernel's symbol table.
const KALLSYMS: &str = "/proc/kallsyms";

/// The names of code locations.
pub(crate) struct Names {
    /// One frame for each location, in the same order.
    pub(crate) frames: Vec<Frame>,
    /// What could not be named, and how to fix it.
    pub(crate) limits: Vec<String>,
    /// By the name of a file, where its debug symbols would be that are not there.
    pub(crate) debug_files: HashMap<String, String>,
}

/// Names all locations.
pub(crate) fn name(places: &[CodeLocation], tracked: &mut TrackedProcesses) -> Names {
    let mut namer =
        Namer { frames: HashMap::new(), limits: Vec::new(), debug_files: HashMap::new() };
    let mut kernel = Vec::new();
    let mut files: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut anonymous: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for place in places {
        match *place {
            CodeLocation::Kernel(address) => kernel.push(address),
            CodeLocation::Image { image, offset } => files.entry(image).or_default().push(offset),
            CodeLocation::Anonymous { process, address } => {
                anonymous.entry(process).or_default().push(address);
            }
            CodeLocation::Unknown => {}
        }
    }
    namer.kernel(kernel);
    namer.files(files, tracked);
    namer.anonymous(anonymous, tracked);
    let unknown = || Frame { symbol: "[unknown]".to_owned(), module: "[unknown]".to_owned() };
    let frames =
        places.iter().map(|place| namer.frames.remove(place).unwrap_or_else(unknown)).collect();
    Names { frames, limits: namer.limits, debug_files: namer.debug_files }
}

struct Namer {
    frames: HashMap<CodeLocation, Frame>,
    limits: Vec<String>,
    debug_files: HashMap<String, String>,
}

/// A function without a symbol, identified by its start address in the file.
struct Unnamed {
    place: CodeLocation,
    image: u32,
    start: u64,
    /// Whether it is one function; otherwise it may be several.
    is_known: bool,
}

impl Namer {
    fn put(&mut self, place: CodeLocation, symbol: String, module: &str) {
        self.frames.insert(place, Frame { symbol, module: module.to_owned() });
    }

    fn kernel(&mut self, mut addresses: Vec<u64>) {
        if addresses.is_empty() {
            return;
        }
        addresses.sort_unstable();
        // A kernel file, as long as the kernel has functions.
        let text = std::fs::read(KALLSYMS).unwrap_or_default();
        let names = kernel::name(&String::from_utf8_lossy(&text), &addresses);
        if names.iter().all(Option::is_none) {
            let help = "kernel functions have no names: the kernel hides their addresses \
                        (kernel.kptr_restrict); the capability CAP_SYSLOG makes them visible";
            self.limits.push(help.to_owned());
        }
        for (address, name) in addresses.into_iter().zip(names) {
            // All unnamed kernel addresses are one function.
            let symbol = name.unwrap_or_else(|| "[kernel]".to_owned());
            self.put(CodeLocation::Kernel(address), symbol, "[kernel]");
        }
    }

    fn files(&mut self, files: BTreeMap<u32, Vec<u64>>, tracked: &mut TrackedProcesses) {
        let mut unnamed = Vec::new();
        for (image, offsets) in files {
            unnamed.extend(self.file(image, offsets, tracked));
        }
        let wanted =
            unnamed.iter().map(|unnamed| (unnamed.image, unnamed.start)).collect::<HashSet<_>>();
        let imported = imports::name(&wanted, tracked);
        for Unnamed { place, image, start, is_known } in unnamed {
            let module =
                tracked.images.get(image).map(|image| image.name.clone()).unwrap_or_default();
            let imported = imported.get(&(image, start)).map(|name| demangle::demangle(name));
            self.put(
                place,
                imported.unwrap_or_else(|| {
                    if is_known { format!("{start:#x}") } else { format!("{start:#x}..") }
                }),
                &module,
            );
        }
    }

    /// Names locations by the file's symbols; returns those without one.
    fn file(&mut self, id: u32, offsets: Vec<u64>, tracked: &mut TrackedProcesses) -> Vec<Unnamed> {
        let Some(image) = tracked.images.get(id) else { return Vec::new() };
        let module = image.name.clone();
        let Some(layout) = image.layout() else {
            for offset in offsets {
                let place = CodeLocation::Image { image: id, offset };
                self.put(place, format!("{:#x}", offset & !0xfff), &module);
            }
            return Vec::new();
        };
        // Sorted addresses in the file's address space, with their file offsets.
        let mut stated: Vec<(u64, u64)> = offsets
            .iter()
            .map(|offset| (layout.address_of(*offset).unwrap_or(*offset), *offset))
            .collect();
        stated.sort_unstable();
        let addresses: Vec<u64> = stated.iter().map(|(address, _)| *address).collect();
        let mut named = match &image.file {
            Some(file) => elf::name(&Source::File(file), &addresses),
            None => vec![None; addresses.len()],
        };
        let mut functions = Vec::new();
        if named.iter().any(|named| named.as_ref().is_none_or(|named| !named.is_sized)) {
            functions = image.layout().map(elf::Layout::functions).unwrap_or_default();
            // A symbol without a size does not extend into the next function, even if that has no
            // name.
            for (address, slot) in addresses.iter().zip(&mut named) {
                let begins = function_at(&functions, *address).map_or(0, |function| function.start);
                *slot = slot.take().filter(|named| named.is_sized || named.start >= begins);
            }
            if let Some(file) = &image.file {
                let missing = name_elsewhere(file, &image.root, &addresses, &mut named);
                self.debug_files.extend(missing.map(|path| (module.clone(), path)));
            }
        }
        let mut unnamed = Vec::new();
        for ((address, offset), named) in stated.into_iter().zip(named) {
            let place = CodeLocation::Image { image: id, offset };
            match named {
                Some(named) => self.put(place, demangle::demangle(&named.name), &module),
                None => {
                    // Code between known functions is usually hand-written assembly: it counts as
                    // one function.
                    let known = function_at(&functions, address).map(|function| function.start);
                    let gap = || {
                        let above = functions.partition_point(|function| function.start <= address);
                        above
                            .checked_sub(1)
                            .and_then(|below| functions.get(below))
                            .map(|below| below.end)
                    };
                    let (start, is_known) = (known.or_else(gap).unwrap_or(0), known.is_some());
                    unnamed.push(Unnamed { place, image: id, start, is_known });
                }
            }
        }
        unnamed
    }

    fn anonymous(&mut self, anonymous: BTreeMap<u32, Vec<u64>>, tracked: &mut TrackedProcesses) {
        for pid in tracked.living().map(|(pid, _)| pid).collect::<Vec<_>>() {
            if tracked
                .process(pid)
                .is_some_and(|(process, _)| anonymous.contains_key(&process.serial))
            {
                tracked.look_for_jit_map(pid);
            }
        }
        let mut has_unnamed = false;
        for (process, addresses) in anonymous {
            let map = tracked.jits.get(&process).map(jit::read);
            has_unnamed |= map.is_none();
            let names = jit::name(map.as_deref().unwrap_or_default(), &addresses);
            for (address, name) in addresses.into_iter().zip(names) {
                let symbol = name.unwrap_or_else(|| "[no name]".to_owned());
                self.put(CodeLocation::Anonymous { process, address }, symbol, "[jit]");
            }
        }
        if has_unnamed {
            let help = "JIT-compiled code has no names: the program writes them to \
                        /tmp/perf-PID.map on request (node --perf-basic-prof, python -X perf, \
                        java with perf-map-agent)";
            self.limits.push(help.to_owned());
        }
    }
}

/// The function that contains `address`, in a sorted list.
fn function_at(functions: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let above = functions.partition_point(|function| function.start <= address);
    above
        .checked_sub(1)
        .and_then(|below| functions.get(below))
        .filter(|function| address < function.end)
}

/// Adds names from a stripped file's compressed symbol table and from its debug package. The path
/// of the debug file if it is not there.
fn name_elsewhere(
    file: &File,
    root: &std::path::Path,
    addresses: &[u64],
    named: &mut [Option<Symbol>],
) -> Option<String> {
    let debug_symbols = elf::debug_symbols(file);
    let mut fill = |source: &Source<'_>| {
        for (slot, name) in named.iter_mut().zip(elf::name(source, addresses)) {
            if slot.is_none() {
                *slot = name;
            }
        }
    };
    if let Some(bytes) = &debug_symbols.debug_data {
        fill(&Source::Bytes(bytes));
    }
    let path = debug_symbols.debug_file?;
    for folder in [root, std::path::Path::new("/")] {
        let Ok(file) = File::open(folder.join(&path)) else { continue };
        if file.metadata().is_ok_and(|meta| meta.is_file()) {
            fill(&Source::File(&file));
            return None;
        }
    }
    Some(format!("/{path}"))
}

/// For the mutation tests: the names of code at `addresses`, which are sorted, by what a process or
/// the kernel has written of it; and whether its mappings, from lines of the same text, lie one
/// behind the other.
#[doc(hidden)]
#[must_use]
pub fn names_in_any_maps(bytes: &[u8], addresses: &[u64]) -> (Vec<Option<String>>, bool) {
    use crate::profiler::processes::maps::{Backing, Mapping, MapsLine, Memory};

    let text = String::from_utf8_lossy(bytes);
    let mut names = jit::name(&text, addresses);
    names.extend(kernel::name(&text, addresses));
    let mut memory = Memory::default();
    for line in bytes.split(|byte| *byte == b'\n').filter_map(MapsLine::parse) {
        let backing = Backing::Anonymous;
        memory.map(line.start, Mapping { end: line.end, offset: line.offset, backing });
    }
    let (mut last, mut is_ordered) = (0, true);
    for (start, mapping) in memory.all() {
        is_ordered &= last <= start && start < mapping.end;
        last = mapping.end;
    }
    (names, is_ordered)
}
