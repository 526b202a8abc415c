//! The real RTSP server of GStreamer (Debian's gst-rtsp-server), for PLAY and RECORD.
//!
//! Mounts that play a file, each client from its start: `/h264` (H.264 and AAC), `/h264-b` (the
//! same with B-frames), `/mpeg2` (MPEG-2 video, payload type 32, and MP2, 14), `/ts` (an MPEG
//! transport stream, 33), `/h265`, `/mpeg4` (part 2), `/mjpeg` (26), `/pcma` (8), `/mp3` (14).
//! `/live` is one endless H.264 and Opus for all clients, `/live-2m` the same at 2 Mbit/s. Mounts
//! for RECORD: `/record` (H.264), `/record-vp8`, `/record-aac` and `/record-opus` (H.264, then
//! sound).

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::options::{Options, configure};
use crate::namespace::Namespace;
use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError};

/// Debian's: the bindings are not in the library of any other Python.
const PYTHON: &str = "/usr/bin/python3";
const PROGRAM: &str = include_str!("gst_server.py");
/// The first start on a machine scans all plugins of GStreamer.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// What a client has sent to a mount for RECORD.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Recording {
    /// Per stream, in the order of the client's SDP.
    pub streams: Vec<RecordedStream>,
}

/// One stream; its counters are up to 100 ms old.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct RecordedStream {
    /// An MPEG transport stream of its own; it can be read while the client sends.
    pub file: PathBuf,
    /// RTP packets that came from the network.
    pub arrived_packets: u64,
    /// RTP packets between the first and the last that arrived which did not; meaningful where
    /// nothing is reordered.
    pub missing_packets: u64,
    /// Those of them with the marker bit, which ends a frame of video.
    pub arrived_frames: u64,
    /// RTP packets that came out of the jitter buffer; at TEARDOWN it drops what it holds.
    pub packets: u64,
    /// Whole frames out of those.
    pub frames: u64,
    /// Bytes of the frames.
    pub bytes: u64,
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct GstRtspServer {
    process: ChildGuard,
    address: SocketAddr,
    options: Options,
    folder: TempDir,
}

impl GstRtspServer {
    /// Starts it on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn start(options: &Options) -> Result<Self, SimError> {
        Self::launched(Command::new(PYTHON), Ipv4Addr::LOCALHOST, 0, options)
    }

    /// Starts it in `namespace` on an address of it and port 554, media included.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_in(
        namespace: &Namespace,
        address: Ipv4Addr,
        options: &Options,
    ) -> Result<Self, SimError> {
        Self::launched(namespace.command(PYTHON), address, 554, options)
    }

    fn launched(
        mut command: Command,
        address: Ipv4Addr,
        port: u16,
        options: &Options,
    ) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("gst_server.py"), PROGRAM)?;
        configure(folder.path(), address, port, options)?;
        let log = fs::File::create(folder.path().join("log"))?;
        command.arg(folder.path().join("gst_server.py")).arg(folder.path().join("settings.json"));
        command
            .env("GST_DEBUG", "1")
            .env("GST_DEBUG_NO_COLOR", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = ChildGuard::start(&mut command)?;
        let address = SocketAddr::from((address, port));
        let mut server = Self { process, address, options: options.clone(), folder };
        let port = server.listening()?;
        server.address.set_port(port);
        Ok(server)
    }

    /// Waits until it says which port it listens on.
    fn listening(&mut self) -> Result<u16, SimError> {
        let until = Instant::now() + READY_WITHIN;
        loop {
            let log = self.log();
            let port =
                log.lines().find_map(|line| line.strip_prefix("listening ")?.trim().parse().ok());
            if let Some(port) = port {
                return Ok(port);
            }
            let ended = self.process.child().try_wait()?;
            if ended.is_some() || Instant::now() > until {
                let state = ended
                    .map_or_else(|| "does not listen".into(), |status| format!("ended: {status}"));
                return Err(SimError::Said(format!("gst-rtsp-server {state}; its log:\n{log}")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let libraries = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let needs = [
            (
                "gir1.2-gst-rtsp-server-1.0",
                format!("{libraries}/girepository-1.0/GstRtspServer-1.0.typelib"),
            ),
            ("python3-gi", "/usr/lib/python3/dist-packages/gi".into()),
            ("gstreamer1.0-plugins-base", format!("{libraries}/gstreamer-1.0/libgstopus.so")),
            ("gstreamer1.0-plugins-good", format!("{libraries}/gstreamer-1.0/libgstrtp.so")),
            (
                "gstreamer1.0-plugins-bad",
                format!("{libraries}/gstreamer-1.0/libgstvideoparsersbad.so"),
            ),
            ("gstreamer1.0-plugins-ugly", format!("{libraries}/gstreamer-1.0/libgstx264.so")),
            ("glib-networking", format!("{libraries}/gio/modules/libgiognutls.so")),
            ("ffmpeg", "/usr/bin/ffmpeg".into()),
        ];
        let missing = needs.iter().find(|(_, file)| !Path::new(file).exists());
        if let Some((package, _)) = missing {
            skipped(&format!(
                "gst-rtsp-server cannot run without {package} (scripts/setup.sh test)"
            ));
        }
        missing.is_none()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a mount such as `/h264`, without the login.
    #[must_use]
    pub fn url(&self, mount: &str) -> String {
        format!("{}://{}{mount}", self.scheme(), self.address)
    }

    /// The URL of a mount with the login, as players take it.
    #[must_use]
    pub fn url_with_login(&self, mount: &str) -> String {
        let login = self.options.login.as_ref();
        let login =
            login.map_or_else(String::new, |login| format!("{}:{}@", login.user, login.password));
        format!("{}://{login}{}{mount}", self.scheme(), self.address)
    }

    fn scheme(&self) -> &'static str {
        if self.options.tls { "rtsps" } else { "rtsp" }
    }

    /// Its certificate (PEM), for clients that are to trust it.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// The process, for measuring it. In a namespace it is `ip netns exec`, which becomes the
    /// server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What RECORD clients have sent so far, in the order in which they came.
    ///
    /// # Errors
    /// When its counters cannot be read.
    pub fn recordings(&self) -> Result<Vec<Recording>, SimError> {
        let path = self.folder.path().join("counters.json");
        if !path.exists() {
            return Ok(Vec::new());
        }
        serde_json::from_slice(&fs::read(&path)?)
            .map_err(|error| SimError::Said(format!("{}: {error}", path.display())))
    }
}
