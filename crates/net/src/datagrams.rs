//! Many datagrams per system call, with kernel arrival times: `recvmmsg`, and `sendmmsg` with UDP
//! segmentation offload (UDP_SEGMENT, udp(7)).

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::time::Duration;

use socket2::SockAddr;

use crate::sockopt;

/// Most datagrams of one receive. At 200 packets a second and a 5 ms tick a socket holds one or
/// two; 32 carry a burst (a key frame) in one call and keep the buffers in the second-level cache.
pub const RECEIVE_BATCH: usize = 32;

/// Bytes kept of a datagram: that of a jumbo frame. Longer ones are dropped and counted.
pub const DATAGRAM_BYTES_MAX: usize = 9216;

/// Most datagrams of one send: the largest burst of a publisher has some 55.
pub const SEND_BATCH: usize = 64;

/// Most datagrams of one message (UDP_MAX_SEGMENTS was 64 until Linux 6.9).
const SEGMENTS_MAX: usize = 64;

/// Most bytes of one message: the length of an IP packet has 16 bits.
const MESSAGE_BYTES_MAX: usize = 65_000;

/// Room for `SCM_TIMESTAMPNS` (32 bytes with its header), `SO_RXQ_OVFL` (24 bytes) and
/// `IPV6_PKTINFO` (40 bytes; that of IPv4 is shorter).
type Control = [u64; 12];

/// Room for `IPV6_PKTINFO` (40 bytes with its header; `IP_PKTINFO` is shorter) and `UDP_SEGMENT`
/// (24 bytes).
type SendControl = [u64; 8];

/// Room for a `sockaddr_in` or `sockaddr_in6`: no other family reaches an IP socket.
type Source = [u32; 7];

/// Receive buffers that all sockets of a thread share.
pub struct ReceiveBatch {
    bytes: Pointed<u8>,
    sources: Pointed<Source>,
    controls: Pointed<Control>,
    vectors: Pointed<libc::iovec>,
    headers: Box<[libc::mmsghdr]>,
    /// How many datagrams the last receive returned.
    received: usize,
}

// SAFETY: its pointers refer only to its own memory, which does not move with it.
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
    /// It was longer than [`DATAGRAM_BYTES_MAX`]; the rest was discarded.
    pub truncated: bool,
    /// The payload.
    pub bytes: &'a mut [u8],
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: mmsghdr is a plain C struct of integers and pointers, for which all zeroes is a
        // valid value.
        let header: libc::mmsghdr = unsafe { mem::zeroed() };
        let mut batch = Self {
            bytes: Pointed::new(vec![0; RECEIVE_BATCH * DATAGRAM_BYTES_MAX]),
            sources: Pointed::new(vec![[0; 7]; RECEIVE_BATCH]),
            controls: Pointed::new(vec![[0; 12]; RECEIVE_BATCH]),
            vectors: Pointed::new(vec![empty; RECEIVE_BATCH]),
            headers: vec![header; RECEIVE_BATCH].into_boxed_slice(),
            received: 0,
        };
        batch.arm(RECEIVE_BATCH);
        batch
    }
}

impl ReceiveBatch {
    /// Prepares the first `count` headers for the kernel, which changes only those that it fills;
    /// preparing all of them for the one or two datagrams of most calls would cost more than those.
    fn arm(&mut self, count: usize) {
        for ((((header, vector), source), control), bytes) in self
            .headers
            .iter_mut()
            .zip(self.vectors.every(1))
            .zip(self.sources.every(1))
            .zip(self.controls.every(1))
            .zip(self.bytes.every(DATAGRAM_BYTES_MAX))
            .take(count)
        {
            let room = libc::iovec { iov_base: bytes.cast(), iov_len: DATAGRAM_BYTES_MAX };
            // SAFETY: an element of `vectors`, which nobody else reads or writes meanwhile.
            unsafe { vector.write(room) };
            let message = &mut header.msg_hdr;
            message.msg_iov = vector;
            message.msg_iovlen = 1;
            message.msg_name = source.cast();
            message.msg_namelen = mem::size_of::<Source>() as libc::socklen_t;
            message.msg_control = control.cast();
            message.msg_controllen = mem::size_of::<Control>() as _;
            message.msg_flags = 0;
        }
    }

