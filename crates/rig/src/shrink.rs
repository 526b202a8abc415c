//! Making a resource of this machine smaller for the time of a run: commands, with what undoes
//! them, for [`run_step`](crate::run_step). What the control group and the server's own limits can
//! do needs none of this.

use std::fs;

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
/// Where they are, with the begin of their names.
const RMEM_FILES: &str = "/proc/sys/net/core/rmem_";
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
        "tc qdisc add dev \"$0\" root handle {handle} tbf rate {rate_bps:.0}bit burst {burst:.0}b latency {LATENCY_MS}ms || \
         {{ echo \"the line of $0 cannot be limited\" >&2; exit 69; }}"
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
    let value = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    receive_buffers(RMEM.map(|name| (name, value(name))), to)
}

fn receive_buffers(values: [(&str, Option<u64>); 2], to: f64) -> ShrinkStep {
    let shell = |script: String| vec!["sh".to_owned(), "-c".to_owned(), script];
    let known: Vec<(&str, u64)> =
        values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    if known.len() < values.len() {
        let script = "echo the receive buffers of this machine are not known >&2; exit 69";
        return ShrinkStep { run: shell(script.to_owned()), undo: Vec::new() };
    }
    let writes = |share: f64| -> String {
        let write = |(name, value): &(&str, u64)| {
            format!("echo {:.0} > /proc/sys/net/core/{name}", (*value as f64 * share).max(1.0))
        };
        known.iter().map(write).collect::<Vec<_>>().join(" && ")
    };
    let run = format!(
        "{{ {}; }} || {{ echo the receive buffers cannot be changed >&2; exit 69; }}",
        writes(to)
    );
    ShrinkStep { run: shell(run), undo: shell(writes(1.0)) }
}

/// What of this machine a command puts back that undoes one of these steps.
pub(crate) fn put_back_by(words: &[String]) -> Option<MachineResource> {
    match words {
        [_, _, script, interface] if script.starts_with(LINE_UNDO) => {
            Some(MachineResource::Line(interface.clone()))
        }
        [_, _, script] if script.contains(RMEM_FILES) => Some(MachineResource::ReceiveBuffers),
        _ => None,
    }
}

/// Whether what such a command puts back is as before, by the `state` of the resource: after a
/// boot, or in another network namespace, nothing of it is left. Receive buffers that are larger
/// than before were set by somebody else since: shrinking makes none larger.
pub(crate) fn is_put_back(words: &[String], state: &str) -> bool {
    match words {
        [_, _, script, _] => {
            let handle = script.strip_prefix(LINE_UNDO).and_then(|rest| rest.split_once('\''));
            handle.is_none_or(|(handle, _)| !state.contains(&format!("qdisc tbf {handle}")))
        }
        [_, _, script] => {
            let current = |name: &str| -> Option<u64> {
                let mut states = state.split(", ").filter_map(|state| state.split_once(' '));
                states.find(|(known, _)| *known == name)?.1.parse().ok()
            };
            let is_as_large = |write: &str| {
                let (value, path) = write.strip_prefix("echo ")?.split_once(" > ")?;
                let wanted: u64 = value.parse().ok()?;
                Some(current(path.rsplit('/').next()?)? >= wanted)
            };
            script.split(" && ").all(|write| is_as_large(write) == Some(true))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_put_back_as_they_were() {
        let step = receive_buffers([("rmem_default", Some(212_992)), ("rmem_max", Some(100))], 0.8);
        assert!(
            step.run[2].contains("echo 170394 > /proc/sys/net/core/rmem_default && echo 80 >"),
            "{step:?}"
        );
        assert_eq!(
            step.undo[2],
            "echo 212992 > /proc/sys/net/core/rmem_default && echo 100 > /proc/sys/net/core/rmem_max"
        );
        let unknown = receive_buffers([("rmem_default", None), ("rmem_max", Some(100))], 0.8);
        assert!(unknown.run[2].ends_with("exit 69") && unknown.undo.is_empty());
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
        let buffers = receive_buffers(RMEM.map(|name| (name, Some(100))), 0.8);
        assert_eq!(put_back_by(&buffers.undo), Some(MachineResource::ReceiveBuffers));
        assert_eq!(put_back_by(&["umount".into(), "/mnt".into()]), None);
        assert_eq!(put_back_by(&[]), None);
    }

    #[test]
    fn what_is_as_before_is_not_left() {
        let line = line_rate_step("eth0", 16e6).undo;
        let own = handle_of(std::process::id());
        assert!(!is_put_back(&line, &format!("qdisc tbf {own} root rate 14Mbit")));
        assert!(is_put_back(&line, "no filter") && is_put_back(&line, "qdisc tbf 1: root"));
        let values = [("rmem_default", Some(212_992)), ("rmem_max", Some(100))];
        let buffers = receive_buffers(values, 0.8).undo;
        assert!(is_put_back(&buffers, "rmem_default 212992, rmem_max 100"));
        assert!(is_put_back(&buffers, "rmem_default 212992, rmem_max 1000"));
        assert!(!is_put_back(&buffers, "rmem_default 212992"));
        assert!(!is_put_back(&buffers, "rmem_default 170394, rmem_max 80"));
    }
}
