//! VLC as an RTSP server (Debian's package): MPEG-2 or H.264 from one file, by UDP only. It answers
//! 461 to a client that asks for media interleaved in the RTSP connection.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::MediaFile;
use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, wait_for_port};

const VLC: &str = "/usr/bin/cvlc";
/// The only mount.
const MOUNT: &str = "/v";

/// A running VLC that plays a file in a loop; it ends when dropped.
#[derive(Debug)]
pub struct Vlc {
    _process: ChildGuard,
    address: SocketAddr,
    folder: TempDir,
}

impl Vlc {
    /// Starts it on a free port of 127.0.0.1. It does not run as root, so it becomes `nobody`,
    /// which needs root.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn start(file: MediaFile) -> Result<Self, SimError> {
        let file = file.path()?;
        let folder = tempfile::tempdir()?;
        // Its home, where it writes its settings.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777))?;
        // Bound and released: VLC cannot report which port the kernel chose.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let log = fs::File::create(folder.path().join("log"))?;
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", VLC]);
        command.args(["-I", "dummy", "--no-video-title-show", "--loop"]).arg(file);
        command.arg("--sout").arg(format!("#rtp{{sdp=rtsp://{address}{MOUNT}}}"));
        command.args(["--sout-keep", "--sout-all"]);
        command.env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let vlc = Self { _process: ChildGuard::start(&mut command)?, address, folder };
        match wait_for_port("VLC", address, Duration::from_secs(15)) {
            Ok(_) => Ok(vlc),
            Err(error) => Err(SimError::Said(format!("{error}; its log:\n{}", vlc.log()))),
        }
    }

    /// Whether it is installed and can become another user; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists(VLC).unwrap_or(false);
        if !is_installed {
            skipped("VLC is not installed (scripts/setup.sh test)");
            return false;
        }
        // SAFETY: geteuid has no preconditions and cannot fail.
        let is_root = unsafe { libc::geteuid() } == 0;
        if !is_root {
            skipped("VLC is started as another user, which needs root");
        }
        is_root
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of what it plays.
    #[must_use]
    pub fn url(&self) -> String {
        format!("rtsp://{}{MOUNT}", self.address)
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}
