//! Making a resource of this machine smaller for the time of a run: commands, with what undoes
//! them, for [`run_step`](crate::run_step). What the control group and the server's own limits can
//! do needs none of this.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::machine::MachineResource;

/// The first hexadecimal digit of the handles of throng's queueing disciplines, 16 bits.
const HANDLE_BASE: u32 = 0x7000;
/// A token bucket holds this much: enough for 1 Gbit/s at 250 ticks a second (tc-tbf(8)).
const BURST_MS: f64 = 4.0;
/// Less is not enough for the largest packet of a loopback interface.
const BURST_BYTES_MIN: f64 = 80_000.0;
/// The longest wait in its queue before it drops, as in `throng stage --egress-queue-ms`.
const LATENCY_MS: u32 = 200;
/// The receive buffers of sockets (Documentation/admin-guide/sysctl/net.rst).
const RMEM: [&str; 2] = ["rmem_default", "rmem_max"];
/// Where they are.
const RMEM_FOLDER: &str = "/proc/sys/net/core";
/// The undoing of [`receive_buffers_step`]: `$0` is the folder, and each file comes with the value
/// that throng gave it and the one before. What is another by now was set by somebody since.
const RMEM_UNDO: &str = "while [ $# -gt 2 ]; do \
     [ \"$(cat \"$0/$1\")\" != \"$2\" ] || echo \"$3\" > \"$0/$1\" || exit 1; shift 3; done";
/// What the undoing of [`line_rate_step`] begins with; `$0` is the interface.
const LINE_UNDO: &str = "tc qdisc show dev \"$0\" | grep -q 'qdisc tbf ";

/// A command, and what undoes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShrinkStep {
    /// Program and arguments.
    pub run: Vec<String>,
    /// Program and arguments.
    pub undo: Vec<String>,
}

