//! An open ring of one interface and family; while it grows, two.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::thread::JoinHandle;
use std::time::Duration;

use throng_net::packet_ring::{
    self, Frame, InRing, Interface, NoDatagram, PacketRing, Place, RingConfig, RingDatagram,
    interface_of,
};

use throng_observation::run::{RECEIVE_RING_EVENT, RECEIVE_SOCKETS_EVENT};

use super::RingNews;

/// Share of a ring that a second may fill before it grows.
const FILL_MAX: f64 = 0.8;

/// From the opening of a larger ring until it is the one that delivers.
const OVERLAP: Duration = Duration::from_millis(20);

/// How much later than another CPU one may write what it received: it was stamped before it waited
/// in the CPU's queue.
const OTHER_CPUS: Duration = Duration::from_millis(2);

/// A ring.
pub(super) struct OpenedRing {
    ring: PacketRing,
    /// The ring before it.
    older: Option<OlderRing>,
    /// Datagrams that the ring before it dropped.
    dropped_by_older: u32,
    /// Whether any datagram of it was delivered in this second.
    has_delivered: bool,
    interface: Interface,
    is_ipv4: bool,
    is_loopback: bool,
    /// Local addresses of the interface.
    locals: Vec<IpAddr>,
    /// By the wall clock: all that arrived until then was taken.
    heard_until: Duration,
    /// Bytes taken in this second.
    taken_bytes: usize,
    is_open: bool,
    /// It was told that it lacked a socket's datagrams.
    differs: bool,
    /// It was told that datagrams come in fragments.
    has_fragments: bool,
    /// A larger ring that is being opened.
    larger: Option<JoinHandle<io::Result<PacketRing>>>,
    cannot_grow: bool,
}

/// A ring that a larger one has replaced.
struct OlderRing {
    ring: PacketRing,
    /// It delivers what arrived before this moment.
    until: Duration,
}

/// A ring that is to be opened.
#[derive(Debug)]
pub(super) struct RingToOpen {
    interface: Interface,
    local: IpAddr,
    is_own: bool,
    config: RingConfig,
}

/// One that another thread opens, because the kernel clears its memory first.
pub(super) type Opening = (RingToOpen, JoinHandle<io::Result<PacketRing>>);

impl RingToOpen {
    /// One for what arrives at `local`, by loopback if `is_own`.
    ///
    /// # Errors
    /// Why there can be none, in a sentence.
    pub(super) fn at(
        (local, is_own): (IpAddr, bool),
        ports: &RangeInclusive<u16>,
        bytes: usize,
    ) -> Result<Self, String> {
        let is_ipv4 = local.is_ipv4();
        let loopback: IpAddr =
            if is_ipv4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        let place = if is_own { loopback } else { local };
        let interface = interface_of(place)
            .map_err(|error| format!("no interface of {place} is known ({error})"))?;
        let config =
            RingConfig { interface: interface.index, is_ipv4, ports: ports.clone(), bytes };
        Ok(Self { interface, local, is_own, config })
    }

    /// Opens it here and now.
    ///
    /// # Errors
    /// As [`Self::opened`].
    pub(super) fn open(self) -> Result<OpenedRing, String> {
        let ring = PacketRing::open(&self.config);
        self.opened(ring)
    }

    /// Has another thread open it.
    pub(super) fn spawn(self) -> Option<Opening> {
        let thread = open_beside(self.config.clone());
        thread.map(|thread| (self, thread))
    }

    /// It was opened.
    ///
    /// # Errors
    /// Why it could not be, in a sentence.
    pub(super) fn opened(self, ring: io::Result<PacketRing>) -> Result<OpenedRing, String> {
        let Self { interface, local, is_own, config } = self;
        let ring = ring.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => "a packet socket needs CAP_NET_RAW".to_owned(),
            ErrorKind::OutOfMemory => {
                format!("there is no memory for a ring of {} MB", config.bytes >> 20)
            }
            _ => format!("a packet ring at {} cannot be opened ({error})", interface.name),
        })?;
        Ok(OpenedRing {
            ring,
            older: None,
            dropped_by_older: 0,
            has_delivered: false,
            interface,
            is_ipv4: config.is_ipv4,
            is_loopback: is_own,
            locals: vec![local],
            heard_until: Duration::ZERO,
            taken_bytes: 0,
            is_open: true,
            differs: false,
            has_fragments: false,
            larger: None,
            cannot_grow: false,
        })
    }
}

fn open_beside(config: RingConfig) -> Option<JoinHandle<io::Result<PacketRing>>> {
    std::thread::Builder::new().name("ring".into()).spawn(move || PacketRing::open(&config)).ok()
}