    /// Receives datagrams without blocking, at most `most` and [`RECEIVE_BATCH`]; returns how many.
    ///
    /// # Errors
    /// The socket's pending error; returning it clears it.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        self.receive_by(|headers| {
            let most = most.min(headers.len()) as libc::c_uint;
            let (fd, headers) = (socket.as_raw_fd(), headers.as_mut_ptr());
            // SAFETY: every header points to buffers that the batch owns, of the lengths given;
            // they outlive the call, and no other code reads or writes them during it.
            unsafe { libc::recvmmsg(fd, headers, most, libc::MSG_DONTWAIT, ptr::null_mut()) }
        })
    }

    /// By a `call` that fills the first headers and what they point to, as `recvmmsg` does.
    fn receive_by(
        &mut self,
        call: impl FnOnce(&mut [libc::mmsghdr]) -> libc::c_int,
    ) -> io::Result<usize> {
        let used = mem::take(&mut self.received);
        self.arm(used);
        match usize::try_from(call(&mut self.headers)) {
            Ok(count) => {
                self.received = count.min(RECEIVE_BATCH);
                Ok(self.received)
            }
            Err(_) => match io::Error::last_os_error() {
                e if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    Ok(0)
                }
                e => Err(e),
            },
        }
    }

    /// Datagram number `index` of the last [`Self::receive`]; `None` beyond it, or without an IP
    /// source.
    pub fn get(&mut self, index: usize) -> Option<Received<'_>> {
        let header = self.headers.get(index).filter(|_| index < self.received)?;
        let message = &header.msg_hdr;
        let AncillaryData { arrived_unix, dropped_so_far, local } = ancillary(message);
        // SAFETY: an element, which nobody else reads or writes while the batch is borrowed.
        let source = address(unsafe { &*self.sources.at(index)? })?;
        let length = (header.msg_len as usize).min(DATAGRAM_BYTES_MAX);
        let bytes = self.bytes.at(index * DATAGRAM_BYTES_MAX)?;
        // SAFETY: the length lies within the room of this datagram. It is borrowed with the batch,
        // so that nobody else, and no call to the kernel, reads or writes it meanwhile.
        let bytes = unsafe { slice::from_raw_parts_mut(bytes, length) };
        Some(Received {
            source,
            local,
            arrived_unix,
            dropped_so_far,
            truncated: message.msg_flags & libc::MSG_TRUNC != 0,
            bytes,
        })
    }
}

/// Elements that headers keep pointers to from one receive to the next. They are reached by one
/// pointer, of which all others are copies: a reference to all of them, or a box that is moved,
/// would claim them for itself, and the pointers in the headers might no longer be used.
struct Pointed<T>(NonNull<[T]>);

impl<T> Pointed<T> {
    fn new(elements: Vec<T>) -> Self {
        Self(NonNull::from(Box::leak(elements.into_boxed_slice())))
    }

    /// Element number `index`, if there is one.
    fn at(&self, index: usize) -> Option<*mut T> {
        (index < self.0.len()).then(|| self.0.cast::<T>().as_ptr().wrapping_add(index))
    }

    /// The first element, and every one that is `step` behind the one before.
    fn every(&self, step: usize) -> impl Iterator<Item = *mut T> {
        (0..self.0.len()).step_by(step).filter_map(move |index| self.at(index))
    }
}

impl<T> Drop for Pointed<T> {
    fn drop(&mut self) {
        // SAFETY: a box was leaked for it, and no reference to an element outlives its owner.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Reads a `sockaddr_in` or `sockaddr_in6` as the kernel writes them (ip(7), ipv6(7)): family in
/// the byte order of the machine, port and address in network order. An IPv4-mapped address becomes
/// an IPv4 address.
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
    // SAFETY: the kernel filled `msg_control` up to `msg_controllen`; the CMSG functions stay
    // within it.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !control.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return null or a whole header within the control
        // buffer.
        let (level, kind) = unsafe { ((*control).cmsg_level, (*control).cmsg_type) };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: a header as above; all bytes are a timespec.
                let time = unsafe { value::<libc::timespec>(control) };
                found.arrived_unix = time.and_then(|time| {
                    let nanos = u32::try_from(time.tv_nsec).ok()?;
                    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, nanos.min(999_999_999)))
                });
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                // SAFETY: a header as above; all bytes are a u32.
                found.dropped_so_far = unsafe { value::<u32>(control) };
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: a header as above; all bytes are an in_pktinfo.
                let info = unsafe { value::<libc::in_pktinfo>(control) };
                found.local =
                    info.map(|info| Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: a header as above; all bytes are an in6_pktinfo.
                let info = unsafe { value::<libc::in6_pktinfo>(control) };
                found.local = info.map(|info| IpAddr::from(info.ipi6_addr.s6_addr).to_canonical());
            }
            _ => {}
        }
        // SAFETY: `control` is a header of this message, as above.
        control = unsafe { libc::CMSG_NXTHDR(message, control) };
    }
    found
}

