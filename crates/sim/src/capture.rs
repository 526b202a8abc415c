//! Captures the headers of all IPv4 packets, sent and received, on the interfaces of a namespace
//! (packet(7)).

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::namespace::Namespace;
use crate::support::SimError;

/// Bytes kept of each packet: the longest IPv4 header, and the ports.
const HEAD_BYTES: usize = 64;
/// How often a capture checks whether to end.
const LOOK_EVERY_US: libc::suseconds_t = 50_000;
/// Room for packets that wait to be read.
const BUFFER_BYTES: libc::c_int = 16 << 20;

/// IANA protocol numbers.
pub const TCP: u8 = 6;
/// As [`TCP`].
pub const UDP: u8 = 17;

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub from: Ipv4Addr,
    /// Destination address.
    pub to: Ipv4Addr,
    /// IANA protocol number.
    pub protocol: u8,
    /// Destination port of TCP and UDP.
    pub port: Option<u16>,
}

/// A running capture; it ends when dropped.
#[derive(Debug)]
pub struct Capture {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Packet>>>,
}

impl Capture {
    /// Begins to capture what passes the interfaces of `namespace`; needs root.
    ///
    /// # Errors
    /// When the kernel gives no such socket.
    pub fn start(namespace: &Namespace) -> Result<Self, SimError> {
        let socket = namespace.enter(socket)??;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || captured(&socket, &over));
        Ok(Self { is_over, thread: Some(thread) })
    }

    /// Ends it and returns the captured packets in order.
    #[must_use]
    pub fn stop(mut self) -> Vec<Packet> {
        self.end()
    }

    fn end(&mut self) -> Vec<Packet> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.end();
    }
}

/// A socket for packets of all protocols, which includes sent ones.
fn socket() -> std::io::Result<OwnedFd> {
    let all = i32::from(u16::try_from(libc::ETH_P_ALL).unwrap_or_default().to_be());
    // SAFETY: socket takes numbers only.
    let socket =
        unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, all) };
    if socket < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was made just now and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    set(&socket, libc::SO_RCVTIMEO, &libc::timeval { tv_sec: 0, tv_usec: LOOK_EVERY_US })?;
    set(&socket, libc::SO_RCVBUFFORCE, &BUFFER_BYTES)?;
    Ok(socket)
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> std::io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default();
    // SAFETY: `value` is `length` bytes long and lives through the call, which reads it.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            length,
        )
    };
    if set < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn captured(socket: &OwnedFd, over: &AtomicBool) -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut head = [0_u8; HEAD_BYTES];
    loop {
        // SAFETY: the buffer has the given length and outlives the call.
        let length =
            unsafe { libc::recv(socket.as_raw_fd(), head.as_mut_ptr().cast(), head.len(), 0) };
        match usize::try_from(length) {
            Ok(length) => packets.extend(head.get(..length).and_then(packet)),
            // Nothing waits any more: what passed before the end has been read.
            Err(_) if over.load(Ordering::Relaxed) => return packets,
            // Nothing within the time, or an interface that goes down: neither ends it.
            Err(_) => {}
        }
    }
}

/// The IPv4 packet that begins with `head` (RFC 791 section 3.1).
fn packet(head: &[u8]) -> Option<Packet> {
    let first = *head.first()?;
    let address =
        |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(head.get(at..at + 4)?).ok()?));
    let (is_v4, ports_at) = (first >> 4 == 4, usize::from(first & 15) * 4);
    let (protocol, from, to) = (*head.get(9)?, address(12)?, address(16)?);
    let port = head.get(ports_at + 2..ports_at + 4).and_then(|port| <[u8; 2]>::try_from(port).ok());
    let port = port.filter(|_| matches!(protocol, TCP | UDP)).map(u16::from_be_bytes);
    is_v4.then_some(Packet { from, to, protocol, port })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_packet_is_known_by_its_head() {
        let mut head = [0; 24];
        (head[0], head[9]) = (0x45, UDP);
        head[12..20].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 9]);
        head[22..24].copy_from_slice(&7080_u16.to_be_bytes());
        let expect = Packet {
            from: Ipv4Addr::new(192, 0, 2, 1),
            to: Ipv4Addr::new(198, 51, 100, 9),
            protocol: UDP,
            port: Some(7080),
        };
        assert_eq!(packet(&head), Some(expect));
        head[0] = 0x65;
        assert_eq!((packet(&head), packet(&head[..19]), packet(&[])), (None, None, None));
    }

    #[test]
    fn packets_in_a_namespace_are_captured_without_a_receiver() {
        if !crate::requires_root() {
            return;
        }
        let (here, there) = (Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(198, 51, 100, 8));
        let (ours, _theirs) = Namespace::pair("capture", here, there).unwrap();
        let capture = Capture::start(&ours).unwrap();
        // The first ones may be lost while the link comes up.
        ours.enter(|| {
            let socket = UdpSocket::bind((here, 0)).unwrap();
            for _ in 0..20 {
                let _ = socket.send_to(b"x", (there, 9));
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        })
        .unwrap();
        let packets = capture.stop();
        let sent = |p: &&Packet| (p.from, p.to, p.protocol, p.port) == (here, there, UDP, Some(9));
        assert!((1..=20).contains(&packets.iter().filter(sent).count()), "{packets:?}");
    }
}
