//! The real nginx (Debian's package) as the reverse proxy of many media servers, TLS and HTTP/2
//! towards viewers, plain HTTP/1.1 towards the server; and as a server of files.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, wait_for_port};

/// Where Debian puts it, which is on the PATH of root only.
const NGINX: &str = "/usr/sbin/nginx";

/// A running nginx; it ends when dropped.
#[derive(Debug)]
pub struct Nginx {
    process: ChildGuard,
    address: SocketAddr,
    plain: SocketAddr,
    folder: TempDir,
}

impl Nginx {
    /// Starts nginx on a free port of 127.0.0.1 with a certificate of its own, before the HTTP
    /// server at `upstream`.
    ///
    /// # Errors
    /// When it cannot be started or does not come up; its log is part of the error.
    pub fn before(upstream: &str) -> Result<Self, SimError> {
        let proxy = format!("location / {{ proxy_pass {upstream}; proxy_http_version 1.1; }}");
        Self::start(&proxy)
    }

    /// Starts nginx on free ports of 127.0.0.1, one without TLS, with the files below `files`.
    ///
    /// # Errors
    /// As [`Self::before`].
    pub fn serving(files: &Path) -> Result<Self, SimError> {
        let files = files.display();
        Self::start(&format!(
            "root {files}; sendfile on; tcp_nopush on; keepalive_requests 1000000;"
        ))
    }

    /// The same, with further directives of its server.
    ///
    /// # Errors
    /// As [`Self::before`].
    pub fn serving_with(files: &Path, directives: &str) -> Result<Self, SimError> {
        Self::start(&format!("root {}; {directives}", files.display()))
    }

    /// The same, with so many bytes per second for each connection.
    ///
    /// # Errors
    /// As [`Self::before`].
    pub fn limiting(files: &Path, bytes_per_s: u64) -> Result<Self, SimError> {
        Self::start(&format!("root {}; limit_rate {bytes_per_s};", files.display()))
    }

    /// Starts nginx as [`Self::serving`] does, with more of its directives for the server. The zone
    /// `addresses` of `limit_conn` counts the connections of each address.
    ///
    /// # Errors
    /// As [`Self::before`].
    pub fn with(files: &Path, directives: &str) -> Result<Self, SimError> {
        Self::start(&format!("root {}; {directives}", files.display()))
    }

    /// Starts nginx as [`Self::serving`] does; it compresses everything that clients accept as
    /// `gzip`, and serves files below `br/` and `zstd/` as compressed ones.
    ///
    /// # Errors
    /// As [`Self::before`].
    pub fn compressing(files: &Path) -> Result<Self, SimError> {
        let files = files.display();
        let precompressed = |name: &str| {
            format!("location /{name}/ {{ gzip off; add_header Content-Encoding {name}; }}")
        };
        Self::start(&format!(
            "root {files}; gzip on; gzip_types *; gzip_min_length 0; {} {}",
            precompressed("br"),
            precompressed("zstd")
        ))
    }

