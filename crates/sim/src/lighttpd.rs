//! The real lighttpd (Debian's package) as a server of files over HTTP/1.1.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, wait_for_port};

/// Where Debian puts it, which is on the PATH of root only.
const LIGHTTPD: &str = "/usr/sbin/lighttpd";

/// A running lighttpd; it ends when dropped.
#[derive(Debug)]
pub struct Lighttpd {
    _process: ChildGuard,
    address: SocketAddr,
    _folder: TempDir,
}

impl Lighttpd {
    /// Starts lighttpd on a free port of 127.0.0.1 with the files below `files`.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn serving(files: &Path) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        // Bound and released: lighttpd cannot report which port the kernel chose.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let configuration = folder.path().join("lighttpd.conf");
        fs::write(&configuration, text(address, files))?;
        let log = folder.path().join("error.log");
        let written = fs::File::create(&log)?;
        let mut command = Command::new(LIGHTTPD);
        command.args(["-D", "-f"]).arg(&configuration);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(written);
        let process = ChildGuard::start(&mut command)?;
        if let Err(error) = wait_for_port("lighttpd", address, Duration::from_secs(10)) {
            let log = fs::read_to_string(&log).unwrap_or_default();
            return Err(SimError::Said(format!("{error}; its log:\n{log}")));
        }
        Ok(Self { _process: process, address, _folder: folder })
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists(LIGHTTPD).unwrap_or(false);
        if !is_installed {
            skipped("lighttpd is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn text(address: SocketAddr, files: &Path) -> String {
    let (files, host, port) = (files.display(), address.ip(), address.port());
    format!(
        "server.document-root = \"{files}\"
server.bind = \"{host}\"
server.port = {port}
server.max-connections = 4096
server.network-backend = \"sendfile\"
mimetype.assign = ( \".mp4\" => \"video/mp4\", \".ts\" => \"video/mp2t\", \".webm\" => \
         \"video/webm\" )
"
    )
}
