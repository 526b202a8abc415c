//! What is due: steps of the sockets from one way to the other, and what is looked after once a
//! second.

use std::time::{Duration, Instant};

use throng_observation::run::RECEIVE_SOCKETS_EVENT;
use throng_protocol::participant::Channel;

use super::opened::OpenedRing;
use super::path::Step;
use super::{
    Entry, RING_BYTES_MAX, ReceiveRings, RingEntry, RingNews, RingSecond, SocketStep, change,
    moment,
};
use crate::clock::ClockPair;
use crate::sockets::silence::before_shared_burst;

impl ReceiveRings {
    /// The sockets for which something is due.
    pub(crate) fn due(&mut self, now: Instant, due: &mut Vec<(u32, Channel, RingEntry)>) {
        let entries = &self.entries;
        let entry = |id: &u32| entries.get(*id as usize).and_then(Option::as_ref);
        due.extend(self.changing.iter().filter_map(|id| {
            let entry = entry(id).filter(|entry| entry.path.is_due(now))?;
            Some((entry.slot, entry.channel, RingEntry(*id)))
        }));
    }

    /// Goes on with the path of a socket.
    pub(crate) fn step(&mut self, id: RingEntry, clocks: ClockPair) -> SocketStep {
        let Self { entries, rings, .. } = self;
        let Some(Some(entry)) = entries.get_mut(id.0 as usize) else { return SocketStep::Wait };
        let heard = rings
            .get(entry.ring)
            .and_then(Option::as_ref)
            .map_or(clocks.unix(), OpenedRing::heard_until);
        let needed_ring = entry.path.needs_ring();
        let (step, in_ring, ring) =
            (entry.path.step(moment(clocks, heard)), entry.in_ring, entry.ring);
        let begins_to_need = !needed_ring && entry.path.needs_ring();
        if !entry.path.is_changing() {
            self.changing.retain(|changing| *changing != id.0);
        }
        if begins_to_need {
            self.begins_to_need(id.0, ring);
        }
        match step {
            Step::Wait => SocketStep::Wait,
            Step::LeaveToRing => SocketStep::LeaveToRing(in_ring),
            Step::TakeAll => SocketStep::TakeAll,
            Step::Read => SocketStep::Read,
            Step::Forget => {
                self.forget(id);
                SocketStep::Forget
            }
            Step::Differs { ring: by_ring, socket } => {
                self.differs((id, ring), by_ring, socket);
                SocketStep::Wait
            }
        }
    }

    /// From now on a socket has its datagrams by the ring. What the ring dropped while nobody had
    /// any by it was lost to nobody: all sockets still had their own.
    fn begins_to_need(&mut self, id: u32, ring: usize) {
        if is_needed_by_others(&self.entries, id, ring) {
            return;
        }
        let Some(opened) = self.rings.get_mut(ring).and_then(Option::as_mut) else { return };
        // Somebody had some in this second, and has left.
        if opened.has_delivered() || opened.take_drops() == 0 {
            return;
        }
        let users = self.entries.iter_mut().flatten().filter(|entry| entry.ring == ring);
        users.for_each(|entry| entry.path.dropped());
    }

    /// Ring and socket do not have the same. What the socket lacks would not have reached any; what
    /// the ring lacks costs the socket that ring, and no more.
    fn differs(&mut self, (id, ring): (RingEntry, usize), by_ring: u32, socket: u32) {
        let Some(opened) = self.rings.get_mut(ring).and_then(Option::as_mut) else { return };
        let name = opened.name();
        if by_ring > socket {
            let why = format!(
                "of {by_ring} datagrams that arrived at {name} {socket} reached their socket; a \
                 firewall rule or the reverse path filter (net.ipv4.conf.*.rp_filter) drops the \
                 others"
            );
            return self.give_up(&why);
        }
        let name = opened.name();
        let why = if by_ring == socket {
            format!(
                "{socket} datagrams of a socket and as many in the ring of {name} are not the \
                 same; it is used for other sockets"
            )
        } else {
            format!(
                "of {socket} datagrams of a socket {by_ring} were in the ring of {name}; the \
                 others come another way, or the kernel does not write them into a ring. It is \
                 used for other sockets"
            )
        };
        if opened.is_first_difference() {
            self.news.push((RECEIVE_SOCKETS_EVENT, why));
        }
        if let Some(entry) = self.entry(id.0) {
            entry.path.give_up();
            change(&mut self.changing, id.0);
        }
    }

