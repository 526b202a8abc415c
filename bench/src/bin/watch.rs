//! The cost of watching 2,000 threads, compared with `pidstat -t 1` and `top -H -b -d 1` on the
//! same host at the same time.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;

#[derive(Debug, Parser)]
struct Arguments {
    /// The `throng` that is measured.
    #[arg(long)]
    throng: Option<PathBuf>,
    /// Threads of the watched process.
    #[arg(long, default_value_t = 2_000)]
    threads: usize,
    /// How many of them work.
    #[arg(long, default_value_t = 100)]
    busy: usize,
    /// Their CPU use together, % of a core.
    #[arg(long, default_value_t = 2.0)]
    work_percent: f64,
    /// Seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Be the watched process.
    #[arg(long, hide = true)]
    crowd: bool,
}

/// The cost of a program.
struct Cost {
    name: &'static str,
    cpu: Duration,
    peak_rss_bytes: u64,
    over: Duration,
}

impl Cost {
    fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.over.as_secs_f64()
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.crowd {
        crowd(&arguments);
    }
    let throng = arguments.throng.clone().context("--throng PATH is needed")?;
    let crowd = Ended(
        Command::new(std::env::current_exe()?)
            .args([
                "--crowd",
                "--threads",
                &arguments.threads.to_string(),
                "--busy",
                &arguments.busy.to_string(),
                "--work-percent",
                &arguments.work_percent.to_string(),
            ])
            .spawn()?,
    );
    std::thread::sleep(Duration::from_secs(2));
    let (pid, seconds) = (crowd.0.id().to_string(), arguments.seconds.to_string());
    let lasts = format!("{seconds}s");
    let samples = (arguments.seconds + 1).to_string();
    let programs: [(&'static str, Command); 3] = [
        ("throng watch", command(&throng, &["watch", "--pid", &pid, "--for", &lasts, "--quiet"])),
        ("pidstat -t 1", command("pidstat", &["-t", "-p", &pid, "1", &seconds])),
        ("top -H -b -d 1", command("top", &["-H", "-b", "-d", "1", "-n", &samples, "-p", &pid])),
    ];
    let mut running = Vec::new();
    for (name, mut command) in programs {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command
            .spawn()
            .with_context(|| format!("{name}: is it installed (apt: sysstat, procps)?"))?;
        running.push((name, child, Instant::now()));
    }
    let costs: Vec<_> = running
        .into_iter()
        .map(|(name, child, began)| wait(name, &child, began))
        .collect::<Result<_, _>>()?;
    tell(&arguments, &costs);
    Ok(())
}

fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

#[expect(clippy::print_stdout, reason = "the table is its result")]
fn tell(arguments: &Arguments, costs: &[Cost]) {
    println!(
        "{} threads, {} of them at work for {} % of a core, {} s, all at the same time\n",
        arguments.threads, arguments.busy, arguments.work_percent, arguments.seconds
    );
    println!(
        "| Program | CPU, % of one core | peak memory, MB | CPU against throng |\n|---|---|---|---|"
    );
    let ours = costs.first().map_or(1.0, Cost::cores);
    for cost in costs {
        let megabytes = cost.peak_rss_bytes as f64 / 1e6;
        println!(
            "| `{}` | {:.2} | {megabytes:.1} | {:.1} × |",
            cost.name,
            cost.cores() * 100.0,
            cost.cores() / ours
        );
    }
}

/// Waits for a program and reads its resource use from the kernel.
fn wait(name: &'static str, child: &Child, began: Instant) -> anyhow::Result<Cost> {
    let pid = i32::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: rusage is a plain structure of integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that outlive the call; the PID is that of a child not
    // waited for before.
    if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } != pid {
        bail!("{name}: {}", std::io::Error::last_os_error());
    }
    if status != 0 {
        bail!("{name} failed (status {status})");
    }
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000);
    Ok(Cost {
        name,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_rss_bytes: usage.ru_maxrss as u64 * 1024,
        over: began.elapsed(),
    })
}

/// A child that ends with the benchmark.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Threads that sleep, some of which wake up ten times a second to work a little.
fn crowd(arguments: &Arguments) -> ! {
    let share = arguments.work_percent / 100.0 / arguments.busy.max(1) as f64;
    let pause = Duration::from_millis(100);
    for number in 0..arguments.threads {
        let is_busy = number < arguments.busy;
        let work = move || loop {
            if is_busy {
                let until = thread_cpu() + pause.mul_f64(share);
                while thread_cpu() < until {
                    std::hint::black_box((0..500_u64).fold(0, |a, b| a ^ b.wrapping_mul(a)));
                }
                std::thread::sleep(pause);
            } else {
                std::thread::sleep(Duration::from_secs(3600));
            }
        };
        let builder =
            std::thread::Builder::new().name(format!("crowd-{number}")).stack_size(64 * 1024);
        if builder.spawn(work).is_err() {
            break; // the table shows the number requested; `top` shows a machine with fewer threads
        }
    }
    loop {
        std::thread::park();
    }
}

/// What this thread has used of a CPU.
fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local that outlives the call; every thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