impl OpenedRing {
    pub(super) fn sentence(&self) -> String {
        let family = if self.is_ipv4 { "IPv4" } else { "IPv6" };
        let (name, mb) = (&self.interface.name, self.ring.bytes() >> 20);
        format!(
            "datagrams of playing participants by {name} ({family}) come by a memory-mapped ring \
             of {mb} MB"
        )
    }

    /// Its memory, and that of the one before it.
    pub(super) fn bytes(&self) -> usize {
        self.ring.bytes() + self.older.as_ref().map_or(0, |older| older.ring.bytes())
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether it is the first time that it lacks a socket's datagrams.
    pub(super) fn is_first_difference(&mut self) -> bool {
        !std::mem::replace(&mut self.differs, true)
    }

    /// What is to be told of the first fragment.
    pub(super) fn first_fragment(&mut self) -> Option<RingNews> {
        let name = &self.interface.name;
        let why = || {
            format!(
                "datagrams arrive at {name} in fragments, or are longer than its MTU of {} bytes: \
                 those sockets take theirs themselves",
                self.interface.mtu
            )
        };
        (!std::mem::replace(&mut self.has_fragments, true)).then(|| (RECEIVE_SOCKETS_EVENT, why()))
    }

    pub(super) fn name(&self) -> &str {
        &self.interface.name
    }

    /// Whether it has what arrives at `local`.
    pub(super) fn is_for(&mut self, local: IpAddr, is_own: bool) -> bool {
        if !self.is_open || self.is_ipv4 != local.is_ipv4() || self.is_loopback != is_own {
            return false;
        }
        if is_own || self.locals.contains(&local) {
            return true;
        }
        let is_its =
            interface_of(local).is_ok_and(|interface| interface.index == self.interface.index);
        if is_its {
            self.locals.push(local);
        }
        is_its
    }

    pub(super) fn in_ring(&self, local: IpAddr) -> InRing {
        InRing { interface: self.interface.index, mtu: self.interface.mtu, local }
    }

    /// Takes what has been handed over by `now`.
    pub(super) fn collect(&mut self, now: Duration, mut each: impl FnMut(Place, Frame)) {
        let mut heard_until =
            now.saturating_sub(packet_ring::HANDED_OVER_WITHIN).max(self.heard_until);
        let from = self.older.as_ref().map(|older| older.until);
        if let Some(older) = &mut self.older {
            let (until, mut is_needed) = (older.until, false);
            older.ring.collect(|place, frame| {
                if frame.arrived_unix < until {
                    is_needed = true;
                    each(place, frame);
                }
            });
            if now < until {
                // What it drops later, the larger one has.
                self.dropped_by_older +=
                    older.ring.statistics().map_or(0, |statistics| statistics.drops);
                // The wall clock may have been set back.
                older.until = until.min(now + OVERLAP);
            } else if !is_needed && now >= until + OVERLAP * 2 {
                self.older = None;
            }
        }
        // What arrived before the change may not have been handed over yet: nothing overtakes it.
        if from.is_some_and(|from| (from..from + packet_ring::HANDED_OVER_WITHIN).contains(&now)) {
            self.heard_until = heard_until.min(now);
            return;
        }
        self.taken_bytes += self.ring.collect(|place, frame| {
            if from.is_none_or(|from| frame.arrived_unix >= from) {
                // What is written in order shows that what came before it is there, but for that of
                // other CPUs.
                heard_until = heard_until.max(frame.arrived_unix.saturating_sub(OTHER_CPUS));
                each(place, frame);
            }
        });
        // The wall clock may have been set back.
        self.heard_until = heard_until.min(now);
    }

    /// See [`Self::collect`].
    pub(super) fn heard_until(&self) -> Duration {
        self.heard_until
    }

    /// See [`PacketRing::datagram`].
    pub(super) fn datagram(
        &mut self,
        place: Place,
        index: u16,
    ) -> Result<RingDatagram<'_>, NoDatagram> {
        match &mut self.older {
            Some(older) if older.ring.has(place) => older.ring.datagram(place, index),
            _ => self.ring.datagram(place, index),
        }
    }

    /// See [`PacketRing::prefetch`].
    pub(super) fn prefetch(&self, place: Place) {
        match &self.older {
            Some(older) if older.ring.has(place) => older.ring.prefetch(place),
            _ => self.ring.prefetch(place),
        }
    }

    pub(super) fn release(&mut self) {
        self.ring.release();
        if let Some(older) = &mut self.older {
            older.ring.release();
        }
    }

    /// A datagram of it was delivered.
    pub(super) fn delivers(&mut self) {
        self.has_delivered = true;
    }

    /// Whether a datagram of it was delivered in this second.
    pub(super) fn has_delivered(&self) -> bool {
        self.has_delivered
    }

