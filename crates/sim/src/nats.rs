//! The real nats-server (Debian's package) as the bus of a fleet, with JetStream in a folder of its
//! own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, run};

/// Where Debian has it.
const PROGRAM: &str = "/usr/sbin/nats-server";
/// On a machine that is busy with other tests. One that cannot start ends, which is seen at once.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running nats-server; it ends when dropped, and its folder goes.
#[derive(Debug)]
pub struct Nats {
    process: Option<ChildGuard>,
    address: SocketAddr,
    configuration: String,
    folder: TempDir,
    namespace: Option<String>,
}

impl Nats {
    /// Starts it on a free port of 127.0.0.1; `more` are further lines of its configuration.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn start(more: &str) -> Result<Self, SimError> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        Self::start_at(address, None, &format!("jetstream {{ store_dir: \"STORE\" }}\n{more}"))
    }

    /// Starts it without JetStream.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn without_jetstream() -> Result<Self, SimError> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        Self::start_at(address, None, "")
    }

    /// Starts it with TLS and a certificate of its own for 127.0.0.1, see [`Self::certificate`].
    ///
    /// # Errors
    /// As [`Self::start`], and without openssl.
    pub fn start_encrypted() -> Result<Self, SimError> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let text =
            "jetstream { store_dir: \"STORE\" }\ntls { cert_file: \"CERT\", key_file: \"KEY\" }\n";
        let mut nats = Self::new(address, None, text)?;
        nats.make_certificate()?;
        nats.start_again()?;
        Ok(nats)
    }

    fn make_certificate(&self) -> Result<(), SimError> {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        let text = "[req]\ndistinguished_name = name\nx509_extensions = leaf\nprompt = \
                    no\n[name]\nCN = 127.0.0.1\n[leaf]\nbasicConstraints = critical, \
                    CA:FALSE\nsubjectAltName = IP:127.0.0.1\n";
        fs::write(at("openssl.cnf"), text)?;
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ]);
        openssl.args([
            "-config",
            &at("openssl.cnf"),
            "-keyout",
            &at("key.pem"),
            "-out",
            &at("cert.pem"),
        ]);
        run(&mut openssl).map(drop)
    }

    /// The certificate of [`Self::start_encrypted`].
    #[must_use]
    pub fn certificate(&self) -> String {
        self.folder.path().join("cert.pem").display().to_string()
    }

    /// Its address with TLS.
    #[must_use]
    pub fn encrypted_url(&self) -> String {
        format!("tls://{}", self.address)
    }

    /// Starts it in a namespace, at an address of it.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_in(namespace: &Namespace, address: SocketAddr) -> Result<Self, SimError> {
        Self::start_at(address, Some(namespace.name()), "jetstream { store_dir: \"STORE\" }\n")
    }

    fn start_at(
        address: SocketAddr,
        namespace: Option<&str>,
        text: &str,
    ) -> Result<Self, SimError> {
        let mut nats = Self::new(address, namespace, text)?;
        nats.start_again()?;
        Ok(nats)
    }

    /// With a configuration in which names stand for files of its folder.
    fn new(address: SocketAddr, namespace: Option<&str>, text: &str) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        let files = [("STORE", "store"), ("CERT", "cert.pem"), ("KEY", "key.pem")];
        let text = files.iter().fold(text.to_owned(), |text, (name, file)| {
            text.replace(name, &folder.path().join(file).display().to_string())
        });
        let configuration = format!("listen: \"{address}\"\n{text}");
        Ok(Self {
            process: None,
            address,
            configuration,
            folder,
            namespace: namespace.map(ToOwned::to_owned),
        })
    }

    /// Starts it again after [`Self::kill`], with what it had stored.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_again(&mut self) -> Result<(), SimError> {
        let file = self.folder.path().join("nats.conf");
        fs::write(&file, &self.configuration)?;
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))?;
        let mut command = match &self.namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace, PROGRAM]);
                command
            }
            None => Command::new(PROGRAM),
        };
        command
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // The log also has what it said before it was killed.
        let ready = || self.log().matches("Server is ready").count();
        let before = ready();
        // Generators and stages have priority, and would leave it no CPU.
        let mut process = ChildGuard::start_before_others(&mut command)?;
        let until = Instant::now() + READY_WITHIN;
        while ready() == before {
            let ended = process.child().try_wait()?;
            if ended.is_some() || Instant::now() > until {
                let how = ended.map_or_else(
                    || format!("not ready within {READY_WITHIN:?}"),
                    |status| format!("over before it was ready ({status})"),
                );
                let text = format!("nats-server is {how}; its log:\n{}", self.log());
                return Err(SimError::Said(text));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.process = Some(process);
        Ok(())
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.child().kill();
            let _ = process.child().wait();
        }
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists(PROGRAM).unwrap_or(false);
        if !is_installed {
            skipped("nats-server is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// Its address for `--fleet`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// The same with a user and a password.
    #[must_use]
    pub fn url_of(&self, user: &str, password: &str) -> String {
        format!("nats://{user}:{password}@{}", self.address)
    }

    /// How many streams JetStream holds.
    #[must_use]
    pub fn streams(&self) -> usize {
        let folder = self.folder.path().join("store/jetstream/$G/streams");
        fs::read_dir(folder).map_or(0, Iterator::count)
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}
