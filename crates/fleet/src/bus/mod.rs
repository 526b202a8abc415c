//! The bus between coordinator and workers: a NATS server with JetStream.

mod subjects;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use throng_observation::Url;
use throng_observation::percent::decoded;
use tokio::sync::watch;

pub(crate) use subjects::Subjects;
pub use subjects::is_run_name;

use crate::FleetError;

/// How long the first connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between attempts to connect again: a restart of the server must cost no more than a second
/// or two of the ten that workers wait for their coordinator.
const RECONNECT_EVERY: Duration = Duration::from_millis(250);

/// Time between questions whether the server is still there.
const PING_EVERY: Duration = Duration::from_secs(2);

/// The port of NATS, if the address has none.
const PORT: u16 = 4222;

/// Where the bus is, and who we are on it.
#[derive(Clone, Debug)]
pub struct BusConfig {
    /// `nats://HOST:PORT`, or `tls://HOST:PORT`; user and password or a token may be in it.
    pub url: Url,
    /// A credentials file (`.creds`: a JWT and the seed of its NKey).
    pub credentials: Option<PathBuf>,
    /// A file with the seed of an NKey.
    pub nkey: Option<PathBuf>,
    /// Certificates (PEM) that are trusted in addition to the system's; makes TLS a must.
    pub tls_ca: Option<PathBuf>,
}

/// Which addresses of a bus may be used without TLS.
pub type MayBePlain<'a> = &'a dyn Fn(IpAddr) -> bool;

/// A connection to the bus.
#[derive(Clone)]
pub(crate) struct Bus {
    pub(crate) client: Client,
    /// Whether the connection is up.
    pub(crate) is_up: watch::Receiver<bool>,
}

impl BusConfig {
    /// The bus at an address, which may lack `nats://`, and nothing else of it.
    ///
    /// # Errors
    /// If it is no such address.
    pub fn at(address: &str) -> Result<Self, FleetError> {
        let wrong = |why: String| Err(FleetError::BusAddress(why));
        let scheme = if address.contains("://") { "" } else { "nats://" };
        let url = match Url::parse(&format!("{scheme}{address}")) {
            Ok(url) => url,
            Err(error) => return wrong(error.to_string()),
        };
        match (url.scheme(), url.host_str()) {
            ("nats" | "tls", Some(host)) if !host.is_empty() => {
                Ok(Self { url, credentials: None, nkey: None, tls_ca: None })
            }
            ("nats" | "tls", _) => wrong("it names no host".into()),
            (scheme, _) => wrong(format!("`{scheme}://` is neither nats:// nor tls://")),
        }
    }

    /// The address without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{}://{}:{}", self.url.scheme(), self.url.host_str().unwrap_or(""), self.port())
    }

    fn port(&self) -> u16 {
        self.url.port().unwrap_or(PORT)
    }

    /// The address to use without encryption. Whoever is on the way could send crowds, so that all
    /// addresses of the name must be allowed, and the connection goes to one that was looked at.
    fn plain_address(&self, may_be_plain: MayBePlain<'_>) -> Result<SocketAddr, FleetError> {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let unreachable = |why: String| FleetError::BusUnreachable { bus: self.shown(), why };
        let found = (host, self.port())
            .to_socket_addrs()
            .map_err(|error| unreachable(error.to_string()))?;
        let addresses: Vec<SocketAddr> = found.collect();
        match addresses.iter().map(SocketAddr::ip).find(|address| !may_be_plain(*address)) {
            Some(address) => Err(FleetError::BusNotEncrypted { bus: self.shown(), address }),
            None => {
                addresses.first().copied().ok_or_else(|| unreachable("it has no address".into()))
            }
        }
    }

    /// Connects.
    pub(crate) async fn connect(
        &self,
        name: &str,
        may_be_plain: MayBePlain<'_>,
    ) -> Result<Bus, FleetError> {
        let is_encrypted = self.url.scheme() == "tls" || self.tls_ca.is_some();
        let server = if is_encrypted {
            self.shown()
        } else {
            format!("nats://{}", self.plain_address(may_be_plain)?)
        };
        let (up, is_up) = watch::channel(true);
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT_TIMEOUT)
            // A cut link says nothing by itself.
            .ping_interval(PING_EVERY)
            .require_tls(is_encrypted)
            // A bus must not lead anywhere that nobody allowed.
            .ignore_discovered_servers()
            .reconnect_delay_callback(|_| RECONNECT_EVERY)
            .max_reconnects(None)
            .event_callback(move |event| {
                let up = up.clone();
                async move {
                    match event {
                        Event::Connected => drop(up.send(true)),
                        Event::Disconnected | Event::Closed => drop(up.send(false)),
                        _ => {}
                    }
                }
            });
        let clear = self.url.in_clear();
        options = match (decoded(clear.username()), clear.password().map(decoded)) {
            (user, Some(password)) => options.user_and_password(user, password),
            (token, None) if !token.is_empty() => options.token(token),
            _ => options,
        };
        let file = |path: &PathBuf, error: std::io::Error| FleetError::Credentials {
            path: path.clone(),
            why: error.to_string(),
        };
        if let Some(path) = &self.credentials {
            options = options.credentials_file(path).await.map_err(|error| file(path, error))?;
        }
        if let Some(path) = &self.nkey {
            let seed = std::fs::read_to_string(path).map_err(|error| file(path, error))?;
            options = options.nkey(seed.trim().to_owned());
        }
        if let Some(path) = &self.tls_ca {
            options = options.add_root_certificates(path.clone());
        }
        let connected = tokio::time::timeout(2 * CONNECT_TIMEOUT, options.connect(server)).await;
        let why = match connected {
            Ok(Ok(client)) => return Ok(Bus { client, is_up }),
            Ok(Err(error)) => with_sources(&error),
            Err(_) => "no answer".into(),
        };
        Err(FleetError::BusUnreachable { bus: self.shown(), why })
    }
}

/// An error with what caused it.
fn with_sources(error: &dyn std::error::Error) -> String {
    let causes =
        std::iter::successors(error.source(), |error| error.source()).map(ToString::to_string);
    let mut text = error.to_string();
    for cause in causes {
        // Some errors repeat their cause.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(address: &str) -> BusConfig {
        BusConfig::at(address).expect(address)
    }

    #[test]
    fn passwords_of_a_bus_are_not_shown_and_the_port_is_that_of_nats() {
        assert_eq!(bus("nats://me:secret@bus.example").shown(), "nats://bus.example:4222");
        assert_eq!(bus("10.0.0.1:4333").shown(), "nats://10.0.0.1:4333");
        assert_eq!(bus("tls://[::1]").shown(), "tls://[::1]:4222");
        for address in ["nats://me:secret@bus.example", "secret@bus.example"] {
            let held = format!("{:?}", bus(address));
            assert!(held.contains("@bus.example") && !held.contains("secret"), "{held}");
        }
        for (url, why) in [("http://bus", "neither nats:// nor tls://"), ("nats://", "no host")] {
            let error = BusConfig::at(url).expect_err(url).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_bus_without_encryption_must_be_allowed() {
        let plain = |url: &str| bus(url).plain_address(&|address| address.is_loopback());
        assert!(plain("nats://127.0.0.1").is_ok() && plain("nats://[::1]:4222").is_ok());
        let error = plain("nats://10.1.2.3").expect_err("private").to_string();
        assert!(error.contains("10.1.2.3") && error.contains("tls://"), "{error}");
    }
}
