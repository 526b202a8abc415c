//! The files that code is mapped from. They are kept open from their first use, because the process
//! may end and the files be deleted before symbols are looked up.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::maps::Backing;
use crate::profiler::symbols::elf::Layout;

/// Maximum number of open files; a server with its libraries has a few dozen.
const IMAGES_MAX: usize = 2_048;

/// A file that code is mapped from.
pub(crate) struct Image {
    /// File name without directories; `[vdso]` for the vDSO.
    pub(crate) name: String,
    /// The file; `None` if it could not be opened.
    pub(crate) file: Option<File>,
    /// The root directory of the process that uses it, in which `usr/lib/debug` may have its
    /// symbols.
    pub(crate) root: PathBuf,
    /// The layout, read when first needed; the inner `None` means that it is not an ELF file.
    layout: Option<Option<Layout>>,
}

impl Image {
    /// The layout; `None` if the file is not a readable ELF file.
    pub(crate) fn layout(&mut self) -> Option<&Layout> {
        let file = self.file.as_ref();
        self.layout.get_or_insert_with(|| Layout::read(file?)).as_ref()
    }
}

/// A mapping of a file, from `/proc/PID/maps` or a kernel record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappedFile<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) inode: u64,
    pub(crate) path: &'a [u8],
}

/// The images used so far.
#[derive(Default)]
pub(crate) struct Images {
    list: Vec<Image>,
    known: HashMap<(u64, Vec<u8>), u32>,
    /// Names of files that could not be opened or kept.
    pub(crate) unreadable: Vec<String>,
}

impl Images {
    /// The backing of a mapping of process `pid`; a file is opened at its first use. `relatives`
    /// are processes that may see the same files if `pid` has ended already.
    pub(crate) fn backing(
        &mut self,
        pid: u32,
        relatives: &[u32],
        mapped: &MappedFile<'_>,
    ) -> Backing {
        let is_file = mapped.path.first() == Some(&b'/')
            && !mapped.path.starts_with(b"//")
            && !mapped.path.starts_with(b"/memfd:")
            && !mapped.path.starts_with(b"/dev/zero")
            && !mapped.path.starts_with(b"/SYSV");
        let is_vdso = mapped.path == b"[vdso]";
        if !is_file && !is_vdso {
            return Backing::Anonymous;
        }
        let key = (mapped.inode, mapped.path.to_vec());
        if let Some(known) = self.known.get(&key) {
            return Backing::Image(*known);
        }
        let (file, root) = if is_vdso {
            (crate::profiler::symbols::vdso::image(), PathBuf::from("/"))
        } else {
            open(pid, relatives, mapped)
        };
        let name = name_of(mapped.path);
        let file = file.filter(|_| self.list.len() < IMAGES_MAX);
        if file.is_none() && self.unreadable.len() < 16 {
            self.unreadable.push(name.clone());
        }
        if self.list.len() >= 2 * IMAGES_MAX {
            return Backing::Anonymous;
        }
        let id = self.list.len() as u32;
        self.list.push(Image { name, file, root, layout: None });
        self.known.insert(key, id);
        Backing::Image(id)
    }

    pub(crate) fn get(&mut self, id: u32) -> Option<&mut Image> {
        self.list.get_mut(id as usize)
    }
}

fn name_of(path: &[u8]) -> String {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    String::from_utf8_lossy(name).into_owned()
}

/// Opens the mapped file: itself if permitted (`map_files` needs `CAP_CHECKPOINT_RESTORE`), else by
/// its path in the process's own root directory, so that files of containers are found.
fn open(pid: u32, relatives: &[u32], mapped: &MappedFile<'_>) -> (Option<File>, PathBuf) {
    let root = |pid: u32| PathBuf::from(format!("/proc/{pid}/root"));
    let exact = format!("/proc/{pid}/map_files/{:x}-{:x}", mapped.start, mapped.end);
    if let Some(file) = open_regular(Path::new(&exact), mapped.inode) {
        return (Some(file), root(pid));
    }
    let relative = mapped.path.strip_prefix(b"/").unwrap_or(mapped.path);
    let roots = std::iter::once(pid).chain(relatives.iter().copied()).map(root);
    for root in roots.chain(std::iter::once(PathBuf::from("/"))) {
        let path = root.join(std::ffi::OsStr::from_bytes(relative));
        if let Some(file) = open_regular(&path, mapped.inode) {
            return (Some(file), root);
        }
    }
    (None, PathBuf::from("/"))
}

/// Opens only a regular file with this inode (0: any), never a pipe or device that a container put
/// there.
fn open_regular(path: &Path, inode: u64) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    (meta.is_file() && (inode == 0 || meta.ino() == inode)).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_images() {
        let mut images = Images::default();
        for path in
            ["", "//anon", "[heap]", "[stack]", "/memfd:jit (deleted)", "/dev/zero", "[anon:x]"]
        {
            let mapped = MappedFile { start: 0, end: 1, inode: 0, path: path.as_bytes() };
            assert_eq!(images.backing(u32::MAX, &[], &mapped), Backing::Anonymous, "{path}");
        }
        let absent = MappedFile { start: 0, end: 1, inode: 3, path: b"/no/such/lib.so (deleted)" };
        assert_eq!(images.backing(u32::MAX, &[], &absent), Backing::Image(0));
        assert_eq!(images.unreadable, ["lib.so"]);
    }

    #[test]
    fn a_file_is_opened_once_and_only_if_it_is_the_one_that_was_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "not an ELF file").unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        let mut images = Images::default();
        let text = path.as_os_str().as_bytes();
        let mapped = MappedFile { start: 0, end: 1, inode, path: text };
        let first = images.backing(std::process::id(), &[], &mapped);
        assert_eq!(images.backing(std::process::id(), &[], &mapped), first);
        let Backing::Image(id) = first else { panic!("{first:?}") };
        let image = images.get(id).unwrap();
        assert!(image.file.is_some() && image.name == "program" && image.layout().is_none());
        let other = MappedFile { inode: inode + 1, ..mapped };
        let Backing::Image(other) = images.backing(std::process::id(), &[], &other) else {
            panic!()
        };
        assert!(images.get(other).unwrap().file.is_none(), "another file now has that path");
    }
}
