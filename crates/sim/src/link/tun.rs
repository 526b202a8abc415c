//! TUN devices and the few system calls around them.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::time::Duration;

use crate::support::{SimError, run};

/// The device's name in its namespace.
const NAME: &[u8] = b"tl0";

/// Opens `tl0` with `address`/24 in the namespace `name`; needs root.
pub(super) fn open(name: &str, address: &str) -> Result<File, SimError> {
    let namespace = File::open(format!("/run/netns/{name}"))?;
    let device = std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            // SAFETY: the descriptor is open for the whole call; only this short-lived thread
            // changes namespace.
            if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            attach()
        });
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let ip = |args: &[&str]| run(Command::new("ip").args(["-n", name]).args(args));
    ip(&["addr", "add", &format!("{address}/24"), "dev", "tl0"])?;
    ip(&["link", "set", "tl0", "mtu", "1500", "txqueuelen", "1000", "up"])?;
    Ok(device)
}

fn attach() -> std::io::Result<File> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: all-zero is a valid `ifreq`: integers, and a union of integers and a pointer that is
    // not read.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(device)
}

/// The next packet, if one waits.
pub(super) fn read<'a>(mut device: &File, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = device.read(buffer).ok().filter(|length| *length > 0)?;
    buffer.get(..length)
}

/// Gives a packet to the namespace.
pub(super) fn write(mut device: &File, packet: &[u8]) -> std::io::Result<()> {
    device.write_all(packet)
}

/// Sleeps until one of `devices` can be read or `within` is over.
pub(super) fn wait_readable(devices: &[RawFd; 2], within: Duration) -> std::io::Result<()> {
    let mut polled = devices.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let within = libc::timespec {
        tv_sec: within.as_secs() as libc::time_t,
        tv_nsec: within.subsec_nanos().into(),
    };
    // SAFETY: the array and the timespec outlive the call; no signal mask is given.
    let said = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const within, std::ptr::null()) };
    match std::io::Error::last_os_error() {
        error if said < 0 && error.kind() != std::io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Requests real-time priority and exact timers; without them a link is only less exact.
pub(super) fn real_time() {
    let priority = libc::sched_param { sched_priority: 5 };
    // SAFETY: both calls take plain values, and a struct that outlives the call.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize);
        libc::sched_setscheduler(0, libc::SCHED_RR, &raw const priority);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
}