/// The value of a control message, if all of it is there: the kernel cuts off what the buffer has
/// no room for, and shortens the last message (`put_cmsg` of `net/core/scm.c`).
///
/// # Safety
/// `control` is a header with as many bytes, with its own, as it says; any bytes are a valid `T`.
unsafe fn value<T>(control: *const libc::cmsghdr) -> Option<T> {
    // SAFETY: CMSG_LEN only computes.
    let whole = unsafe { libc::CMSG_LEN(mem::size_of::<T>() as libc::c_uint) } as usize;
    // SAFETY: the caller's header.
    let length = unsafe { (*control).cmsg_len };
    if length < whole {
        return None;
    }
    // SAFETY: the value lies within the length; unaligned reads are allowed for.
    Some(unsafe { ptr::read_unaligned(libc::CMSG_DATA(control).cast::<T>()) })
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
    /// Adds the source address to the message, if one is given, and the length of its datagrams, if
    /// there are several.
    fn write_controls(
        &self,
        message: &mut libc::msghdr,
        control: &mut SendControl,
        segment: Option<u16>,
    ) {
        let mut used = 0;
        // A dual-stack socket takes IPv4 addresses as mapped ones (ip(7), ipv6(7), RFC 3542 section
        // 6.2).
        match self.from {
            None => {}
            Some(IpAddr::V4(v4)) if self.to.is_ipv4() => {
                let spec = libc::in_addr { s_addr: u32::from_ne_bytes(v4.octets()) };
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: spec,
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                used += write_control(control, (libc::IPPROTO_IP, libc::IP_PKTINFO), info);
            }
            Some(from) => {
                let s6_addr = match from {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                    IpAddr::V6(v6) => v6.octets(),
                };
                let info =
                    libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr }, ipi6_ifindex: 0 };
                used += write_control(control, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), info);
            }
        }
        if let (Some(segment), Some(room)) = (segment, control.get_mut(used..)) {
            used += write_control(room, (libc::SOL_UDP, libc::UDP_SEGMENT), segment);
        }
        if used > 0 {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = (used * mem::size_of::<u64>()) as _;
        }
    }
}

/// Writes a control message of this level and type at the start of `room`; returns how many words
/// it takes, 0 if there is no room.
fn write_control<T>(room: &mut [u64], (level, kind): (i32, i32), value: T) -> usize {
    let length = mem::size_of::<T>() as libc::c_uint;
    // SAFETY: CMSG_SPACE only computes.
    let words = unsafe { libc::CMSG_SPACE(length) } as usize / mem::size_of::<u64>();
    let Some(room) = room.get_mut(..words) else { return 0 };
    let head = room.as_mut_ptr().cast::<libc::cmsghdr>();
    // SAFETY: `room` has CMSG_SPACE bytes, a header and the value, and words are aligned as a
    // header needs; CMSG_DATA is the byte behind the header.
    unsafe {
        (*head).cmsg_level = level;
        (*head).cmsg_type = kind;
        (*head).cmsg_len = libc::CMSG_LEN(length) as _;
        libc::CMSG_DATA(head).cast::<T>().write_unaligned(value);
    }
    words
}

/// How many of the first datagrams can be one message: they go the same way and have the same
/// length; the last may be shorter.
fn joined(datagrams: &[Outgoing<'_>]) -> usize {
    let Some((first, others)) = datagrams.split_first() else { return 0 };
    let segment = first.bytes.len();
    let (mut count, mut total) = (1, segment);
    for other in others.iter().take(SEGMENTS_MAX - 1) {
        let length = other.bytes.len();
        total += length;
        if length == 0
            || length > segment
            || total > MESSAGE_BYTES_MAX
            || other.from != first.from
            || other.to != first.to
        {
            break;
        }
        count += 1;
        if length < segment {
            break;
        }
    }
    count
}

/// Whether the kernel may have refused a message because it is of several datagrams: it does not
/// know them, the route encrypts, the socket has no checksums, or a datagram is longer than the
/// path takes.
fn may_refuse_segments(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE))
}

