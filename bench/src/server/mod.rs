//! The servers on which a join is measured: each speaks another signalling protocol, and none sends
//! media to viewers, so that the CPU time of a generator is that of its joins.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use throng_sim::janus::{self, Janus};
use throng_sim::livekit;
use throng_sim::namespace::Namespace;

use self::livekit_room::LiveKitRoom;
use self::ome::OmeServer;
use crate::generator::Target;
use crate::process::Running;

mod livekit_room;

mod ome;

/// The address of all media: an address of the namespace only. Signalling is on its loopback.
pub const MEDIA: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// How long servers other than LiveKit get to free the viewers of the last run.
const PAUSE: Duration = Duration::from_secs(2);

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ServerKind {
    /// Debian's Janus: a mountpoint of the Streaming plugin into which nothing is sent
    Janus,
    /// The real LiveKit server: a room with one publisher whose tracks are muted
    Livekit,
    /// OvenMediaEngine's signalling before a session that sends nothing
    Ome,
    /// `throng stage --as srs`: WHEP, a stream that nobody publishes
    Srs,
}

impl ServerKind {
    /// All.
    pub const ALL: [Self; 4] = [Self::Janus, Self::Livekit, Self::Ome, Self::Srs];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Janus => "Janus (real)",
            Self::Livekit => "LiveKit (real)",
            Self::Ome => "OME-like",
            Self::Srs => "SRS-like (stage)",
        }
    }

    /// Name and version of the server, where it is not this project's own.
    #[must_use]
    pub fn version(self) -> Option<String> {
        (self == Self::Livekit).then(|| format!("LiveKit {}", livekit::VERSION))
    }
}

/// A running server; it ends on drop.
#[derive(Debug)]
pub struct TestServer<'a> {
    server: Server<'a>,
}

#[derive(Debug)]
enum Server<'a> {
    /// Only kept: it ends on drop.
    Janus {
        _running: Janus<'a>,
    },
    LiveKit(Box<LiveKitRoom<'a>>),
    Ome(OmeServer<'a>),
    Srs {
        _running: Running,
    },
}

impl<'a> TestServer<'a> {
    /// Starts it in a namespace that has [`MEDIA`]. `throng` is the binary; run folders of the
    /// server go into `folder`.
    ///
    /// # Errors
    /// If the server is not installed or does not come up.
    pub fn start(
        kind: ServerKind,
        namespace: &'a Namespace,
        throng: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let server = match kind {
            ServerKind::Janus => Server::Janus { _running: Janus::start(namespace, MEDIA)? },
            ServerKind::Livekit => Server::LiveKit(Box::new(LiveKitRoom::start(
                namespace,
                throng,
                &folder.join("publisher"),
            )?)),
            ServerKind::Ome => Server::Ome(OmeServer::start(namespace)?),
            ServerKind::Srs => Server::Srs { _running: srs(namespace, throng)? },
        };
        Ok(Self { server })
    }

    /// What to send viewers at.
    #[must_use]
    pub fn target(&self) -> Target {
        match &self.server {
            Server::Janus { .. } => Target::new(format!(
                "janus+ws://127.0.0.1:{}/streaming/{}",
                janus::PORT,
                janus::H264
            )),
            Server::LiveKit(_) => LiveKitRoom::target(),
            Server::Ome(server) => Target::new(server.url()),
            Server::Srs { .. } => {
                Target::new("whep+http://127.0.0.1:7080/rtc/v1/whep/?app=live&stream=nobody")
            }
        }
    }

    /// Waits until the viewers of the last run are gone.
    ///
    /// # Errors
    /// If LiveKit does not let them go.
    pub fn clear(&self) -> Result<()> {
        std::thread::sleep(PAUSE);
        match &self.server {
            Server::LiveKit(room) => room.clear(),
            _ => Ok(()),
        }
    }
}

/// The stage as SRS: it plays no test card, so that viewers of a stream without a publisher receive
/// nothing.
fn srs(namespace: &Namespace, throng: &Path) -> Result<Running> {
    let mut command = namespace.command(&throng.to_string_lossy());
    command.args(["stage", "--as", "srs", "--listen", "127.0.0.1:7080", "--listen-any"]);
    command.args(["--media-ip", &MEDIA.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut stage = Running::start(&mut command)?;
    let output = stage.child().stdout.take().context("its output is not piped")?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    lines.find(|line| line.trim().starts_with("watch")).context("the stage did not start")?;
    // What follows is read and dropped: a stage whose output nobody reads fails when it writes
    // more.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(stage)
}

/// Asks each 200 ms until `is_so`, for at most `within`.
fn until(within: Duration, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + within;
    while !is_so()? {
        anyhow::ensure!(Instant::now() < end, "{what}: not within {} s", within.as_secs());
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
