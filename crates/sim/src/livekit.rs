//! The real LiveKit server in a namespace: rooms are created by their first participant, media uses
//! one UDP port, and its API reports the state of a room.
//!
//! There is no Debian package; `scripts/livekit.sh` builds it once from the Go module and keeps it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{self, metric_sum};
use crate::namespace::Namespace;
use crate::outcome::skipped;
use crate::support::{ChildGuard, SimError, cache_folder, wait_for_port};

/// Signalling, WHIP and API.
pub const PORT: u16 = 7880;
/// Prometheus metrics.
const METRICS_PORT: u16 = 6789;
/// The API key's name.
pub const KEY: &str = "devkey";
/// Its secret.
pub const SECRET: &str = "a-secret-of-thirty-two-characters-at-least";
/// The version that the tests were written with, and that `scripts/livekit.sh` builds.
pub const VERSION: &str = "1.13.5";

/// A running LiveKit; it ends when dropped.
#[derive(Debug)]
pub struct LiveKit<'a> {
    namespace: &'a Namespace,
    address: Ipv4Addr,
    process: ChildGuard,
    folder: TempDir,
}

/// Where the server is: on the PATH, or where `scripts/livekit.sh` keeps it.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let kept = cache_folder().join("bin").join(format!("livekit-server-{VERSION}"));
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("livekit-server"));
    std::iter::once(kept).chain(on_path).find(|program| program.is_file())
}

impl<'a> LiveKit<'a> {
    /// Whether it is installed; otherwise the test is skipped.
    #[must_use]
    pub fn is_installed() -> bool {
        let is_installed = program().is_some();
        if !is_installed {
            skipped("livekit-server is not installed (scripts/livekit.sh)");
        }
        is_installed
    }

    /// Starts it with media on `address`, an address of the namespace, and signalling there and on
    /// 127.0.0.1.
    ///
    /// # Errors
    /// When it is not installed or does not come up; its log is part of the error.
    pub fn start(namespace: &'a Namespace, address: Ipv4Addr) -> Result<Self, SimError> {
        Self::start_announcing(namespace, address, "")
    }

    /// As [`Self::start`]; it announces `turn_servers`, the YAML list of that name, to its
    /// participants.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_announcing(
        namespace: &'a Namespace,
        address: Ipv4Addr,
        turn_servers: &str,
    ) -> Result<Self, SimError> {
        let program =
            program().ok_or_else(|| SimError::Said("livekit-server is not installed".into()))?;
        let folder = tempfile::tempdir()?;
        let config = format!(
            "port: {PORT}\nbind_addresses: [ \"{address}\", \"127.0.0.1\" ]\nkeys: {{ {KEY}: \
             {SECRET} }}\nlogging: {{ level: info }}\nrtc: {{ node_ip: {address}, \
             use_external_ip: false, udp_port: 7882, tcp_port: 0, turn_servers: [ {turn_servers} \
             ] }}\nroom: {{ auto_create: true, empty_timeout: 20 }}\nturn: {{ enabled: false \
             }}\nprometheus: {{ port: {METRICS_PORT} }}\n"
        );
        fs::write(folder.path().join("livekit.yaml"), config)?;
        let log = fs::File::create(folder.path().join("log"))?;
        let mut command = namespace.command(&program.to_string_lossy());
        command.arg("--config").arg(folder.path().join("livekit.yaml")).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let process = ChildGuard::start_before_others(&mut command)?;
        let server = Self { namespace, address, process, folder };
        // Each port is opened after the one before.
        let ready = namespace.enter(|| {
            [PORT, METRICS_PORT].into_iter().try_for_each(|port| {
                let to = SocketAddr::from((address, port));
                wait_for_port("LiveKit", to, Duration::from_secs(15)).map(drop)
            })
        })?;
        match ready {
            Ok(()) => Ok(server),
            Err(error) => Err(SimError::Said(format!("{error}; its log:\n{}", server.log()))),
        }
    }

    /// The process, for measuring it. It is `ip netns exec`, which becomes the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Asks its room service (`livekit.RoomService`), such as `ListParticipants` with `{"room":
    /// …}`.
    ///
    /// # Errors
    /// When it does not answer, or answers with an error.
    pub fn ask(&self, method: &str, body: &Value) -> Result<Value, SimError> {
        let room = body.get("room").and_then(Value::as_str).unwrap_or_default();
        let token = token(
            "tests",
            room,
            &json!({ "roomAdmin": true, "roomList": true, "roomCreate": true }),
        );
        let head = format!(
            "POST /twirp/livekit.RoomService/{method} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\n"
        );
        let answer = self.exchange(PORT, &head, &body.to_string())?;
        serde_json::from_str(&answer)
            .map_err(|error| SimError::Said(format!("LiveKit {method}: {error} in {answer}")))
    }

    /// The participants of a room as the server knows them.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn participants(&self, room: &str) -> Result<Vec<Value>, SimError> {
        let listed = self.ask("ListParticipants", &json!({ "room": room }))?;
        Ok(listed.get("participants").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// The sum of a metric over all its labels that contain `label`.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn metric(&self, name: &str, label: &str) -> Result<f64, SimError> {
        let metrics = self.exchange(METRICS_PORT, "GET /metrics HTTP/1.1\r\n", "")?;
        Ok(metric_sum(&metrics, name, label))
    }

    /// The body of the response to a request.
    fn exchange(&self, port: u16, head: &str, body: &str) -> Result<String, SimError> {
        http::exchange(self.namespace, SocketAddr::from((self.address, port)), head, body)
    }
}

/// A token for `identity` in `room`, with `more` of the video grant.
#[must_use]
pub fn token(identity: &str, room: &str, more: &Value) -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut video = json!({ "room": room });
    for (name, value) in more.as_object().into_iter().flatten() {
        video[name] = value.clone();
    }
    let claims = json!({
        "iss": KEY,
        "sub": identity,
        "nbf": now_s - 10,
        "exp": now_s + 3_600,
        "video": video,
    });
    let encoded = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed =
        format!("{}.{}", encoded(json!({ "alg": "HS256", "typ": "JWT" })), encoded(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}
