//! Workers on other hosts by the user's ssh, and a bus of their own, for one run, or for the runs
//! of a matrix one after the other.
//!
//! The bus listens on this host's loopback only; each ssh carries it to the loopback of its host
//! (`ssh -R`), so that nothing else on either side's network reaches it, and ssh's encryption and
//! accounts are those of the fleet.

use std::collections::VecDeque;
use std::io::{BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_fleet::{BusConfig, FleetError};
use throng_observation::{shell, untrusted};
use throng_process::{Ended, Started, end_with_this_thread};

use crate::args::{Common, Fleet};
use crate::console::CliError;
use crate::secrets;

/// How long the bus may take to listen.
const BUS_WITHIN: Duration = Duration::from_secs(5);

/// Lines of a worker that are kept for the case that it does not come.
const LINES_KEPT: usize = 4;

/// Where packages install the bus, besides the folders of `PATH`.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The bus with its folder: both end with the input or by SIGTERM, however this process ends. What
/// comes twice does not end the removal.
const KEEPER: &str = "trap : TERM; \"$1\" --config \"$2/bus.conf\" & read -r line; trap '' TERM; \
                      kill -9 $!; rm -rf \"$2\"";

/// How long the workers stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    ForOneRun,
    RunAfterRun,
}

/// A bus and workers that end with this value.
pub(crate) struct Remote {
    bus: PrivateBus,
    workers: Vec<RemoteWorker>,
}

struct RemoteWorker {
    host: String,
    ssh: Child,
    _registered: Started,
    said: Arc<Mutex<VecDeque<String>>>,
}

impl Remote {
    /// Starts the bus, and a worker on each host of `--on`; `None` without that flag.
    pub(super) fn start(flags: &Fleet, common: &Common) -> Result<Option<Self>, CliError> {
        Self::start_for(Stay::ForOneRun, flags, &common.allow_target)
    }

    /// The same for run after run.
    pub(super) fn start_to_stay(
        flags: &Fleet,
        allow_target: &[String],
    ) -> Result<Option<Self>, CliError> {
        Self::start_for(Stay::RunAfterRun, flags, allow_target)
    }

    fn start_for(
        stay: Stay,
        flags: &Fleet,
        allow_target: &[String],
    ) -> Result<Option<Self>, CliError> {
        if flags.on.is_empty() {
            return Ok(None);
        }
        let bus = PrivateBus::start()?;
        let mut remote = Self { bus, workers: Vec::new() };
        for host in &flags.on {
            let worker = RemoteWorker::start(host, &remote.bus, stay, flags, allow_target)?;
            remote.workers.push(worker);
        }
        Ok(Some(remote))
    }

    pub(super) fn bus(&self) -> Result<BusConfig, FleetError> {
        BusConfig::at(&self.bus_address())
    }

    /// Where its bus is on this host, with its password.
    pub(super) fn bus_address(&self) -> String {
        self.bus.url_at(self.bus.address.port())
    }

    pub(super) fn count(&self) -> usize {
        self.workers.len()
    }

    /// What workers said that have ended, for the case that they do not come.
    pub(super) fn problems(&mut self) -> String {
        let ended = self.workers.iter_mut().filter_map(|worker| {
            let status = worker.ssh.try_wait().ok().flatten()?;
            let said = worker.said.lock().unwrap_or_else(PoisonError::into_inner);
            let lines: Vec<&str> = said.iter().map(String::as_str).collect();
            Some(format!("; {}: {status}: {}", worker.host, lines.join(" / ")))
        });
        ended.collect()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // The worker on the other side ends with its input.
            let _ = worker.ssh.kill();
            let _ = worker.ssh.wait();
        }
    }
}

