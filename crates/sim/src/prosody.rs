//! The real Prosody (Debian's package) as a chat server: anonymous accounts, rooms with an archive,
//! XMPP over WebSocket.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, wait_for_port};

/// The domain of anonymous accounts.
pub const ANONYMOUS: &str = "anon.localhost";
/// The domain of accounts with a password: `ada` has `secret`.
pub const ACCOUNTS: &str = "accounts.localhost";
/// The service of the rooms.
pub const ROOMS: &str = "room.localhost";

/// A running Prosody; it ends when dropped.
#[derive(Debug)]
pub struct Prosody {
    process: ChildGuard,
    address: SocketAddr,
    folder: TempDir,
}

impl Prosody {
    /// Starts Prosody on a free port of 127.0.0.1; `room` are further lines of the configuration of
    /// its rooms.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn start(room: &str) -> Result<Self, SimError> {
        Self::start_with("", room)
    }

    /// The same with stream management (`mod_smacks`), which the Prosody of PeerTube's livechat
    /// does not have.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_managed() -> Result<Self, SimError> {
        Self::start_with("\"smacks\"", "")
    }

    fn start_with(module: &str, room: &str) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let configuration = folder.path().join("prosody.cfg.lua");
        fs::write(&configuration, text(folder.path(), address, module, room))?;
        write_account(folder.path())?;
        let log = folder.path().join("prosody.log");
        let written = fs::File::create(&log)?;
        let mut command = Command::new("prosody");
        command.arg("--config").arg(&configuration).arg("-F");
        command.stdin(Stdio::null()).stdout(written.try_clone()?).stderr(written);
        let process = ChildGuard::start(&mut command)?;
        if let Err(error) = wait_for_port("prosody", address, Duration::from_secs(20)) {
            let log = fs::read_to_string(&log).unwrap_or_default();
            return Err(SimError::Said(format!("{error}; its log:\n{log}")));
        }
        Ok(Self { process, address, folder })
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists("/usr/bin/prosody").unwrap_or(false);
        if !is_installed {
            skipped("prosody is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// The target of throng for anonymous participants of `room`.
    #[must_use]
    pub fn target(&self, room: &str) -> String {
        format!("xmpp+ws://{}/xmpp-websocket?room={room}@{ROOMS}&domain={ANONYMOUS}", self.address)
    }

    /// The same for the account `ada` with this password.
    #[must_use]
    pub fn target_of_ada(&self, password: &str, room: &str) -> String {
        format!(
            "xmpp+ws://ada:{password}@{}/xmpp-websocket?room={room}@{ROOMS}&domain={ACCOUNTS}",
            self.address
        )
    }

    /// The address of its WebSocket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its WebSocket.
    #[must_use]
    pub fn websocket(&self) -> String {
        format!("ws://{}/xmpp-websocket", self.address)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("prosody.log")).unwrap_or_default()
    }
}

/// The account, as `prosodyctl register` writes it with the authentication `internal_plain`.
fn write_account(folder: &Path) -> Result<(), SimError> {
    let accounts = folder.join("data").join(ACCOUNTS.replace('.', "%2e")).join("accounts");
    fs::create_dir_all(&accounts)?;
    let mut file = fs::File::create(accounts.join("ada.dat"))?;
    file.write_all(b"return { [\"password\"] = \"secret\"; };\n")?;
    Ok(())
}

fn text(folder: &Path, address: SocketAddr, module: &str, room: &str) -> String {
    let (folder, host, port) = (folder.display(), address.ip(), address.port());
    format!(
        "run_as_root = true
daemonize = false
pidfile = \"{folder}/prosody.pid\"
data_path = \"{folder}/data\"
log = {{ info = \"*console\" }}
interfaces = {{ \"{host}\" }}
c2s_ports = {{ }}
s2s_ports = {{ }}
http_ports = {{ {port} }}
http_interfaces = {{ \"{host}\" }}
https_ports = {{ }}
modules_enabled = {{ \"disco\"; \"roster\"; \"saslauth\"; \"carbons\"; \"ping\"; \"posix\"; \
         \"websocket\"; \"vcard\"; {module} }}
modules_disabled = {{ \"s2s\"; \"s2s_auth_certs\"; \"tls\"; \"offline\" }}
http_host = \"localhost\"
http_default_host = \"{ANONYMOUS}\"
consider_websocket_secure = true
cross_domain_websocket = true
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
limits = {{ }}
VirtualHost \"{ANONYMOUS}\"
  authentication = \"anonymous\"
VirtualHost \"{ACCOUNTS}\"
  authentication = \"internal_plain\"
  storage = \"internal\"
Component \"{ROOMS}\" \"muc\"
  modules_enabled = {{ \"muc_mam\" }}
  storage = \"memory\"
  muc_room_locking = false
  restrict_room_creation = false
  {room}
"
    )
}
