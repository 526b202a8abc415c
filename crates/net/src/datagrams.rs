//! Many datagrams per system call, with kernel arrival times: `recvmmsg` and `sendmmsg`.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

use socket2::SockAddr;

/// Most datagrams of one receive. At 200 packets a second and a 5 ms tick a socket holds one or two; 32 carry a
/// burst (a key frame) in one call and keep the buffers in the second-level cache.
pub const RECEIVE_BATCH: usize = 32;

/// Bytes kept of a datagram. Media servers stay below an Ethernet frame; longer ones are dropped and counted.
const DATAGRAM_BYTES_MAX: usize = 2048;

/// Most datagrams of one send.
pub const SEND_BATCH: usize = 32;

/// Room for `SCM_TIMESTAMPNS` (32 bytes with its header), `SO_RXQ_OVFL` (24 bytes) and `IPV6_PKTINFO` (40 bytes; that of
/// IPv4 is shorter).
type Control = [u64; 12];

/// Room for `IPV6_PKTINFO` or `IP_PKTINFO`.
type SendControl = [u64; 5];

/// Room for a `sockaddr_in` or `sockaddr_in6`: no other family reaches an IP socket.
type Source = [u32; 7];

/// Receive buffers that all sockets of a thread share.
pub struct ReceiveBatch {
    bytes: Box<[u8]>,
    sources: Box<[Source]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    /// How many datagrams the last receive returned.
    received: usize,
}

// SAFETY: its pointers refer only to its own boxes, whose contents do not move with it.
unsafe impl Send for ReceiveBatch {}

/// One datagram of a batch.
#[derive(Debug)]
pub struct Received<'a> {
    /// The sender.
    pub source: SocketAddr,
    /// The local address it was sent to, after [`receive_locals`].
    pub local: Option<IpAddr>,
    /// When the kernel received it, since the Unix epoch; after [`receive_arrivals_and_drops`].
    pub arrived_unix: Option<Duration>,
    /// Datagrams that the socket dropped since it was opened, after [`receive_arrivals_and_drops`].
    pub dropped_so_far: Option<u32>,
    /// It was longer than 2048 bytes; the rest was discarded.
    pub truncated: bool,
    /// The payload.
    pub bytes: &'a mut [u8],
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: mmsghdr is a plain C struct of integers and pointers, for which all zeroes is a valid value.
        let header: libc::mmsghdr = unsafe { mem::zeroed() };
        let mut batch = Self {
            bytes: vec![0; RECEIVE_BATCH * DATAGRAM_BYTES_MAX].into_boxed_slice(),
            sources: vec![[0; 7]; RECEIVE_BATCH].into_boxed_slice(),
            controls: vec![[0; 12]; RECEIVE_BATCH].into_boxed_slice(),
            vectors: vec![empty; RECEIVE_BATCH].into_boxed_slice(),
            headers: vec![header; RECEIVE_BATCH].into_boxed_slice(),
            received: 0,
        };
        batch.arm(RECEIVE_BATCH);
        batch
    }
}

impl ReceiveBatch {
    /// Prepares the first `count` headers for the kernel, which changes only those that it fills; preparing all of
    /// them for the one or two datagrams of most calls would cost more than those.
    fn arm(&mut self, count: usize) {
        for ((((header, vector), source), control), bytes) in self
            .headers
            .iter_mut()
            .zip(self.vectors.iter_mut())
            .zip(self.sources.iter_mut())
            .zip(self.controls.iter_mut())
            .zip(self.bytes.chunks_exact_mut(DATAGRAM_BYTES_MAX))
            .take(count)
        {
            vector.iov_base = bytes.as_mut_ptr().cast();
            vector.iov_len = bytes.len();
            let message = &mut header.msg_hdr;
            message.msg_iov = vector;
            message.msg_iovlen = 1;
            message.msg_name = ptr::from_mut(source).cast();
            message.msg_namelen = mem::size_of::<Source>() as libc::socklen_t;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = mem::size_of::<Control>() as _;
            message.msg_flags = 0;
        }
    }

