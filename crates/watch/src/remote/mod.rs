//! Watching another host: the agent that runs beside the server there, and the run's end of the connection.
//!
//! One TCP connection (TLS, except on loopback) carries frames: the run says who it is by a token, asks the time, and
//! may begin to watch; the agent answers and streams rows. That the agent is there is also its owner's consent to the
//! run, and taking it away ends the run.

mod admission;
mod agent;
mod client;
mod clock;
mod session;
mod tls;
mod wire;

pub use agent::{Agent, AgentConfig, AgentError, AgentPolicy};
pub use client::{Presence, RemoteAgent, RemoteConfig, RemoteError, RemoteWatch};
pub use tls::{Fingerprint, FingerprintError};
pub use wire::Consent;
