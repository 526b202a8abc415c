//! Network namespaces: an isolated network for one test, removed when the guard is dropped.
//!
//! Servers that refuse loopback for media (libnice, Chromium) get a veth pair with both ends in the
//! same namespace; packets to its address stay inside.

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::{SimError, run};

/// Makes names unique within a process; the process id makes them unique on the machine.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// `ETHTOOL_STXCSUM` of `linux/ethtool.h`.
const SET_SEND_CHECKSUMS: u32 = 0x17;

/// A network namespace with loopback up.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one; needs root. `purpose` (a few letters) shows in its name.
    ///
    /// # Errors
    /// When `ip netns` fails.
    pub fn new(purpose: &str) -> Result<Self, SimError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("throng-{purpose}-{}-{number}", std::process::id());
        run(Command::new("ip").args(["netns", "add", &name]))?;
        let namespace = Self { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// One with a veth pair, both ends inside, the first with `address`/24.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn with_veth(purpose: &str, address: Ipv4Addr) -> Result<Self, SimError> {
        let namespace = Self::new(purpose)?;
        namespace.ip(&["link", "add", "v0", "type", "veth", "peer", "name", "v1"])?;
        namespace.ip(&["addr", "add", &format!("{address}/24"), "dev", "v0"])?;
        namespace.ip(&["link", "set", "v0", "up"])?;
        namespace.ip(&["link", "set", "v1", "up"])?;
        Ok(namespace)
    }

    /// Two namespaces joined by a veth pair, `v0` in each, with these addresses/24.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn pair(purpose: &str, a: Ipv4Addr, b: Ipv4Addr) -> Result<(Self, Self), SimError> {
        let (first, second) = (Self::new(purpose)?, Self::new(purpose)?);
        first.ip(&[
            "link",
            "add",
            "v0",
            "type",
            "veth",
            "peer",
            "name",
            "v0",
            "netns",
            &second.name,
        ])?;
        for (namespace, address) in [(&first, a), (&second, b)] {
            // An address of IPv6 that comes a second later is another network to a browser, which
            // breaks off what it fetches.
            namespace.ip(&["link", "set", "v0", "addrgenmode", "none"])?;
            namespace.ip(&["addr", "add", &format!("{address}/24"), "dev", "v0"])?;
            namespace.ip(&["link", "set", "v0", "up"])?;
        }
        Ok((first, second))
    }

    /// Waits until its `v0` carries packets: Linux sets `IFF_RUNNING` up to a second after both
    /// ends are up, and until then Janus ignores the interface.
    ///
    /// # Errors
    /// When it does not.
    pub fn when_running(&self) -> Result<(), SimError> {
        let within = Duration::from_secs(5);
        let until = Instant::now() + within;
        loop {
            let shown =
                run(Command::new("ip").args(["-n", &self.name, "link", "show", "dev", "v0"]))?;
            if String::from_utf8_lossy(&shown.stdout).contains("state UP") {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(SimError::NotReady {
                    what: "v0".into(),
                    within_ms: within.as_millis(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Gives one more `address`/24 to its interface `v0`.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn add_address(&self, address: Ipv4Addr) -> Result<(), SimError> {
        self.ip(&["addr", "add", &format!("{address}/24"), "dev", "v0"])
    }

    /// Sets the MTU of `device`, bytes.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn set_mtu(&self, device: &str, bytes: u32) -> Result<(), SimError> {
        self.ip(&["link", "set", device, "mtu", &bytes.to_string()])
    }

    /// Sets the ports that the kernel gives to sockets that ask for none
    /// (`net.ipv4.ip_local_port_range`).
    ///
    /// # Errors
    /// When the kernel refuses them.
    pub fn set_local_ports(&self, ports: &RangeInclusive<u16>) -> Result<(), SimError> {
        let text = format!("{} {}", ports.start(), ports.end());
        // The kernel opens the file of the thread's own namespace.
        self.enter(|| std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", text))?
            .map_err(SimError::Io)
    }

    /// Whether packets that `device` sends leave the kernel without their checksum, for a card to
    /// compute, and joined ones (`UDP_SEGMENT`) as one frame. A veth pair does both unless told
    /// otherwise (`ethtool --offload v0 tx off`).
    ///
    /// # Errors
    /// When the kernel cannot change it.
    pub fn set_send_offload(&self, device: &str, is_on: bool) -> Result<(), SimError> {
        self.enter(|| set_send_checksums(device, is_on))?.map_err(SimError::Io)
    }

    /// Sets what programs started by [`Self::command`] resolve `name` to. Other names do not
    /// resolve: the only name server is a closed port of the namespace's loopback (ip-netns(8),
    /// `/etc/netns`).
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn resolve(&self, name: &str, addresses: &[Ipv4Addr]) -> Result<(), SimError> {
        let folder = self.files();
        std::fs::create_dir_all(&folder)?;
        let lines = addresses.iter().map(|address| format!("{address} {name}\n"));
        std::fs::write(
            folder.join("hosts"),
            format!("127.0.0.1 localhost\n{}", lines.collect::<String>()),
        )?;
        std::fs::write(
            folder.join("resolv.conf"),
            "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
        )?;
        Ok(())
    }

    fn files(&self) -> PathBuf {
        Path::new("/etc/netns").join(&self.name)
    }

    /// Its name, as `ip netns` knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `program`, to be run inside.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// `ip ARGS` about this namespace.
    ///
    /// # Errors
    /// When it fails.
    pub fn ip(&self, args: &[&str]) -> Result<(), SimError> {
        run(Command::new("ip").args(["-n", &self.name]).args(args)).map(drop)
    }

    /// Runs `act` on a thread inside; sockets made there stay there.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, SimError> {
        let path = format!("/run/netns/{}", self.name);
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let namespace = File::open(&path)?;
                // SAFETY: the descriptor is open for the whole call; only this short-lived thread
                // changes namespace.
                if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                    return Err(SimError::Io(std::io::Error::last_os_error()));
                }
                Ok(act())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Drops `per_mille` of the UDP packets to `port` (any, when `None`) that arrive here, each by
    /// its own chance (nft `numgen random`), as a lossy path does: before sockets and packet
    /// sockets. Replaces an earlier loss.
    ///
    /// # Errors
    /// When `ip` or `nft` fails.
    pub fn lose(&self, per_mille: u16, port: Option<u16>) -> Result<(), SimError> {
        let shown = run(Command::new("ip").args(["-n", &self.name, "-o", "link", "show"]))?;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        // `2: v0@if3: <BROADCAST,…`
        let device = |line: &str| Some(line.split(": ").nth(1)?.split('@').next()?.to_owned());
        let devices: Vec<String> = shown.lines().filter_map(device).collect();
        self.drop_some(
            "netdev",
            &format!("ingress devices = {{ {} }}", devices.join(", ")),
            per_mille,
            port,
        )
    }

    /// The same by a rule of a firewall, which packet sockets (packet(7)) do not feel.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn lose_in_firewall(&self, per_mille: u16, port: Option<u16>) -> Result<(), SimError> {
        self.drop_some("inet", "input", per_mille, port)
    }

    fn drop_some(
        &self,
        family: &str,
        hook: &str,
        per_mille: u16,
        port: Option<u16>,
    ) -> Result<(), SimError> {
        let port = port.map_or_else(String::new, |port| format!("udp dport {port} "));
        let _ = self.lose_nothing();
        let rules = format!(
            "table {family} throng {{\nchain input {{\ntype filter hook {hook} priority 0;\n\
             meta l4proto udp {port}numgen random mod 1000 < {per_mille} counter drop\n}}\n}}\n"
        );
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), rules)?;
        run(self.command("nft").arg("-f").arg(file.path())).map(drop)
    }

    /// How many packets [`Self::lose`] or [`Self::lose_in_firewall`] has dropped.
    ///
    /// # Errors
    /// When `nft` fails or nothing was asked to be lost.
    pub fn lost(&self) -> Result<u64, SimError> {
        let listed = run(self.command("nft").args(["list", "ruleset"]))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut words = listed.split_whitespace().skip_while(|word| *word != "packets");
        let count = words.nth(1).and_then(|count| count.parse().ok());
        count.ok_or_else(|| SimError::Said(format!("no counter in: {listed}")))
    }

    /// Takes the loss away.
    ///
    /// # Errors
    /// When `nft` fails.
    pub fn lose_nothing(&self) -> Result<(), SimError> {
        run(self.command("nft").args(["flush", "ruleset"])).map(drop)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.files());
        // Nothing more can be done about a namespace that does not go.
        let _ = run(Command::new("ip").args(["netns", "del", &self.name]));
    }
}

/// By netdevice(7), `SIOCETHTOOL`.
fn set_send_checksums(device: &str, is_on: bool) -> std::io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // `struct ethtool_value`: the command and its operand.
    let mut value = [SET_SEND_CHECKSUMS, u32::from(is_on)];
    // SAFETY: all-zero is a valid `ifreq`: integers, and a union of integers and a pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero, and ends the name.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(device.as_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: SIOCETHTOOL reads one `ifreq` and the 8 bytes to which it points; both outlive the
    // call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