/// How many CPUs this process may use.
#[must_use]
pub fn cpus_allowed() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many files a process that this one starts may have open.
#[must_use]
pub fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The most that a process that this one starts can be given.
pub(crate) fn open_files_max() -> u64 {
    if rustix::process::geteuid().is_root() {
        let text = fs::read_to_string("/proc/sys/fs/nr_open").unwrap_or_default();
        return text.trim().parse().unwrap_or(u64::MAX);
    }
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Limits what `interface` sends to `rate_bps`, by a token bucket filter. Another queueing
/// discipline that somebody set up on it is not replaced: the step then says that it is not
/// possible here.
#[must_use]
pub fn line_rate_step(interface: &str, rate_bps: f64) -> ShrinkStep {
    let burst = (rate_bps / 8.0 * BURST_MS / 1e3).max(BURST_BYTES_MIN);
    let handle = handle_of(std::process::id());
    let add = format!(
        "tc qdisc add dev \"$0\" root handle {handle} tbf rate {rate_bps:.0}bit burst {burst:.0}b \
         latency {LATENCY_MS}ms || {{ echo \"the line of $0 cannot be limited\" >&2; exit 69; }}"
    );
    let del = format!(
        "{LINE_UNDO}{handle}' || exit 0; exec tc qdisc del dev \"$0\" root handle {handle}"
    );
    let shell =
        |script: String| vec!["sh".to_owned(), "-c".to_owned(), script, interface.to_owned()];
    ShrinkStep { run: shell(add), undo: shell(del) }
}

/// The handle of the queueing discipline of a process: what it undoes is what it made, and not the
/// discipline of another throng.
fn handle_of(pid: u32) -> String {
    format!("{:x}:", HANDLE_BASE | (pid & 0xfff))
}

/// Leaves the share `to` of the receive buffers that sockets of this machine get and may ask for.
#[must_use]
pub fn receive_buffers_step(to: f64) -> ShrinkStep {
    receive_buffers(Path::new(RMEM_FOLDER), to)
}

fn receive_buffers(folder: &Path, to: f64) -> ShrinkStep {
    let shell = |script: &str| vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
    let value = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let known: Vec<(&str, u64)> =
        RMEM.into_iter().filter_map(|name| Some((name, value(name)?))).collect();
    if known.len() < RMEM.len() {
        let script = "echo the receive buffers of this machine are not known >&2; exit 69";
        return ShrinkStep { run: shell(script), undo: Vec::new() };
    }
    let (mut writes, mut undo) = (Vec::new(), shell(RMEM_UNDO));
    let folder = folder.display().to_string();
    undo.push(folder.clone());
    for (name, value) in known {
        let shrunk = format!("{:.0}", (value as f64 * to).max(1.0));
        writes.push(format!("echo {shrunk} > {folder}/{name}"));
        undo.extend([name.to_owned(), shrunk, value.to_string()]);
    }
    let run = format!(
        "{{ {}; }} || {{ echo the receive buffers cannot be changed >&2; exit 69; }}",
        writes.join(" && ")
    );
    ShrinkStep { run: shell(&run), undo }
}

/// The buffers that a script puts back, each with its value before, if it is the undoing that an
/// earlier throng wrote: `echo N > /proc/sys/net/core/rmem_default && …`.
fn buffers_written_by(script: &str) -> Option<Vec<(&str, u64)>> {
    script
        .split(" && ")
        .map(|write| {
            let (value, file) = write.strip_prefix("echo ")?.split_once(" > ")?;
            let name = file.strip_prefix(RMEM_FOLDER)?.strip_prefix('/')?;
            let before = value.parse::<u64>().ok()?;
            RMEM.contains(&name).then_some((name, before))
        })
        .collect()
}

/// What of this machine a command puts back that undoes one of these steps.
pub(crate) fn put_back_by(words: &[String]) -> Option<MachineResource> {
    match words {
        [_, _, script, interface] if script.starts_with(LINE_UNDO) => {
            Some(MachineResource::Line(interface.clone()))
        }
        [_, _, script, ..] if script == RMEM_UNDO => Some(MachineResource::ReceiveBuffers),
        [_, _, script] if buffers_written_by(script).is_some() => {
            Some(MachineResource::ReceiveBuffers)
        }
        _ => None,
    }
}

/// Whether such a command has nothing to put back, by the `state` of the resource: after a boot, or
/// in another network namespace, nothing of the change is left, and what somebody else set since is
/// theirs.
pub(crate) fn is_put_back(words: &[String], state: &str) -> bool {
    let current = |name: &str| {
        let mut states = state.split(", ").filter_map(|state| state.split_once(' '));
        let (_, value) = states.find(|(known, _)| *known == name)?;
        value.parse::<u64>().ok()
    };
    match words {
        [_, _, script, _, values @ ..] if script == RMEM_UNDO => {
            values.chunks_exact(3).all(|file| match file {
                [name, shrunk, before] => current(name).is_some_and(|value| {
                    let is = |text: &str| text.parse::<u64>() == Ok(value);
                    is(before) || !is(shrunk)
                }),
                _ => false,
            })
        }
        [_, _, script, _] => {
            let handle = script.strip_prefix(LINE_UNDO).and_then(|rest| rest.split_once('\''));
            handle.is_none_or(|(handle, _)| !state.contains(&format!("qdisc tbf {handle}")))
        }
        // What throng had set is not known, but shrinking makes no buffer larger.
        [_, _, script] => buffers_written_by(script).is_none_or(|written| {
            let is_as_large =
                |(name, before): &(&str, u64)| current(name).is_some_and(|value| value >= *before);
            written.iter().all(is_as_large)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A folder with these values of the receive buffers.
    fn buffers(default: &str, max: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("rmem_default"), default).unwrap();
        fs::write(folder.path().join("rmem_max"), max).unwrap();
        folder
    }

    /// Runs a command, and returns the values that the buffers then have.
    fn after(words: &[String], folder: &Path) -> [String; 2] {
        assert!(Command::new(&words[0]).args(&words[1..]).status().unwrap().success(), "{words:?}");
        RMEM.map(|name| fs::read_to_string(folder.join(name)).unwrap().trim().to_owned())
    }

    #[test]
    fn buffers_are_put_back_as_they_were() {
        let folder = buffers("212992\n", "100\n");
        let step = receive_buffers(folder.path(), 0.8);
        assert_eq!(after(&step.run, folder.path()), ["170394", "80"]);
        assert_eq!(after(&step.undo, folder.path()), ["212992", "100"]);
        assert_eq!(after(&step.undo, folder.path()), ["212992", "100"], "a second time");
        let unknown = receive_buffers(buffers("", "100\n").path(), 0.8);
        assert!(unknown.run[2].ends_with("exit 69") && unknown.undo.is_empty());
    }

    #[test]
    fn a_buffer_that_somebody_set_since_stays() {
        for (since, expect) in [("4194304", "4194304"), ("70", "70"), ("80", "100")] {
            let folder = buffers("212992\n", "100\n");
            let step = receive_buffers(folder.path(), 0.8);
            after(&step.run, folder.path());
            fs::write(folder.path().join("rmem_max"), format!("{since}\n")).unwrap();
            assert_eq!(after(&step.undo, folder.path()), ["212992", expect]);
        }
    }

    #[test]
    fn only_the_own_filter_is_removed() {
        let step = line_rate_step("eth0", 16e6);
        assert!(step.run[2].contains("rate 16000000bit burst 80000b"), "{step:?}");
        let own = handle_of(std::process::id());
        assert!(step.run[2].contains(&format!("root handle {own} tbf")), "{step:?}");
        assert!(step.undo[2].contains(&format!("qdisc tbf {own}")), "{step:?}");
        assert!(step.undo[2].ends_with(&format!("root handle {own}")), "{step:?}");
        assert_eq!((handle_of(0x12_3468), handle_of(0x12_3469)), ("7468:".into(), "7469:".into()));
        assert_eq!((step.run[3].as_str(), step.undo[3].as_str()), ("eth0", "eth0"));
        assert!(!step.run[2].contains("replace"), "what somebody else set up stays");
    }

    #[test]
    fn an_undoing_tells_what_it_puts_back() {
        let line = line_rate_step("eth0", 16e6);
        assert_eq!(put_back_by(&line.undo), Some(MachineResource::Line("eth0".into())));
        let folder = buffers("212992\n", "100\n");
        let buffers = receive_buffers(folder.path(), 0.8);
        assert_eq!(put_back_by(&buffers.undo), Some(MachineResource::ReceiveBuffers));
        assert_eq!(put_back_by(&["umount".into(), "/mnt".into()]), None);
        assert_eq!(put_back_by(&[]), None);
    }

    #[test]
    fn an_undoing_of_an_earlier_throng_is_recognised() {
        let shell = |script: &str| ["sh", "-c", script].map(str::to_owned);
        let earlier = shell(
            "echo 212992 > /proc/sys/net/core/rmem_default && \
             echo 100 > /proc/sys/net/core/rmem_max",
        );
        assert_eq!(put_back_by(&earlier), Some(MachineResource::ReceiveBuffers));
        for (state, expect) in [
            ("rmem_default 212992, rmem_max 100", true),
            ("rmem_default 212992, rmem_max 1000", true),
            ("rmem_default 212992, rmem_max 80", false),
            ("rmem_default 212992", false),
        ] {
            assert_eq!(is_put_back(&earlier, state), expect, "{state}");
        }
        for own in ["echo 1 > /proc/sys/net/core/wmem_max", "echo 1 > /tmp/a", "tc qdisc", ""] {
            assert_eq!(put_back_by(&shell(own)), None, "{own}");
        }
    }

    #[test]
    fn what_is_as_before_or_was_set_since_is_not_left() {
        let line = line_rate_step("eth0", 16e6).undo;
        let own = handle_of(std::process::id());
        assert!(!is_put_back(&line, &format!("qdisc tbf {own} root rate 14Mbit")));
        assert!(is_put_back(&line, "no filter") && is_put_back(&line, "qdisc tbf 1: root"));
        let folder = buffers("212992\n", "100\n");
        let undo = |to: f64| receive_buffers(folder.path(), to).undo;
        let buffers = undo(0.8);
        for (state, expect) in [
            ("rmem_default 212992, rmem_max 100", true),
            ("rmem_default 212992, rmem_max 1000", true),
            ("rmem_default 212992, rmem_max 90", true),
            ("rmem_default 212992, rmem_max 80", false),
            ("rmem_default 170394, rmem_max 80", false),
            ("rmem_default 212992", false),
            ("rmem_default 212992, rmem_max ", false),
        ] {
            assert_eq!(is_put_back(&buffers, state), expect, "{state}");
        }
        assert!(is_put_back(&undo(1.0), "rmem_default 212992, rmem_max 100"), "nothing changed");
    }
}
