//! The real coturn (Debian's package): a TURN server on loopback, over UDP and TCP, or a STUN and
//! TURN server in a namespace, over TLS too.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::support::{ChildGuard, SimError, wait_for_port};

/// Relayed addresses are 127.0.0.1 with one of these ports: below those that Linux hands out to
/// clients by itself.
pub const RELAYED_PORTS: RangeInclusive<u16> = 20_000..=20_999;
/// The user of the long-term credentials.
pub const USER: &str = "viewer";
/// The user's password.
pub const PASSWORD: &str = "sesame";

/// The address of its TLS listener, in a namespace.
pub const TLS_PORT: u16 = 5349;

const READY_WITHIN: Duration = Duration::from_secs(10);

/// A running coturn; it ends when dropped.
#[derive(Debug)]
pub struct Coturn {
    address: SocketAddr,
    process: ChildGuard,
    folder: TempDir,
}

impl Coturn {
    /// Starts it on a free port of 127.0.0.1, and waits until it accepts connections.
    ///
    /// # Errors
    /// When coturn is not installed or does not come up; its log is part of the error.
    pub fn start() -> Result<Self, SimError> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self::launched(Command::new("turnserver"), address, None, || {
            wait_for_port("coturn", address, READY_WITHIN)
        })
    }

    /// Starts it on `address` in `namespace`, on the ports of STUN and TURN; TLS with a certificate
    /// of its own.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_in(namespace: &Namespace, address: Ipv4Addr) -> Result<Self, SimError> {
        let address = SocketAddr::from((address, 3478));
        Self::launched(namespace.command("turnserver"), address, Some(TLS_PORT), || {
            namespace.enter(|| wait_for_port("coturn", address, READY_WITHIN))?
        })
    }

    fn launched(
        mut command: Command,
        address: SocketAddr,
        tls_port: Option<u16>,
        wait: impl FnOnce() -> Result<TcpStream, SimError>,
    ) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        let (ip, port) = (address.ip(), address.port());
        let path = folder.path().display();
        let tls = match tls_port {
            None => "no-tls".to_owned(),
            Some(port) => {
                let certified = rcgen::generate_simple_self_signed([ip.to_string()])
                    .map_err(|error| SimError::Said(error.to_string()))?;
                fs::write(folder.path().join("cert.pem"), certified.cert.pem())?;
                fs::write(folder.path().join("key.pem"), certified.signing_key.serialize_pem())?;
                format!("tls-listening-port={port}\ncert={path}/cert.pem\npkey={path}/key.pem")
            }
        };
        let configuration = format!(
            "listening-ip={ip}\nrelay-ip={ip}\nlistening-port={port}\nmin-port={}\nmax-port={}\n\
             realm=throng.test\nlt-cred-mech\nuser={USER}:{PASSWORD}\nallow-loopback-peers\n\
             no-cli\n{tls}\nno-dtls\nno-stdout-log\nlog-file={path}/log\nsimple-log\n\
             pidfile={path}/pid\nuserdb={path}/users\nfingerprint\n",
            RELAYED_PORTS.start(),
            RELAYED_PORTS.end()
        );
        fs::write(folder.path().join("configuration"), configuration)?;
        command.arg("-c").arg(folder.path().join("configuration"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ChildGuard::start(&mut command)?;
        let coturn = Self { address, process, folder };
        match wait() {
            Ok(_) => Ok(coturn),
            Err(error) => Err(SimError::Said(format!("{error}; its log:\n{}", coturn.log()))),
        }
    }

    /// The URI of the server, reached by `transport` (`tcp` or `udp`; in a namespace also `tls`).
    #[must_use]
    pub fn uri(&self, transport: &str) -> String {
        if transport == "tls" {
            return format!("turns:{}:{TLS_PORT}?transport=tcp", self.address.ip());
        }
        format!("turn:{}?transport={transport}", self.address)
    }

    /// How many allocations it holds: relayed sockets that it has open. Other tests may have a
    /// coturn of their own.
    ///
    /// # Errors
    /// When the kernel's tables cannot be read.
    pub fn allocations(&self) -> Result<usize, SimError> {
        let relayed = relayed_sockets(&fs::read_to_string("/proc/net/udp")?);
        let mut held = 0;
        for descriptor in fs::read_dir(format!("/proc/{}/fd", self.process.id()))? {
            // One that was closed meanwhile holds nothing.
            let Ok(leads_to) = fs::read_link(descriptor?.path()) else { continue };
            let inode =
                leads_to.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']'));
            held += usize::from(
                inode.is_some_and(|inode| relayed.iter().any(|socket| socket == inode)),
            );
        }
        Ok(held)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// The inodes of the sockets of `/proc/net/udp` on relayed ports: `sl: local_address ...` with the
/// address as `0100007F:4E20`, the inode in the tenth column.
fn relayed_sockets(table: &str) -> Vec<String> {
    let sockets = table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace();
        let (_, port) = columns.nth(1)?.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        Some(columns.nth(7)?.to_owned()).filter(|_| RELAYED_PORTS.contains(&port))
    });
    sockets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relayed_sockets_are_found_in_the_kernels_table() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            1: 0100007F:4E20 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 31 2 0 0\n\
            2: 0100007F:5208 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 32 2 0 0\n\
            3: 00000000:0D96 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 33 2 0 0\n";
        assert_eq!(relayed_sockets(table), ["31"]);
        assert!(relayed_sockets("").is_empty());
    }
}
