//! A batch of datagrams to many peers: `sendmmsg` with UDP segmentation offload (UDP_SEGMENT,
//! udp(7)).

use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use libc::{iovec, mmsghdr};
use socket2::SockAddr;

/// Messages in one `sendmmsg`; the kernel takes at most 1 024.
const MESSAGES_MAX: usize = 256;
/// Bytes of packets that are collected before they are sent.
const ARENA_LEN: usize = 256 * 1024;
/// Segments in one message (UDP_MAX_SEGMENTS was 64 until Linux 6.9).
const SEGMENTS_MAX: usize = 64;
/// Bytes in one message: the length of an IP packet has 16 bits.
const MESSAGE_LEN_MAX: usize = 65_000;
/// Room for one control message with a 16-bit segment size, aligned as a header needs.
type Control = [u64; 3];

/// The result of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams that it did not take.
    pub failed: u64,
}

/// Consecutive datagrams to one address, of `segment` bytes each; the last may be shorter.
#[derive(Clone, Copy, Debug)]
struct Run {
    to: SocketAddr,
    start: usize,
    len: usize,
    segment: usize,
    packets: usize,
}

/// Collects packets to many peers and sends them together. Its memory is allocated once.
pub struct SendBatch {
    arena: Vec<u8>,
    runs: Vec<Run>,
    addresses: Vec<SockAddr>,
    vectors: Vec<iovec>,
    controls: Vec<Control>,
    messages: Vec<mmsghdr>,
    /// Packets of equal length to one address are sent as one message, until the kernel refuses
    /// that.
    segmenting: bool,
}

// SAFETY: the raw pointers in `vectors` and `messages` are written again in each flush, from
// buffers that move along with the batch, and are not read between flushes.
unsafe impl Send for SendBatch {}

impl Default for SendBatch {
    fn default() -> Self {
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
}

impl SendBatch {
    /// The buffer of packets: append one, then [`SendBatch::commit`] it.
    pub fn arena(&mut self) -> &mut Vec<u8> {
        &mut self.arena
    }

    /// Whether the next packet may not fit; then the caller has to flush.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.runs.len() >= MESSAGES_MAX || self.arena.len() + 4_096 > ARENA_LEN
    }

    /// Makes the bytes appended since `start` a datagram to `to`.
    pub fn commit(&mut self, to: SocketAddr, start: usize) {
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

    /// Sends all packets; returns how many the kernel took.
    pub fn flush(&mut self, socket: &UdpSocket) -> Sent {
        let mut sent = Sent::default();
        if self.runs.is_empty() {
            return sent;
        }
        self.prepare();
        let mut done = 0;
        while let Some(rest) = self.messages.get_mut(done..).filter(|rest| !rest.is_empty()) {
            // SAFETY: `rest` holds initialised headers whose pointers refer to `arena`,
            // `addresses`, `vectors` and `controls`, which `prepare` filled and nothing has changed
            // since.
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
                // A full buffer, or an ICMP error of an earlier datagram: this datagram is lost,
                // the next may be sent.
                sent.failed += run.packets as u64;
                if run.packets > 1
                    && matches!(
                        error.raw_os_error(),
                        Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE)
                    )
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
            self.addresses.push(SockAddr::from(run.to));
            let packets = self.arena.get(run.start..run.start + run.len).unwrap_or_default();
            // The kernel only reads them; the struct's pointer is mutable because it serves both
            // directions.
            let iov_base = packets.as_ptr().cast_mut().cast();
            self.vectors.push(iovec { iov_base, iov_len: packets.len() });
            self.controls.push([0; 3]);
        }
        let parts = self.addresses.iter().zip(&mut self.vectors).zip(&mut self.controls);
        for (run, ((address, vector), control)) in self.runs.iter().zip(parts) {
            // SAFETY: an all-zero mmsghdr is valid: null pointers with zero lengths.
            let mut message: mmsghdr = unsafe { zeroed() };
            let header = &mut message.msg_hdr;
            header.msg_name = address.as_ptr().cast_mut().cast();
            header.msg_namelen = address.len();
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            if run.packets > 1 {
                header.msg_control = control.as_mut_ptr().cast();
                // SAFETY: CMSG_SPACE only computes; it is 24 for two bytes, the size of `Control`.
                header.msg_controllen = unsafe { libc::CMSG_SPACE(2) } as usize;
                // SAFETY: msg_control points to a `Control` with room and alignment for one header
                // and two bytes, so CMSG_FIRSTHDR is not null and CMSG_DATA lies within it.
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

// Miri has no sockets.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{RECEIVE_BATCH, ReceiveBatch};
    use std::os::fd::AsFd;

    fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").unwrap()
    }

    #[test]
    fn segmented_packets_arrive_as_they_were_gathered() {
        let (from, to, other) = (socket(), socket(), socket());
        let mut batch = SendBatch::default();
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

        let mut received = ReceiveBatch::default();
        let mut lens = Vec::new();
        while let Ok(count @ 1..) = received.receive(to.as_fd(), RECEIVE_BATCH) {
            for index in 0..count {
                let datagram = received.get(index).unwrap();
                assert_eq!(datagram.source, from.local_addr().unwrap());
                lens.push((datagram.bytes.len(), datagram.bytes[0]));
            }
        }
        assert_eq!(lens, [(900, 0), (900, 1), (300, 2), (900, 3), (10, 5), (20, 6)]);
    }
}
