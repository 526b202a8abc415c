//! Why a stage does not start.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Why a stage did not start.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Other machines could reach this address and the configuration does not allow it.
    #[error("{0} is reachable by other machines; set listen_any (--listen-any) to mean it")]
    NotLoopback(SocketAddr),
    /// ICE candidates name one address, so the stage needs one that packets can be sent to.
    #[error(
        "{0} is not an address that a viewer can send media to; give one of this machine's \
         (media_ip, --media-ip)"
    )]
    Unspecified(IpAddr),
    /// A figure is outside its range.
    #[error("{field} = {value} is outside {range}")]
    OutOfRange {
        /// The field of [`StageConfig`](crate::StageConfig).
        field: &'static str,
        /// Its value.
        value: u64,
        /// The allowed range.
        range: String,
    },
    /// A socket could not be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A thread or the runtime could not be started.
    #[error("cannot start {what}: {source}")]
    Start {
        /// Which part.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The built-in test card is damaged.
    #[error("test card: {0}")]
    TestCard(throng_media::source::ClipError),
    /// The folder of the viewers' files is of no use.
    #[error("{}: {source}", folder.display())]
    MediaFolder {
        /// The folder asked for.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Cryptography could not be set up.
    #[error("cryptography: {0}")]
    Crypto(String),
}
