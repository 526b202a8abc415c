//! Many datagrams with one system call: `sendmmsg` with UDP segmentation, and `recvmmsg`. All unsafe code of the stage
//! is here.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

use libc::{iovec, mmsghdr, sockaddr_storage};

/// Messages in one `sendmmsg`; the kernel takes at most 1 024.
const MESSAGES_MAX: usize = 256;
/// Bytes of packets that are gathered before they are sent.
const ARENA_LEN: usize = 256 * 1024;
/// Segments that the kernel cuts one message into at most (UDP_MAX_SEGMENTS was 64 until 6.9).
const SEGMENTS_MAX: usize = 64;
/// And their bytes: an IP packet's length has 16 bits.
const MESSAGE_LEN_MAX: usize = 65_000;
/// Room for one control message with a 16-bit segment size, aligned as a header needs.
type Control = [u64; 3];

/// What happened to a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Datagrams that the kernel took.
    pub(crate) packets: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Datagrams that it did not take.
    pub(crate) failed: u64,
}

/// Datagrams to one address: of `segment` bytes each, but for the last, which may be shorter.
#[derive(Clone, Copy, Debug)]
struct Run {
    to: SocketAddr,
    start: usize,
    len: usize,
    segment: usize,
    packets: usize,
}

/// Gathers packets to many viewers and sends them together. Its memory is allocated once.
pub(crate) struct SendBatch {
    arena: Vec<u8>,
    runs: Vec<Run>,
    addresses: Vec<sockaddr_storage>,
    vectors: Vec<iovec>,
    controls: Vec<Control>,
    messages: Vec<mmsghdr>,
    /// Hand equal packets to one address over as one message, until the kernel refuses that.
    segmenting: bool,
}

// SAFETY: the raw pointers in `vectors` and `messages` are written anew in each flush, from buffers that move along
// with the batch, and are not read between flushes.
unsafe impl Send for SendBatch {}

impl SendBatch {
    pub(crate) fn new() -> Self {
        Self {
            arena: Vec::with_capacity(ARENA_LEN),
            runs: Vec::with_capacity(MESSAGES_MAX),
            addresses: Vec::with_capacity(MESSAGES_MAX),
            vectors: Vec::with_capacity(MESSAGES_MAX),
            controls: Vec::with_capacity(MESSAGES_MAX),
            messages: Vec::with_capacity(MESSAGES_MAX),
            segmenting: true,
        }
    }

    /// The packets gathered; one more is appended and then [`SendBatch::commit`]ted.
    pub(crate) fn arena(&mut self) -> &mut Vec<u8> {
        &mut self.arena
    }

    /// Whether another packet may no longer fit; then it is time to flush.
    pub(crate) fn is_full(&self) -> bool {
        self.runs.len() >= MESSAGES_MAX || self.arena.len() + 4_096 > ARENA_LEN
    }

    /// Makes what was appended to the arena since `start` a datagram to `to`.
    pub(crate) fn commit(&mut self, to: SocketAddr, start: usize) {
        let len = self.arena.len() - start;
        if self.segmenting
            && let Some(run) = self.runs.last_mut()
            && run.to == to
            && run.start + run.len == start
            && run.len == run.segment * run.packets // no shorter one has ended it
            && len <= run.segment
            && run.packets < SEGMENTS_MAX
            && run.len + len <= MESSAGE_LEN_MAX
        {
            run.len += len;
            run.packets += 1;
        } else {
            self.runs.push(Run { to, start, len, segment: len, packets: 1 });
        }
    }

