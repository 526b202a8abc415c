//! Reads ELF files: layout, unwind tables and symbols.
//!
//! The files belong to the watched processes and are not trusted: all sizes are bounded by a
//! budget, and files are read, not mapped, because truncating a mapped file would kill the reader.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use object::read::{ReadCache, ReadCacheOps};
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, SectionIndex,
    SectionKind, SymbolIndex, SymbolKind,
};

/// Maximum number of bytes read of a file in one pass; the symbol table of a large browser has
/// about 100 MB.
const BUDGET_BYTES: u64 = 256 << 20;
/// Maximum size of a file's unwind table, bytes.
const UNWIND_BYTES_MAX: u64 = 64 << 20;

/// A file that can be read until a budget is used up.
#[derive(Debug)]
struct Bounded<'a> {
    file: &'a File,
    position: u64,
    left: u64,
}

impl ReadCacheOps for Bounded<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        self.file.metadata().map(|meta| meta.len()).map_err(drop)
    }

    fn seek(&mut self, position: u64) -> Result<u64, ()> {
        self.position = position;
        Ok(position)
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ()> {
        self.left = self.left.checked_sub(buffer.len() as u64).ok_or(())?;
        let read = self.file.read_at(buffer, self.position).map_err(drop)?;
        self.position = self.position.saturating_add(read as u64);
        Ok(read)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ()> {
        self.left = self.left.checked_sub(buffer.len() as u64).ok_or(())?;
        self.file.read_exact_at(buffer, self.position).map_err(drop)?;
        self.position = self.position.saturating_add(buffer.len() as u64);
        Ok(())
    }
}

/// Opens a file for reading by `object`.
fn cache(file: &File) -> ReadCache<impl ReadCacheOps + '_> {
    ReadCache::new(Bounded { file, position: 0, left: BUDGET_BYTES })
}

/// Whether a program was built by Go, whose linker adds the section `.go.buildinfo`.
pub(crate) fn is_go(file: &File) -> bool {
    let cache = cache(file);
    object::File::parse(&cache).is_ok_and(|elf| elf.section_by_name(".go.buildinfo").is_some())
}

/// A section with its address range.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) addresses: Range<u64>,
    pub(crate) data: Arc<[u8]>,
}

/// A loadable segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
    is_executable: bool,
}

/// The memory layout and unwind tables of a file.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    segments: Vec<Segment>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) is_64: bool,
}

impl Layout {
    /// Reads the layout; `None` if this is not an ELF file.
    pub(crate) fn read(file: &File) -> Option<Self> {
        let cache = cache(file);
        let elf = object::File::parse(&cache).ok()?;
        let segments = elf.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            let is_executable = segment.permissions().executable();
            Segment { offset, bytes, address: segment.address(), is_executable }
        });
        let section = |name| {
            let section = elf.section_by_name(name).filter(|s| s.size() <= UNWIND_BYTES_MAX)?;
            let start = section.address();
            let addresses = start..start.checked_add(section.size())?;
            Some(Section { addresses, data: Arc::from(section.data().ok()?) })
        };
        Some(Self {
            segments: segments.take(64).collect(),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            is_64: elf.is_64(),
        })
    }

    /// The virtual address of the byte at `offset`.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        // Mappings start at page boundaries, segments need not: the bytes before a segment in its
        // first page belong to it too.
        let holds = |s: &&Segment| {
            let end = s.offset.saturating_add(s.bytes);
            offset >= (s.offset & !0xfff) && offset < end
        };
        let executable = self.segments.iter().filter(|s| s.is_executable).find(holds);
        let segment = executable.or_else(|| self.segments.iter().find(holds))?;
        Some(segment.address.wrapping_add(offset.wrapping_sub(segment.offset)))
    }

    /// The functions in the unwind tables, sorted by address: they delimit functions without
    /// symbols.
    pub(crate) fn functions(&self) -> Vec<Range<u64>> {
        use gimli::UnwindSection;
        let Some(section) = &self.eh_frame else { return Vec::new() };
        let mut eh_frame = gimli::EhFrame::new(&section.data, gimli::NativeEndian);
        eh_frame.set_address_size(if self.is_64 { 8 } else { 4 });
        let bases = gimli::BaseAddresses::default().set_eh_frame(section.addresses.start);
        let mut entries = eh_frame.entries(&bases);
        let mut functions = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(gimli::EhFrame::cie_from_offset) else {
                continue;
            };
            let start = fde.initial_address();
            functions.push(start..start.saturating_add(fde.len()));
        }
        functions.sort_unstable_by_key(|function| function.start);
        functions
    }
}

