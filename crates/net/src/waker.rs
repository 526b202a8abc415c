//! Wakes a thread that waits for sockets (`eventfd`).

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Wakes one thread, which stays awake until it calls [`Self::clear`].
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A waker that has not been used.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { event: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)? })
    }

    /// Makes the waker's descriptor readable.
    pub fn wake(&self) {
        // A full counter means that 2^64 - 2 wake-ups are already pending.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Makes the waker's descriptor unreadable again.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.event, &mut [0u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Waits until `socket`, if given, is readable, `waker` is used or `timeout` has passed; clears the
/// waker.
pub fn wait(socket: Option<&UdpSocket>, waker: &Waker, timeout: Duration) {
    let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut watched = [watch(waker.as_fd()), watch(socket.map_or(waker.as_fd(), AsFd::as_fd))];
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // Interrupted by a signal: the caller waits again.
    let _ = poll(&mut watched, Some(&timeout));
    if !watched[0].revents().is_empty() {
        waker.clear();
    }
}

// Miri has no such system calls.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_waker_ends_one_wait_and_the_next_one_lasts() {
        let (socket, waker) = (UdpSocket::bind("127.0.0.1:0").unwrap(), Waker::new().unwrap());
        waker.wake();
        let begun = Instant::now();
        wait(Some(&socket), &waker, Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(30));
        wait(None, &waker, Duration::from_millis(1));
        assert!(begun.elapsed() >= Duration::from_millis(1));
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        wait(Some(&socket), &waker, Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
