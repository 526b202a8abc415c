//! How a process ended: from its zombie, or after it was reaped from a descriptor that was opened
//! while it lived.

use std::os::fd::OwnedFd;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use throng_observation::host::HowEnded;

/// Asks for the exit status (`PIDFD_INFO_EXIT`); the kernel keeps the bit where it has one.
const EXIT: u64 = 1 << 3;

/// `struct pidfd_info` of linux/pidfd.h in its first form, `PIDFD_INFO_SIZE_VER0`.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    _cgroup: u64,
    /// PID, TGID, PPID, and eight user and group ids.
    _ids: [u32; 11],
    /// As waitpid(2) has it.
    exit_code: i32,
}

/// `PIDFD_GET_INFO`; its exit status exists since Linux 6.15.
const GET_INFO: Opcode = opcode::read_write::<Info>(0xFF, 11);

/// A descriptor of a process that outlives it; without one where the kernel is older than 5.3 or
/// descriptors are short.
#[derive(Debug)]
pub(super) struct EndWatch(Option<OwnedFd>);

impl EndWatch {
    /// Opens the descriptor while the process lives.
    pub(super) fn open(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Self(pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
    }

    /// How the process ended, once its parent has reaped it; [`HowEnded::Unknown`] before, and on
    /// older kernels.
    pub(super) fn how(&self) -> HowEnded {
        let mut info = Info { mask: EXIT, ..Info::default() };
        let Some(descriptor) = &self.0 else { return HowEnded::Unknown };
        // SAFETY: `Info` is plain data of the size that the request encodes, and the kernel writes
        // no more than that.
        let said = unsafe { ioctl(descriptor, Updater::<GET_INFO, Info>::new(&mut info)) };
        if said.is_ok() && info.mask & EXIT != 0 {
            HowEnded::of_wait_status(info.exit_code)
        } else {
            HowEnded::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Whether this kernel keeps exit statuses: 6.15 or later.
    fn is_kept() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers =
            release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
        (numbers.next(), numbers.next()) >= (Some(6), Some(15))
    }

    #[test]
    fn a_process_that_was_reaped_by_others_says_how_it_ended() {
        for (script, expect) in [
            ("read line; exit 3", HowEnded::Exit { code: 3 }),
            ("read line; kill -9 $$", HowEnded::Signal { number: 9, core: false }),
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let watch = EndWatch::open(child.id());
            assert_eq!(watch.how(), HowEnded::Unknown, "it lives");
            drop(child.stdin.take());
            child.wait().unwrap();
            assert_eq!(watch.how(), if is_kept() { expect } else { HowEnded::Unknown }, "{script}");
        }
    }
}
