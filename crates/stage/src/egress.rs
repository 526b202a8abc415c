//! The way out of a worker: packets are written in place, pass the limited link if there is one, and leave in batches.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::link::Link;
use crate::net::{SendBatch, Sent};

/// Packets of a worker on their way out.
pub(crate) struct Egress {
    socket: UdpSocket,
    batch: SendBatch,
    link: Option<NarrowLink>,
    sent: Sent,
    dropped: u64,
}

struct NarrowLink {
    link: Link,
    /// What waits for its turn, in order. Bounded in time by the link, and so in bytes.
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
        Self { socket, batch: SendBatch::new(), link, sent: Sent::default(), dropped: 0 }
    }

    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sends what `write` appends to the buffer to `to`; nothing if it returns false.
    pub(crate) fn send(&mut self, now: Instant, to: SocketAddr, write: impl FnOnce(&mut Vec<u8>) -> bool) {
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

    /// Lets go what has its turn and hands all to the kernel.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{ReceiveBatch, media_socket};
    use std::net::Ipv4Addr;

    #[test]
    fn a_narrow_link_delays_then_drops() {
        let ip = Ipv4Addr::LOCALHOST.into();
        let (to, start) = (media_socket(ip, 1 << 20).unwrap(), Instant::now());
        let ms = Duration::from_millis(1);
        // 125 bytes take 1 ms each.
        let mut egress = Egress::new(media_socket(ip, 1 << 20).unwrap(), Some((1_000_000, 10 * ms)), start);
        for _ in 0..50 {
            egress.send(start, to.local_addr().unwrap(), |buffer| {
                buffer.extend_from_slice(&[7; 125]);
                true
            });
        }
        let mut received = ReceiveBatch::new();
        egress.depart(start);
        assert_eq!(received.receive(&to, 64), 0);
        assert_eq!(egress.next_departure(), Some(start + ms));
        egress.depart(start + 4 * ms);
        assert_eq!(received.receive(&to, 64), 4);
        egress.depart(start + 100 * ms);
        assert_eq!(received.receive(&to, 64), 7);
        let (sent, dropped) = egress.take_counts();
        assert_eq!((sent.packets, sent.failed, dropped), (11, 0, 39));
        assert_eq!(egress.next_departure(), None);
    }

    #[test]
    fn what_is_not_written_is_not_sent() {
        let ip = Ipv4Addr::LOCALHOST.into();
        let (to, now) = (media_socket(ip, 1 << 20).unwrap(), Instant::now());
        let mut egress = Egress::new(media_socket(ip, 1 << 20).unwrap(), None, now);
        egress.send(now, to.local_addr().unwrap(), |buffer| {
            buffer.push(1);
            false
        });
        egress.depart(now);
        assert_eq!(egress.take_counts(), (Sent::default(), 0));
    }
}
