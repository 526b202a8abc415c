//! Reads kernel files: files stay open and share one buffer, because rereading an open file costs a
//! third of reopening it.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use throng_observation::host::HostEventKind;

use super::meter::Sink;

/// Initial buffer size, and the maximum that is read of a file, bytes.
const BUFFER_BYTES: usize = 32 * 1024;
const FILE_BYTES_MAX: usize = 1 << 20;

/// The shared buffer for all files.
#[derive(Debug)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES] }
    }

    /// Reads a file that the kernel returns in one piece.
    pub(crate) fn one(&mut self, file: &File) -> io::Result<&[u8]> {
        loop {
            let read = file.read_at(&mut self.buffer, 0)?;
            if read < self.buffer.len() || read >= FILE_BYTES_MAX {
                return Ok(self.buffer.get(..read).unwrap_or_default());
            }
            self.grow();
        }
    }

    /// Reads a file that the kernel returns in records, about a page at a time.
    pub(crate) fn all(&mut self, file: &File) -> io::Result<&[u8]> {
        let mut filled = 0;
        loop {
            let room = self.buffer.get_mut(filled..).unwrap_or_default();
            let read = file.read_at(room, filled as u64)?;
            filled += read;
            if read == 0 || filled >= FILE_BYTES_MAX {
                return Ok(self.buffer.get(..filled).unwrap_or_default());
            }
            if filled == self.buffer.len() {
                self.grow();
            }
        }
    }

    /// Opens, reads and closes a file that the kernel returns in one piece.
    pub(crate) fn path_one(&mut self, path: &str) -> io::Result<&[u8]> {
        let file = File::open(path)?;
        self.one(&file)
    }

    /// Opens, reads and closes a file.
    pub(crate) fn path(&mut self, path: &str) -> io::Result<&[u8]> {
        let file = File::open(path)?;
        self.all(&file)
    }

    fn grow(&mut self) {
        let bytes = (self.buffer.len() * 2).min(FILE_BYTES_MAX);
        self.buffer.resize(bytes, 0);
    }
}

/// Maximum number of reported failures; the first ones name the cause.
const FAILURES_MAX: usize = 200;

/// Reports files that cannot be read: each once, with the way to fix it.
#[derive(Debug, Default)]
pub(crate) struct ReadFailures(HashSet<String>);

impl ReadFailures {
    pub(crate) fn report(&mut self, sink: &Sink, what: &str, why: &str, help: &str) {
        if self.0.len() < FAILURES_MAX && !self.0.contains(what) {
            self.0.insert(what.to_owned());
            sink.event(Instant::now(), HostEventKind::Unreadable, format!("{what}: {why}; {help}"));
        }
    }

    /// Opens a kernel file, or reports why it cannot.
    pub(crate) fn open(&mut self, sink: &Sink, path: &str, help: &str) -> Option<File> {
        match File::open(path) {
            Ok(file) => Some(file),
            Err(error) => {
                let help = if is_out_of_descriptors(&error) { HELP_DESCRIPTORS } else { help };
                self.report(sink, path, &error.to_string(), help);
                None
            }
        }
    }
}

/// Whether the process or the machine is out of file descriptors.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// How to fix a lack of file descriptors.
pub(crate) const HELP_DESCRIPTORS: &str = "raise the watcher's limit of open files (ulimit -n)";
/// How to fix a lack of rights.
pub(crate) const HELP_RIGHTS: &str = "run the watcher as root or as the server's user";
