//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst): requests, sectors and times of block
//! devices.

use super::scan::{fields, lines, next_number};

/// Size of a sector in this file, whatever the device's own sector size.
pub const SECTOR_BYTES: u64 = 512;

/// The counters of a device; times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of iostats.rst, in its words")]
pub struct Disk<'a> {
    pub name: &'a [u8],
    pub reads: u64,
    pub sectors_read: u64,
    pub ms_reading: u64,
    pub writes: u64,
    pub sectors_written: u64,
    pub ms_writing: u64,
    pub in_flight: u64,
    pub ms_busy: u64,
    pub ms_weighted: u64,
}

/// The devices, including partitions.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Disk<'_>> {
    lines(text).filter_map(disk)
}

fn disk(line: &[u8]) -> Option<Disk<'_>> {
    let mut fields = fields(line).skip(2);
    let name = fields.next()?;
    let mut n = || next_number(&mut fields);
    let reads = n()?;
    let _merged = n()?;
    // Kernels before 2.6.25 have only four fields for partitions; such lines are skipped.
    let (sectors_read, ms_reading, writes) = (n()?, n()?, n()?);
    let _merged = n()?;
    let (sectors_written, ms_writing) = (n()?, n()?);
    Some(Disk {
        name,
        reads,
        sectors_read,
        ms_reading,
        writes,
        sectors_written,
        ms_writing,
        in_flight: n()?,
        ms_busy: n()?,
        ms_weighted: n()?,
    })
}

/// Whether the name is that of a partition, whose requests its disk counts as well: `sda1`,
/// `nvme0n1p2`, `vda3`, `mmcblk0p1`. Derived from the name because `/sys` may be out of reach.
#[must_use]
pub fn is_partition(name: &[u8]) -> bool {
    let stem = name.trim_ascii_end();
    let digits = stem.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let Some((head, tail)) = stem.split_at_checked(stem.len() - digits) else { return false };
    if tail.is_empty() {
        return false;
    }
    let is_lettered = [&b"sd"[..], b"vd", b"xvd", b"hd"].iter().any(|kind| head.starts_with(kind));
    let is_numbered =
        [&b"nvme"[..], b"mmcblk", b"nbd", b"loop", b"md"].iter().any(|kind| head.starts_with(kind));
    let disk = head.strip_suffix(b"p").and_then(<[u8]>::last);
    is_lettered || (is_numbered && disk.is_some_and(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_known_by_their_names() {
        for (name, expect) in [
            ("sda", false),
            ("sda1", true),
            ("vdb12", true),
            ("nvme0n1", false),
            ("nvme0n1p2", true),
            ("mmcblk0", false),
            ("mmcblk0p1", true),
            ("md0", false),
            ("loop3", false),
            ("loop3p1", true),
            ("dm-0", false),
            ("zram0", false),
            ("", false),
        ] {
            assert_eq!(is_partition(name.as_bytes()), expect, "{name}");
        }
    }
}