    /// Receives datagrams without blocking, at most `most` and [`RECEIVE_BATCH`]; returns how many.
    ///
    /// # Errors
    /// The socket's pending error; returning it clears it.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        let used = mem::take(&mut self.received);
        self.arm(used);
        // SAFETY: every header points to buffers that `self` owns, of the lengths given; they outlive the call,
        // and no other code reads or writes them during it.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                most.min(RECEIVE_BATCH) as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        match usize::try_from(received) {
            Ok(count) => {
                self.received = count.min(RECEIVE_BATCH);
                Ok(self.received)
            }
            Err(_) => match io::Error::last_os_error() {
                e if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
                e => Err(e),
            },
        }
    }

    /// Datagram number `index` of the last [`Self::receive`]; `None` beyond it, or without an IP source.
    pub fn get(&mut self, index: usize) -> Option<Received<'_>> {
        let header = self.headers.get(index).filter(|_| index < self.received)?;
        let message = &header.msg_hdr;
        let AncillaryData { arrived_unix, dropped_so_far, local } = ancillary(message);
        let source = address(self.sources.get(index)?)?;
        let start = index * DATAGRAM_BYTES_MAX;
        let length = (header.msg_len as usize).min(DATAGRAM_BYTES_MAX);
        Some(Received {
            source,
            local,
            arrived_unix,
            dropped_so_far,
            truncated: message.msg_flags & libc::MSG_TRUNC != 0,
            bytes: self.bytes.get_mut(start..start + length)?,
        })
    }
}

/// Reads a `sockaddr_in` or `sockaddr_in6` as the kernel writes them (ip(7), ipv6(7)): family in the byte order of the
/// machine, port and address in network order. An IPv4-mapped address becomes an IPv4 address.
fn address(source: &Source) -> Option<SocketAddr> {
    let [family_and_port, second, words @ .., scope] = source;
    let [f0, f1, p0, p1] = family_and_port.to_ne_bytes();
    let port = u16::from_be_bytes([p0, p1]);
    match i32::from(u16::from_ne_bytes([f0, f1])) {
        libc::AF_INET => Some((Ipv4Addr::from(second.to_ne_bytes()), port).into()),
        libc::AF_INET6 => {
            let [a, b, c, d] = words;
            let low = u128::from(u32::from_be(*c)) << 32 | u128::from(u32::from_be(*d));
            let high = u128::from(u32::from_be(*a)) << 32 | u128::from(u32::from_be(*b));
            let ip = Ipv6Addr::from(high << 64 | low);
            Some(match ip.to_ipv4_mapped() {
                Some(ip) => (ip, port).into(),
                None => SocketAddrV6::new(ip, port, u32::from_be(*second), *scope).into(),
            })
        }
        _ => None,
    }
}

/// What the kernel reports about a datagram in control messages.
#[derive(Default)]
struct AncillaryData {
    /// Arrival since the Unix epoch.
    arrived_unix: Option<Duration>,
    /// Drops of the socket so far.
    dropped_so_far: Option<u32>,
    /// The local address that it was sent to.
    local: Option<IpAddr>,
}

fn ancillary(message: &libc::msghdr) -> AncillaryData {
    let mut found = AncillaryData::default();
    // SAFETY: the kernel filled `msg_control` up to `msg_controllen`; the CMSG functions stay within it.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !control.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return null or a whole header within the control buffer.
        let (level, kind, data) =
            unsafe { ((*control).cmsg_level, (*control).cmsg_type, libc::CMSG_DATA(control)) };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: this kind carries one timespec; unaligned reads are allowed for.
                let time = unsafe { ptr::read_unaligned(data.cast::<libc::timespec>()) };
                found.arrived_unix = u64::try_from(time.tv_sec)
                    .ok()
                    .zip(u32::try_from(time.tv_nsec).ok())
                    .map(|(seconds, nanos)| Duration::new(seconds, nanos.min(999_999_999)));
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                // SAFETY: this kind carries one u32; unaligned reads are allowed for.
                found.dropped_so_far = Some(unsafe { ptr::read_unaligned(data.cast::<u32>()) });
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: this kind carries one in_pktinfo; unaligned reads are allowed for.
                let info = unsafe { ptr::read_unaligned(data.cast::<libc::in_pktinfo>()) };
                found.local = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: this kind carries one in6_pktinfo; unaligned reads are allowed for.
                let info = unsafe { ptr::read_unaligned(data.cast::<libc::in6_pktinfo>()) };
                found.local = Some(IpAddr::from(info.ipi6_addr.s6_addr).to_canonical());
            }
            _ => {}
        }
        // SAFETY: `control` is a header of this message, as above.
        control = unsafe { libc::CMSG_NXTHDR(message, control) };
    }
    found
}