/// Sends up to [`SEND_BATCH`] datagrams on one socket, in order; returns how many the kernel took.
///
/// While `joins`, datagrams of equal length to one address are one message: the kernel goes through
/// its stack once for them, and cuts them apart where they leave or arrive. `joins` becomes false
/// when the kernel refuses that for datagrams that it takes one by one; it belongs to the socket
/// and begins as true.
///
/// # Errors
/// The error of the first datagram, or of the message that it begins; none was sent.
pub fn send(
    socket: BorrowedFd<'_>,
    datagrams: &[Outgoing<'_>],
    joins: &mut bool,
) -> io::Result<usize> {
    match send_messages(socket, datagrams, *joins) {
        Err(error) if *joins && may_refuse_segments(&error) && joined(datagrams) > 1 => {
            let sent = send_messages(socket, datagrams, false)?;
            *joins = false;
            Ok(sent)
        }
        result => result,
    }
}

/// Sends up to [`SEND_BATCH`] datagrams, each as a message or, if `joins`, as many as possible in
/// one.
fn send_messages(
    socket: BorrowedFd<'_>,
    datagrams: &[Outgoing<'_>],
    joins: bool,
) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; SEND_BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; SEND_BATCH];
    let mut controls = [const { MaybeUninit::<SendControl>::uninit() }; SEND_BATCH];
    // How many datagrams each message has.
    let mut counts = [0_usize; SEND_BATCH];
    let mut rest = datagrams.get(..SEND_BATCH).unwrap_or(datagrams);
    for (vector, datagram) in vectors.iter_mut().zip(rest) {
        let bytes = datagram.bytes;
        vector.write(libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        });
    }
    let mut vector = vectors.as_mut_ptr().cast::<libc::iovec>();
    let mut messages = 0_usize;
    for ((header, control), count) in headers.iter_mut().zip(&mut controls).zip(&mut counts) {
        let Some(first) = rest.first() else { break };
        *count = if joins { joined(rest) } else { 1 };
        // SAFETY: mmsghdr is a plain C struct of integers and pointers, for which all zeroes is a
        // valid value.
        let header = header.write(unsafe { mem::zeroed() });
        let message = &mut header.msg_hdr;
        message.msg_iov = vector;
        message.msg_iovlen = *count as _;
        message.msg_name = first.to.as_ptr().cast_mut().cast();
        message.msg_namelen = first.to.len();
        // Several datagrams have at most MESSAGE_BYTES_MAX, so that each length has 16 bits.
        let segment = (*count > 1).then_some(first.bytes.len() as u16);
        first.write_controls(message, control.write([0; 8]), segment);
        vector = vector.wrapping_add(*count);
        rest = rest.get(*count..).unwrap_or_default();
        messages += 1;
    }
    // SAFETY: the first `messages` headers were written; they point to vectors that were written,
    // and to addresses, controls and bytes, which all live until the call returns. The kernel only
    // reads them (the pointers are mutable because the C struct serves both directions).
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            messages as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
    Ok(counts.iter().take(sent).sum())
}

/// Makes the kernel report arrival times and drop counts with each datagram.
///
/// # Errors
/// When the kernel does not support the option.
pub fn receive_arrivals_and_drops(socket: BorrowedFd<'_>) -> io::Result<()> {
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &1_i32)
}

/// Makes the kernel report the local address of each datagram, for a socket on several (ip(7)
/// `IP_PKTINFO`, RFC 3542 section 6.1).
///
/// # Errors
/// When the kernel does not support the option.
pub fn receive_locals(socket: BorrowedFd<'_>, is_ipv4: bool) -> io::Result<()> {
    if is_ipv4 {
        sockopt::set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, &1_i32)
    } else {
        sockopt::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &1_i32)
    }
}

/// Sets the receive buffer beyond `net.core.rmem_max`.
///
/// # Errors
/// Without CAP_NET_ADMIN.
pub fn force_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    // The kernel doubles the value for its own bookkeeping, so the maximum is half of i32.
    sockopt::set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_RCVBUFFORCE,
        &i32::try_from(bytes).unwrap_or(i32::MAX / 2),
    )
}

/// Leaves the choice of the local port to `connect`, so that one source address serves more than
/// one range of ports over different peers (ip(7), IP_BIND_ADDRESS_NO_PORT).
///
/// # Errors
/// When the kernel does not support the option.
pub fn choose_port_at_connect(socket: BorrowedFd<'_>) -> io::Result<()> {
    sockopt::set(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1_i32)
}

// Miri has no sockets.
#[cfg(all(test, not(miri)))]
#[path = "datagrams_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "batch_tests.rs"]
mod batch_tests;

#[cfg(test)]
#[path = "control_tests.rs"]
mod control_tests;
