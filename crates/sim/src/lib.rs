//! Test servers and networks: conformance servers that check what a client sends, real servers in
//! namespaces of their own, and links of known delay and loss. Only tests depend on this crate.
//!
//! Everything uses plain threads and blocking sockets, so that it works with any runtime or none.

mod http;
mod support;
pub use support::SimError;

mod outcome;
pub use outcome::{not_tested, requires_root, skipped};

pub mod agreement;

pub mod namespace;

pub mod priority;

pub mod pty;
pub mod screen;

pub mod capture;

pub mod link;

pub mod cpu_steal;

pub mod cut;

pub mod ome;
pub mod whep;

pub mod caddy;
pub mod chromium;
pub mod chrony;
pub mod coturn;
pub mod evening;
pub mod ingest;
pub mod inspircd;
pub mod janus;
pub mod janus_events;
pub mod lighttpd;
pub mod live;
pub mod livekit;
pub mod nats;
pub mod nginx;
pub mod prosody;
pub mod real;
pub mod rtsp;
pub mod sshd;