impl RemoteWorker {
    fn start(
        host: &str,
        bus: &PrivateBus,
        stay: Stay,
        flags: &Fleet,
        allow_target: &[String],
    ) -> Result<Self, CliError> {
        if host.is_empty() || host.starts_with('-') {
            return Err(CliError::usage(format!("--on: `{host}` is no host")));
        }
        let ssh = flags.ssh.as_deref().unwrap_or("ssh");
        let mut words = ssh.split_whitespace();
        let program = words.next().ok_or_else(|| CliError::usage("--ssh is empty"))?;
        // Any port that is free here is likely to be free there, and two workers of one host need
        // two.
        let there = free_port()?;
        let mut command = Command::new(program);
        command.args(words).args(["-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes"]);
        command.arg("-R").arg(format!("127.0.0.1:{there}:{}", bus.address)).arg(host);
        command.arg(remote_command(host, stay, flags, allow_target));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C must not take the bus from workers that leave in order.
        command.process_group(0);
        end_with_this_thread(&mut command, Ended::AtOnce);
        let started = command.spawn();
        let mut ssh = started.map_err(|error| CliError::usage(format!("{program}: {error}")))?;
        let registered = Started::group(ssh.id());
        // The address holds the bus's password, which arguments would show to every user of the
        // other host.
        if let Some(input) = ssh.stdin.as_mut() {
            let _ = writeln!(input, "{}", bus.url_at(there));
        }
        let said: Arc<Mutex<VecDeque<String>>> = Arc::default();
        if let Some(errors) = ssh.stderr.take() {
            let said = Arc::clone(&said);
            std::thread::spawn(move || keep_lines(BufReader::new(errors), &said));
        }
        Ok(Self { host: host.to_owned(), ssh, _registered: registered, said })
    }
}

fn keep_lines(errors: impl std::io::BufRead, said: &Mutex<VecDeque<String>>) {
    for line in errors.lines().map_while(Result::ok) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() >= LINES_KEPT {
            said.pop_front();
        }
        said.push_back(untrusted::line(&line).to_string());
    }
}

/// The command on the other host, in the words of its shell.
fn remote_command(host: &str, stay: Stay, flags: &Fleet, allow_target: &[String]) -> String {
    let program = flags.remote_throng.as_deref().unwrap_or("throng");
    let mut words = vec![program, "worker", "--fleet", "-"];
    if stay == Stay::ForOneRun {
        words.push("--once");
    }
    words.extend(["--name", host]);
    // Who may log in there decides for its owner.
    words.extend(allow_target.iter().flat_map(|network| ["--allow-target", network]));
    shell::line(words)
}

/// A nats-server on loopback, with a password and a folder of its own.
struct PrivateBus {
    keeper: Child,
    _registered: Started,
    address: SocketAddr,
    password: String,
}

impl PrivateBus {
    fn start() -> Result<Self, CliError> {
        let program = program().ok_or_else(|| {
            CliError::usage(
                "--on needs the program nats-server on this host (Debian: apt-get install \
                 nats-server), or start one and use --fleet",
            )
        })?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        // Not from the run's seed: participants show what is made from that one.
        let random = || secrets::random_text().map_err(CliError::invalid);
        let (password, name) = (random()?, random()?);
        let folder = std::env::temp_dir().join(format!("throng-bus-{name}"));
        std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(CliError::invalid)?;
        let file = folder.join("bus.conf");
        let store = folder.join("store");
        let text = format!(
            "listen: \"{address}\"\njetstream {{ store_dir: \"{}\" }}\nauthorization {{ user: \
             throng, password: \"{password}\" }}\n",
            store.display()
        );
        std::fs::write(&file, text).map_err(CliError::invalid)?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "throng-bus"]).arg(program).arg(&folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        end_with_this_thread(&mut command, Ended::InOrder);
        let keeper = command.spawn().map_err(CliError::invalid)?;
        let registered = Started::group(keeper.id());
        let bus = Self { keeper, _registered: registered, address, password };
        let until = Instant::now() + BUS_WITHIN;
        while TcpStream::connect(address).is_err() {
            if Instant::now() > until {
                return Err(CliError::invalid(anyhow::anyhow!(
                    "nats-server did not listen on {address}"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(bus)
    }

    /// Its address on a loopback where it has this port.
    fn url_at(&self, port: u16) -> String {
        format!("nats://throng:{}@127.0.0.1:{port}", self.password)
    }
}

impl Drop for PrivateBus {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A port of this host's loopback that is free now.
fn free_port() -> Result<u16, CliError> {
    let bound =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(CliError::invalid)
}

/// The bus's program.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("nats-server")).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_another_host_is_one_line_of_its_shell_without_the_password() {
        let flags = Fleet { remote_throng: Some("/opt/it's/throng".into()), ..Fleet::default() };
        let line = |stay, allowed: &[String]| remote_command("box; reboot", stay, &flags, allowed);
        assert_eq!(
            line(Stay::ForOneRun, &["10.0.0.0/24".into()]),
            r"'/opt/it'\''s/throng' worker --fleet - --once --name 'box; reboot' --allow-target 10.0.0.0/24"
        );
        assert_eq!(
            line(Stay::RunAfterRun, &[]),
            r"'/opt/it'\''s/throng' worker --fleet - --name 'box; reboot'",
            "it waits for the next run"
        );
    }
}