    /// Once a second: drops, errors and growth of the rings, and a check of one socket. Returns
    /// what happened since the last call.
    pub(crate) fn finish_second(&mut self, clocks: ClockPair) -> RingSecond {
        for at in 0..self.rings.len() {
            self.finish_second_of(at, clocks.now);
        }
        if self.given_up {
            self.opening = None;
        } else {
            self.grow(clocks.unix());
            self.check_next(clocks.now);
        }
        std::mem::take(&mut self.second)
    }

    fn finish_second_of(&mut self, at: usize, now: Instant) {
        let Some(Some(ring)) = self.rings.get_mut(at) else { return };
        let users = || self.entries.iter().flatten().filter(|entry| entry.ring == at);
        let (dropped, delivered, ended) = ring.finish_second();
        if dropped > 0 && (delivered || users().any(|entry| entry.path.needs_ring())) {
            let count = u64::from(dropped);
            let needing = users().filter(|entry| entry.path.needs_ring());
            match before_shared_burst(needing.map(|entry| entry.silence.second(now))) {
                Some(silent) => {
                    self.second.burst += count;
                    self.second.silent = self.second.silent.max(silent);
                }
                None => self.second.dropped += count,
            }
        }
        if users().next().is_none() && (self.given_up || !ring.is_open()) {
            // Its memory is of use to nobody.
            self.rings.get_mut(at).into_iter().for_each(|ring| *ring = None);
            return;
        }
        let name = ring.name().to_owned();
        if dropped > 0 {
            let users = self.entries.iter_mut().flatten().filter(|entry| entry.ring == at);
            users.for_each(|entry| entry.path.dropped());
        }
        if let Err(why) = ended {
            self.news.push((
                RECEIVE_SOCKETS_EVENT,
                format!("datagrams by {name} come by sockets: {why}"),
            ));
            self.leave_all(|entry| entry.ring == at);
        }
    }

    /// Memory of the rings, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.rings.iter().flatten().map(|ring| ring.bytes() as u64).sum()
    }

    /// Makes room for a second of what arrives.
    fn grow(&mut self, now: Duration) {
        if self.config.ring_bytes.is_some() {
            return;
        }
        let share = self.memory_share();
        for ring in self.rings.iter_mut().flatten() {
            if let Some(news) = ring.grow(self.config.ports.range(), RING_BYTES_MAX.min(share), now)
            {
                self.news.push(news);
            }
        }
    }

    fn check_next(&mut self, now: Instant) {
        let count = self.entries.len() as u32;
        let is_settled = |id: &u32| {
            self.entries
                .get(*id as usize)
                .and_then(Option::as_ref)
                .is_some_and(|entry| entry.path.is_settled())
        };
        let next = (1..=count).map(|ahead| (self.checked + ahead) % count.max(1)).find(is_settled);
        if let Some(id) = next {
            self.checked = id;
            if let Some(entry) = self.entry(id) {
                entry.path.check(now);
                change(&mut self.changing, id);
            }
        }
    }

    /// What is to be told since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<RingNews> {
        std::mem::take(&mut self.news)
    }
}

