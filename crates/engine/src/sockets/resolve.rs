//! Host names are resolved once per run and cached, so that no later answer can point the crowd
//! elsewhere. Each participant chooses among the addresses of a name, as a client does.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_protocol::participant::ChannelError;

/// How long a failure is cached, so that a thousand joins do not each wait for a resolver that is
/// down.
const FAILURE_BELIEVED: Duration = Duration::from_secs(2);

/// The host names of a run. Uses the system's resolver (`/etc/hosts`, nsswitch), as other programs
/// do: with one query per name its blocking thread costs nothing.
#[derive(Debug, Default)]
pub(crate) struct DnsCache {
    entries: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Entry>>>>,
}

#[derive(Debug, Default)]
enum Entry {
    #[default]
    Unknown,
    Addresses(Vec<IpAddr>),
    Failed(String, Instant),
}

impl DnsCache {
    /// A cache that holds the addresses of these hosts, which are then never resolved.
    pub(crate) fn known(hosts: impl IntoIterator<Item = (String, Vec<IpAddr>)>) -> Self {
        let entry = |(host, addresses): (String, Vec<IpAddr>)| {
            let entry = tokio::sync::Mutex::new(Entry::Addresses(addresses));
            (host.to_ascii_lowercase(), Arc::new(entry))
        };
        Self { entries: Mutex::new(hosts.into_iter().map(entry).collect()) }
    }

    /// The addresses of `host`, in the resolver's order.
    pub(crate) async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, ChannelError> {
        let entry = {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(entries.entry(host.to_ascii_lowercase()).or_default())
        };
        let mut entry = entry.lock().await;
        let failed = |detail: &str| ChannelError::Dns { host: host.into(), detail: detail.into() };
        match &*entry {
            Entry::Addresses(addresses) => return Ok(addresses.clone()),
            Entry::Failed(detail, at) if at.elapsed() < FAILURE_BELIEVED => {
                return Err(failed(detail));
            }
            Entry::Unknown | Entry::Failed(..) => {}
        }
        let mut addresses: Vec<IpAddr> = Vec::new();
        let answer = tokio::net::lookup_host((host, 0)).await.map_err(|e| e.to_string());
        let answer = answer.map(|found| {
            for ip in found.map(|address: SocketAddr| address.ip()) {
                if !addresses.contains(&ip) {
                    addresses.push(ip);
                }
            }
        });
        match answer {
            Ok(()) if !addresses.is_empty() => {
                *entry = Entry::Addresses(addresses.clone());
                Ok(addresses)
            }
            answer => {
                let detail = answer.err().unwrap_or_else(|| "no address".into());
                let error = failed(&detail);
                *entry = Entry::Failed(detail, Instant::now());
                Err(error)
            }
        }
    }
}

/// Whose turn it is at each name: with one count for all names, two cohorts that join alternately
/// at names of their own would have an address each.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The first turn of each name: workers of a fleet begin at different ones.
    first: usize,
    /// The next turn of the names that were used.
    next: Mutex<HashMap<String, usize>>,
}

impl Turns {
    /// Turns that begin with `first` at each name.
    pub(crate) fn beginning_with(first: usize) -> Self {
        Self { first, next: Mutex::default() }
    }

    fn take(&self, host: &str) -> usize {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let next = next.entry(host.to_ascii_lowercase()).or_insert(self.first);
        let turn = *next;
        *next = next.wrapping_add(1);
        turn
    }
}

/// The addresses that one participant uses.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// Those of all participants.
    turns: Arc<Turns>,
    chosen: Mutex<Chosen>,
}

#[derive(Debug, Default)]
struct Chosen {
    names: Vec<ChosenName>,
    /// Addresses of any name that accepted a connection.
    used: Vec<IpAddr>,
}

/// A name with several addresses.
#[derive(Debug)]
struct ChosenName {
    name: String,
    /// The participant's turn among those that use the name.
    turn: usize,
    /// The address that accepted the last connection: a session stays there while it does.
    kept: Option<IpAddr>,
}

impl Chosen {
    fn name(&mut self, host: &str, turns: &Turns) -> Option<&mut ChosenName> {
        if !self.names.iter().any(|chosen| chosen.name.eq_ignore_ascii_case(host)) {
            let turn = turns.take(host);
            self.names.push(ChosenName { name: host.to_owned(), turn, kept: None });
        }
        self.names.iter_mut().find(|chosen| chosen.name.eq_ignore_ascii_case(host))
    }
}

impl Choice {
    pub(crate) fn new(turns: Arc<Turns>) -> Self {
        Self { turns, chosen: Mutex::default() }
    }

    /// The addresses of `host` to try, in this order: the one that is kept, then the others.
    pub(crate) fn among(&self, host: &str, addresses: &[IpAddr]) -> Vec<IpAddr> {
        if addresses.len() < 2 {
            return addresses.to_vec();
        }
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(chosen) = chosen.name(host, &self.turns) else { return addresses.to_vec() };
        let mut ordered = in_turn(addresses, chosen.turn);
        // A stable sort: the others keep their order.
        ordered.sort_by_key(|address| Some(*address) != chosen.kept);
        ordered
    }

    /// `address`, one of several of `host`, accepted a connection, and is kept. Whether it is the
    /// participant's first connection there, by whatever name.
    pub(crate) fn keep(&self, host: &str, address: IpAddr) -> bool {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = chosen.name(host, &self.turns) {
            name.kept = Some(address);
        }
        let is_first = !chosen.used.contains(&address);
        if is_first {
            chosen.used.push(address);
        }
        is_first
    }
}

