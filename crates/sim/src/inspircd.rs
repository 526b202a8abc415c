//! The real InspIRCd (Debian's package) as a chat server: IRC over WebSocket.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, wait_for_port};

/// A running InspIRCd; it ends when dropped.
#[derive(Debug)]
pub struct InspIrcd {
    process: ChildGuard,
    address: SocketAddr,
    folder: TempDir,
}

impl InspIrcd {
    /// Starts InspIRCd on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn start() -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let configuration = folder.path().join("inspircd.conf");
        fs::write(&configuration, text(folder.path(), address))?;
        let said = fs::File::create(folder.path().join("said"))?;
        let mut command = Command::new("/usr/sbin/inspircd");
        command
            .args(["--nofork", "--runasroot"])
            .arg(format!("--config={}", configuration.display()));
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let process = ChildGuard::start(&mut command)?;
        let started = Self { process, address, folder };
        match wait_for_port("inspircd", address, Duration::from_secs(20)) {
            Ok(_) => Ok(started),
            Err(error) => Err(SimError::Said(format!("{error}; it says:\n{}", started.log()))),
        }
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists("/usr/sbin/inspircd").unwrap_or(false);
        if !is_installed {
            skipped("inspircd is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// Its WebSocket.
    #[must_use]
    pub fn websocket(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> String {
        let read =
            |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        read("said") + &read("log")
    }
}

/// Without limits on what a client may send: a crowd comes from one address.
fn text(folder: &Path, address: SocketAddr) -> String {
    let (folder, host, port) = (folder.display(), address.ip(), address.port());
    format!(
        r#"<server name="irc.localhost" description="test" network="test">
<admin name="test" nick="test" email="test@localhost">
<path configdir="{folder}" datadir="{folder}" logdir="{folder}"
      moduledir="/usr/lib/inspircd/modules" runtimedir="{folder}">
<pid file="{folder}/inspircd.pid">
<module name="sha1">
<module name="websocket">
<websocket defaultmode="text">
<wsorigin allow="*">
<bind address="{host}" port="{port}" type="clients" hook="websocket">
<connect name="all" allow="*" timeout="60" pingfreq="5"
         commandrate="100000" fakelag="no" threshold="100000"
         recvq="1M" softsendq="10M" hardsendq="10M" localmax="10000" globalmax="10000"
         resolvehostnames="no" useident="no">
<limits maxnick="64">
<options defaultmodes="nt">
<log method="file" type="* -USERINPUT -USEROUTPUT" level="default" target="{folder}/log">
"#
    )
}