    fn start(what: &str) -> Result<Self, SimError> {
        let folder = tempfile::tempdir()?;
        let certified =
            rcgen::generate_simple_self_signed(["localhost".into(), "127.0.0.1".into()])
                .map_err(|error| SimError::Said(error.to_string()))?;
        fs::write(folder.path().join("cert.pem"), certified.cert.pem())?;
        fs::write(folder.path().join("key.pem"), certified.signing_key.serialize_pem())?;
        // Bound and released: nginx cannot report which port the kernel chose.
        let listeners = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let [address, plain] = listeners;
        let [address, plain] = [address?.local_addr()?, plain?.local_addr()?];
        fs::write(folder.path().join("nginx.conf"), configuration(address, plain, what))?;
        let log = folder.path().join("error.log");
        let written = fs::File::create(&log)?;
        let mut command = Command::new(NGINX);
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "error.log"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(written);
        let process = ChildGuard::start(&mut command)?;
        if let Err(error) = wait_for_port("nginx", address, Duration::from_secs(10)) {
            let log = fs::read_to_string(&log).unwrap_or_default();
            return Err(SimError::Said(format!("{error}; its log:\n{log}")));
        }
        Ok(Self { process, address, plain, folder })
    }

    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = fs::exists(NGINX).unwrap_or(false);
        if !is_installed {
            skipped("nginx is not installed (scripts/setup.sh test)");
        }
        is_installed
    }

    /// Where it listens with TLS.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens without TLS.
    #[must_use]
    pub fn plain_address(&self) -> SocketAddr {
        self.plain
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its certificate (PEM), for clients that are to trust it.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// What it has answered so far.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn accesses(&self) -> Result<Vec<Access>, SimError> {
        let log = fs::read_to_string(self.folder.path().join("accesses.log"))?;
        Ok(log.lines().filter_map(Access::read).collect())
    }

    /// Its access log in the format `combined`.
    #[must_use]
    pub fn combined_log(&self) -> PathBuf {
        self.folder.path().join("combined.log")
    }

    /// Headers of the requests so far, one line each: path, `Accept-Encoding` and `Range`, and the
    /// `Content-Encoding` of the response, separated by `|`; `-` for none.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn encodings(&self) -> Result<Vec<String>, SimError> {
        let log = fs::read_to_string(self.folder.path().join("encodings.log"))?;
        Ok(log.lines().map(str::to_owned).collect())
    }

    /// Path and cookies of the requests so far, one line each, separated by `|`; `-` for none.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn cookies(&self) -> Result<Vec<String>, SimError> {
        let log = fs::read_to_string(self.folder.path().join("cookies.log"))?;
        Ok(log.lines().map(str::to_owned).collect())
    }

    /// What the requests so far said of the page that made them, one line each: method, path and
    /// status, `Origin`, `Referer`, the method and headers that a preflight asks for, and
    /// `Authorization`, separated by `|`; `-` for none.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn origins(&self) -> Result<Vec<String>, SimError> {
        let log = fs::read_to_string(self.folder.path().join("origins.log"))?;
        Ok(log.lines().map(str::to_owned).collect())
    }

    /// The requests so far, one line each: `POST HTTP/2.0 201`.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn requests(&self) -> Result<Vec<String>, SimError> {
        let log = fs::read_to_string(self.folder.path().join("requests.log"))?;
        Ok(log.lines().map(str::to_owned).collect())
    }
}

/// A request that nginx has answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// When the answer ended, seconds since 1970.
    pub at_s: f64,
    /// Number of its connection.
    pub connection: u64,
    /// The status.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// Path and query.
    pub uri: String,
}

impl Access {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(5, ' ');
        Some(Self {
            at_s: fields.next()?.parse().ok()?,
            connection: fields.next()?.parse().ok()?,
            status: fields.next()?.parse().ok()?,
            bytes: fields.next()?.parse().ok()?,
            uri: fields.next()?.to_owned(),
        })
    }
}

fn configuration(address: SocketAddr, plain: SocketAddr, what: &str) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
  log_format seen '$request_method $server_protocol $status';
  access_log requests.log seen;
  log_format access '$msec $connection $status $body_bytes_sent $request_uri';
  access_log accesses.log access;
  access_log combined.log combined;
  log_format encodings '$uri|$http_accept_encoding|$http_range|$sent_http_content_encoding';
  access_log encodings.log encodings;
  log_format cookies '$uri|$http_cookie';
  access_log cookies.log cookies;
  log_format origins '$request_method $uri $status|$http_origin|$http_referer|'
    '$http_access_control_request_method|$http_access_control_request_headers|$http_authorization';
  access_log origins.log origins;
  limit_conn_zone $binary_remote_addr zone=addresses:1m;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; \
         scgi_temp_path s;
  server {{
    listen {address} ssl http2; listen {plain};
    ssl_certificate cert.pem; ssl_certificate_key key.pem;
    {what}
  }}
}}
"
    )
}
