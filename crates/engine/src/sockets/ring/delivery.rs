//! How what is in the rings, and what sockets have beside them, comes to the participants.

use std::time::{Duration, Instant};

use throng_net::Received;
use throng_net::packet_ring::{FrameKind, RingDatagram};
use throng_protocol::participant::Channel;

use super::opened::OpenedRing;
use super::{Arrived, LAST, ReceiveRings, RingEntry, Silence, change};
use crate::clock::ClockPair;

impl ReceiveRings {
    /// Whether a datagram that the socket got is delivered, or the ring's own is.
    pub(crate) fn by_socket(&mut self, id: RingEntry, datagram: &Received<'_>) -> bool {
        let Self { entries, rings, changing, news, .. } = self;
        let Some(Some(entry)) = entries.get_mut(id.0 as usize) else { return true };
        let Some(arrived) = datagram.arrived_unix else { return true };
        // What goes to another address of a socket on several is in no ring, such as checks of
        // other candidate pairs.
        if datagram.local.is_some_and(|local| local != entry.in_ring.local) {
            return true;
        }
        if entry.in_ring.has(datagram.bytes.len()) {
            return entry.path.by_socket(arrived, datagram.bytes.len(), datagram.source);
        }
        // It would overtake those that come by the ring.
        if entry.path.is_peer(datagram.source.ip()) {
            entry.path.give_up();
            change(changing, id.0);
            let ring = rings.get_mut(entry.ring).and_then(Option::as_mut);
            news.extend(ring.and_then(OpenedRing::first_fragment));
        }
        true
    }

    /// Whether a socket is not to be read now: its datagrams come after those of the ring.
    pub(crate) fn holds(&self, entry: RingEntry) -> bool {
        let entry = self.entries.get(entry.0 as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.path.holds_socket())
    }

    /// The socket dropped datagrams for lack of room.
    pub(crate) fn socket_dropped(&mut self, entry: RingEntry) {
        if let Some(entry) = self.entry(entry.0) {
            entry.path.dropped();
        }
    }

    /// Whether the kernel's count of the socket's drops, as of a datagram that arrived then, counts
    /// datagrams that are lost; what a socket leaves to the ring counts there, too.
    pub(crate) fn counts_drops(
        &mut self,
        entry: RingEntry,
        arrived_unix: Option<Duration>,
    ) -> bool {
        self.entry(entry.0).is_some_and(|entry| entry.path.counts_drops(arrived_unix))
    }

    /// When the peer of a socket was silent.
    pub(crate) fn note_silence(&mut self, entry: RingEntry, silence: Silence) {
        if let Some(entry) = self.entry(entry.0) {
            entry.silence = silence;
        }
    }

    /// Takes what has arrived in all rings; `each` gets slot and channel of the sockets with
    /// datagrams.
    pub(crate) fn collect(
        &mut self,
        clocks: ClockPair,
        groups: &mut Vec<(u32, Channel, RingEntry)>,
    ) {
        self.collected = clocks;
        let Self {
            rings, entries, by_port, arrived, touched, changing, config, second, news, ..
        } = self;
        let start = *config.ports.range().start();
        for (ring, opened) in rings.iter_mut().enumerate() {
            let Some(opened) = opened else { continue };
            let (mut has_fragments, mut delivers) = (false, false);
            opened.collect(clocks.unix(), |place, frame| {
                let at = usize::from(frame.local.port().wrapping_sub(start));
                let id = by_port.get(at).copied().unwrap_or(0).wrapping_sub(1);
                let Some(Some(entry)) = entries.get_mut(id as usize) else { return };
                if entry.ring != ring || entry.in_ring.local != frame.local.ip() {
                    return;
                }
                match frame.kind {
                    FrameKind::Datagrams { .. } => {}
                    FrameKind::Fragment => {
                        // The socket has it as a whole, but not while it leaves to the ring what is
                        // so short.
                        if entry.in_ring.has(frame.length())
                            && entry.path.is_peer(frame.source.ip())
                        {
                            has_fragments = true;
                            second.dropped += u64::from(entry.path.is_by_ring(frame.arrived_unix));
                            entry.path.give_up();
                            change(changing, id);
                        }
                        return;
                    }
                    FrameKind::TooLong => {
                        second.dropped += u64::from(entry.path.needs_ring());
                        return;
                    }
                    FrameKind::Damaged => return,
                }
                for index in 0..frame.datagrams() {
                    let length = frame.length_of(index);
                    if !entry.in_ring.has(length) {
                        continue;
                    }
                    if !entry.path.by_ring(frame.arrived_unix, length, frame.source) {
                        continue;
                    }
                    second.delivered += 1;
                    delivers = true;
                    let new = arrived.len() as u32;
                    arrived.push(Arrived { ring, place, index, next: LAST });
                    match &mut entry.arrived {
                        Some((_, last)) => {
                            if let Some(before) = arrived.get_mut(*last as usize) {
                                before.next = new;
                            }
                            *last = new;
                        }
                        none => {
                            *none = Some((new, new));
                            touched.push(id);
                        }
                    }
                }
            });
            if delivers {
                opened.delivers();
            }
            if has_fragments {
                news.extend(opened.first_fragment());
            }
        }
        groups.extend(touched.drain(..).filter_map(|id| {
            let entry = entries.get(id as usize)?.as_ref()?;
            Some((entry.slot, entry.channel, RingEntry(id)))
        }));
    }