    /// Sends all that was gathered.
    pub(crate) fn flush(&mut self, socket: &UdpSocket) -> Sent {
        let mut sent = Sent::default();
        if self.runs.is_empty() {
            return sent;
        }
        self.prepare();
        let mut done = 0;
        while let Some(rest) = self.messages.get_mut(done..).filter(|rest| !rest.is_empty()) {
            // SAFETY: `rest` holds initialised headers whose pointers lead into `arena`, `addresses`, `vectors` and
            // `controls`, which `prepare` filled and nothing has changed since.
            let count = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            let taken = usize::try_from(count).unwrap_or(0);
            for run in self.runs.iter().skip(done).take(taken) {
                sent.packets += run.packets as u64;
                sent.bytes += run.len as u64;
            }
            done += taken;
            if taken == 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() == Some(libc::EINTR) {
                    continue;
                }
                let Some(run) = self.runs.get(done) else { break };
                // A full buffer, or an ICMP error of an earlier datagram: this one is lost, the next may pass.
                sent.failed += run.packets as u64;
                if run.packets > 1
                    && matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE))
                {
                    self.segmenting = false;
                }
                done += 1;
            }
        }
        self.arena.clear();
        self.runs.clear();
        sent
    }

    fn prepare(&mut self) {
        self.addresses.clear();
        self.vectors.clear();
        self.controls.clear();
        self.messages.clear();
        for run in &self.runs {
            self.addresses.push(to_storage(run.to));
            let packets = self.arena.get_mut(run.start..run.start + run.len).unwrap_or_default();
            self.vectors.push(iovec { iov_base: packets.as_mut_ptr().cast(), iov_len: packets.len() });
            self.controls.push([0; 3]);
        }
        let parts = self.addresses.iter_mut().zip(&mut self.vectors).zip(&mut self.controls);
        for (run, ((address, vector), control)) in self.runs.iter().zip(parts) {
            // SAFETY: an all-zero mmsghdr is valid: null pointers with zero lengths.
            let mut message: mmsghdr = unsafe { zeroed() };
            let header = &mut message.msg_hdr;
            header.msg_name = ptr::from_mut(address).cast();
            header.msg_namelen = if run.to.is_ipv4() {
                size_of::<libc::sockaddr_in>() as libc::socklen_t
            } else {
                size_of::<libc::sockaddr_in6>() as libc::socklen_t
            };
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            if run.packets > 1 {
                header.msg_control = control.as_mut_ptr().cast();
                // SAFETY: CMSG_SPACE only computes; it is 24 for two bytes, the size of `Control`.
                header.msg_controllen = unsafe { libc::CMSG_SPACE(2) } as usize;
                // SAFETY: msg_control points to a `Control` with room and alignment for one header and two bytes, so
                // CMSG_FIRSTHDR is not null and CMSG_DATA lies within it.
                unsafe {
                    let head = libc::CMSG_FIRSTHDR(header);
                    (*head).cmsg_level = libc::SOL_UDP;
                    (*head).cmsg_type = libc::UDP_SEGMENT;
                    (*head).cmsg_len = libc::CMSG_LEN(2) as usize;
                    libc::CMSG_DATA(head).cast::<u16>().write_unaligned(run.segment as u16);
                }
            }
            self.messages.push(message);
        }
    }
}

/// Datagrams of one `recvmmsg`.
const RECEIVE_MAX: usize = 64;
/// Longer datagrams are cut off and then fail to authenticate; nothing on a path of 1 500 bytes is longer.
const DATAGRAM_MAX: usize = 2_048;

/// Receives many datagrams together into buffers that are used again.
pub(crate) struct ReceiveBatch {
    buffers: Vec<[u8; DATAGRAM_MAX]>,
    addresses: Vec<sockaddr_storage>,
    received: Vec<(usize, SocketAddr)>,
}

impl ReceiveBatch {
    pub(crate) fn new() -> Self {
        Self {
            buffers: vec![[0; DATAGRAM_MAX]; RECEIVE_MAX],
            // SAFETY: all-zero is a valid sockaddr_storage (family AF_UNSPEC).
            addresses: vec![unsafe { zeroed() }; RECEIVE_MAX],
            received: Vec::with_capacity(RECEIVE_MAX),
        }
    }

    /// Receives what is there, at most `most` and 64 datagrams, without waiting; returns how many.
    pub(crate) fn receive(&mut self, socket: &UdpSocket, most: usize) -> usize {
        self.received.clear();
        let mut vectors: [iovec; RECEIVE_MAX] =
            [const { iovec { iov_base: ptr::null_mut(), iov_len: 0 } }; RECEIVE_MAX];
        // SAFETY: all-zero mmsghdrs are valid: null pointers with zero lengths.
        let mut messages: [mmsghdr; RECEIVE_MAX] = unsafe { zeroed() };
        let parts = self.buffers.iter_mut().zip(&mut self.addresses);
        for ((message, vector), (buffer, address)) in messages.iter_mut().zip(&mut vectors).zip(parts) {
            *vector = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: DATAGRAM_MAX };
            message.msg_hdr.msg_name = ptr::from_mut(address).cast();
            message.msg_hdr.msg_namelen = size_of::<sockaddr_storage>() as libc::socklen_t;
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every header points to a buffer and an address of ours that outlive the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                most.min(RECEIVE_MAX) as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).unwrap_or(0);
        for (message, address) in messages.iter().zip(&self.addresses).take(count) {
            let address = from_storage(address).unwrap_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
            self.received.push((message.msg_len as usize, address));
        }
        count
    }

    /// How many datagrams there are.
    pub(crate) fn len(&self) -> usize {
        self.received.len()
    }

    /// The datagrams received, with where they came from; they may be changed in place.
    pub(crate) fn datagrams(&mut self) -> impl Iterator<Item = (SocketAddr, &mut [u8])> {
        self.received.iter().zip(&mut self.buffers).map(|(&(len, source), buffer)| {
            let len = len.min(DATAGRAM_MAX);
            (source, &mut buffer[..len])
        })
    }
}

fn to_storage(address: SocketAddr) -> sockaddr_storage {
    // SAFETY: all-zero is a valid sockaddr_storage.
    let mut storage: sockaddr_storage = unsafe { zeroed() };
    let place = ptr::from_mut(&mut storage);
    match address {
        SocketAddr::V4(v4) => {
            let value = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is at least as large and as strictly aligned as every sockaddr_*.
            unsafe { place.cast::<libc::sockaddr_in>().write(value) };
        }
        SocketAddr::V6(v6) => {
            let value = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(value) };
        }
    }
    storage
}

