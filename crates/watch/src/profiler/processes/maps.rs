//! The executable mappings of a process: read from `/proc/PID/maps`, then updated by later
//! mappings.

use std::collections::BTreeMap;

/// Maximum number of mappings of a process; the kernel's limit is `vm.max_map_count`, 65,530 by
/// default.
const MAPPINGS_MAX: usize = 65_536;

/// The backing of an executable mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Backing {
    /// A file, by its index among the images.
    Image(u32),
    /// No file: JIT-compiled code.
    Anonymous,
}

/// An executable mapping that ends at `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) end: u64,
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) backing: Backing,
}

/// The executable mappings of a process, by start address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    mappings: BTreeMap<u64, Mapping>,
}

impl Memory {
    /// Adds a mapping; overlapping parts of others are removed, as in the process.
    pub(crate) fn map(&mut self, start: u64, mapping: Mapping) {
        if start >= mapping.end {
            return;
        }
        let covered: Vec<u64> = self
            .mappings
            .range(..mapping.end)
            .rev()
            .take_while(|(_, other)| other.end > start)
            .map(|(other_start, _)| *other_start)
            .collect();
        for other_start in covered {
            let Some(other) = self.mappings.remove(&other_start) else { continue };
            if other_start < start {
                self.mappings.insert(other_start, Mapping { end: start, ..other });
            }
            if other.end > mapping.end {
                let offset = other.offset.wrapping_add(mapping.end - other_start);
                self.mappings.insert(mapping.end, Mapping { offset, ..other });
            }
        }
        if self.mappings.len() < MAPPINGS_MAX {
            self.mappings.insert(start, mapping);
        }
    }

    /// All mappings with their start addresses.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, Mapping)> {
        self.mappings.iter().map(|(start, mapping)| (*start, *mapping))
    }

    /// The mapping that contains `address`, with its start address.
    pub(crate) fn at(&self, address: u64) -> Option<(u64, Mapping)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some((*start, *mapping))
    }
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapsLine<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_executable: bool,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    /// The file, followed by `(deleted)` if it is; empty for anonymous memory.
    pub(crate) path: &'a [u8],
}

impl<'a> MapsLine<'a> {
    /// Parses `start-end perms offset device inode path` (`fs/proc/task_mmu.c`, `show_map_vma`).
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let (head, path) = fields(line, 5)?;
        let text = std::str::from_utf8(head).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let is_executable = fields.next()?.as_bytes().get(2) == Some(&b'x');
        let offset = hex(fields.next()?)?;
        let _device = fields.next()?;
        let inode = fields.next()?.parse().ok()?;
        Some(Self { start: hex(start)?, end: hex(end)?, is_executable, offset, inode, path })
    }
}

/// The first `count` space-separated fields, and the rest.
fn fields(line: &[u8], count: usize) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    for _ in 0..count {
        at += line.get(at..)?.iter().position(|byte| *byte != b' ')?;
        let rest = line.get(at..)?;
        at += rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    }
    let (head, rest) = line.split_at_checked(at)?;
    let path = rest.iter().position(|byte| *byte != b' ').and_then(|from| rest.get(from..));
    Some((head, path.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(end: u64, offset: u64) -> Mapping {
        Mapping { end, offset, backing: Backing::Anonymous }
    }

    #[test]
    fn lines_of_maps_are_read() {
        let check = |line: &str, expect: Option<(u64, u64, bool, u64, u64, &str)>| {
            let read = MapsLine::parse(line.as_bytes())
                .map(|l| (l.start, l.end, l.is_executable, l.offset, l.inode, l.path));
            assert_eq!(
                read,
                expect.map(|(s, e, x, o, i, p)| (s, e, x, o, i, p.as_bytes())),
                "{line}"
            );
        };
        check(
            "55d0a000-55d0b000 r-xp 00001000 08:01 1234                       /usr/bin/a b",
            Some((0x55d0_a000, 0x55d0_b000, true, 0x1000, 1234, "/usr/bin/a b")),
        );
        check("7f00-7f10 rwxp 00000000 00:00 0 ", Some((0x7f00, 0x7f10, true, 0, 0, "")));
        check("7f00-7f10 r--p 00000000 00:00 0", Some((0x7f00, 0x7f10, false, 0, 0, "")));
        check(
            "7ffd-7fff r-xp 0 00:00 0          [vdso]",
            Some((0x7ffd, 0x7fff, true, 0, 0, "[vdso]")),
        );
        check("", None);
        check("not a line at all", None);
        check("1-zz r-xp 0 00:00 0 x", None);
        check("ffffffffffffffffff-1 r-xp 0 00:00 0 x", None);
    }

    #[test]
    fn a_new_mapping_takes_its_place_from_the_old_ones() {
        let mut memory = Memory::default();
        memory.map(0x1000, piece(0x5000, 0));
        memory.map(0x2000, piece(0x3000, 0x9000));
        let at = |address| memory.at(address).map(|(start, m)| (start, m.end, m.offset));
        assert_eq!(at(0x1fff), Some((0x1000, 0x2000, 0)));
        assert_eq!(at(0x2000), Some((0x2000, 0x3000, 0x9000)));
        assert_eq!(at(0x3000), Some((0x3000, 0x5000, 0x2000)));
        assert_eq!(at(0x5000), None);
        assert_eq!(at(0xfff), None);
    }

    #[test]
    fn a_mapping_over_everything_leaves_only_itself() {
        let mut memory = Memory::default();
        for start in 1..100 {
            memory.map(start * 0x1000, piece(start * 0x1000 + 0x800, 0));
        }
        memory.map(0, piece(u64::MAX, 7));
        assert_eq!(memory.mappings.len(), 1);
        memory.map(5, piece(5, 0));
        assert_eq!(memory.mappings.len(), 1, "nothing is mapped by an empty range");
    }
}
