//! Connections that have not shown the token yet: bounded, and so that none of them can keep another out. When all places
//! are taken, the address that has most gives up its oldest. A flood from a few addresses uses up what is for all, but not
//! what is kept for those who come for the first time in a second, and for addresses that showed the token before.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// How many there may be at a time.
pub(super) const PENDING_MAX: usize = 16;
/// Places that addresses have among themselves which showed the token before.
const KNOWN_PLACES_MAX: usize = 8;
/// How many one address may send in a second. With this, who has just come keeps a place for most of a second even where
/// all others come from the same address: time enough for TLS and a token.
const PER_S_OF_ADDRESS_MAX: u32 = 20;
/// How many may come in a second in all: each costs a TLS handshake.
const PER_S_MAX: u32 = 60;
/// How many more may come of addresses of which none came in that second: three that flood use up what is for all.
const NEW_PER_S_MAX: u32 = 20;
/// How many more may come of addresses that showed the token before.
const KNOWN_PER_S_MAX: u32 = 40;
/// How many addresses are remembered that showed the token.
const KNOWN_MAX: usize = 64;

/// Those that are there.
#[derive(Clone, Debug, Default)]
pub(super) struct AdmissionControl(Arc<Mutex<AdmissionState>>);

#[derive(Debug, Default)]
struct AdmissionState {
    /// The oldest first.
    places: Vec<PendingConnection>,
    next: u64,
    /// Who showed the token, the latest last.
    known: VecDeque<IpAddr>,
    second: Option<Instant>,
    /// Who came how often in this second; at most as many addresses as were let in.
    came: HashMap<IpAddr, u32>,
    of_all: u32,
    of_new: u32,
    of_known: u32,
}

#[derive(Debug)]
struct PendingConnection {
    number: u64,
    from: IpAddr,
    is_known: bool,
    /// Dropping it takes the place away.
    _stay: oneshot::Sender<()>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct PendingSlot {
    strangers: AdmissionControl,
    number: u64,
    from: IpAddr,
    taken: oneshot::Receiver<()>,
}

impl AdmissionControl {
    /// A place for a connection from `from`; `None` when too many came in this second.
    pub(super) fn admit(&self, from: IpAddr, now: Instant) -> Option<PendingSlot> {
        let from = network(from);
        let mut there = self.there();
        let is_known = there.known.contains(&from);
        if !there.is_in_time(from, is_known, now) {
            return None;
        }
        there.make_room(is_known);
        let number = there.next;
        there.next += 1;
        let (stay, taken) = oneshot::channel();
        there.places.push(PendingConnection { number, from, is_known, _stay: stay });
        Some(PendingSlot { strangers: self.clone(), number, from, taken })
    }

    fn there(&self) -> MutexGuard<'_, AdmissionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionState {
    fn is_in_time(&mut self, from: IpAddr, is_known: bool, now: Instant) -> bool {
        if self.second.is_none_or(|second| now.duration_since(second) >= Duration::from_secs(1)) {
            self.second = Some(now);
            (self.of_all, self.of_new, self.of_known) = (0, 0, 0);
            self.came.clear();
        }
        let came = self.came.get(&from).copied().unwrap_or(0);
        // One address does not use up what is for all.
        if came >= PER_S_OF_ADDRESS_MAX {
            return false;
        }
        let shares = [
            (is_known, &mut self.of_known, KNOWN_PER_S_MAX),
            (true, &mut self.of_all, PER_S_MAX),
            (came == 0, &mut self.of_new, NEW_PER_S_MAX),
        ];
        let Some((_, count, _)) =
            shares.into_iter().find(|(is_theirs, count, max)| *is_theirs && **count < *max)
        else {
            return false;
        };
        *count += 1;
        self.came.insert(from, came + 1);
        true
    }

    /// Where no place is left of those that are known, or of the others, the oldest of the address that has most of them
    /// loses its own.
    fn make_room(&mut self, is_known: bool) {
        let alike = || self.places.iter().enumerate().filter(|(_, place)| place.is_known == is_known);
        if alike().count() < if is_known { KNOWN_PLACES_MAX } else { PENDING_MAX } {
            return;
        }
        let held = |from: IpAddr| alike().filter(|(_, other)| other.from == from).count();
        // The first of equals is the oldest.
        let oldest = alike().max_by_key(|(index, place)| (held(place.from), std::cmp::Reverse(*index)));
        if let Some(index) = oldest.map(|(index, _)| index) {
            self.places.remove(index);
        }
    }
}

impl PendingSlot {
    /// Waits until another needs the place.
    pub(super) async fn lost(&mut self) {
        let _ = (&mut self.taken).await;
    }

