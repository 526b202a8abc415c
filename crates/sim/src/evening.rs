//! The test server of a PeerTube live evening (`examples/evening`): real ffmpeg, nginx, Node with
//! socket.io and PeerTube's tracker, Prosody.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::outcome::skipped;
use crate::support::{SimError, cache_folder, run};

/// Ports that it takes.
const PORTS: u16 = 6;

/// What it needs of the machine.
const PROGRAMS: [&str; 6] = ["ffmpeg", "nginx", "node", "npm", "prosody", "openssl"];

/// The option of its script with which the live is on object storage.
pub const OBJECT_STORAGE: &str = "--object-storage";

/// The option of its script with which the video is a recording, whose segments are byte ranges.
pub const RECORDING: &str = "--recording";

/// The option of its script for a picture that costs hardly anything to encode and to decode.
pub const TINY: &str = "--tiny";

/// The name of its video in URLs.
const VIDEO: &str = "kEsjeaVCtdtvQpW4d9ndbm";

/// A running one; it ends when dropped.
#[derive(Debug)]
pub struct Evening {
    folder: TempDir,
    first_port: u16,
}

impl Evening {
    /// Starts it with these options of its script. `None` where a part of it is not installed.
    ///
    /// # Errors
    /// When a part does not come up; what the script says is part of the error.
    pub fn start(options: &[&str]) -> Result<Option<Self>, SimError> {
        for program in PROGRAMS {
            if !is_installed(program) {
                skipped(&format!("{program} is not installed (scripts/setup.sh test)"));
                return Ok(None);
            }
        }
        if let Err(error) = run(&mut Command::new(of_example("packages.sh"))) {
            skipped(&format!("the packages of examples/evening are not here: {error}"));
            return Ok(None);
        }
        // The script would build it, which takes minutes.
        let needs_storage = options.contains(&OBJECT_STORAGE);
        if needs_storage && !cache_folder().join("bin/versitygw").exists() {
            skipped("versitygw is not built (scripts/versitygw.sh)");
            return Ok(None);
        }
        let evening = Self { folder: tempfile::tempdir()?, first_port: free_ports()? };
        evening.script("start", options)?;
        Ok(Some(evening))
    }

    /// The watch page.
    #[must_use]
    pub fn page(&self) -> String {
        format!("http://127.0.0.1:{}/w/{VIDEO}", self.first_port)
    }

    /// What its Node counted.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn counters(&self) -> Result<Value, SimError> {
        let said = self.script("counters", &[])?;
        serde_json::from_str(&said).map_err(|error| SimError::Said(format!("{error}: {said}")))
    }

    /// Tells its viewers that the live has this state: `waiting`, `live`, `ended`; `recorded`: its
    /// page has a recording, once that is transcoded.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn change(&self, state: &str) -> Result<(), SimError> {
        self.script("state", &[state]).map(drop)
    }

    /// Stops a part of it, such as `prosody`, as if it had no CPU; or lets it go on.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn freeze(&self, part: &str, is_frozen: bool) -> Result<(), SimError> {
        self.script(if is_frozen { "freeze" } else { "thaw" }, &[part]).map(drop)
    }

    /// nginx' log in the combined format, which throng reads.
    #[must_use]
    pub fn combined_log(&self) -> PathBuf {
        self.folder.path().join("logs/combined-access.log")
    }

    /// The log of its object storage, and where that listens.
    #[must_use]
    pub fn object_storage(&self) -> (PathBuf, String) {
        (
            self.folder.path().join("logs/s3-access.log"),
            format!("127.0.0.1:{}", self.first_port + 5),
        )
    }

    /// Lines of nginx' log of requests.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn access_log(&self) -> Result<String, SimError> {
        Ok(std::fs::read_to_string(self.folder.path().join("logs/access.log"))?)
    }

    /// Opens the watch page in this many tabs of a real Chromium for so many seconds; what each
    /// saw, as `browsers.py` prints it. `None` where Chromium is not installed.
    ///
    /// # Errors
    /// When the browser does not start, or ends early.
    pub fn browse(&self, tabs: u32, seconds: u32) -> Result<Option<Value>, SimError> {
        if !is_installed("chromium") {
            skipped("chromium is not installed (scripts/setup.sh test)");
            return Ok(None);
        }
        // Its first line names the interpreter, since others may lack its packages.
        let mut command = Command::new(of_example("browsers.py"));
        command.args([tabs.to_string(), seconds.to_string()]).args([
            "--url",
            &self.page(),
            "--brief",
        ]);
        let output = run(&mut command)?;
        let said = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&said)
            .map(Some)
            .map_err(|error| SimError::Said(format!("{error}: {said}")))
    }

    fn script(&self, action: &str, options: &[&str]) -> Result<String, SimError> {
        let mut command = Command::new("bash");
        command.arg(of_example("stand.sh")).arg(action).args(options).arg(self.folder.path());
        command.env("THRONG_STAND_PORT", self.first_port.to_string());
        let output = run(&mut command)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Evening {
    fn drop(&mut self) {
        let _ = self.script("stop", &[]);
    }
}

/// A file of the example.
fn of_example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/evening").join(name)
}

fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
    places.into_iter().any(|folder| folder.join(program).exists())
}

/// The lowest port of an evening, and the first above all: from there on the kernel gives ports to
/// whoever connects (ip_local_port_range), and may give one away before the evening listens.
const PORTS_OF_EVENINGS: [u16; 2] = [10_000, 32_768];

/// The first of several ports that nobody listens on. Other evenings begin elsewhere.
fn free_ports() -> Result<u16, SimError> {
    let [lowest, end] = PORTS_OF_EVENINGS;
    let places = u32::from((end - lowest) / PORTS);
    for at in 0..100 {
        let place = u16::try_from((std::process::id() + at) % places).unwrap_or(0);
        let first = lowest + place * PORTS;
        if (first..first + PORTS).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        {
            return Ok(first);
        }
    }
    Err(SimError::Said(format!("no {PORTS} free ports in a row")))
}
