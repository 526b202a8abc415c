//! The real chrony (Debian's package): one that takes this host's clock for the truth, and one that
//! follows it over loopback. Neither controls the clock (`-x`).

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError};

const DAEMON: &str = "/usr/sbin/chronyd";
const CLIENT: &str = "/usr/bin/chronyc";

/// How long it may take until the second one follows the first.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(20);

/// A running chrony; it ends when dropped.
#[derive(Debug)]
pub struct Chrony {
    _server: ChildGuard,
    _follower: ChildGuard,
    folder: TempDir,
}

impl Chrony {
    /// Starts it, and waits until it knows its error.
    ///
    /// # Errors
    /// When it cannot be started or follows nobody; its log is part of the error.
    pub fn start() -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        // In a folder that others may read chronyd makes no command socket.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let served =
            format!("local stratum 1\nallow 127.0.0.1\nbindaddress 127.0.0.1\nport {port}\n");
        let server = daemon(folder.path(), "server", &served)?;
        let source = format!("server 127.0.0.1 port {port} minpoll -2 maxpoll -2 iburst\nport 0\n");
        let follower = daemon(folder.path(), "follower", &source)?;
        let chrony = Self { _server: server, _follower: follower, folder };
        chrony.make_wrapper()?;
        chrony.when_it_follows()?;
        Ok(chrony)
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed =
            [DAEMON, CLIENT].into_iter().all(|path| fs::exists(path).unwrap_or(false));
        if !is_installed {
            skipped("chrony is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// A `PATH` on which `chronyc` is one that asks this chrony.
    #[must_use]
    pub fn path(&self) -> String {
        let rest = std::env::var("PATH").unwrap_or_default();
        format!("{}:{rest}", self.folder.path().join("bin").display())
    }

    /// A program named chronyc that knows where this chrony listens. It does not share a clock that
    /// is faked for its parent.
    fn make_wrapper(&self) -> Result<(), SimError> {
        let bin = self.folder.path().join("bin");
        fs::create_dir(&bin)?;
        let socket = self.folder.path().join("follower.sock");
        let text =
            format!("#!/bin/sh\nunset LD_PRELOAD\nexec {CLIENT} -h {} \"$@\"\n", socket.display());
        let file = bin.join("chronyc");
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    fn when_it_follows(&self) -> Result<(), SimError> {
        let until = Instant::now() + FOLLOWS_WITHIN;
        loop {
            let mut asked = Command::new(self.folder.path().join("bin/chronyc"));
            let said = asked.args(["-n", "-c", "tracking"]).output()?;
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            if said.contains(",127.0.0.1,") && said.trim_end().ends_with(",Normal") {
                return Ok(());
            }
            if Instant::now() > until {
                let log =
                    fs::read_to_string(self.folder.path().join("follower.log")).unwrap_or_default();
                return Err(SimError::Said(format!(
                    "chrony follows nobody: {said}; its log:\n{log}"
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Starts a chronyd that leaves the clock alone, and listens for commands on a socket of its own
/// only.
fn daemon(folder: &Path, name: &str, lines: &str) -> Result<ChildGuard, SimError> {
    let at = |ending: &str| folder.join(format!("{name}.{ending}")).display().to_string();
    let own = format!("bindcmdaddress {}\npidfile {}\ncmdport 0\n", at("sock"), at("pid"));
    fs::write(at("conf"), format!("{lines}{own}"))?;
    let log = fs::File::create(at("log"))?;
    let mut command = Command::new(DAEMON);
    command.args(["-x", "-d", "-u", "root", "-f", &at("conf")]);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    ChildGuard::start(&mut command)
}