    /// The datagrams dropped since the last call.
    pub(super) fn take_drops(&mut self) -> u32 {
        let dropped = self.ring.statistics().map_or(0, |statistics| statistics.drops);
        dropped.saturating_add(std::mem::take(&mut self.dropped_by_older))
    }

    /// The datagrams dropped since [`Self::take_drops`], whether any was delivered in this second,
    /// and why the ring gets nothing any more, once.
    pub(super) fn finish_second(&mut self) -> (u32, bool, Result<(), String>) {
        let dropped = self.take_drops();
        let ended = match self.ring.check() {
            Err(error) if self.is_open => {
                self.is_open = false;
                Err(format!("its ring ended ({error})"))
            }
            _ => Ok(()),
        };
        (dropped, std::mem::take(&mut self.has_delivered), ended)
    }

    /// Changes to a larger ring, of at most `bytes_max`, if this one does not hold a second of what
    /// arrives: another thread opens it, and the next call changes to it.
    pub(super) fn grow(
        &mut self,
        ports: &RangeInclusive<u16>,
        bytes_max: usize,
        now: Duration,
    ) -> Option<RingNews> {
        let (taken, bytes) = (std::mem::take(&mut self.taken_bytes), self.ring.bytes());
        if let Some(larger) = self.larger.take_if(|larger| larger.is_finished()) {
            let opened = larger.join().unwrap_or_else(|_| Err(ErrorKind::Other.into()));
            return Some((RECEIVE_RING_EVENT, self.change_to(opened, now)));
        }
        let is_enough = (taken as f64) <= FILL_MAX * bytes as f64;
        if is_enough
            || !self.is_open
            || self.cannot_grow
            || self.older.is_some()
            || self.larger.is_some()
        {
            return None;
        }
        if bytes * 2 > bytes_max {
            let why = format!("its limit and that of the free memory is {} MB", bytes_max >> 20);
            return Some((RECEIVE_RING_EVENT, self.cannot_grow(&why)));
        }
        let (interface, is_ipv4) = (self.interface.index, self.is_ipv4);
        let config = RingConfig { interface, is_ipv4, ports: ports.clone(), bytes: bytes * 2 };
        self.larger = open_beside(config);
        None
    }

    fn change_to(&mut self, larger: io::Result<PacketRing>, now: Duration) -> String {
        match larger {
            Ok(mut larger) => {
                // What it has so far, and has dropped, the older one delivers.
                larger.collect(|_, _| ());
                larger.release();
                let _ = larger.statistics();
                let ring = std::mem::replace(&mut self.ring, larger);
                self.older = Some(OlderRing { ring, until: now + OVERLAP });
                self.sentence()
            }
            Err(error) => self.cannot_grow(&error.to_string()),
        }
    }

    fn cannot_grow(&mut self, why: &str) -> String {
        self.cannot_grow = true;
        let (name, mb) = (&self.interface.name, self.ring.bytes() >> 20);
        format!("the ring of {mb} MB at {name} holds less than a second and cannot grow ({why})")
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_ring_grows_again_and_again_while_datagrams_come_and_each_comes_once() {
        if !throng_sim::requires_root() {
            return;
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let ports = to.port()..=to.port();
        let mut ring =
            RingToOpen::at((to.ip(), true), &ports, 1 << 20).and_then(RingToOpen::open).unwrap();
        let (began, mut told, mut sent, mut seen) = (Instant::now(), Vec::new(), 0_u64, Vec::new());
        // A block each 4 ms is more than each of these sizes holds for a second.
        for pass in 1.. {
            if told.last().is_some_and(|told: &String| told.contains("cannot grow")) || pass > 1000
            {
                break;
            }
            for _ in 0..5 {
                assert_eq!(socket.send_to(&sent.to_be_bytes(), to).unwrap(), 8);
                sent += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let mut places = Vec::new();
            ring.collect(now, |place, _| places.push(place));
            for place in places {
                let number = ring.datagram(place, 0).unwrap().bytes[..8].try_into().unwrap();
                seen.push(u64::from_be_bytes(number));
            }
            ring.release();
            if pass % 40 == 0 {
                told.extend(ring.grow(&ports, 8 << 20, now).map(|(_, told)| told));
                assert_eq!(ring.finish_second().0, 0);
            }
        }
        assert_eq!(
            (told.len(), ring.ring.bytes() >> 20),
            (4, 8),
            "{told:?} after {:?}",
            began.elapsed()
        );
        let last = seen.len() as u64;
        let odd = (0..).zip(&seen).find(|(place, number)| place != *number);
        assert!(
            last + 50 > sent && odd.is_none(),
            "{last} of {sent}, where (due, came) is {odd:?}"
        );
    }
}
