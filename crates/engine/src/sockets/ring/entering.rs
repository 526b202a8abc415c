//! Which sockets have a ring, and how it comes to be.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use throng_net::packet_ring::InRing;
use throng_observation::run::RECEIVE_RING_EVENT;
use throng_protocol::participant::Channel;

use super::opened::RingToOpen;
use super::path::ReceivePath;
use super::{
    BYTES_PER_PARTICIPANT, Entry, RING_BYTES_MAX, RING_BYTES_MIN, ReceiveRings, RingEntry, Silence,
    moment,
};
use crate::clock::ClockPair;
use crate::preflight;
use crate::sockets::udp::RingUse;

/// A ring for a socket, and what it has of it; or it is being opened.
enum Found {
    Ring(usize, InRing),
    Opening,
}

impl ReceiveRings {
    /// A socket that plays, and got a datagram from `source` at `local`: from now on its datagrams
    /// are looked for in a ring, if there is one for it.
    pub(crate) fn enter(
        &mut self,
        (slot, channel): (u32, Channel),
        local: SocketAddr,
        source: IpAddr,
        clocks: ClockPair,
    ) -> RingUse {
        self.try_enter((slot, channel), local, source, clocks).unwrap_or(RingUse::Never)
    }

    fn try_enter(
        &mut self,
        (slot, channel): (u32, Channel),
        local: SocketAddr,
        source: IpAddr,
        clocks: ClockPair,
    ) -> Option<RingUse> {
        let at = self.place_of(local.port()).filter(|at| self.by_port.get(*at) == Some(&0))?;
        if self.given_up {
            return None;
        }
        let found = self.ring_for(local.ip(), source);
        if self.given_up {
            return None;
        }
        let (ring, in_ring) = match found? {
            Found::Ring(ring, in_ring) => (ring, in_ring),
            Found::Opening => return Some(RingUse::Possible),
        };
        let path = ReceivePath::new(source, moment(clocks, Duration::ZERO));
        let (port, silence) = (local.port(), Silence::default());
        let entry = Entry { slot, channel, port, ring, in_ring, path, silence, arrived: None };
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        *self.entries.get_mut(id as usize)? = Some(entry);
        *self.by_port.get_mut(at)? = id + 1;
        self.changing.push(id);
        Some(RingUse::Entered(RingEntry(id)))
    }

    /// The ring of the interface by which datagrams come from `source` to `local`; it is being
    /// opened if there is none yet.
    fn ring_for(&mut self, local: IpAddr, source: IpAddr) -> Option<Found> {
        if let Some((_, opening)) = &mut self.opening {
            if !opening.is_finished() {
                return Some(Found::Opening);
            }
            self.opened();
            if self.given_up {
                return None;
            }
        }
        if self.own_addresses.is_empty() {
            self.own_addresses = preflight::own_addresses();
        }
        // What this host sends to itself comes by loopback, whatever its address.
        let is_own = source.is_loopback() || self.own_addresses.binary_search(&source).is_ok();
        for (at, ring) in self.rings.iter_mut().enumerate() {
            if let Some(ring) = ring
                && ring.is_for(local, is_own)
            {
                return Some(Found::Ring(at, ring.in_ring(local)));
            }
        }
        let wanted =
            (self.config.planned * BYTES_PER_PARTICIPANT).clamp(RING_BYTES_MIN, RING_BYTES_MAX / 4);
        let share = self.memory_share();
        if self.config.ring_bytes.is_none() && share < RING_BYTES_MIN {
            if self.is_used() {
                return None;
            }
            let (least, threads) = (RING_BYTES_MIN >> 20, self.config.threads);
            let why = format!(
                "a quarter of the free memory is less than rings of {least} MB for {threads} \
                 threads"
            );
            self.give_up(&why);
            return None;
        }
        let bytes = self.config.ring_bytes.unwrap_or(wanted.min(share));
        // An address that is on no interface has no ring.
        let opening = RingToOpen::at((local, is_own), self.config.ports.range(), bytes).ok()?;
        self.opening = opening.spawn();
        self.opening.is_some().then_some(Found::Opening)
    }

    /// A ring was opened, or could not be.
    fn opened(&mut self) {
        let Some((wanted, opening)) = self.opening.take() else { return };
        match wanted.opened(opening.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))) {
            Ok(ring) => {
                self.news.push((RECEIVE_RING_EVENT, ring.sentence()));
                match self.rings.iter_mut().find(|place| place.is_none()) {
                    Some(place) => *place = Some(ring),
                    None => self.rings.push(Some(ring)),
                }
            }
            Err(why) => self.give_up(&why),
        }
    }
}
