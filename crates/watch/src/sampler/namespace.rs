//! The server's network namespace: what can only be opened from within is opened by a thread that enters it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, sockopt};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use crate::proc::netlink::{DONE, ERROR, Message, error_code, messages};

/// What is opened from within.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) route: io::Result<Netlink>,
    pub(crate) sockets: io::Result<Netlink>,
    pub(crate) conntrack_count: Option<File>,
    pub(crate) limits: Limits,
}

/// Settings that are the namespace's own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) conntrack_max: Option<f64>,
    pub(crate) time_wait_max: Option<f64>,
    pub(crate) orphans_max: Option<f64>,
    pub(crate) tcp_pages_max: Option<f64>,
    pub(crate) udp_pages_max: Option<f64>,
    pub(crate) ports: Option<(u16, u16)>,
}

/// The number of the network namespace of a process.
pub(crate) fn of(pid: u32) -> io::Result<u64> {
    Ok(std::fs::metadata(format!("/proc/{pid}/ns/net"))?.ino())
}

/// Opens what there is in the namespace of `pid`. The thread that enters it is gone before this returns.
pub(crate) fn open(pid: u32) -> io::Result<Inside> {
    let is_own = of(pid).is_ok_and(|theirs| of(std::process::id()).is_ok_and(|own| own == theirs));
    let path = format!("/proc/{pid}/ns/net");
    let thread = std::thread::Builder::new().name("watch-net".into()).spawn(move || {
        if !is_own {
            let namespace = File::open(path)?;
            move_into_thread_name_spaces(namespace.as_fd(), ThreadNameSpaceType::NETWORK)?;
        }
        Ok(Inside {
            route: Netlink::open(None),
            sockets: Netlink::open(Some(netlink::SOCK_DIAG)),
            conntrack_count: File::open("/proc/sys/net/netfilter/nf_conntrack_count").ok(),
            limits: limits(),
        })
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that entered it panicked")))
}

fn limits() -> Limits {
    let figures = |name: &str| -> Vec<f64> {
        let text = std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap_or_default();
        text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect()
    };
    let first = |name: &str| figures(name).first().copied();
    let ports = match figures("ipv4/ip_local_port_range").as_slice() {
        [low, high] if low <= high => Some((*low as u16, *high as u16)),
        _ => None,
    };
    Limits {
        conntrack_max: first("netfilter/nf_conntrack_max"),
        time_wait_max: first("ipv4/tcp_max_tw_buckets"),
        orphans_max: first("ipv4/tcp_max_orphans"),
        tcp_pages_max: figures("ipv4/tcp_mem").get(2).copied(),
        udp_pages_max: figures("ipv4/udp_mem").get(2).copied(),
        ports,
    }
}

/// A netlink socket; it stays in the namespace in which it was made.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

/// The kernel answers dumps in pieces of at most 32 KiB.
const ANSWER_BYTES: usize = 64 * 1024;
/// The kernel answers at once; only a fault lets it be waited for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// More pieces than any machine has sockets for.
const PIECES_MAX: usize = 10_000;

impl Netlink {
    /// Without a protocol it is NETLINK_ROUTE, whose number is 0.
    fn open(protocol: Option<rustix::net::Protocol>) -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWERS_WITHIN))?;
        Ok(Self { socket, buffer: Vec::new() })
    }

    /// Asks for a dump and shows each of its messages.
    pub(crate) fn dump(&mut self, request: &[u8], mut show: impl FnMut(Message<'_>)) -> io::Result<()> {
        self.buffer.resize(ANSWER_BYTES, 0);
        rustix::net::send(&self.socket, request, SendFlags::empty())?;
        for _ in 0..PIECES_MAX {
            let (read, _) = rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            for message in messages(self.buffer.get(..read).unwrap_or_default()) {
                match message.kind {
                    DONE => return Ok(()),
                    ERROR => match error_code(message.payload) {
                        0 => return Ok(()),
                        code => return Err(io::Error::from_raw_os_error(code)),
                    },
                    _ => show(message),
                }
            }
        }
        Ok(())
    }
}
