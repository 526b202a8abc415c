//! Configuration of a stage: where it listens, what it plays, and at which limits it saturates.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use crate::error::StageError;
use crate::planted::Planted;

/// Configuration of a stage. The default has no limits, listens on `127.0.0.1:7080` and has one
/// worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageConfig {
    /// Where HTTP listens; port 0 takes a free one.
    pub http_listen: SocketAddr,
    /// The address of media and of ICE candidates, with UDP ports of the kernel's choice; `None` is
    /// that of HTTP.
    pub media_ip: Option<IpAddr>,
    /// Allow an address that other machines can reach. Without it, anything but loopback is
    /// refused.
    pub listen_any: bool,
    /// Threads that encrypt and send, `stage-worker-0` and on; 1–64.
    pub workers: usize,
    /// Further viewers are answered with 503.
    pub max_viewers: usize,
    /// Cap on what leaves the stage, bits per second of UDP payload, shared evenly among the
    /// workers; `None` is no limit.
    pub egress_bps: Option<u64>,
    /// Longest queueing delay of the capped link, milliseconds; packets beyond it are dropped.
    pub egress_queue_ms: u32,
    /// Limits planted for tests that need to know the cause of saturation. None by default.
    pub planted: Planted,
    /// Token that WHEP and WHIP require (`Authorization: Bearer`); `None` requires none.
    pub bearer_token: Option<String>,
    /// Test card size of viewers that do not ask for one (`/whep?card=low`).
    pub card: Card,
    /// The server that it emulates.
    pub emulates: EmulatedServer,
}

/// The server whose answers a stage emulates, to test clients against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EmulatedServer {
    /// None: `/whep` and `/whip`, and a test card while there is no publisher.
    #[default]
    Stage,
    /// SRS since 7.0.121: `/rtc/v1/whip/?app=live&stream=NAME` and `/rtc/v1/whep/…`, only H.264,
    /// retransmissions on the original SSRC, no test card; a refusal has a status, and a code with
    /// its name.
    Srs,
    /// SRS before that: a refusal closes the connection without an answer.
    SrsSilent,
}

impl EmulatedServer {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Stage, "stage"), (Self::Srs, "srs"), (Self::SrsSilent, "srs-silent")];

    /// The server with this name on the command line, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(server, _)| server)
    }

    pub(crate) fn is_srs(self) -> bool {
        self != Self::Stage
    }

    /// Whether a stream without a publisher shows the test card.
    pub(crate) fn has_card(self) -> bool {
        !self.is_srs()
    }
}

/// The sizes of the built-in test card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Card {
    /// 640×360 at 30 fps, about 1 Mbit/s, H.264 or VP8.
    #[default]
    Standard,
    /// 320×180 at 15 fps, about 100 kbit/s, H.264 or VP8: for crowds beyond what a machine carries
    /// at full size.
    Low,
}

impl Card {
    /// The name in `?card=` and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Card::Standard => "standard",
            Card::Low => "low",
        }
    }

    /// The card called `name`, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Card::Standard, Card::Low].into_iter().find(|card| card.name() == name)
    }
}

/// Whether a figure is in its range.
pub(crate) fn within(
    field: &'static str,
    value: u64,
    range: RangeInclusive<u64>,
) -> Result<(), StageError> {
    if range.contains(&value) {
        return Ok(());
    }
    let range = format!("{} to {}", range.start(), range.end());
    Err(StageError::OutOfRange { field, value, range })
}

impl Default for StageConfig {
    fn default() -> Self {
        Self {
            http_listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7080),
            media_ip: None,
            listen_any: false,
            workers: 1,
            max_viewers: 10_000,
            egress_bps: None,
            egress_queue_ms: 200,
            planted: Planted::default(),
            bearer_token: None,
            card: Card::Standard,
            emulates: EmulatedServer::Stage,
        }
    }
}

impl StageConfig {
    /// The address of media.
    #[must_use]
    pub fn media_ip(&self) -> IpAddr {
        self.media_ip.unwrap_or_else(|| self.http_listen.ip())
    }

    /// Checks what can be checked without a socket.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), StageError> {
        let media_ip = self.media_ip();
        if let Some(ip) = [self.http_listen.ip(), media_ip].iter().find(|ip| !ip.is_loopback())
            && !self.listen_any
        {
            return Err(StageError::NotLoopback(SocketAddr::new(*ip, self.http_listen.port())));
        }
        if media_ip.is_unspecified() {
            return Err(StageError::Unspecified(media_ip));
        }
        within("workers", self.workers as u64, 1..=64)?;
        within("max_viewers", self.max_viewers as u64, 1..=100_000)?;
        within("egress_queue_ms", self.egress_queue_ms.into(), 1..=10_000)?;
        self.planted.validate()?;
        match self.egress_bps {
            Some(value) if !(10_000..=100_000_000_000).contains(&value) => {
                let range = "10 kbit/s to 100 Gbit/s".to_owned();
                Err(StageError::OutOfRange { field: "egress_bps", value, range })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_free() {
        let at = |address: &str, listen_any| StageConfig {
            http_listen: address.parse().unwrap(),
            listen_any,
            ..StageConfig::default()
        };
        assert!(at("127.0.0.1:0", false).validate().is_ok());
        assert!(at("[::1]:0", false).validate().is_ok());
        assert!(matches!(at("192.0.2.2:80", false).validate(), Err(StageError::NotLoopback(_))));
        assert!(at("192.0.2.2:80", true).validate().is_ok());
        assert!(matches!(at("0.0.0.0:80", false).validate(), Err(StageError::NotLoopback(_))));
        assert!(matches!(at("0.0.0.0:80", true).validate(), Err(StageError::Unspecified(_))));
        let with_media = |address, media: &str| StageConfig {
            media_ip: media.parse().ok(),
            ..at(address, true)
        };
        assert!(with_media("0.0.0.0:80", "192.0.2.2").validate().is_ok());
        let hidden = StageConfig { listen_any: false, ..with_media("127.0.0.1:80", "192.0.2.2") };
        assert!(matches!(hidden.validate(), Err(StageError::NotLoopback(_))));
    }

    #[test]
    fn figures_out_of_range_name_their_field() {
        let config = StageConfig { workers: 0, ..StageConfig::default() };
        assert_eq!(config.validate().unwrap_err().to_string(), "workers = 0 is outside 1 to 64");
        let config = StageConfig { egress_bps: Some(1), ..StageConfig::default() };
        assert!(config.validate().unwrap_err().to_string().starts_with("egress_bps = 1 "));
    }

    #[test]
    fn cards_are_found_by_their_names() {
        assert_eq!(Card::from_name("low"), Some(Card::Low));
        assert_eq!(Card::from_name("LOW"), None);
    }
}
