//! The machine and programs of a benchmark.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// The machine and the programs of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The CPU's name.
    pub cpu: String,
    /// CPUs online.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Name and version of each program in use.
    pub versions: Vec<String>,
}

impl Machine {
    /// Reads them; a missing value is reported as unknown.
    #[must_use]
    pub fn read(throng: Option<&Path>, pion: Option<&Path>) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model =
            cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let mut versions = vec![
            first_line(Command::new("janus").arg("--version")),
            first_line(Command::new("ffmpeg").arg("-version")),
        ];
        if let Some(throng) = throng {
            versions.push(first_line(Command::new(throng).arg("--version")));
        }
        if let Some(pion) = pion {
            versions.extend(go_versions(pion));
        }
        Self {
            cpu: model.map_or("CPU not known", |(_, name)| name).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            versions,
        }
    }
}

/// The load average over the last minute.
#[must_use]
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

/// The current date and time, UTC.
#[must_use]
pub fn date() -> String {
    first_line(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]))
}

fn first_line(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output)
        .lines()
        .next()
        .map_or("version not known", |line| line.split(" Copyright").next().unwrap_or(line))
        .to_owned()
}

/// The versions that Go writes into each binary.
fn go_versions(pion: &Path) -> Vec<String> {
    let output = Command::new("go").args(["version", "-m"]).arg(pion).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut versions: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("dep"), Some(module), Some(version)) if module.ends_with("pion/webrtc/v4") => {
                versions.push(format!("pion/webrtc {version}"));
            }
            (Some(_), Some(go), None) if go.starts_with("go1") => {
                versions.push(go.replace("go1", "Go 1"));
            }
            _ => {}
        }
    }
    versions
}
