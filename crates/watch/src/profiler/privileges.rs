//! Explains which privilege is missing when the kernel refuses profiling, and how to grant it.

use std::io;

use super::perf::RingError;

/// The privileges of this process, and the host's settings for profiling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Privileges {
    /// `kernel.perf_event_paranoid`; `None` if it cannot be read.
    pub(crate) paranoid: Option<i32>,
    /// `kernel.perf_event_mlock_kb`.
    pub(crate) mlock_kb: Option<u64>,
    /// Whether it has `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub(crate) may_profile: bool,
    /// Whether it has `CAP_SYS_PTRACE`, to read other users' processes.
    pub(crate) may_look_inside: bool,
    /// Whether a seccomp filter is active, as in a container.
    pub(crate) is_filtered: bool,
}

/// Bits of `CapEff` (`include/uapi/linux/capability.h`).
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

impl Privileges {
    /// Reads the privileges of this process.
    pub(crate) fn read() -> Self {
        let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<i64>().ok();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            paranoid: number("/proc/sys/kernel/perf_event_paranoid")
                .and_then(|n| n.try_into().ok()),
            mlock_kb: number("/proc/sys/kernel/perf_event_mlock_kb")
                .and_then(|n| n.try_into().ok()),
            ..Self::of_status(&status)
        }
    }

    /// The privileges in `/proc/self/status`.
    fn of_status(status: &str) -> Self {
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let capabilities =
            field("CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let has = |bit: u32| capabilities & 1 << bit != 0;
        Self {
            may_profile: has(CAP_PERFMON) || has(CAP_SYS_ADMIN),
            may_look_inside: has(CAP_SYS_PTRACE),
            is_filtered: field("Seccomp:") == Some("2"),
            ..Self::default()
        }
    }

    /// Why the sampler could not start and how to fix it, as a sentence.
    pub(crate) fn explain(&self, error: &RingError) -> String {
        let (RingError::Open(cause) | RingError::Map(cause)) = error;
        let help = "run as root, or give the binary the right: setcap \
                    cap_perfmon,cap_sys_ptrace,cap_syslog=ep, or sysctl \
                    kernel.perf_event_paranoid=0";
        let paranoid =
            self.paranoid.map_or("cannot be read".to_owned(), |level| format!("is {level}"));
        match (error, cause.kind(), cause.raw_os_error()) {
            (RingError::Map(_), io::ErrorKind::PermissionDenied, _) => format!(
                "no sampling clock: its ring buffer exceeds the limit of locked memory \
                 (kernel.perf_event_mlock_kb is {} of the 516 that are needed for each CPU, and \
                 this process lacks CAP_IPC_LOCK); raise the limit or grant the capability",
                self.mlock_kb.map_or("?".to_owned(), |kb| kb.to_string()),
            ),
            (RingError::Open(_), io::ErrorKind::PermissionDenied, _)
                if self.may_profile && self.is_filtered =>
            {
                "no sampling clock: a seccomp filter refuses perf_event_open; in a container start \
                 it with --cap-add PERFMON --cap-add SYS_PTRACE (Docker's own filter then lets it \
                 through), or run outside"
                    .to_owned()
            }
            (RingError::Open(_), io::ErrorKind::PermissionDenied, _) if self.is_filtered => {
                format!(
                    "no sampling clock: this process lacks CAP_PERFMON \
                     (kernel.perf_event_paranoid {paranoid}) and runs behind a seccomp filter; in \
                     a container: --cap-add PERFMON --cap-add SYS_PTRACE; else {help}"
                )
            }
            (RingError::Open(_), io::ErrorKind::PermissionDenied, _) => format!(
                "no sampling clock: kernel.perf_event_paranoid {paranoid} and this process lacks \
                 CAP_PERFMON; {help}"
            ),
            (_, _, Some(libc::EMFILE | libc::ENFILE)) => {
                format!(
                    "no sampling clock: {error}; it needs one file descriptor for each CPU: raise \
                     the limit (ulimit -n)"
                )
            }
            (_, _, Some(libc::ENOSYS)) => "no sampling clock: this kernel is built without perf \
                                           events (CONFIG_PERF_EVENTS), or hides them"
                .to_owned(),
            _ => format!("no sampling clock: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(errno: i32) -> RingError {
        RingError::Open(io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_refusal_names_the_missing_right_and_how_to_grant_it() {
        let plain = Privileges { paranoid: Some(2), mlock_kb: Some(516), ..Privileges::default() };
        let contained = Privileges { is_filtered: true, ..plain.clone() };
        let capable = Privileges { may_profile: true, ..contained.clone() };
        let check = |facts: &Privileges, error: RingError, words: &[&str]| {
            let text = facts.explain(&error);
            for word in words {
                assert!(text.contains(word), "{word:?} is not in {text:?}");
            }
        };
        check(&plain, open(libc::EACCES), &["perf_event_paranoid is 2", "CAP_PERFMON", "setcap"]);
        check(&contained, open(libc::EPERM), &["seccomp", "--cap-add PERFMON", "CAP_PERFMON"]);
        check(&capable, open(libc::EPERM), &["a seccomp filter refuses"]);
        check(&plain, open(libc::EMFILE), &["ulimit -n"]);
        check(&plain, open(libc::ENOSYS), &["CONFIG_PERF_EVENTS"]);
        let map = RingError::Map(io::Error::from_raw_os_error(libc::EPERM));
        check(&plain, map, &["perf_event_mlock_kb is 516", "CAP_IPC_LOCK"]);
    }

    #[test]
    fn rights_are_read_from_status() {
        let root = Privileges::of_status("CapEff:\t000001ffffffffff\nSeccomp:\t0\n");
        assert!(root.may_profile && root.may_look_inside && !root.is_filtered);
        let nobody = Privileges::of_status("CapEff:\t0000000000000000\nSeccomp:\t2\n");
        assert!(!nobody.may_profile && !nobody.may_look_inside && nobody.is_filtered);
        assert_eq!(Privileges::of_status(""), Privileges::default());
    }
}
