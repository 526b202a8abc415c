//! The run's end: connects to an agent, keeps the clocks aligned, takes rows, and knows at once when it is gone.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_observation::host::HostId;
use tokio::sync::mpsc;

use super::Fingerprint;
use super::wire::Consent;
use crate::rows::RowSender;

mod connection;
mod link;
mod translator;

use connection::{Connection, Welcome};
use link::Link;

/// Which agent.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Where it listens: `host:port`.
    pub address: String,
    /// What it asks of whoever connects.
    pub token: String,
    /// Its certificate's; `None`: without TLS, which only a loopback address may be.
    pub fingerprint: Option<Fingerprint>,
}

/// Why an agent cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Without TLS anybody between could read and forge.
    #[error("the agent at {0} is not on loopback: give the fingerprint that it prints when it starts")]
    Plain(String),
    /// Nobody answers there.
    #[error("no agent answers at {address}: {why}; is `throng watch` running there?")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        why: String,
    },
    /// Something takes connections there and says nothing.
    #[error(
        "the agent at {address} took the connection and did not answer within {within_s} s: it is too busy, or stopped"
    )]
    Silent {
        /// Where.
        address: String,
        /// How long was waited, seconds.
        within_s: u64,
    },
    /// It closes connections before it has said who it is.
    #[error(
        "the agent at {address} closed the connection before it said anything: it is busy refusing strangers, who come \
         faster than it lets them in, or what listens there is no agent; try again, or keep the strangers from its port"
    )]
    Closed {
        /// Where.
        address: String,
    },
    /// Somebody else answers there, or nobody who speaks TLS.
    #[error("the agent at {address} is not the one with fingerprint {expected}: {why}")]
    Certificate {
        /// Where.
        address: String,
        /// Whom we asked for.
        expected: Fingerprint,
        /// What was there.
        why: String,
    },
    /// It does not serve this run.
    #[error("the agent at {address} refused: {why}")]
    Refused {
        /// Where.
        address: String,
        /// Its words.
        why: String,
    },
}

/// Without an answer for so long the agent is lost (docs/watch.md). A server at its limit may make it wait for a CPU for
/// some of that.
const LOST_AFTER: Duration = Duration::from_secs(5);

/// An agent that others flood lets in who comes for the first time in a second: so often, and so long, it is tried.
const TRIED_EVERY: Duration = Duration::from_millis(300);
const TRIED_WITHIN: Duration = Duration::from_secs(5);

/// Finding the names of a profile takes a while.
const PROFILE_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// A connected agent. Dropping it ends the connection.
#[derive(Debug)]
pub struct RemoteAgent {
    peer: SocketAddr,
    name: String,
    targets: Vec<String>,
    consent: Option<Consent>,
    shared: Arc<Shared>,
    orders: mpsc::Sender<AgentCommand>,
    thread: Option<JoinHandle<()>>,
}

/// What the run knows of the agent at the moment.
#[derive(Debug)]
struct Shared {
    heard_at: Mutex<Instant>,
    is_connected: AtomicBool,
    /// Once gone it does not agree any more, even when it is back: another owner may have started it.
    was_lost: AtomicBool,
    clock_error_us: AtomicU64,
    /// Profiles that were asked for and have not come.
    profiles_due: AtomicU32,
}

/// What the run wants of the connection's thread.
enum AgentCommand {
    Begin { host: HostId, zero: Instant, rows: RowSender, name: Option<String> },
    Profile { moment: String, duration: Duration },
    EndProfile,
}

