//! Monitoring another host: the agent on the server's host, and the run's client for it.
//!
//! One TCP connection (TLS, except on loopback) carries frames. The client authenticates with a
//! token, measures the clock offset, and may start the stream of rows; the agent answers and sends
//! rows. A running agent can also grant the owner's consent to load; when the agent goes away, the
//! run ends.

mod admission;
mod agent;
mod client;
mod clock;
mod session;
mod tls;
mod wire;

pub use crate::fingerprint::{Fingerprint, FingerprintError};
pub use agent::{Agent, AgentConfig, AgentError};
pub use client::{Presence, RemoteAgent, RemoteConfig, RemoteError, RemoteWatch};
pub use session::AgentPolicy;
pub use wire::Consent;
#[doc(hidden)]
pub use wire::frames_survive;
