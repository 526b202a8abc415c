//! The connections of one participant, kept by origin and version of HTTP.

use std::mem;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use throng_protocol::participant::{ChannelError, HttpVersion, Opening};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::alternative::Attempt;
use super::body::BodyError;
use super::failure::{self, Progress};
use super::http1::{Http1, Parked};
use super::http2::Http2;
use super::http3::Http3;
use super::origin::{Key, Origin};
use super::transport::Transport;
use crate::sockets::Dialer;

/// Open HTTP/1.1 connections to an origin: as in browsers (`g_max_sockets_per_group` in
/// net/socket/client_socket_pool_manager.cc of Chromium).
const HTTP1_MAX: usize = 6;

/// Origins whose connections are kept; a further one closes the connections of those that are not
/// in use.
const ORIGINS_MAX: usize = 16;

/// A connection that was not used for so long is kept with as little as it needs. Opening it again
/// costs some 20 µs.
const PARKED_AFTER: Duration = Duration::from_secs(2);

/// The connections of one participant.
#[derive(Clone, Default)]
pub(crate) struct Pool {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    origins: Mutex<Vec<(Key, Arc<OriginPool>)>>,
    opened: AtomicU32,
}

/// The connections to one origin.
pub(super) struct OriginPool {
    /// Free places for HTTP/1.1 connections in use. A new one is opened only when none is idle, so
    /// that those in use and those idle are never more than [`HTTP1_MAX`] together.
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    /// The connection that requests share. Locked while it is opened: further requests wait for it.
    shared: tokio::sync::Mutex<Option<Shared>>,
    /// The server chose HTTP/1.1.
    is_http1: AtomicBool,
    tls: OnceLock<Arc<ClientConfig>>,
    /// The connection to an alternative, or the attempt to open it.
    pub(super) attempt: Mutex<Option<Attempt>>,
}

/// A connection that is not in use.
enum Idle {
    /// Since then.
    Ready(Box<Http1>, Instant),
    Parked(Parked),
}

impl Idle {
    fn is_closed(&self) -> bool {
        match self {
            Self::Ready(connection, _) => connection.is_closed(),
            Self::Parked(connection) => connection.is_closed(),
        }
    }

    /// The connection, parked if it was not used for [`PARKED_AFTER`].
    fn parked_if_unused(self) -> Self {
        match self {
            Self::Ready(connection, since) if since.elapsed() >= PARKED_AFTER => {
                Self::Parked(connection.parked())
            }
            other => other,
        }
    }
}

/// A connection that carries several requests at a time.
#[derive(Clone)]
pub(super) enum Shared {
    Http2(Arc<Http2>),
    Http3(Arc<Http3>),
}

/// A connection for one request. Dropped, it closes an HTTP/1.1 connection.
pub(super) struct Lease {
    pub(super) connection: Leased,
    /// The connection was open before.
    pub(super) is_reused: bool,
    /// How it was opened; addresses only if it was open before.
    pub(super) opening: Opening,
}

pub(super) enum Leased {
    Http1 { connection: Box<Http1>, kept: Arc<OriginPool>, _place: OwnedSemaphorePermit },
    Shared(Shared),
}

impl Pool {
    /// A connection for a request with `key`, by an alternative where that is asked for and can be
    /// had soon. Never `except`, on which a request has just failed.
    pub(super) async fn lease(
        &self,
        dialer: &Arc<Dialer>,
        source: Option<IpAddr>,
        key: &Key,
        except: Option<&Failed>,
    ) -> Result<Lease, ChannelError> {
        match key.version {
            HttpVersion::Alternative(port) => {
                self.lease_alternative(dialer, source, (&key.origin, port), except).await
            }
            _ => self.lease_usual(dialer, source, key, except).await,
        }
    }

    /// A connection for a request with `key`: a kept one, else a new one, for which at most
    /// [`HTTP1_MAX`] may be waited for. Never `except`.
    pub(super) async fn lease_usual(
        &self,
        dialer: &Dialer,
        source: Option<IpAddr>,
        key: &Key,
        except: Option<&Failed>,
    ) -> Result<Lease, ChannelError> {
        let kept = self.kept(key);
        let opening = Open { pool: self, dialer, source, key, kept: &kept };
        if key.may_share() && !kept.is_http1.load(Ordering::Relaxed) {
            let mut shared = kept.shared.lock().await;
            if let Some(open) = shared.as_ref().filter(|open| open.serves(except)) {
                return Ok(Lease::again(Leased::Shared(open.clone())));
            }
            // The request that opened a connection while this one waited may have found HTTP/1.1.
            if !kept.is_http1.load(Ordering::Relaxed) {
                return match opening.any().await? {
                    (Opened::Shared(open), opening) => {
                        *shared = Some(open.clone());
                        Ok(Lease { connection: Leased::Shared(open), is_reused: false, opening })
                    }
                    (Opened::Http1(connection), opening) => {
                        kept.is_http1.store(true, Ordering::Relaxed);
                        drop(shared);
                        Ok(Lease {
                            connection: kept.occupied(connection).await?,
                            is_reused: false,
                            opening,
                        })
                    }
                };
            }
        }
        let place = kept.place().await?;
        while let Some(idle) = kept.take_idle(except.is_some()) {
            let connection = match idle {
                Idle::Ready(connection, _) => connection,
                Idle::Parked(connection) => match connection.resumed().await {
                    Some(connection) => connection.into(),
                    None => continue,
                },
            };
            return Ok(Lease::again(Leased::Http1 {
                connection,
                kept: Arc::clone(&kept),
                _place: place,
            }));
        }
        match opening.any().await? {
            (Opened::Http1(connection), opening) => {
                let connection =
                    Leased::Http1 { connection, kept: Arc::clone(&kept), _place: place };
                Ok(Lease { connection, is_reused: false, opening })
            }
            // The server has learnt HTTP/2 since.
            (Opened::Shared(open), opening) => {
                Ok(Lease { connection: Leased::Shared(open), is_reused: false, opening })
            }
        }
    }