/// A function symbol with its mangled name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) start: u64,
    pub(crate) name: Vec<u8>,
    /// Whether the symbol has a size; otherwise the function extends to the next one.
    pub(crate) is_sized: bool,
}

/// Where to read symbols from.
pub(crate) enum Source<'a> {
    /// A file on disk.
    File(&'a File),
    /// A file in memory.
    Bytes(&'a [u8]),
}

/// The symbol of the function that contains each of the sorted `addresses`.
pub(crate) fn name(source: &Source<'_>, addresses: &[u64]) -> Vec<Option<Symbol>> {
    let named = match source {
        Source::File(file) => {
            let cache = cache(file);
            object::File::parse(&cache).ok().map(|elf| name_in(&elf, addresses))
        }
        Source::Bytes(bytes) => {
            object::File::parse(*bytes).ok().map(|elf| name_in(&elf, addresses))
        }
    };
    named.unwrap_or_else(|| vec![None; addresses.len()])
}

fn name_in<'d, R: object::ReadRef<'d>>(
    elf: &object::File<'d, R>,
    addresses: &[u64],
) -> Vec<Option<Symbol>> {
    let mut found: Vec<Option<Symbol>> = vec![None; addresses.len()];
    let code: HashSet<_> =
        elf.sections().filter(|s| s.kind() == SectionKind::Text).map(|s| s.index()).collect();
    for table in [elf.symbol_table(), elf.dynamic_symbol_table()].into_iter().flatten() {
        let mut symbols: Vec<_> = table
            .symbols()
            .filter(|symbol| is_code(symbol, &code))
            .map(|s| Extent {
                start: s.address(),
                size: s.size(),
                is_local: !s.is_global(),
                index: s.index(),
            })
            .collect();
        // Of several symbols at one address the global one with a size is preferred.
        symbols.sort_unstable_by_key(|s| (s.start, s.size > 0, !s.is_local, s.index.0));
        for (address, slot) in addresses.iter().zip(&mut found).filter(|(_, slot)| slot.is_none()) {
            let Some(extent) = holder(&symbols, *address) else { continue };
            let Ok(symbol) = table.symbol_by_index(extent.index) else { continue };
            // A function without a size ends at the latest with its section.
            let section =
                symbol.section_index().and_then(|section| elf.section_by_index(section).ok());
            let is_in = section.is_some_and(|s| *address - s.address().min(*address) < s.size());
            let is_sized = extent.size > 0;
            if is_sized || is_in {
                let name = symbol.name_bytes().ok().filter(|name| !name.is_empty());
                *slot =
                    name.map(|name| Symbol { start: extent.start, name: name.to_vec(), is_sized });
            }
        }
    }
    let stubs = stubs(elf);
    for (address, slot) in addresses.iter().zip(&mut found).filter(|(_, slot)| slot.is_none()) {
        let stub = stubs.iter().find(|stub| stub.contains(address));
        *slot =
            stub.map(|stub| Symbol { start: stub.start, name: b"[plt]".to_vec(), is_sized: true });
    }
    found
}

/// Address and size of a symbol.
struct Extent {
    start: u64,
    size: u64,
    is_local: bool,
    index: SymbolIndex,
}

/// Whether a symbol names code. Assembly often has labels without function type.
fn is_code<'d>(symbol: &impl ObjectSymbol<'d>, code: &HashSet<SectionIndex>) -> bool {
    let is_label = matches!(symbol.kind(), SymbolKind::Unknown | SymbolKind::Label);
    let in_code = || symbol.section_index().is_some_and(|section| code.contains(&section));
    !symbol.is_undefined() && (symbol.kind() == SymbolKind::Text || is_label && in_code())
}

/// The symbol that contains `address`, in a sorted list.
fn holder(symbols: &[Extent], address: u64) -> Option<&Extent> {
    let above = symbols.partition_point(|symbol| symbol.start <= address);
    let below = symbols.get(..above)?;
    // A smaller function may lie inside a larger one's range (cold parts); a label inside a
    // function is not a function.
    let sized = below.iter().rev().take(8).find(|symbol| address - symbol.start < symbol.size);
    sized.or_else(|| below.last().filter(|symbol| symbol.size == 0))
}

