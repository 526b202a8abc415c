//! Bytes that a second of the client's CPU downloads: throng's engine against `wrk` over HTTP/1.1,
//! `h2load` over HTTP/1.1 and HTTP/2 with TLS, and a bare h3 and quinn loop over HTTP/3, from nginx
//! and Caddy on loopback. Needs two CPUs.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use throng_bench::download::{Received, Viewers, with_bare_http3, with_engine};
use throng_bench::machine;
use throng_bench::process::{GENERATOR_CPU, SERVER_CPU, pin_to};
use throng_protocol::participant::HttpVersion;
use throng_sim::caddy::Caddy;
use throng_sim::nginx::Nginx;

/// Compares the cost of downloads; needs two CPUs, nginx, Caddy, wrk and h2load
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    client: Option<Client>,
    /// Connections of each client
    #[arg(long, default_value_t = 20)]
    viewers: u32,
    /// Runs of each; every other time in the opposite order
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Length of the file, bytes
    #[arg(long, default_value_t = 4_000_000)]
    bytes: usize,
}

/// One client, in a process of its own
#[derive(Subcommand)]
enum Client {
    /// throng's engine
    Engine(One),
    /// h3 and quinn
    Bare(One),
}

#[derive(clap::Args)]
struct One {
    url: String,
    version: u8,
    viewers: u32,
    seconds: u64,
    /// Bits that each viewer reads in a second
    #[arg(long)]
    pace_bps: Option<u64>,
}

impl One {
    fn viewers(&self) -> Result<Viewers> {
        let version = match self.version {
            1 => HttpVersion::Http1,
            2 => HttpVersion::Http2,
            3 => HttpVersion::Http3,
            other => bail!("HTTP/{other}?"),
        };
        let lasts = Duration::from_secs(self.seconds);
        let pace_bps = self.pace_bps;
        Ok(Viewers { url: self.url.clone(), version, count: self.viewers, lasts, pace_bps })
    }
}

/// Received bytes below which a run does not count: the cost of starting would be part of the
/// figure.
const BYTES_MIN: f64 = 100e6;

/// What is compared: the same file from the same server, by the same version.
struct Case {
    name: &'static str,
    url: String,
    version: u8,
    peer: Peer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Wrk,
    H2loadHttp1,
    H2load,
    Bare,
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
            Self::H2loadHttp1 | Self::H2load => "h2load",
            Self::Bare => "h3 and quinn alone",
        }
    }
}

