//! The agent: listens on the server's host, authenticates clients by token, and gives each a
//! session.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::admission::{AdmissionControl, PendingSlot};
use super::session::{AgentPolicy, Session, refuse};
use super::tls;
use crate::background::BackgroundThread;
use crate::commands::Commands;
use crate::config::WatchError;
use crate::fingerprint::Fingerprint;
use crate::local::LocalHost;

/// Configuration of an agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// The token that every client must send.
    pub token: String,
    /// Whether to use TLS; without it only loopback addresses are allowed.
    pub is_tls: bool,
    /// What runs may get.
    pub policy: AgentPolicy,
}

/// Why an agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The token is too short to be safe.
    #[error(
        "a token needs at least {TOKEN_CHARACTERS_MIN} characters; without one a token is generated"
    )]
    Token,
    /// Without TLS the traffic could be read and forged.
    #[error("{0} is not a loopback address: without TLS an agent listens only on loopback")]
    Plain(SocketAddr),
    /// Binding the address failed.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// Creating the certificate failed.
    #[error("cannot create a certificate: {0}")]
    Certificate(String),
    /// The targets cannot be monitored.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The configured sources are invalid.
    #[error("{0}")]
    SourceConfig(String),
    /// The system refused a thread or a runtime.
    #[error("cannot run an agent: {0}")]
    Host(#[from] io::Error),
}

const TOKEN_CHARACTERS_MIN: usize = 16;

/// Maximum number of concurrent sessions; each has its own sampler.
const SESSIONS_MAX: usize = 4;
/// Time limit for the TLS handshake and the token together.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// Delay before a wrong token is refused.
const REFUSED_AFTER: Duration = Duration::from_millis(500);

/// Time limit for notifying the clients that the agent ends.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

/// A running agent. Dropping it ends it, and its clients notice at once.
#[derive(Debug)]
pub struct Agent {
    address: SocketAddr,
    fingerprint: Option<Fingerprint>,
    counts: Arc<Counts>,
    // Dropped in this order: the thread ends when the sender is gone.
    _stop: watch::Sender<()>,
    thread: BackgroundThread,
}

#[derive(Debug, Default)]
struct Counts {
    sessions: AtomicUsize,
    refused: AtomicUsize,
}

/// State shared by all connections.
struct Shared {
    config: AgentConfig,
    commands: Commands,
    tls: Option<TlsAcceptor>,
    counts: Arc<Counts>,
    stop: watch::Receiver<()>,
}

impl Agent {
    /// Starts the target commands, which end with the calling thread, and listens for clients.
    ///
    /// # Errors
    /// When that fails, or when the configuration is not safe.
    pub fn start(config: AgentConfig) -> Result<Self, AgentError> {
        if config.token.chars().count() < TOKEN_CHARACTERS_MIN {
            return Err(AgentError::Token);
        }
        if !config.is_tls && !config.listen.ip().is_loopback() {
            return Err(AgentError::Plain(config.listen));
        }
        config.policy.sources.check().map_err(AgentError::SourceConfig)?;
        let (tls, fingerprint) = if config.is_tls {
            let (config, fingerprint) = tls::server().map_err(AgentError::Certificate)?;
            (Some(TlsAcceptor::from(config)), Some(fingerprint))
        } else {
            (None, None)
        };
        let commands = Commands::start(&config.policy.watch.targets)?;
        // Find out now whether monitoring is possible, not when the first run connects.
        drop(LocalHost::open_with(config.policy.watch.clone(), &commands)?);
        let listener = std::net::TcpListener::bind(config.listen)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| AgentError::Listen(config.listen, error))?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(());
        let counts = Arc::new(Counts::default());
        let shared =
            Arc::new(Shared { config, commands, tls, counts: counts.clone(), stop: stopped });
        let thread = BackgroundThread::spawn("watch-agent", move || {
            runtime.block_on(listen(listener, shared));
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?;
        Ok(Self { address, fingerprint, counts, _stop: stop, thread })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate's fingerprint, by which clients identify the agent; `None` without TLS.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Number of connected runs.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.counts.sessions.load(Relaxed)
    }

    /// Number of refused connections: a wrong token, no token in time, or too many sessions.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.counts.refused.load(Relaxed)
    }

    /// Whether the agent still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.is_running()
    }
}

/// One of the [`SESSIONS_MAX`] sessions; freed when dropped.
struct SessionSlot(Arc<Counts>);

impl SessionSlot {
    /// `None` when all sessions are in use.
    fn take(counts: &Arc<Counts>) -> Option<Self> {
        if counts.sessions.fetch_add(1, Relaxed) >= SESSIONS_MAX {
            counts.sessions.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Self(counts.clone()))
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Relaxed);
    }
}

async fn listen(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let admission = AdmissionControl::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(shared.stop.clone()) => break,
        };
        let Ok((stream, from)) = accepted else {
            // Out of file descriptors, or the peer has already gone.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        match admission.admit(from.ip(), Instant::now()) {
            Some(slot) => drop(tokio::spawn(authenticate(stream, slot, shared.clone()))),
            None => {
                // Close without an answer, so that a flood costs no work.
                shared.counts.refused.fetch_add(1, Relaxed);
            }
        }
    }
    // Give the sessions time to notify their clients.
    let until = Instant::now() + GOODBYE_WITHIN;
    while shared.counts.sessions.load(Relaxed) > 0 && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Authenticates a connection and serves it.
async fn authenticate(stream: TcpStream, mut slot: PendingSlot, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let hello = tokio::time::timeout(HELLO_WITHIN, async {
        match &shared.tls {
            Some(tls) => {
                Session::hello(Box::new(tls.accept(stream).await?), &shared.config.token).await
            }
            None => Session::hello(Box::new(stream), &shared.config.token).await,
        }
    });
    let refused = || shared.counts.refused.fetch_add(1, Relaxed);
    let hello = tokio::select! {
        hello = hello => hello,
        // A newer connection took this one's slot.
        () = slot.evicted() => {
            refused();
            return;
        }
    };
    let mut session = match hello {
        Ok(Ok(Ok(session))) => session,
        Ok(Ok(Err((mut stream, why)))) => {
            refused();
            tokio::time::sleep(REFUSED_AFTER).await;
            refuse(&mut stream, &why).await;
            return;
        }
        Ok(Err(_)) | Err(_) => {
            refused();
            return;
        }
    };
    slot.authenticated();
    drop(slot);
    let Some(_slot) = SessionSlot::take(&shared.counts) else {
        refused();
        return session.refuse(&format!("{SESSIONS_MAX} runs are connected already")).await;
    };
    let is_stopped = tokio::select! {
        _ = session.serve(&shared.config.policy, &shared.commands) => false,
        () = stopped(shared.stop.clone()) => true,
    };
    if is_stopped {
        session.refuse("the agent was stopped").await;
    }
}

/// Waits until the agent's handle is dropped.
async fn stopped(mut stop: watch::Receiver<()>) {
    while stop.changed().await.is_ok() {}
}