/// The sections of stubs that call other files' functions, which have no symbols (`.plt`). A linker
/// makes three of them; a file that is nobody's may have millions, and many addresses are looked
/// for.
fn stubs<'d, R: object::ReadRef<'d>>(elf: &object::File<'d, R>) -> Vec<Range<u64>> {
    const STUBS_MAX: usize = 16;
    elf.sections()
        .filter(|section| section.name_bytes().is_ok_and(|name| name.starts_with(b".plt")))
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .take(STUBS_MAX)
        .collect()
}

/// A function imported from another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Virtual address of the slot that the dynamic linker fills in.
    pub(crate) slot: u64,
    pub(crate) name: Vec<u8>,
}

/// Maximum number of imports of a file.
const IMPORTS_MAX: usize = 65_536;

/// The functions imported by this file; 64-bit files only.
pub(crate) fn imports(file: &File) -> Vec<Import> {
    let cache = cache(file);
    let Ok(elf) = object::File::parse(&cache) else { return Vec::new() };
    let (Some(symbols), Some(relocations), true) =
        (elf.dynamic_symbol_table(), elf.dynamic_relocations(), elf.is_64())
    else {
        return Vec::new();
    };
    let import = |(slot, relocation): (u64, object::Relocation)| {
        let object::RelocationTarget::Symbol(index) = relocation.target() else { return None };
        let symbol = symbols.symbol_by_index(index).ok().filter(ObjectSymbol::is_undefined)?;
        Some(Import { slot, name: symbol.name_bytes().ok()?.to_vec() })
    };
    relocations.take(IMPORTS_MAX).filter_map(import).collect()
}

/// Further symbols of a stripped file.
pub(crate) struct DebugSymbols {
    /// The decompressed section `.gnu_debugdata`, which Fedora and related distributions ship.
    pub(crate) debug_data: Option<Vec<u8>>,
    /// Path of the debug file below `usr/lib/debug/.build-id`, as installed by Debian's and
    /// Fedora's debug packages.
    pub(crate) debug_file: Option<String>,
}

/// Finds further symbols of this file.
pub(crate) fn debug_symbols(file: &File) -> DebugSymbols {
    let cache = cache(file);
    let Ok(elf) = object::File::parse(&cache) else {
        return DebugSymbols { debug_data: None, debug_file: None };
    };
    let debug_data =
        elf.section_by_name(".gnu_debugdata").and_then(|s| s.data().ok()).and_then(unpack);
    let debug_file =
        elf.build_id().ok().flatten().filter(|id| (2..=64).contains(&id.len())).map(|id| {
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            let (folder, name) = hex.split_at(2);
            format!("usr/lib/debug/.build-id/{folder}/{name}.debug")
        });
    DebugSymbols { debug_data, debug_file }
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;
    const MEMORY_KIB: u32 = 64 << 10;
    let reader = lzma_rust2::XzReader::new_mem_limit(packed, false, MEMORY_KIB);
    let mut unpacked = Vec::new();
    let limit = 64 << 20;
    let read = reader.take(limit).read_to_end(&mut unpacked).ok()?;
    ((read as u64) < limit).then_some(unpacked)
}

/// For the mutation tests: reads a file of a watched process in all ways; the names of functions at
/// `addresses`, which are sorted.
///
/// # Errors
/// When there is no memory for the file.
#[doc(hidden)]
pub fn read_any_elf(bytes: &[u8], addresses: &[u64]) -> std::io::Result<Vec<Option<Vec<u8>>>> {
    let file = File::from(rustix::fs::memfd_create("elf", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.write_all_at(bytes, 0)?;
    let _ = is_go(&file);
    if let Some(layout) = Layout::read(&file) {
        let functions = layout.functions();
        let mut starts: Vec<u64> = functions.iter().map(|function| function.start).collect();
        starts.truncate(64);
        let _ = name(&Source::File(&file), &starts);
        let _ = addresses.iter().filter_map(|address| layout.address_of(*address)).count();
    }
    let _ = (imports(&file), debug_symbols(&file), name(&Source::Bytes(bytes), addresses));
    let named = name(&Source::File(&file), addresses);
    Ok(named.into_iter().map(|symbol| symbol.map(|symbol| symbol.name)).collect())
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
