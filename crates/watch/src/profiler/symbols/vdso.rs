//! The vDSO, code that the kernel maps into every process. It is the same for all, so this
//! process's is copied.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use crate::profiler::processes::maps::MapsLine;

/// The vDSO as a memory file; `None` if it cannot be read.
pub(crate) fn image() -> Option<File> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let line = maps.split(|byte| *byte == b'\n').find(|line| line.ends_with(b"[vdso]"))?;
    let line = MapsLine::parse(line)?;
    let bytes =
        usize::try_from(line.end.checked_sub(line.start)?).ok().filter(|n| *n <= 1 << 20)?;
    let mut page = vec![0; bytes];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut page, line.start).ok()?;
    let file = rustix::fs::memfd_create("vdso", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
    let mut file = File::from(file);
    file.write_all(&page).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernels_page_is_an_elf_file_with_the_clock_in_it() {
        use crate::profiler::symbols::elf::{Layout, Source, name};
        use object::{Object, ObjectSymbol};
        let file = super::image().expect("this kernel maps a vdso");
        assert!(Layout::read(&file).is_some());
        let bytes = {
            use std::os::unix::fs::FileExt;
            let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let elf = object::File::parse(&*bytes).unwrap();
        let clock = elf
            .dynamic_symbols()
            .find(|s| s.name().is_ok_and(|n| n.contains("clock_gettime")))
            .unwrap();
        let named = name(&Source::File(&file), &[clock.address() + 1]);
        let named = named[0].as_ref().unwrap();
        assert!(String::from_utf8_lossy(&named.name).contains("clock_gettime"));
    }
}