    /// The token was right: whoever comes from there next is no stranger.
    pub(super) fn authenticated(&self) {
        let mut there = self.strangers.there();
        there.known.retain(|known| *known != self.from);
        there.known.push_back(self.from);
        if there.known.len() > KNOWN_MAX {
            there.known.pop_front();
        }
    }
}

impl Drop for PendingSlot {
    fn drop(&mut self) {
        self.strangers.there().places.retain(|place| place.number != self.number);
    }
}

/// Whom an address belongs to: of IPv6 a host has 2^64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn has_lost(place: &mut PendingSlot) -> bool {
        place.taken.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn who_holds_most_places_gives_up_the_oldest() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let mut quiet = strangers.admit(address(1), now).unwrap();
        let mut many: Vec<_> = (1..PENDING_MAX).map(|_| strangers.admit(address(2), now).unwrap()).collect();
        let mut right = strangers.admit(address(3), now).unwrap();
        assert!(has_lost(&mut many[0]), "the oldest of those that have most");
        assert!(!has_lost(&mut quiet) && !has_lost(&mut right) && !has_lost(&mut many[1]));
        assert_eq!(strangers.there().places.len(), PENDING_MAX);
        drop((quiet, right, many));
        assert!(strangers.there().places.is_empty());
    }

    #[test]
    fn one_address_does_not_use_up_the_second_of_all() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let admitted = |from: IpAddr, now| (0..200).filter(|_| strangers.admit(from, now).is_some()).count();
        assert_eq!(admitted(address(2), now), PER_S_OF_ADDRESS_MAX as usize);
        assert!(strangers.admit(address(3), now).is_some());
        let all: usize = (4..8).map(|last| admitted(address(last), now)).sum();
        // What is for all, and one each of the two who came when that was used up.
        assert_eq!(all, (PER_S_MAX - PER_S_OF_ADDRESS_MAX - 1) as usize + 2);
        assert!(strangers.admit(address(2), now + Duration::from_secs(1)).is_some());
    }

    #[test]
    fn three_that_flood_keep_nobody_out_who_comes_for_the_first_time() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let mut flood = Vec::new();
        for _ in 0..300 {
            flood.extend((2..5).filter_map(|last| strangers.admit(address(last), now)));
        }
        assert_eq!(flood.len(), PER_S_MAX as usize);
        let mut right = strangers.admit(address(1), now).expect("the first of its address");
        assert!(strangers.admit(address(1), now).is_none(), "its second has to wait for the next second");
        let new = (10..200).filter(|last| strangers.admit(address(*last), now).is_some()).count();
        assert_eq!(new, NEW_PER_S_MAX as usize - 1, "a flood from many addresses ends too");
        // All places are the flood's and those of the new ones, and the right one's is kept.
        let later = now + Duration::from_secs(1);
        flood.extend((0..60).filter_map(|n| strangers.admit(address(2 + n % 3), later)));
        assert!(!has_lost(&mut right));
    }

    #[test]
    fn who_showed_the_token_gets_in_however_many_strangers_come() {
        let (strangers, now) = (AdmissionControl::default(), Instant::now());
        let known = strangers.admit(address(1), now).unwrap();
        known.authenticated();
        drop(known);
        let _flood: Vec<_> = (2..=250).filter_map(|last| strangers.admit(address(last), now)).collect();
        let mut right: Vec<_> = (0..4).map(|_| strangers.admit(address(1), now).unwrap()).collect();
        // Strangers take no place of theirs, in whatever number they come.
        let later = now + Duration::from_secs(1);
        let _flood: Vec<_> = (2..=250).filter_map(|last| strangers.admit(address(last), later)).collect();
        assert!(right.iter_mut().all(|place| !has_lost(place)));
        let strange = strangers.there().places.iter().filter(|place| !place.is_known).count();
        assert_eq!(strange, PENDING_MAX);
        for last in 0..=255_u8 {
            let there = PendingSlot {
                strangers: strangers.clone(),
                number: 0,
                from: address(last),
                taken: oneshot::channel().1,
            };
            there.authenticated();
        }
        assert_eq!(strangers.there().known.len(), KNOWN_MAX);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.7"), address(7));
    }
}
