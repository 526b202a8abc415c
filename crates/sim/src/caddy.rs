//! The real Caddy (Debian's package) as a server of files over HTTP/1.1, HTTP/2 and HTTP/3.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, wait_for_port};

/// Where Debian puts it.
const CADDY: &str = "/usr/bin/caddy";

/// A running Caddy; it ends when dropped.
#[derive(Debug)]
pub struct Caddy {
    process: ChildGuard,
    address: SocketAddr,
    folder: TempDir,
}

impl Caddy {
    /// Starts Caddy on a free port of 127.0.0.1, TCP and UDP, with a certificate of its own and the
    /// files below `files`.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn serving(files: &Path) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        let certified =
            rcgen::generate_simple_self_signed(["localhost".into(), "127.0.0.1".into()])
                .map_err(|error| SimError::Said(error.to_string()))?;
        fs::write(folder.path().join("cert.pem"), certified.cert.pem())?;
        fs::write(folder.path().join("key.pem"), certified.signing_key.serialize_pem())?;
        let address = free_port()?;
        let configuration = folder.path().join("Caddyfile");
        fs::write(&configuration, caddyfile(address, folder.path(), files))?;
        let log = folder.path().join("log");
        let written = fs::File::create(&log)?;
        let mut command = Command::new(CADDY);
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&configuration);
        command.env("XDG_DATA_HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(written);
        let process = ChildGuard::start(&mut command)?;
        if let Err(error) = wait_for_port("caddy", address, Duration::from_secs(20)) {
            let log = fs::read_to_string(&log).unwrap_or_default();
            return Err(SimError::Said(format!("{error}; its log:\n{log}")));
        }
        Ok(Self { process, address, folder })
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists(CADDY).unwrap_or(false);
        if !is_installed {
            skipped("caddy is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// Where it listens: TLS over TCP, and QUIC over UDP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its access log, in JSON.
    #[must_use]
    pub fn access_log(&self) -> PathBuf {
        self.folder.path().join("access.log")
    }

    /// Its certificate (PEM), for clients that are to trust it.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }
}

/// A port that is free for TCP and UDP. Bound and released: Caddy cannot report which port the
/// kernel chose.
fn free_port() -> Result<SocketAddr, SimError> {
    for _ in 0..20 {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = tcp.local_addr()?;
        if UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(SimError::Said("no port is free for both TCP and UDP".into()))
}

fn caddyfile(address: SocketAddr, folder: &Path, files: &Path) -> String {
    let (folder, files, port) = (folder.display(), files.display(), address.port());
    format!(
        "{{
  admin off
  auto_https off
  storage file_system {folder}
  default_bind 127.0.0.1
  servers {{
    protocols h1 h2 h3
  }}
}}
https://localhost:{port}, https://127.0.0.1:{port} {{
  tls {folder}/cert.pem {folder}/key.pem
  log {{
    output file {folder}/access.log
  }}
  root * {files}
  file_server
}}
"
    )
}
