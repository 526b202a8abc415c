//! The real sshd (Debian's package) on loopback, with keys of its own and one user: the one that
//! runs the test.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, run, wait_for_port};

const PROGRAM: &str = "/usr/sbin/sshd";

/// A running sshd; it ends when dropped.
#[derive(Debug)]
pub struct Sshd {
    _process: ChildGuard,
    address: SocketAddr,
    folder: TempDir,
}

impl Sshd {
    /// Starts it on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn start() -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "user"] {
            run(Command::new("ssh-keygen").args([
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-f",
                &at(key),
            ]))?;
        }
        fs::copy(at("user.pub"), at("authorized"))?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        // The folder of privilege separation that the system's service makes.
        fs::create_dir_all("/run/sshd")?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let text = format!(
            "Port {}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile \
             none\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nUsePAM no\n",
            address.port(),
            at("host"),
            at("authorized")
        );
        fs::write(at("sshd_config"), text)?;
        let log = fs::File::create(at("log"))?;
        let mut command = Command::new(PROGRAM);
        command.args(["-D", "-e", "-f", &at("sshd_config")]);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = ChildGuard::start_before_others(&mut command)?;
        if let Err(error) = wait_for_port("sshd", address, Duration::from_secs(10)) {
            let log = fs::read_to_string(at("log")).unwrap_or_default();
            return Err(SimError::Said(format!("{error}; its log:\n{log}")));
        }
        Ok(Self { _process: process, address, folder })
    }

    /// Whether it is installed and may be started; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists(PROGRAM).unwrap_or(false);
        if !is_installed {
            skipped("sshd is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// The ssh that reaches it.
    #[must_use]
    pub fn ssh(&self) -> String {
        format!(
            "ssh -p {} -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o \
             LogLevel=ERROR",
            self.address.port(),
            self.folder.path().join("user").display()
        )
    }
}