fn main() -> Result<()> {
    throng_engine::share_one_arena();
    let arguments = Arguments::parse();
    match &arguments.client {
        Some(Client::Engine(one)) => return print(with_engine(&one.viewers()?)?),
        Some(Client::Bare(one)) => return print(with_bare_http3(&one.viewers()?)?),
        None => {}
    }
    ensure!(Nginx::is_installed() && Caddy::is_installed(), "nginx and Caddy are needed");
    let files = tempfile::tempdir()?;
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(files.path(), open)?;
    std::fs::write(files.path().join("file"), vec![b'x'; arguments.bytes])?;
    pin_to(SERVER_CPU)?;
    let nginx = Nginx::serving(files.path())?;
    let caddy = Caddy::serving(files.path())?;
    let plain = format!("http://{}/file", nginx.plain_address());
    let secure = format!("https://{}/file", nginx.address());
    let quic = format!("https://{}/file", caddy.address());
    let case = |name, url: &String, version, peer| Case { name, url: url.clone(), version, peer };
    let cases = [
        case("HTTP/1.1", &plain, 1, Peer::Wrk),
        case("HTTP/1.1", &plain, 1, Peer::H2loadHttp1),
        case("HTTP/1.1 over TLS", &secure, 1, Peer::Wrk),
        case("HTTP/2 over TLS", &secure, 2, Peer::H2load),
        case("HTTP/3", &quic, 3, Peer::Bare),
    ];
    println!(
        "{}: {} connections, {} bytes each time, {} runs of {} s, load average {:.1}",
        machine::date(),
        arguments.viewers,
        arguments.bytes,
        arguments.repeat,
        arguments.seconds,
        machine::load()
    );
    println!(
        "\n| Over | Peer | throng, MB per CPU-second | peer | throng / peer \
         |\n|---|---|---:|---:|---:|"
    );
    let mut excluded = Vec::new();
    for case in &cases {
        let (mut own, mut peer) = (Vec::new(), Vec::new());
        for round in 0..arguments.repeat {
            for is_own in if round % 2 == 0 { [true, false] } else { [false, true] } {
                match rate(case, is_own, &arguments) {
                    Ok(rate) if is_own => own.push(rate),
                    Ok(rate) => peer.push(rate),
                    Err(error) => excluded.push(format!("{}: {error:#}", case.name)),
                }
            }
        }
        let (own_median, peer_median) = (median(&mut own), median(&mut peer));
        println!(
            "| {} | {} | {own_median:.0} ({}) | {peer_median:.0} ({}) | {:.2} |",
            case.name,
            case.peer.name(),
            range(&own),
            range(&peer),
            own_median / peer_median
        );
    }
    println!(
        "\nLoad average at the end {:.1}. Excluded runs: {}.",
        machine::load(),
        excluded.len()
    );
    excluded.iter().for_each(|why| println!("- {why}"));
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the end of main")]
fn print(received: Received) -> Result<()> {
    println!("{} {}", received.bytes, received.rss_kb);
    Ok(())
}

/// Megabytes for each second of the client's CPU.
fn rate(case: &Case, is_own: bool, arguments: &Arguments) -> Result<f64> {
    let (viewers, seconds) = (arguments.viewers.to_string(), arguments.seconds.to_string());
    let own = std::env::current_exe()?;
    // h2load does not always end in time when the server is starved of CPU.
    let limit = (arguments.seconds * 3 + 10).to_string();
    let command = |program: &Path, words: &[&str]| {
        let mut command = Command::new("timeout");
        command.arg(&limit).arg(program).args(words);
        command
    };
    let one = [case.url.as_str(), &case.version.to_string(), &viewers, &seconds];
    let duration = format!("{seconds}s");
    let mut command = match (is_own, case.peer) {
        (true, _) => command(&own, &[&["engine"][..], &one].concat()),
        (false, Peer::Bare) => command(&own, &[&["bare"][..], &one].concat()),
        (false, Peer::Wrk) => {
            command(Path::new("wrk"), &["-t1", "-c", &viewers, "-d", &duration, &case.url])
        }
        (false, peer) => {
            let protocol: &[&str] = if peer == Peer::H2load { &["-m1"] } else { &["--h1"] };
            let words = ["-t1", "-c", &viewers, "-D", &seconds, &case.url];
            command(Path::new("h2load"), &[protocol, &words].concat())
        }
    };
    pin_to(GENERATOR_CPU)?;
    let child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let child = child.with_context(|| format!("cannot start {command:?}"))?;
    pin_to(SERVER_CPU)?;
    let before = children_cpu_s()?;
    let output = child.wait_with_output()?;
    let cpu_s = children_cpu_s()? - before;
    ensure!(output.status.success(), "{command:?} failed");
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = match (is_own, case.peer) {
        (true, _) | (false, Peer::Bare) => own_bytes(&text),
        (false, Peer::Wrk) => wrk_bytes(&text),
        (false, _) => h2load_bytes(&text),
    };
    let bytes = bytes.with_context(|| format!("{command:?} wrote: {text}"))?;
    ensure!(bytes >= BYTES_MIN, "{command:?}: {:.0} MB are too few", bytes / 1e6);
    Ok(bytes / 1e6 / cpu_s)
}

/// User and system time of all children that have been waited for, seconds.
fn children_cpu_s() -> Result<f64> {
    // SAFETY: all-zero is a valid value, and the pointer is to a local that outlives the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        ensure!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) == 0, "getrusage");
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

/// `BYTES RSS`
fn own_bytes(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// `  1234 requests in 6.00s, 4.60GB read`: units of 1024.
fn wrk_bytes(text: &str) -> Option<f64> {
    let read = text.lines().find_map(|line| line.trim().strip_suffix(" read"))?;
    let figure = read.rsplit(", ").next()?;
    let at = figure.find(|c: char| c.is_ascii_alphabetic())?;
    let unit = match figure.get(at..)? {
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1_i64 << 40,
        _ => 1,
    };
    Some(figure.get(..at)?.parse::<f64>().ok()? * unit as f64)
}

/// `traffic: 4.2GB (4512345678) total, …`
fn h2load_bytes(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("traffic:"))?;
    line.split_once('(')?.1.split_once(')')?.0.parse().ok()
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

fn range(sorted: &[f64]) -> String {
    let of = |at: Option<&f64>| at.map_or_else(String::new, |rate| format!("{rate:.0}"));
    format!("{} to {}", of(sorted.first()), of(sorted.last()))
}