/// The order in which the client of `turn` tries `addresses`: name servers begin with another one
/// in each answer, and clients take the families in turns, that of the first address first (RFC
/// 8305 section 4).
fn in_turn(addresses: &[IpAddr], turn: usize) -> Vec<IpAddr> {
    let Some(first) = addresses.first() else { return Vec::new() };
    let (mut preferred, mut others): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().partition(|address| address.is_ipv4() == first.is_ipv4());
    for family in [&mut preferred, &mut others] {
        let by = turn.checked_rem(family.len()).unwrap_or(0);
        family.rotate_left(by);
    }
    let mut ordered = Vec::with_capacity(addresses.len());
    for place in 0..addresses.len() {
        ordered.extend(preferred.get(place));
        ordered.extend(others.get(place));
    }
    ordered
}

/// Participants by the address that they used, of names that have several.
#[derive(Debug, Default)]
pub(crate) struct ChosenAddresses(Mutex<BTreeMap<IpAddr, u32>>);

impl ChosenAddresses {
    pub(crate) fn add(&self, address: IpAddr) {
        let mut chosen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *chosen.entry(address).or_default() += 1;
    }

    pub(crate) fn take(&self) -> BTreeMap<IpAddr, u32> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<IpAddr> {
        text.split_whitespace().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn a_crowd_takes_the_addresses_of_a_name_in_turns_and_the_families_too() {
        let all = addresses("192.0.2.1 192.0.2.2 192.0.2.3");
        let mut chosen = BTreeMap::new();
        let turns = Arc::new(Turns::default());
        for _ in 0..30 {
            let first = Choice::new(Arc::clone(&turns)).among("media.example", &all)[0];
            *chosen.entry(first).or_insert(0) += 1;
        }
        assert_eq!(chosen.into_values().collect::<Vec<_>>(), [10, 10, 10]);
        let both = addresses("2001:db8::1 2001:db8::2 192.0.2.1 192.0.2.2 192.0.2.3");
        assert_eq!(
            in_turn(&both, 1),
            addresses("2001:db8::2 192.0.2.2 2001:db8::1 192.0.2.3 192.0.2.1")
        );
        assert_eq!(in_turn(&addresses("192.0.2.1"), 7), addresses("192.0.2.1"));
    }

    #[test]
    fn cohorts_that_join_alternately_at_names_of_their_own_use_all_addresses_of_both() {
        let all = addresses("192.0.2.1 192.0.2.2");
        let turns = Arc::new(Turns::default());
        let mut first_of = BTreeMap::<_, Vec<IpAddr>>::new();
        for number in 0..8 {
            let name = if number % 2 == 0 { "in.example" } else { "out.example" };
            let first = Choice::new(Arc::clone(&turns)).among(name, &all)[0];
            first_of.entry(name).or_default().push(first);
        }
        for (name, first) in first_of {
            assert_eq!(first, [all[0], all[1], all[0], all[1]], "{name}");
        }
    }

    #[test]
    fn each_worker_of_a_fleet_begins_with_another_address() {
        let all = addresses("192.0.2.1 192.0.2.2 192.0.2.3");
        for (worker, first) in all.iter().enumerate() {
            let turns = Arc::new(Turns::beginning_with(worker));
            assert_eq!(Choice::new(turns).among("media.example", &all)[0], *first);
        }
    }

    #[test]
    fn a_participant_stays_at_the_address_that_answered_it_and_others_choose_theirs() {
        let all = addresses("192.0.2.1 192.0.2.2");
        let turns = Arc::new(Turns::default());
        let (one, other) = (Choice::new(Arc::clone(&turns)), Choice::new(turns));
        assert_eq!(one.among("media.example", &all), all);
        assert!(one.keep("Media.example", all[1]), "the first one did not answer");
        assert_eq!(one.among("media.example", &all), [all[1], all[0]]);
        assert_eq!(one.among("other.example", &all)[0], all[0]);
        assert_eq!(other.among("media.example", &all), [all[1], all[0]]);
    }

    #[test]
    fn a_participant_leaves_an_address_that_died_and_stays_at_the_next() {
        let all = addresses("192.0.2.1 192.0.2.2 192.0.2.3");
        let choice = Choice::default();
        assert!(choice.keep("media.example", all[1]));
        assert_eq!(choice.among("media.example", &all), [all[1], all[0], all[2]]);
        assert!(choice.keep("media.example", all[2]), "the others did not answer");
        assert_eq!(choice.among("media.example", &all), [all[2], all[0], all[1]]);
    }

    #[test]
    fn a_participant_counts_once_at_each_address_that_it_used() {
        let all = addresses("192.0.2.1 192.0.2.2");
        let choice = Choice::default();
        let used = [("a.example", 0), ("b.example", 0), ("a.example", 1), ("a.example", 0)];
        let counted = used.map(|(name, address)| choice.keep(name, all[address]));
        assert_eq!(counted, [true, false, true, false]);
    }

    #[tokio::test]
    async fn a_cached_name_is_not_resolved() {
        let address = IpAddr::from([192, 0, 2, 9]);
        let names = DnsCache::known([("Localhost".into(), vec![address])]);
        assert_eq!(names.resolve("localhost").await.unwrap(), [address]);
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_says_which() {
        let error = DnsCache::default().resolve("name.that.is.not.invalid").await.unwrap_err();
        assert!(
            matches!(&error, ChannelError::Dns { host, .. } if host == "name.that.is.not.invalid"),
            "{error}"
        );
    }
}
