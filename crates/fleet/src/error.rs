//! What can go wrong between coordinator and workers.

use std::net::IpAddr;
use std::path::PathBuf;

/// Why a fleet could not be formed, or a worker not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// The address of the bus cannot be read.
    #[error("--fleet: {0}; write nats://HOST:4222")]
    BusAddress(String),
    /// The bus did not answer, or did not accept the connection.
    #[error("{bus} cannot be used: {why}")]
    BusUnreachable {
        /// Its address.
        bus: String,
        /// What happened.
        why: String,
    },
    /// A bus without encryption on a network that nobody allowed.
    #[error(
        "{bus} is not encrypted and {address} is not this host: use tls://, or allow its network \
         with --allow-target"
    )]
    BusNotEncrypted {
        /// Its address.
        bus: String,
        /// The address that is not allowed.
        address: IpAddr,
    },
    /// A file with credentials could not be read.
    #[error("{}: {why}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// JetStream does not work.
    #[error("{bus} has no JetStream ({why}): start nats-server with --jetstream")]
    NoJetStream {
        /// Its address.
        bus: String,
        /// What happened.
        why: String,
    },
    /// Fewer workers than asked for.
    #[error(
        "{found} of {wanted} workers came within {waited_s} s{more}: start `throng worker --fleet \
         …` on the others"
    )]
    TooFewWorkers {
        /// How many came.
        found: usize,
        /// How many were asked for.
        wanted: usize,
        /// How long they were waited for, seconds.
        waited_s: u64,
        /// Workers that offered themselves and could not be used, with the reasons; begins with `;
        /// `.
        more: String,
    },
    /// A worker refused its order.
    #[error("worker {worker} does not play: {why}")]
    Refused {
        /// Its name.
        worker: String,
        /// Its reason.
        why: String,
    },
    /// The bus has not, or not all of, what workers sent of a run.
    #[error(
        "{bus} {what} of the run that is named {run} on it: a bus keeps rows for a day after they \
         came, and loses them with its store"
    )]
    RowsGone {
        /// Its address.
        bus: String,
        /// The run's name on the bus.
        run: String,
        /// What it has.
        what: String,
    },
    /// A run whose coordinator is not gone.
    #[error(
        "{bus}: a coordinator leads the run {run}; what it left can be collected once it is gone"
    )]
    IsLed {
        /// The bus's address.
        bus: String,
        /// The run's name on the bus.
        run: String,
    },
    /// The run was interrupted while workers prepared.
    #[error("interrupted before the run began")]
    Interrupted,
    /// The bus failed in a way that is not expected.
    #[error("the bus: {0}")]
    Bus(String),
}
