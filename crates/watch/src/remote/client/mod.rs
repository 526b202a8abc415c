//! The run's client: connects to an agent, aligns the clocks, receives rows, and detects at once
//! when the agent is gone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use throng_observation::host::HostId;
use tokio::sync::mpsc;

use super::wire::Consent;
use crate::background::BackgroundThread;
use crate::rows::RowSender;

mod connection;
mod link;
mod translator;

use connection::{Connection, Welcome};
pub use connection::{RemoteConfig, RemoteError};
use link::{AgentCommand, Link, Shared};

/// A flooded agent admits an address on its first connection of a second: retry this often, and for
/// this long.
const RETRY_EVERY: Duration = Duration::from_millis(300);
const RETRY_WITHIN: Duration = Duration::from_secs(5);

/// Time limit for ending a profile; symbol lookup takes a while.
const PROFILE_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// A connected agent. Dropping it closes the connection.
#[derive(Debug)]
pub struct RemoteAgent {
    peer: SocketAddr,
    name: String,
    targets: Vec<String>,
    consent: Option<Consent>,
    shared: Arc<Shared>,
    // Dropped in this order: the thread ends when the sender is gone.
    commands: mpsc::Sender<AgentCommand>,
    _thread: BackgroundThread,
}

impl RemoteAgent {
    /// Connects, verifies the certificate, sends the token, and waits for the welcome.
    ///
    /// # Errors
    /// When one of these fails.
    pub fn connect(config: &RemoteConfig) -> Result<Self, RemoteError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let failed = |why: String| RemoteError::Connect { address: config.address.clone(), why };
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let connection = runtime.block_on(Self::open(config))?;
        let (commands, receiver) = mpsc::channel(64);
        let shared = Arc::new(Shared::new());
        let (peer, welcome) = (connection.peer, connection.welcome.clone());
        let link = Link { config: config.clone(), shared: shared.clone(), translator: None };
        let work = move || runtime.block_on(link.run(connection, receiver));
        let thread = BackgroundThread::spawn("watch-remote", work)
            .map_err(|error| failed(error.to_string()))?;
        let Welcome { name, targets, consent } = welcome;
        Ok(Self { peer, name, targets, consent, shared, commands, _thread: thread })
    }

    /// Opens a connection; retries while the agent closes it unanswered.
    async fn open(config: &RemoteConfig) -> Result<Connection, RemoteError> {
        let until = Instant::now() + RETRY_WITHIN;
        loop {
            match Connection::open(config).await {
                Err(RemoteError::Closed { .. }) if Instant::now() < until => {
                    tokio::time::sleep(RETRY_EVERY).await;
                }
                opened => return opened,
            }
        }
    }

    /// The address at which it answered, to which its consent applies.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The watched host's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its targets, for display.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// The load that its owner consents to, if any, as long as [`Self::is_present`].
    #[must_use]
    pub fn consent(&self) -> Option<&Consent> {
        self.consent.as_ref()
    }

    /// Whether the agent answered within the last 5 s and has not closed the connection.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.shared.is_present()
    }

    /// A handle for [`Self::is_present`] that can be used on any thread.
    #[must_use]
    pub fn presence(&self) -> Presence {
        Presence(self.shared.clone())
    }

    /// Starts the stream of rows. They get the id `host`, the name `name` if given, and times
    /// relative to `zero`.
    #[must_use]
    pub fn begin(
        self,
        host: HostId,
        name: Option<String>,
        zero: Instant,
        rows: RowSender,
    ) -> RemoteWatch {
        let _ = self.commands.try_send(AgentCommand::Begin { host, zero, rows, name });
        RemoteWatch(self)
    }
}

/// Reports whether an agent is connected; cheap, and usable on any thread.
#[derive(Clone, Debug)]
pub struct Presence(Arc<Shared>);

impl Presence {
    /// As [`RemoteAgent::is_present`].
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.is_present()
    }

    /// Whether it has been connected without interruption since [`RemoteAgent::connect`]: its
    /// consent still holds.
    #[must_use]
    pub fn was_never_lost(&self) -> bool {
        self.0.is_present() && !self.0.was_lost.load(Relaxed)
    }
}

/// An agent that streams rows. Dropping it ends the stream.
#[derive(Debug)]
pub struct RemoteWatch(RemoteAgent);

impl RemoteWatch {
    /// The agent.
    #[must_use]
    pub fn remote(&self) -> &RemoteAgent {
        &self.0
    }

    /// Requests a profile of the watched processes; it arrives as a row shortly after `duration`.
    pub fn profile(&self, moment: &str, duration: Duration) {
        let command = AgentCommand::Profile { moment: moment.to_owned(), duration };
        if self.0.commands.try_send(command).is_ok() {
            self.0.shared.profiles_due.fetch_add(1, Relaxed);
        }
    }

    /// Current error bound of the agent's times relative to the run's, microseconds.
    #[must_use]
    pub fn clock_error_us(&self) -> u64 {
        self.0.shared.clock_error_us.load(Relaxed)
    }

    /// Ends the stream. A running profile ends early and is waited for.
    pub fn stop(self) {
        let shared = &self.0.shared;
        let until = Instant::now() + PROFILE_ENDS_WITHIN;
        if shared.profiles_due.load(Relaxed) > 0
            && self.0.commands.try_send(AgentCommand::EndProfile).is_ok()
        {
            while shared.profiles_due.load(Relaxed) > 0
                && shared.is_present()
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