/// Whether what the ring drops is lost to any of its sockets but `id`.
fn is_needed_by_others(entries: &[Option<Entry>], id: u32, ring: usize) -> bool {
    (0..).zip(entries).any(|(other, entry): (u32, _)| {
        let entry = entry.as_ref().filter(|entry| entry.ring == ring && other != id);
        entry.is_some_and(|entry| entry.path.needs_ring())
    })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

    use throng_net::packet_ring::InRing;

    use super::super::opened::RingToOpen;
    use super::super::path::{Moment, ReceivePath};
    use super::super::{LocalPorts, ReceiveConfig, Silence};
    use super::*;
    use crate::clock::Clocks;
    use crate::config::Receive;

    const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7);

    /// A socket that has the same as a ring, and gets its datagrams by it or is yet to.
    fn entry(ring: usize, is_by_ring: bool) -> Option<Entry> {
        let start = Instant::now();
        let unix = |ms: u64| Duration::from_secs(1_700_000_000) + Duration::from_millis(ms);
        let at = |ms: u64| Moment {
            now: start + Duration::from_millis(ms),
            unix: unix(ms),
            heard: unix(ms),
        };
        let mut path = ReceivePath::new(PEER.ip(), at(0));
        for ms in 100..200 {
            path.by_ring(unix(ms), 100, PEER);
            path.by_socket(unix(ms), 100, PEER);
        }
        if is_by_ring {
            path.step(at(1_100));
        }
        let in_ring = InRing { interface: 1, mtu: 65_536, local: Ipv4Addr::LOCALHOST.into() };
        let (channel, silence) = (Channel(0), Silence::default());
        Some(Entry { slot: 0, channel, port: 1, ring, in_ring, path, silence, arrived: None })
    }

    #[test]
    fn what_a_ring_drops_is_lost_to_those_who_get_their_datagrams_by_it() {
        let entries = [entry(0, false), None, entry(0, true), entry(1, true)];
        assert!(!is_needed_by_others(&entries, 2, 0), "the first who gets any by it");
        assert!(is_needed_by_others(&entries, 0, 0), "another one gets them by it");
        assert!(!is_needed_by_others(&entries, 3, 1), "the other is on another ring");
    }

    /// A ring that nobody reads and that has dropped datagrams, with these sockets.
    fn overfull(entries: Vec<Option<Entry>>) -> ReceiveRings {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let ports = LocalPorts::only(to.port()..=to.port());
        let ring = RingToOpen::at((to.ip(), true), ports.range(), 1).and_then(RingToOpen::open);
        // More than twice its two blocks of 128 KiB.
        for _ in 0..600 {
            socket.send_to(&[0; 1_200], to).unwrap();
        }
        let (receive, ring_bytes) = (Receive::Ring, Some(1));
        let config = ReceiveConfig { receive, ports, planned: 2, threads: 1, ring_bytes };
        let mut rings = ReceiveRings::new(config);
        rings.rings.push(Some(ring.unwrap()));
        rings.entries = entries;
        rings
    }

    #[test]
    fn what_a_ring_dropped_before_anybody_needed_it_was_lost_to_nobody() {
        if !throng_sim::requires_root() {
            return;
        }
        for (needed_before, has_delivered, is_lost, why) in [
            (false, false, false, "the first who gets any by it"),
            (true, false, true, "another one lost some of it"),
            (false, true, true, "one who has left lost some of it"),
        ] {
            let mut rings = overfull(vec![entry(0, needed_before), entry(0, true)]);
            if has_delivered {
                rings.rings[0].as_mut().unwrap().delivers();
            }
            rings.begins_to_need(1, 0);
            rings.finish_second_of(0, Instant::now());
            assert_eq!(rings.second.dropped > 0, is_lost, "{why}: {:?}", rings.second);
        }
    }

    #[test]
    fn a_comparison_that_was_right_is_the_begin_of_a_need() {
        if !throng_sim::requires_root() {
            return;
        }
        let mut rings = overfull(vec![entry(0, false)]);
        assert_eq!(rings.step(RingEntry(0), Clocks::new().read()), SocketStep::Wait);
        let needs_ring = rings.entries[0].as_ref().unwrap().path.needs_ring();
        rings.finish_second_of(0, Instant::now());
        assert_eq!((needs_ring, rings.second.dropped), (true, 0), "its socket had all so far");
    }
}
