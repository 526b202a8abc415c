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
    /// A cache that holds `address` for `host`, which is then never resolved.
    pub(crate) fn known(host: &str, address: IpAddr) -> Self {
        let entry = Arc::new(tokio::sync::Mutex::new(Entry::Addresses(vec![address])));
        Self { entries: Mutex::new([(host.to_ascii_lowercase(), entry)].into()) }
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

/// The addresses that one participant uses.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// Its place in the turns of all participants.
    turn: usize,
    /// The address of each name that accepted its connection: a session stays there.
    kept: Mutex<Vec<(String, IpAddr)>>,
}

impl Choice {
    pub(crate) fn new(turn: usize) -> Self {
        Self { turn, kept: Mutex::default() }
    }

    /// The addresses of `host` to try, in this order.
    pub(crate) fn among(&self, host: &str, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.iter().find(|(name, _)| name.eq_ignore_ascii_case(host)) {
            Some((_, address)) if addresses.contains(address) => vec![*address],
            _ => in_turn(addresses, self.turn),
        }
    }

    /// `address` of `host` accepted a connection. Whether it is kept: not if another one was first.
    pub(crate) fn keep(&self, host: &str, address: IpAddr) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !kept.iter().any(|(name, _)| name.eq_ignore_ascii_case(host));
        if is_first {
            kept.push((host.to_owned(), address));
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

/// Participants by the address that they chose, of names that have several.
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
        for turn in 0..30 {
            let first = Choice::new(turn).among("media.example", &all)[0];
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
    fn a_participant_stays_at_the_address_that_answered_it_and_others_choose_theirs() {
        let all = addresses("192.0.2.1 192.0.2.2");
        let (one, other) = (Choice::new(0), Choice::new(1));
        assert!(one.keep("Media.example", all[1]), "the first one did not answer");
        assert_eq!(one.among("media.example", &all), [all[1]]);
        assert!(!one.keep("media.example", all[0]), "a session stays where it is");
        assert_eq!(one.among("other.example", &all)[0], all[0]);
        assert_eq!(other.among("media.example", &all), [all[1], all[0]]);
    }

    #[tokio::test]
    async fn a_cached_name_is_not_resolved() {
        let address = IpAddr::from([192, 0, 2, 9]);
        let names = DnsCache::known("Localhost", address);
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