/// A datagram to send.
pub struct Outgoing<'a> {
    /// The peer; of the family of the socket.
    pub to: SockAddr,
    /// The local address to send it from; `None`: the route decides.
    pub from: Option<IpAddr>,
    /// The payload.
    pub bytes: &'a [u8],
}

impl Outgoing<'_> {
    /// Adds the source address to the message, if one is given.
    fn name_source(&self, message: &mut libc::msghdr, control: &mut SendControl) {
        let Some(from) = self.from else { return };
        message.msg_control = control.as_mut_ptr().cast();
        // A dual-stack socket takes IPv4 addresses as mapped ones (ip(7), ipv6(7), RFC 3542 section 6.2).
        match from {
            IpAddr::V4(v4) if self.to.is_ipv4() => {
                let spec = libc::in_addr { s_addr: u32::from_ne_bytes(v4.octets()) };
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: spec,
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                write_control(message, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            from => {
                let s6_addr = match from {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                };
                let info = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr }, ipi6_ifindex: 0 };
                write_control(message, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
        }
    }
}

/// Writes the only control message of `message`, whose `msg_control` points to a [`SendControl`].
fn write_control<T>(message: &mut libc::msghdr, level: i32, kind: i32, value: T) {
    const { assert!(mem::size_of::<T>() <= mem::size_of::<libc::in6_pktinfo>()) };
    let length = mem::size_of::<T>() as libc::c_uint;
    // SAFETY: CMSG_SPACE and CMSG_LEN only compute; CMSG_SPACE of the longest value is the size of a `SendControl`.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as _;
    // SAFETY: `msg_control` has room and alignment for one header and the value, so CMSG_FIRSTHDR is not null and
    // CMSG_DATA lies within it.
    unsafe {
        let head = libc::CMSG_FIRSTHDR(message);
        (*head).cmsg_level = level;
        (*head).cmsg_type = kind;
        (*head).cmsg_len = libc::CMSG_LEN(length) as _;
        libc::CMSG_DATA(head).cast::<T>().write_unaligned(value);
    }
}

/// Sends up to [`SEND_BATCH`] datagrams on one socket; returns how many the kernel took.
///
/// # Errors
/// The error of the first datagram; the others were not tried.
pub fn send(socket: BorrowedFd<'_>, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; SEND_BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; SEND_BATCH];
    let mut controls = [const { MaybeUninit::<SendControl>::zeroed() }; SEND_BATCH];
    let count = datagrams.len().min(SEND_BATCH);
    for (((vector, header), control), datagram) in
        vectors.iter_mut().zip(&mut headers).zip(&mut controls).zip(datagrams)
    {
        let (to, bytes) = (&datagram.to, datagram.bytes);
        let vector =
            vector.write(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        // SAFETY: all zeroes is a valid mmsghdr, and a valid array of integers.
        let (message, control) =
            unsafe { (&mut header.assume_init_mut().msg_hdr, control.assume_init_mut()) };
        message.msg_iov = vector;
        message.msg_iovlen = 1;
        message.msg_name = to.as_ptr().cast_mut().cast();
        message.msg_namelen = to.len();
        datagram.name_source(message, control);
    }
    // SAFETY: the first `count` headers point to vectors, addresses, controls and bytes that live until the call returns; the
    // kernel only reads them (the pointers are mutable because the C struct serves both directions).
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Makes the kernel report arrival times and drop counts with each datagram.
///
/// # Errors
/// When the kernel does not support the option.
pub fn receive_arrivals_and_drops(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// Makes the kernel report the local address of each datagram, for a socket on several (ip(7) `IP_PKTINFO`, RFC
/// 3542 section 6.1).
///
/// # Errors
/// When the kernel does not support the option.
pub fn receive_locals(socket: BorrowedFd<'_>, is_ipv4: bool) -> io::Result<()> {
    if is_ipv4 {
        set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    } else {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    }
}

/// Sets the receive buffer beyond `net.core.rmem_max`.
///
/// # Errors
/// Without CAP_NET_ADMIN.
pub fn force_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    // The kernel doubles the value for its own bookkeeping, so the maximum is half of i32.
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, i32::try_from(bytes).unwrap_or(i32::MAX / 2))
}

/// Leaves the choice of the local port to `connect`, so that one source address serves more than one range of ports
/// over different peers (ip(7), IP_BIND_ADDRESS_NO_PORT).
///
/// # Errors
/// When the kernel does not support the option.
pub fn choose_port_at_connect(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the option value is an int of the length given, read during the call only.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(&value).cast(),
            mem::size_of::<i32>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::SystemTime;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        b.set_nonblocking(true).unwrap();
        receive_arrivals_and_drops(b.as_fd()).unwrap();
        (a, b)
    }

    #[test]
    fn a_batch_arrives_whole_in_order_and_with_times_between_send_and_now() {
        let (a, b) = pair();
        let to = SockAddr::from(b.local_addr().unwrap());
        let payloads: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n) + 1]).collect();
        let before = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let datagrams: Vec<_> =
            payloads.iter().map(|bytes| Outgoing { to: to.clone(), from: None, bytes }).collect();
        assert_eq!(send(a.as_fd(), &datagrams).unwrap(), 20);
        let mut batch = ReceiveBatch::default();
        assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 20);
        let after = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        for (index, payload) in payloads.iter().enumerate() {
            let got = batch.get(index).unwrap();
            assert_eq!((&*got.bytes, got.source), (payload.as_slice(), a.local_addr().unwrap()));
            let arrived = got.arrived_unix.unwrap();
            assert!(
                before <= arrived && arrived <= after && !got.truncated,
                "{before:?} {arrived:?} {after:?}"
            );
        }
        assert!(batch.get(RECEIVE_BATCH).is_none());
        assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 0);
    }

    #[test]
    fn sources_are_read_as_the_standard_library_reads_them() {
        for ip in ["127.0.0.1:0", "[::1]:0"] {
            let (a, b) = (UdpSocket::bind(ip).unwrap(), UdpSocket::bind(ip).unwrap());
            let mut batch = ReceiveBatch::default();
            // Batches of varying length: the buffers are ready again each time.
            for count in [3, 1, 5] {
                (0..count).for_each(|_| assert_eq!(a.send_to(b"x", b.local_addr().unwrap()).unwrap(), 1));
                assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), count);
                for index in 0..count {
                    assert_eq!(batch.get(index).unwrap().source, a.local_addr().unwrap());
                }
                assert!(batch.get(count).is_none());
            }
        }
        assert_eq!(address(&[0; 7]), None);
    }

    #[test]
    fn a_datagram_that_is_too_long_is_marked_as_truncated() {
        let (a, b) = pair();
        a.send_to(&[7; DATAGRAM_BYTES_MAX + 1], b.local_addr().unwrap()).unwrap();
        a.send_to(&[7; DATAGRAM_BYTES_MAX], b.local_addr().unwrap()).unwrap();
        let mut batch = ReceiveBatch::default();
        assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 2);
        assert!(batch.get(0).unwrap().truncated);
        assert!(!batch.get(1).unwrap().truncated);
    }

    #[test]
    fn a_full_receive_buffer_is_counted() {
        let (a, b) = pair();
        socket2::SockRef::from(&b).set_recv_buffer_size(4096).unwrap();
        for _ in 0..200 {
            a.send_to(&[7; 1000], b.local_addr().unwrap()).unwrap();
        }
        let mut batch = ReceiveBatch::default();
        while batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap() > 0 {}
        // The count is reported with the next datagram that fits.
        a.send_to(&[7; 10], b.local_addr().unwrap()).unwrap();
        assert_eq!(batch.receive(b.as_fd(), RECEIVE_BATCH).unwrap(), 1);
        assert!(batch.get(0).unwrap().dropped_so_far.unwrap() > 100);
    }
}
