//! The server's network namespace: files and sockets that can only be opened by a thread inside it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, sockopt};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use super::facts;
use crate::proc::netlink::{DONE, ERROR, Message, error_code, messages, numbered};

/// What is opened inside the namespace.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) route: io::Result<Netlink>,
    pub(crate) sockets: io::Result<Netlink>,
    pub(crate) conntrack_count: Option<File>,
    pub(crate) limits: Limits,
    /// By their sysctl(8) names.
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// Limits that belong to the namespace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) conntrack_max: Option<f64>,
    pub(crate) time_wait_max: Option<f64>,
    pub(crate) orphans_max: Option<f64>,
    pub(crate) tcp_pages_max: Option<f64>,
    pub(crate) udp_pages_max: Option<f64>,
    pub(crate) ports: Option<(u16, u16)>,
}

/// The inode of a process's network namespace.
pub(crate) fn of(pid: u32) -> io::Result<u64> {
    Ok(std::fs::metadata(format!("/proc/{pid}/ns/net"))?.ino())
}

/// Opens files and sockets in the namespace of `pid`. The thread that enters it has ended when this
/// returns.
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
            settings: settings(),
        })
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that entered it panicked")))
}

fn settings() -> Vec<(&'static str, String)> {
    let read = |name| {
        let text = std::fs::read_to_string(facts::path_of(name)).ok()?;
        Some((name, text.trim().replace('\t', " "))).filter(|(_, value)| !value.is_empty())
    };
    facts::network_settings().filter_map(read).collect()
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

/// A netlink socket; it belongs to the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
    /// Sequence number of the last request.
    sequence: u32,
}

/// Buffer size: the kernel answers dumps in pieces of at most 32 KiB.
const ANSWER_BYTES: usize = 64 * 1024;
/// Receive timeout: the kernel answers at once unless something is wrong.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// Maximum number of pieces, more than any machine has sockets for.
const PIECES_MAX: usize = 10_000;

impl Netlink {
    /// Without a protocol this is NETLINK_ROUTE (0).
    fn open(protocol: Option<rustix::net::Protocol>) -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWERS_WITHIN))?;
        Ok(Self { socket, buffer: Vec::new(), sequence: 0 })
    }

    /// Requests a dump and passes on its messages. Leftovers of an abandoned dump are skipped.
    pub(crate) fn dump(
        &mut self,
        request: &[u8],
        mut show: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        self.buffer.resize(ANSWER_BYTES, 0);
        self.sequence = self.sequence.wrapping_add(1);
        let request = numbered(request, self.sequence);
        rustix::net::send(&self.socket, &request, SendFlags::empty())?;
        for _ in 0..PIECES_MAX {
            let (read, _) =
                rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            for message in messages(self.buffer.get(..read).unwrap_or_default()) {
                match message.kind {
                    _ if message.sequence != self.sequence => {}
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

/// Whether a dump failed for a transient reason.
pub(crate) fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_sim::requires_root;

    fn message(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(16 + payload.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(2_u16.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn leftovers_of_an_abandoned_dump_are_skipped() {
        let (ours, kernel) = std::os::unix::net::UnixDatagram::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut netlink = Netlink { socket: ours.into(), buffer: Vec::new(), sequence: 0 };
        let request = crate::proc::netlink::dump_request(38, 20);
        let mut asked = |answers: &[Vec<u8>]| {
            for answer in answers {
                kernel.send(answer).unwrap();
            }
            let mut shared_processes = Vec::new();
            let result =
                netlink.dump(&request, |message| shared_processes.push(message.payload.to_vec()));
            (result.map_err(|error| may_pass(&error)), shared_processes)
        };
        let late = asked(&[message(36, 1, b"old1")]);
        assert_eq!(late, (Err(true), vec![b"old1".to_vec()]), "the rest is late");
        let left = [message(36, 1, b"old2"), message(DONE, 1, &[0; 4])];
        let new = [message(36, 2, b"new1"), message(DONE, 2, &[0; 4])];
        assert_eq!(asked(&[&left[..], &new].concat()), (Ok(()), vec![b"new1".to_vec()]));
    }

    #[test]
    fn the_kernel_answers_under_the_number_of_the_question() {
        let mut netlink = Netlink::open(None).unwrap();
        for _ in 0..3 {
            let mut links = 0;
            let request = crate::proc::netlink::dump_request(18, 16);
            netlink.dump(&request, |message| links += u32::from(message.kind == 16)).unwrap();
            assert!(links > 0, "there is no loopback");
        }
    }

    #[test]
    fn settings_are_those_of_the_namespace_that_is_entered() {
        if !requires_root() {
            return;
        }
        let (tell, results) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let inside = std::thread::spawn(move || {
            // SAFETY: only this thread leaves its namespace, and it ends with the test.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
            std::fs::write("/proc/sys/net/core/somaxconn", "77").unwrap();
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = ended.recv();
        });
        let theirs = open(results.recv().unwrap().cast_unsigned()).unwrap().settings;
        drop(end);
        inside.join().unwrap();
        let mut facts =
            std::collections::BTreeMap::from([("net.core.somaxconn".into(), "4096".to_owned())]);
        facts::add_network_facts(&mut facts, Some("janus"), &theirs);
        assert_eq!(
            (&*facts["net.core.somaxconn"], &*facts["janus.net.core.somaxconn"]),
            ("4096", "77")
        );
        facts::add_network_facts(&mut facts, None, &theirs);
        assert_eq!(facts["net.core.somaxconn"], "77");
    }
}