fn from_storage(storage: &sockaddr_storage) -> Option<SocketAddr> {
    let place = ptr::from_ref(storage);
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a sockaddr_in, which sockaddr_storage has room and alignment for.
            let v4 = unsafe { &*place.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for sockaddr_in6.
            let v6 = unsafe { &*place.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddr::V6(SocketAddrV6::new(
                ip,
                u16::from_be(v6.sin6_port),
                v6.sin6_flowinfo,
                v6.sin6_scope_id,
            )))
        }
        _ => None,
    }
}

/// A nonblocking UDP socket at `ip` with a send buffer large enough for a burst to a thousand viewers.
pub(crate) fn media_socket(ip: std::net::IpAddr, receive_buffer: usize) -> io::Result<UdpSocket> {
    let domain = if ip.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 };
    let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
    // The kernel caps these at net.core.{w,r}mem_max; less only means that an overload shows earlier.
    let _ = socket.set_send_buffer_size(8 << 20);
    let _ = socket.set_recv_buffer_size(receive_buffer);
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::new(ip, 0).into())?;
    Ok(socket.into())
}

/// Wakes a worker that waits in [`wait`].
pub(crate) struct Bell(std::os::fd::OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        use std::os::fd::FromRawFd;
        // SAFETY: eventfd takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn ring(&self) {
        let one = 1_u64;
        // SAFETY: eight readable bytes. A full counter only means that the bell already rings.
        unsafe { libc::write(self.0.as_raw_fd(), ptr::from_ref(&one).cast(), 8) };
    }

    fn silence(&self) {
        let mut count = 0_u64;
        // SAFETY: eight writable bytes.
        unsafe { libc::read(self.0.as_raw_fd(), ptr::from_mut(&mut count).cast(), 8) };
    }
}

/// Waits until a datagram comes to `socket`, if there is one, the bell rings or `timeout_us` have passed.
pub(crate) fn wait(socket: Option<&UdpSocket>, bell: &Bell, timeout_us: u64) {
    let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A negative descriptor is passed over (poll(2)).
    let socket = socket.map_or(-1, AsRawFd::as_raw_fd);
    let mut watched = [watch(socket), watch(bell.0.as_raw_fd())];
    let timeout = libc::timespec {
        tv_sec: (timeout_us / 1_000_000) as libc::time_t,
        tv_nsec: (timeout_us % 1_000_000 * 1_000) as libc::c_long,
    };
    // SAFETY: two initialised pollfds, a timespec, and no signal mask.
    unsafe { libc::ppoll(watched.as_mut_ptr(), 2, &raw const timeout, ptr::null()) };
    if watched[1].revents != 0 {
        bell.silence();
    }
}

/// CPU time of the calling thread, microseconds.
pub(crate) fn thread_cpu_us() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a writable timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> UdpSocket {
        media_socket(Ipv4Addr::LOCALHOST.into(), 1 << 20).unwrap()
    }

    #[test]
    fn what_is_sent_in_runs_arrives_as_the_packets_it_was() {
        let (from, to, other) = (socket(), socket(), socket());
        let mut batch = SendBatch::new();
        let packets: [(&UdpSocket, usize); 7] =
            [(&to, 900), (&to, 900), (&to, 300), (&to, 900), (&other, 50), (&to, 10), (&to, 20)];
        for (number, (socket, len)) in packets.iter().enumerate() {
            let start = batch.arena().len();
            batch.arena().resize(start + len, number as u8);
            batch.commit(socket.local_addr().unwrap(), start);
        }
        assert_eq!(batch.runs.iter().map(|run| run.packets).collect::<Vec<_>>(), [3, 1, 1, 1, 1]);
        assert_eq!(batch.flush(&from), Sent { packets: 7, bytes: 3_080, failed: 0 });
        assert_eq!(batch.flush(&from), Sent::default());

        let mut received = ReceiveBatch::new();
        let mut lens = Vec::new();
        while received.receive(&to, RECEIVE_MAX) > 0 {
            for (source, bytes) in received.datagrams() {
                assert_eq!(source, from.local_addr().unwrap());
                lens.push((bytes.len(), bytes[0]));
            }
        }
        assert_eq!(lens, [(900, 0), (900, 1), (300, 2), (900, 3), (10, 5), (20, 6)]);
    }

    #[test]
    fn addresses_survive_the_kernels_form() {
        for address in ["127.0.0.1:7080", "[::1]:9", "[fe80::1%3]:9"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(from_storage(&to_storage(address)), Some(address));
        }
    }

    #[test]
    fn a_bell_wakes_at_once_and_is_then_silent() {
        let (socket, bell) = (socket(), Bell::new().unwrap());
        bell.ring();
        let begun = std::time::Instant::now();
        wait(Some(&socket), &bell, 60_000_000);
        assert!(begun.elapsed().as_secs() < 30);
        wait(Some(&socket), &bell, 1);
    }
}