    /// The number of the next connection.
    pub(super) fn number(&self) -> u32 {
        self.state.opened.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn kept(&self, key: &Key) -> Arc<OriginPool> {
        let mut origins = self.state.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = origins.iter().find(|(known, _)| known == key) {
            return Arc::clone(kept);
        }
        if origins.len() >= ORIGINS_MAX {
            origins.retain(|(_, kept)| Arc::strong_count(kept) > 1);
        }
        let kept = Arc::new(OriginPool {
            places: Arc::new(Semaphore::new(HTTP1_MAX)),
            idle: Mutex::default(),
            shared: tokio::sync::Mutex::default(),
            is_http1: AtomicBool::new(false),
            tls: OnceLock::new(),
            attempt: Mutex::default(),
        });
        origins.push((key.clone(), Arc::clone(&kept)));
        kept
    }
}

impl OriginPool {
    /// Waits for a free place.
    async fn place(&self) -> Result<OwnedSemaphorePermit, ChannelError> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        place.map_err(|_| ChannelError::Generator("the connections are closed".into()))
    }

    async fn occupied(self: &Arc<Self>, connection: Box<Http1>) -> Result<Leased, ChannelError> {
        Ok(Leased::Http1 { connection, kept: Arc::clone(self), _place: self.place().await? })
    }

    /// An idle connection. If one has just failed its request, the others were kept as long and are
    /// closed instead.
    fn take_idle(&self, has_failed: bool) -> Option<Idle> {
        let mut idle = self.idle();
        idle.retain(|kept| !has_failed && !kept.is_closed());
        // The last one used is the least likely to be closed by the server.
        idle.pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, connection: Box<Http1>) {
        if !connection.is_closed() {
            self.idle().push(Idle::Ready(connection, Instant::now()));
        }
    }

    /// Parks connections that have been idle for long, each in its place: a lease meanwhile must
    /// find as many as there are, and the last one used first.
    fn park_unused(&self) {
        let mut idle = self.idle();
        *idle = mem::take(&mut *idle).into_iter().map(Idle::parked_if_unused).collect();
    }

    /// The TLS configuration of this participant for this origin, which holds its session tickets.
    pub(super) fn tls(&self, dialer: &Dialer, key: &Key) -> Arc<ClientConfig> {
        Arc::clone(self.tls.get_or_init(|| Arc::new(dialer.tls_of_one(key.alpn()))))
    }
}

impl Lease {
    pub(super) fn again(connection: Leased) -> Self {
        let opening = match &connection {
            Leased::Http1 { connection, .. } => &connection.addresses,
            Leased::Shared(Shared::Http2(connection)) => &connection.addresses,
            Leased::Shared(Shared::Http3(connection)) => &connection.addresses,
        };
        Self { opening: opening.clone(), connection, is_reused: true }
    }

    pub(super) fn transport(&self) -> &Transport {
        match &self.connection {
            Leased::Http1 { connection, .. } => &connection.transport,
            Leased::Shared(Shared::Http2(connection)) => &connection.transport,
            Leased::Shared(Shared::Http3(connection)) => &connection.transport,
        }
    }

    /// The failure of a body that came over this connection.
    pub(super) fn body_failure(
        &self,
        error: &BodyError,
        origin: &Origin,
        at: Progress,
    ) -> ChannelError {
        match (error, &self.connection) {
            (BodyError::Http3(error), Leased::Shared(Shared::Http3(connection))) => {
                connection.failure(error, origin, &at.to_string())
            }
            (BodyError::Hyper(error), _) => failure::of_body(error, origin, at),
            (BodyError::Http3(error), _) => ChannelError::Protocol(format!("HTTP/3: {error}")),
        }
    }

    /// Keeps the connection for the next request, after a response that was read to its end.
    pub(super) fn keep(self) {
        if let Leased::Http1 { connection, kept, _place } = self.connection {
            kept.keep(connection);
        }
    }