    /// How long ago that was until which all datagrams of a socket are known that arrived.
    pub(crate) fn lag(&self, entry: RingEntry, now: Instant) -> Duration {
        let entry = self.entries.get(entry.0 as usize).and_then(Option::as_ref);
        let ring = entry
            .filter(|entry| !entry.path.is_proving())
            .and_then(|entry| self.rings.get(entry.ring)?.as_ref());
        ring.map_or(Duration::ZERO, |ring| {
            let lag = self.collected.unix().saturating_sub(ring.heard_until());
            lag + now.saturating_duration_since(self.collected.now)
        })
    }

    /// The first datagram of this pass for a socket; each has the next.
    pub(crate) fn first(&mut self, entry: RingEntry) -> Option<u32> {
        self.entry(entry.0)?.arrived.take().map(|(first, _)| first)
    }

    /// A datagram of this pass, and the number of the next one of its socket. None is at a place
    /// that is stale or cannot be read: a drop, and never another datagram.
    pub(crate) fn datagram(&mut self, number: u32) -> (Option<RingDatagram<'_>>, Option<u32>) {
        let Some(arrived) = self.arrived.get(number as usize).copied() else {
            return (None, None);
        };
        let next = (arrived.next != LAST).then_some(arrived.next);
        next.into_iter().for_each(|next| self.prefetch(next));
        let ring = self.rings.get_mut(arrived.ring).and_then(Option::as_mut);
        let datagram = ring.and_then(|ring| ring.datagram(arrived.place, arrived.index).ok());
        if datagram.is_none() {
            // It was counted as delivered when it was found.
            self.second.delivered = self.second.delivered.saturating_sub(1);
            self.second.dropped += 1;
        }
        (datagram, next)
    }

    /// Has the CPU load what a socket got first in this pass.
    pub(crate) fn prefetch_first(&self, entry: RingEntry) {
        let entry = self.entries.get(entry.0 as usize).and_then(Option::as_ref);
        if let Some((first, _)) = entry.and_then(|entry| entry.arrived) {
            self.prefetch(first);
        }
    }

    fn prefetch(&self, number: u32) {
        if let Some(arrived) = self.arrived.get(number as usize)
            && let Some(Some(ring)) = self.rings.get(arrived.ring)
        {
            ring.prefetch(arrived.place);
        }
    }

    /// Gives the memory of this pass back to the kernel. `groups` are those of [`Self::collect`].
    pub(crate) fn release(&mut self, groups: &[(u32, Channel, RingEntry)]) {
        // A socket whose participant did not take its datagrams must not look for them in the next
        // pass.
        for (.., entry) in groups {
            self.first(*entry);
        }
        self.arrived.clear();
        self.rings.iter_mut().flatten().for_each(OpenedRing::release);
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::super::opened::RingToOpen;
    use super::super::{LocalPorts, ReceiveConfig};
    use super::*;
    use crate::config::Receive;

    /// Sends `text` to the socket of the only ring, and finds it there.
    fn pass(rings: &mut ReceiveRings, socket: &UdpSocket, text: &str) {
        socket.send_to(text.as_bytes(), socket.local_addr().unwrap()).unwrap();
        let begun = Instant::now();
        while rings.arrived.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(5), "{text} did not arrive");
            std::thread::sleep(Duration::from_millis(1));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let ReceiveRings { rings, arrived, .. } = &mut *rings;
            rings[0].as_mut().unwrap().collect(now, |place, _| {
                arrived.push(Arrived { ring: 0, place, index: 0, next: LAST });
            });
        }
    }

    #[test]
    fn a_place_of_an_earlier_pass_is_a_drop_and_never_another_datagram() {
        if !throng_sim::requires_root() {
            return;
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let ports = LocalPorts::only(to.port()..=to.port());
        // Two blocks: each second pass has the same one.
        let ring = RingToOpen::at((to.ip(), true), ports.range(), 1).and_then(RingToOpen::open);
        let (receive, ring_bytes) = (Receive::Ring, Some(1));
        let config = ReceiveConfig { receive, ports, planned: 1, threads: 1, ring_bytes };
        let mut rings = ReceiveRings::new(config);
        rings.rings.push(Some(ring.unwrap()));
        pass(&mut rings, &socket, "first");
        let kept = rings.arrived[0];
        assert_eq!(&rings.datagram(0).0.unwrap().bytes[..], b"first");
        for text in ["second", "third"] {
            rings.release(&[]);
            pass(&mut rings, &socket, text);
        }
        // As collecting counts the two.
        rings.second.delivered = 2;
        // As a pass that had kept it would ask for it, with the next one of its socket.
        rings.arrived.push(Arrived { next: 0, ..kept });
        let (datagram, next) = rings.datagram(1);
        assert!(datagram.is_none(), "{datagram:?}");
        assert_eq!((next, rings.second.dropped), (Some(0), 1));
        assert_eq!(rings.second.delivered, 1, "each is counted once");
        assert_eq!(&rings.datagram(0).0.unwrap().bytes[..], b"third");
        assert_eq!((rings.second.dropped, rings.second.delivered), (1, 1));
    }
}
