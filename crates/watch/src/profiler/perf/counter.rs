//! A counter of the kernel, without samples.

use std::fs::File;
use std::io::{self, Read};

use super::attr::Attr;
use super::ring::{IOC_ENABLE, control, open};

/// Counts how often a process and the threads that it starts later pass a tracepoint. Does not
/// count until it is started.
#[derive(Debug)]
pub struct TracepointCounter(File);

impl TracepointCounter {
    /// Of the tracepoint with this number, and of a process; 0 is this one.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn open(tracepoint: u64, pid: u32) -> io::Result<Self> {
        let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
        open(&Attr::tracepoint(tracepoint), pid, -1).map(Self)
    }

    /// Starts counting.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn start(&self) -> io::Result<()> {
        control(&self.0, IOC_ENABLE)
    }

    /// How often it was passed since the start.
    ///
    /// # Errors
    /// The counter cannot be read.
    pub fn count(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}
