//! Host names are resolved once per run and cached, so that no later answer can point the crowd
//! elsewhere.

use std::collections::HashMap;
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

    /// Keeps only `address` for `host`: the one that accepted a connection.
    pub(crate) async fn pin(&self, host: &str, address: IpAddr) {
        let entry = {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.get(&host.to_ascii_lowercase()).cloned()
        };
        if let Some(entry) = entry {
            let mut entry = entry.lock().await;
            if matches!(&*entry, Entry::Addresses(all) if all.len() > 1) {
                *entry = Entry::Addresses(vec![address]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pinned_name_keeps_the_address_that_answered() {
        let names = DnsCache::default();
        let first = names.resolve("LOCALHOST").await.unwrap();
        assert!(first.iter().all(IpAddr::is_loopback) && !first.is_empty());
        names.pin("localhost", [127, 0, 0, 1].into()).await;
        assert!(names.resolve("localhost").await.unwrap().len() == 1);
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