    /// The same, where no other request may follow for long: what the connection does not need
    /// meanwhile is freed after a while.
    pub(super) fn keep_for_long(self) {
        let kept = match &self.connection {
            Leased::Http1 { kept, .. } => Arc::downgrade(kept),
            Leased::Shared(_) => return,
        };
        self.keep();
        tokio::spawn(park_unused(kept));
    }

    /// Gives up the connection after a request that it failed.
    pub(super) fn failed(self) -> Failed {
        match self.connection {
            Leased::Http1 { .. } => Failed(None),
            Leased::Shared(shared) => Failed(Some(shared)),
        }
    }
}

/// Parks connections that are not used within [`PARKED_AFTER`]; not those of a participant that has
/// left by then.
async fn park_unused(kept: Weak<OriginPool>) {
    tokio::time::sleep(PARKED_AFTER).await;
    if let Some(kept) = kept.upgrade() {
        kept.park_unused();
    }
}

/// A kept connection that failed a request.
pub(super) struct Failed(Option<Shared>);

impl Shared {
    pub(super) fn serves(&self, except: Option<&Failed>) -> bool {
        let is_same = |failed: &Shared| match (self, failed) {
            (Self::Http2(own), Self::Http2(failed)) => Arc::ptr_eq(own, failed),
            (Self::Http3(own), Self::Http3(failed)) => Arc::ptr_eq(own, failed),
            _ => false,
        };
        let is_closed = match self {
            Self::Http2(connection) => connection.is_closed(),
            Self::Http3(connection) => connection.is_closed(),
        };
        !is_closed && !except.and_then(|failed| failed.0.as_ref()).is_some_and(is_same)
    }
}

enum Opened {
    Http1(Box<Http1>),
    Shared(Shared),
}

/// Opens a connection for one request.
struct Open<'a> {
    pool: &'a Pool,
    dialer: &'a Dialer,
    source: Option<IpAddr>,
    key: &'a Key,
    kept: &'a OriginPool,
}

impl Open<'_> {
    async fn any(&self) -> Result<(Opened, Opening), ChannelError> {
        let Key { origin, version } = self.key;
        let number = || self.pool.number();
        if *version == HttpVersion::Http3 {
            let tls = self.kept.tls(self.dialer, self.key);
            let (connection, opening) =
                Http3::open(self.dialer, self.source, origin, tls, number()).await?;
            return Ok((Opened::Shared(Shared::Http3(Arc::new(connection))), opening));
        }
        let config = origin.secure.then(|| self.kept.tls(self.dialer, self.key));
        let tls = config.as_ref().map(|config| (config, &origin.host));
        let (pipe, opening) = self.dialer.dial(self.source, &origin.host, origin.port, tls).await?;
        let addresses =
            Opening { local: opening.local, remote: opening.remote, ..Opening::default() };
        let is_http2 = match (version, pipe.alpn()) {
            (HttpVersion::Http2, alpn) if origin.secure && alpn != Some(b"h2") => {
                return Err(ChannelError::Protocol(format!(
                    "{origin} does not offer HTTP/2 (ALPN)"
                )));
            }
            (version, alpn) => *version == HttpVersion::Http2 || alpn == Some(b"h2"),
        };
        let opened = if is_http2 {
            Opened::Shared(Shared::Http2(Arc::new(Http2::on(pipe, number(), addresses).await?)))
        } else {
            Opened::Http1(Http1::on(pipe, number(), addresses).await?.into())
        };
        Ok((opened, opening))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::sockets::MaybeTlsStream;
    use crate::sockets::stream::Socket;

    #[tokio::test]
    async fn parking_changes_neither_the_order_nor_the_count_of_idle_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let key = Key::of(&"http://a.example/".parse().unwrap(), HttpVersion::Http1).unwrap();
        let kept = Pool::default().kept(&key);
        let now = Instant::now();
        let long_ago = now.checked_sub(PARKED_AFTER).unwrap();
        let mut servers = Vec::new();
        let mut locals = Vec::new();
        for since in [long_ago, now, long_ago] {
            let stream = TcpStream::connect(address).await.unwrap();
            let addresses = Opening { local: stream.local_addr().ok(), ..Opening::default() };
            servers.push(listener.accept().await.unwrap());
            locals.push(addresses.local);
            let pipe = MaybeTlsStream::Plain(Socket::new(stream));
            let connection = Http1::on(pipe, 0, addresses).await.unwrap();
            kept.idle().push(Idle::Ready(connection.into(), since));
        }
        kept.park_unused();
        let are_parked =
            kept.idle().iter().map(|idle| matches!(idle, Idle::Parked(_))).collect::<Vec<_>>();
        assert_eq!(are_parked, [true, false, true]);
        for local in locals.into_iter().rev() {
            let connection = match kept.take_idle(false).expect("as many as before") {
                Idle::Ready(connection, _) => *connection,
                Idle::Parked(connection) => connection.resumed().await.expect("open"),
            };
            assert_eq!(connection.addresses.local, local);
        }
        assert!(kept.take_idle(false).is_none());
    }
}