impl RemoteAgent {
    /// Connects, checks that it is the right agent, shows the token, and waits to be welcomed.
    ///
    /// # Errors
    /// When one of these fails.
    pub fn connect(config: &RemoteConfig) -> Result<Self, RemoteError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let no = |why: String| RemoteError::Connect { address: config.address.clone(), why };
        let runtime = runtime.map_err(|error| no(error.to_string()))?;
        let connection = runtime.block_on(Self::open(config))?;
        let (orders, receiver) = mpsc::channel(64);
        let shared = Arc::new(Shared {
            heard_at: Mutex::new(Instant::now()),
            is_connected: AtomicBool::new(true),
            was_lost: AtomicBool::new(false),
            clock_error_us: AtomicU64::new(u64::MAX),
            profiles_due: AtomicU32::new(0),
        });
        let (peer, welcome) = (connection.peer, connection.welcome.clone());
        let link = Link { config: config.clone(), shared: shared.clone(), sink: None };
        let thread = std::thread::Builder::new()
            .name("watch-remote".into())
            .spawn(move || runtime.block_on(link.run(connection, receiver)))
            .map_err(|error| no(error.to_string()))?;
        let Welcome { name, targets, consent } = welcome;
        Ok(Self { peer, name, targets, consent, shared, orders, thread: Some(thread) })
    }

    /// Opens a connection, again where the agent has no time for who comes.
    async fn open(config: &RemoteConfig) -> Result<Connection, RemoteError> {
        let until = Instant::now() + TRIED_WITHIN;
        loop {
            match Connection::open(config).await {
                Err(RemoteError::Closed { .. }) if Instant::now() < until => {
                    tokio::time::sleep(TRIED_EVERY).await;
                }
                opened => return opened,
            }
        }
    }

    /// The address at which it answered: the one that its consent is for.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The watched host's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it watches, for people.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// What load its owner agrees to, if any, as long as [`Self::is_present`].
    #[must_use]
    pub fn consent(&self) -> Option<&Consent> {
        self.consent.as_ref()
    }

    /// Whether it was heard from within the last 5 s and has not ended the connection.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.shared.is_present()
    }

    /// Something by which others can ask [`Self::is_present`].
    #[must_use]
    pub fn presence(&self) -> Presence {
        Presence(self.shared.clone())
    }

    /// Begins to stream rows: they are of `host`, named `name` if given, and their times count from `zero`.
    #[must_use]
    pub fn begin(self, host: HostId, name: Option<String>, zero: Instant, rows: RowSender) -> RemoteWatch {
        let _ = self.orders.try_send(AgentCommand::Begin { host, zero, rows, name });
        RemoteWatch(self)
    }

    fn end(&mut self) {
        // The thread ends when its last order giver is gone.
        let (nobody, _) = mpsc::channel(1);
        self.orders = nobody;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for RemoteAgent {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tells whether an agent is there; cheap, and good on any thread.
#[derive(Clone, Debug)]
pub struct Presence(Arc<Shared>);

impl Presence {
    /// As [`RemoteAgent::is_present`].
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.is_present()
    }

    /// Whether it has been there all the time since [`RemoteAgent::connect`]: what it agreed to then still holds.
    #[must_use]
    pub fn was_never_lost(&self) -> bool {
        self.0.is_present() && !self.0.was_lost.load(Relaxed)
    }
}

impl Shared {
    fn is_present(&self) -> bool {
        let heard_at = *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_connected.load(Relaxed) && heard_at.elapsed() < LOST_AFTER
    }

    /// A profile that was asked for has come, or will not.
    fn profile_came(&self) {
        let one_less = |due: u32| Some(due.saturating_sub(1));
        let _ = self.profiles_due.fetch_update(Relaxed, Relaxed, one_less);
    }

    fn heard(&self) {
        *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// An agent whose rows come. Dropping it ends that.
#[derive(Debug)]
pub struct RemoteWatch(RemoteAgent);

impl RemoteWatch {
    /// The agent.
    #[must_use]
    pub fn remote(&self) -> &RemoteAgent {
        &self.0
    }

    /// Asks for a profile of the watched processes: it comes as a row, `duration` and a little later.
    pub fn profile(&self, moment: &str, duration: Duration) {
        let order = AgentCommand::Profile { moment: moment.to_owned(), duration };
        if self.0.orders.try_send(order).is_ok() {
            self.0.shared.profiles_due.fetch_add(1, Relaxed);
        }
    }

    /// How far its times may be off this run's at the moment, microseconds.
    #[must_use]
    pub fn clock_error_us(&self) -> u64 {
        self.0.shared.clock_error_us.load(Relaxed)
    }

    /// Ends it. A profile that is being taken ends early and is waited for.
    pub fn stop(self) {
        let shared = &self.0.shared;
        let until = Instant::now() + PROFILE_ENDS_WITHIN;
        if shared.profiles_due.load(Relaxed) > 0 && self.0.orders.try_send(AgentCommand::EndProfile).is_ok() {
            while shared.profiles_due.load(Relaxed) > 0 && shared.is_present() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
