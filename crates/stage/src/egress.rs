//! Egress of a worker: packets are written in place, pass the capped link if there is one, and are
//! sent in batches.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use throng_net::{SendBatch, Sent};

use crate::link::Link;
use crate::planted::Planted;

/// Outgoing packets of a worker.
pub(crate) struct Egress {
    socket: UdpSocket,
    batch: SendBatch,
    link: Option<NarrowLink>,
    sent: Sent,
    dropped: u64,
}

struct NarrowLink {
    link: Link,
    /// Packets waiting to depart, in order; the link bounds their time and so their bytes.
    waiting: VecDeque<Waiting>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

struct Waiting {
    leaves_at: Instant,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Egress {
    /// `limit` is bits per second and the queue's length.
    pub(crate) fn new(socket: UdpSocket, limit: Option<(u64, Duration)>, now: Instant) -> Self {
        let link = limit.map(|(bits_per_second, queue_max)| NarrowLink {
            link: Link::new(bits_per_second, queue_max, now),
            waiting: VecDeque::new(),
            spare: Vec::new(),
        });
        Self { socket, batch: SendBatch::default(), link, sent: Sent::default(), dropped: 0 }
    }

    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sends what `write` appends to the buffer to `to`; nothing if it returns false.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        to: SocketAddr,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) {
        if self.batch.is_full() {
            self.flush();
        }
        let arena = self.batch.arena();
        let start = arena.len();
        if !write(arena) {
            arena.truncate(start);
            return;
        }
        let Some(narrow) = &mut self.link else {
            self.batch.commit(to, start);
            return;
        };
        let packet = arena.get(start..).unwrap_or_default();
        match narrow.link.admit(now, packet.len()) {
            None => self.dropped += 1,
            Some(leaves_at) => {
                let mut bytes = narrow.spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(packet);
                narrow.waiting.push_back(Waiting { leaves_at, to, bytes });
            }
        }
        self.batch.arena().truncate(start);
    }

    /// Sends `bytes` as they are.
    pub(crate) fn send_bytes(&mut self, now: Instant, to: SocketAddr, bytes: &[u8]) {
        self.send(now, to, |out| {
            out.extend_from_slice(bytes);
            true
        });
    }

    /// Sends the packets whose departure time has come.
    pub(crate) fn depart(&mut self, now: Instant) {
        while let Some(narrow) = &mut self.link
            && let Some(next) = narrow.waiting.pop_front_if(|next| next.leaves_at <= now)
        {
            let start = self.batch.arena().len();
            self.batch.arena().extend_from_slice(&next.bytes);
            self.batch.commit(next.to, start);
            narrow.spare.push(next.bytes);
            if self.batch.is_full() {
                self.flush();
            }
        }
        self.flush();
    }

    /// When [`Egress::depart`] has something to do next.
    pub(crate) fn next_departure(&self) -> Option<Instant> {
        self.link.as_ref()?.waiting.front().map(|next| next.leaves_at)
    }

    /// What was sent, and how many packets the link dropped, since the last call.
    pub(crate) fn take_counts(&mut self) -> (Sent, u64) {
        (std::mem::take(&mut self.sent), std::mem::take(&mut self.dropped))
    }

    fn flush(&mut self) {
        let sent = self.batch.flush(&self.socket);
        self.sent.packets += sent.packets;
        self.sent.bytes += sent.bytes;
        self.sent.failed += sent.failed;
    }
}

/// A nonblocking UDP socket at `ip`, whose buffers are large enough for bursts to and from a
/// thousand viewers unless smaller ones are planted.
pub(crate) fn media_socket(ip: IpAddr, planted: &Planted) -> io::Result<UdpSocket> {
    let domain = if ip.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 };
    let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
    // The kernel caps these at net.core.{w,r}mem_max; less only means that an overload shows
    // earlier.
    let _ = socket.set_send_buffer_size(planted.send_buffer());
    let _ = socket.set_recv_buffer_size(planted.receive_buffer());
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::new(ip, 0).into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use throng_net::ReceiveBatch;

    #[test]
    fn a_narrow_link_delays_then_drops() {
        let ip = Ipv4Addr::LOCALHOST.into();
        let socket = || media_socket(ip, &Planted::default()).unwrap();
        let (to, start) = (socket(), Instant::now());
        let ms = Duration::from_millis(1);
        // 125 bytes take 1 ms each.
        let mut egress = Egress::new(socket(), Some((1_000_000, 10 * ms)), start);
        for _ in 0..50 {
            egress.send(start, to.local_addr().unwrap(), |buffer| {
                buffer.extend_from_slice(&[7; 125]);
                true
            });
        }
        let mut received = ReceiveBatch::default();
        egress.depart(start);
        assert_eq!(received.receive(to.as_fd(), 64).unwrap(), 0);
        assert_eq!(egress.next_departure(), Some(start + ms));
        egress.depart(start + 4 * ms);
        assert_eq!(received.receive(to.as_fd(), 64).unwrap(), 4);
        egress.depart(start + 100 * ms);
        assert_eq!(received.receive(to.as_fd(), 64).unwrap(), 7);
        let (sent, dropped) = egress.take_counts();
        assert_eq!((sent.packets, sent.failed, dropped), (11, 0, 39));
        assert_eq!(egress.next_departure(), None);
    }

    #[test]
    fn a_send_buffer_is_as_small_as_was_planted() {
        let bytes = |send_buffer_kb: Option<u32>| {
            let planted = Planted { send_buffer_kb, ..Planted::default() };
            let socket = media_socket(Ipv4Addr::LOCALHOST.into(), &planted).unwrap();
            socket2::SockRef::from(&socket).send_buffer_size().unwrap()
        };
        // The kernel gives at least room for two small packets (SOCK_MIN_SNDBUF).
        assert!(bytes(Some(1)) < 10_000 && bytes(None) > 100_000, "{}", bytes(Some(1)));
    }

    #[test]
    fn what_is_not_written_is_not_sent() {
        let ip = Ipv4Addr::LOCALHOST.into();
        let socket = || media_socket(ip, &Planted::default()).unwrap();
        let (to, now) = (socket(), Instant::now());
        let mut egress = Egress::new(socket(), None, now);
        egress.send(now, to.local_addr().unwrap(), |buffer| {
            buffer.push(1);
            false
        });
        egress.depart(now);
        assert_eq!(egress.take_counts(), (Sent::default(), 0));
    }
}
