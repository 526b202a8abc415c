//! How a watched process ended, and who ended it.

use serde::{Deserialize, Serialize};

use super::HostEvent;
use crate::units::bytes;

/// What programs read of an event about a watched process; [`HostEvent::detail`] is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEvent {
    /// Index of the target by which it was found, in the order of the watcher's targets.
    pub target: u32,
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// How it ended; `None` of a process that was found.
    pub end: Option<ProcessEnd>,
}

/// The end of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// By an exit or a signal.
    pub how: HowEnded,
    /// Who ended it, where that left a trace.
    pub by: Option<Culprit>,
    /// Its last lines, where its output is read and it failed.
    pub said: Option<String>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HowEnded {
    /// By an exit.
    Exit {
        /// Its exit code.
        code: u8,
    },
    /// By a signal.
    Signal {
        /// The number of the signal (signal(7)).
        number: u8,
        /// Whether the kernel wrote a core dump.
        core: bool,
    },
    /// It runs on as another program: execve(2).
    Replaced,
    /// The kernel did not tell the watcher.
    #[default]
    Unknown,
}

/// Who ended a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Culprit {
    /// The kernel, for lack of memory.
    OutOfMemory {
        /// The control group that had no memory left; the process's own if that was the host.
        group: String,
        /// The memory that the group may use, bytes; `None` if the host's memory was the limit.
        limit_bytes: Option<u64>,
        /// What the group used when it was last read before, bytes; where only the kernel's log
        /// tells of a lack on the host, what the process had resident.
        used_bytes: u64,
    },
    /// The processor stopped it: it accessed memory that it does not have, or executed what is no
    /// instruction.
    Fault {
        /// What, where and in which file, as the kernel logged it.
        what: String,
    },
    /// The kernel, at a limit of setrlimit(2).
    ResourceLimit {
        /// The limit: `RLIMIT_CPU`.
        name: String,
    },
    /// It ended itself: an assertion, a panic, an exception that nobody caught.
    Assertion {
        /// The line that says so.
        line: String,
    },
    /// systemd, at a limit of the service whose main process it was.
    Service {
        /// The unit: `media.service`.
        unit: String,
        /// Which limit.
        result: ServiceResult,
    },
}

/// The limits at which systemd ends a service (`Result=`, systemd.service(5)). Its other results
/// say no more than how the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceResult {
    /// The kernel killed a process of the service for lack of memory (`OOMPolicy=`).
    OutOfMemory,
    /// The service did not report in time that it is alive (`WatchdogSec=`).
    Watchdog,
    /// It took too long to start, to stop or to be done (`TimeoutStartSec=`, `TimeoutStopSec=`,
    /// `RuntimeMaxSec=`).
    Timeout,
}

impl ServiceResult {
    /// The name as systemd has it.
    const ALL: [(Self, &'static str); 3] =
        [(Self::OutOfMemory, "oom-kill"), (Self::Watchdog, "watchdog"), (Self::Timeout, "timeout")];

    /// The result of this name, if it is one of these.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(result, _)| result)
    }

    /// What it says of the process that ended, which was the main one of `unit`.
    fn words(self, unit: &str) -> String {
        match self {
            Self::OutOfMemory => format!(
                "systemd says oom-kill of {unit}: the kernel killed a process of it for lack of \
                 memory"
            ),
            Self::Watchdog => format!(
                "systemd ended {unit}, as it did not report within WatchdogSec= that it is alive"
            ),
            Self::Timeout => format!(
                "systemd ended {unit}, as it reached a time limit (TimeoutStartSec=, \
                 TimeoutStopSec= or RuntimeMaxSec=)"
            ),
        }
    }
}

/// SIGHUP, SIGINT and SIGTERM.
const ASK: [u8; 3] = [1, 2, 15];
const SIGABRT: u8 = 6;
const SIGKILL: u8 = 9;
/// SIGILL, SIGTRAP, SIGBUS, SIGFPE and SIGSEGV.
const FAULTS: [u8; 5] = [4, 5, 7, 8, 11];
const SIGXCPU: u8 = 24;
const SIGXFSZ: u8 = 25;

/// Names of the signals that end servers (signal(7), x86 and ARM).
const SIGNALS: &[(u8, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (SIGABRT, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (SIGKILL, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (SIGXCPU, "SIGXCPU"),
    (SIGXFSZ, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// What runtimes print when a program ends itself: C, C++, Rust, Go.
const ASSERTIONS: &[&str] = &[
    "Assertion ",
    "terminate called",
    "panicked at",
    "panic: ",
    "fatal error: ",
    "assertion failed",
];

impl HowEnded {
    /// From a wait status, as waitpid(2) and `exit_code` of `/proc/P/stat` have it.
    #[must_use]
    pub fn of_wait_status(status: i32) -> Self {
        let byte = |value: i32| u8::try_from(value & 0xff).unwrap_or_default();
        match status & 0x7f {
            0 => Self::Exit { code: byte(status >> 8) },
            number => Self::Signal { number: byte(number), core: status & 0x80 != 0 },
        }
    }

    /// The signal that ended it.
    #[must_use]
    pub fn signal(self) -> Option<u8> {
        match self {
            Self::Signal { number, .. } => Some(number),
            Self::Exit { .. } | Self::Replaced | Self::Unknown => None,
        }
    }

    /// Its exit code.
    #[must_use]
    pub fn exit_code(self) -> Option<u8> {
        match self {
            Self::Exit { code } => Some(code),
            Self::Signal { .. } | Self::Replaced | Self::Unknown => None,
        }
    }

    /// Whether it was SIGKILL, which the kernel sends for lack of memory.
    #[must_use]
    pub fn is_kill(self) -> bool {
        self.signal() == Some(SIGKILL)
    }

    /// Whether the processor stopped it: SIGILL, SIGTRAP, SIGBUS, SIGFPE or SIGSEGV.
    #[must_use]
    pub fn is_fault(self) -> bool {
        self.signal().is_some_and(|number| FAULTS.contains(&number))
    }

    /// Whether somebody asked it to end: SIGHUP, SIGINT or SIGTERM.
    #[must_use]
    pub fn is_asked(self) -> bool {
        self.signal().is_some_and(|number| ASK.contains(&number))
    }

    /// Whether it ended with exit code 0, or with that of a program that was asked to end: 128 and
    /// the number of the signal, as shells and many servers have it.
    #[must_use]
    pub fn is_orderly(self) -> bool {
        self.exit_code()
            .is_some_and(|code| code == 0 || ASK.iter().any(|number| code == 128 + number))
    }

    /// In words that follow "ended": `by signal 11 (SIGSEGV)`.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Exit { code } => format!("with exit code {code}"),
            Self::Signal { number, core } => {
                let name = SIGNALS.iter().find(|(known, _)| *known == number);
                let name = name.map_or_else(String::new, |(_, name)| format!(" ({name})"));
                format!("by signal {number}{name}{}", if core { ", with a core dump" } else { "" })
            }
            Self::Replaced => "by executing another program".into(),
            Self::Unknown => "in a way that the kernel did not tell the watcher".into(),
        }
    }
}

impl Culprit {
    /// The culprit that the way of the end and the last lines name.
    #[must_use]
    pub fn of(how: HowEnded, last_lines: &[String]) -> Option<Self> {
        let limit = |name: &str| Some(Self::ResourceLimit { name: name.to_owned() });
        match how {
            HowEnded::Signal { number: SIGXCPU, .. } => limit("RLIMIT_CPU"),
            HowEnded::Signal { number: SIGXFSZ, .. } => limit("RLIMIT_FSIZE"),
            HowEnded::Exit { code: 0 } | HowEnded::Replaced => None,
            HowEnded::Exit { .. } | HowEnded::Signal { .. } | HowEnded::Unknown => {
                let says = |line: &&String| ASSERTIONS.iter().any(|word| line.contains(word));
                last_lines.iter().find(says).map(|line| Self::Assertion { line: line.clone() })
            }
        }
    }

    /// In words that follow the way of the end.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::OutOfMemory { group, limit_bytes: Some(limit), used_bytes } => format!(
                "the kernel killed it for lack of memory: control group {group} used {} of its {}",
                bytes(*used_bytes as f64),
                bytes(*limit as f64)
            ),
            Self::OutOfMemory { group, limit_bytes: None, used_bytes } => format!(
                "the kernel killed it for lack of memory on the host; control group {group} used \
                 {}",
                bytes(*used_bytes as f64)
            ),
            Self::ResourceLimit { name } => format!("it ran into {name} (ulimit)"),
            Self::Fault { what } => format!("the kernel logged: {what}"),
            Self::Assertion { line } => format!("it ended itself: {line}"),
            Self::Service { unit, result } => result.words(unit),
        }
    }
}

impl ProcessEnd {
    /// An end of which nothing else is known.
    #[must_use]
    pub fn new(how: HowEnded) -> Self {
        Self { how, by: Culprit::of(how, &[]), said: None }
    }

    /// In words that follow "ended".
    #[must_use]
    pub fn words(&self) -> String {
        let by = self.by.as_ref().map_or_else(String::new, |by| format!(": {}", by.words()));
        format!("{}{by}", self.how.words())
    }

    /// Whether the kernel killed it for lack of memory. What systemd says is no proof of that: it
    /// knows that a process of the service was killed, and stops the others (`OOMPolicy=`), by
    /// SIGKILL too where they do not end in time.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.by, Some(Culprit::OutOfMemory { .. }))
    }
}

impl ProcessEvent {
    /// `media (PID 7)`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} (PID {})", self.name, self.pid)
    }

    /// What `event` says of a process: in rows without [`HostEvent::process`] (runs and agents of
    /// earlier versions) from its detail, `media (PID 7): killed by signal 9`.
    #[must_use]
    pub fn of(event: &HostEvent) -> Option<Self> {
        if event.process.is_some() {
            return event.process.clone();
        }
        let (name, rest) = event.detail.split_once(" (PID ")?;
        let (pid, rest) = rest.split_once(')')?;
        let number = |word: &str| {
            let digits = rest.split_once(word)?.1;
            let until = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits.get(..until)?.parse::<u8>().ok()
        };
        let how = match (number("signal "), number("exit code ")) {
            _ if rest.contains("executed another program") => HowEnded::Replaced,
            (Some(number), _) => HowEnded::Signal { number, core: false },
            (None, Some(code)) => HowEnded::Exit { code },
            (None, None) => HowEnded::Unknown,
        };
        let program = name.strip_prefix("the command ").and_then(|path| path.rsplit('/').next());
        let name = program.unwrap_or(name).to_owned();
        let end = (event.kind == super::HostEventKind::ProcessEnded).then(|| ProcessEnd::new(how));
        Some(Self { target: 0, name, pid: pid.parse().ok()?, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunTime;
    use crate::host::{HostEventKind, HostId};

    #[test]
    fn a_wait_status_is_an_exit_or_a_signal() {
        for (status, expect, words) in [
            (0, HowEnded::Exit { code: 0 }, "with exit code 0"),
            (0x300, HowEnded::Exit { code: 3 }, "with exit code 3"),
            (9, HowEnded::Signal { number: 9, core: false }, "by signal 9 (SIGKILL)"),
            (
                0x8b,
                HowEnded::Signal { number: 11, core: true },
                "by signal 11 (SIGSEGV), with a core dump",
            ),
        ] {
            let how = HowEnded::of_wait_status(status);
            assert_eq!((how, how.words().as_str()), (expect, words), "{status:#x}");
        }
    }

    #[test]
    fn an_exit_is_orderly_if_nothing_failed_or_somebody_asked_for_it() {
        let orderly = (0..=255).filter(|code| HowEnded::Exit { code: *code }.is_orderly());
        assert_eq!(orderly.collect::<Vec<u8>>(), [0, 129, 130, 143]);
        assert!(
            !HowEnded::Unknown.is_orderly()
                && !HowEnded::Signal { number: 15, core: false }.is_orderly()
        );
    }

    #[test]
    fn who_ended_it_is_said_where_that_left_a_trace() {
        let signal = |number| HowEnded::Signal { number, core: false };
        let says = |how, lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            Culprit::of(how, &lines).map(|by| by.words())
        };
        assert_eq!(says(signal(24), &[]).as_deref(), Some("it ran into RLIMIT_CPU (ulimit)"));
        let line = "media: pool.c:12: take: Assertion `n > 0' failed.";
        assert_eq!(says(signal(6), &["ready", line]), Some(format!("it ended itself: {line}")));
        assert_eq!(says(signal(9), &["ready"]), None, "who sent it left no trace");
        assert_eq!(says(HowEnded::Exit { code: 0 }, &["panic: no"]), None, "it did not fail");
        let by = Culprit::OutOfMemory {
            group: "/media".into(),
            limit_bytes: Some(256_000_000),
            used_bytes: 255_000_000,
        };
        let end = ProcessEnd { by: Some(by), ..ProcessEnd::new(signal(9)) };
        assert_eq!(
            end.words(),
            "by signal 9 (SIGKILL): the kernel killed it for lack of memory: control group /media used 255 MB of its 256 MB"
        );
    }

    #[test]
    fn systemd_says_at_which_limit_it_ended_a_service() {
        let ended = |name: &str, number: u8| {
            let by = ServiceResult::from_name(name)
                .map(|result| Culprit::Service { unit: "media.service".into(), result });
            let how = HowEnded::Signal { number, core: false };
            ProcessEnd { by, ..ProcessEnd::new(how) }
        };
        assert_eq!(
            ended("watchdog", 6).words(),
            "by signal 6 (SIGABRT): systemd ended media.service, as it did not report within WatchdogSec= that it is alive"
        );
        assert_eq!(
            ended("oom-kill", 9).words(),
            "by signal 9 (SIGKILL): systemd says oom-kill of media.service: the kernel killed a process of it for lack of memory"
        );
        // Another process of the service was killed, and this one stopped: at last by SIGKILL.
        for (name, number) in
            [("oom-kill", 9), ("oom-kill", 15), ("watchdog", 9), ("timeout", 9), ("signal", 9)]
        {
            let end = ended(name, number);
            assert!(!end.is_out_of_memory(), "{name} {number}");
            assert_eq!(end.by.is_some(), name != "signal", "{name}");
        }
    }

    #[test]
    fn a_fault_is_what_the_processor_stops() {
        let faults = (1..=31).filter(|number| {
            let number = *number;
            HowEnded::Signal { number, core: false }.is_fault()
        });
        assert_eq!(faults.collect::<Vec<u8>>(), FAULTS);
        assert!(!HowEnded::Exit { code: 11 }.is_fault());
        let by = Culprit::Fault { what: "segfault at 10 ip 5 sp 7 error 4 in media[5+1]".into() };
        let how = HowEnded::Signal { number: 11, core: true };
        let end = ProcessEnd { by: Some(by), ..ProcessEnd::new(how) };
        assert_eq!(
            end.words(),
            "by signal 11 (SIGSEGV), with a core dump: the kernel logged: segfault at 10 ip 5 sp 7 error 4 in media[5+1]"
        );
    }

    #[test]
    fn an_event_of_an_earlier_version_is_read_from_its_words() {
        let of = |kind, detail: &str| {
            ProcessEvent::of(&HostEvent::new(HostId(0), RunTime(0), kind, detail))
                .map(|said| (said.label(), said.end.map(|end| end.how)))
        };
        let (found, ended) = (HostEventKind::ProcessFound, HostEventKind::ProcessEnded);
        for (kind, detail, label, how) in [
            (found, "media (PID 7): /usr/bin/media -x", "media (PID 7)", None),
            (ended, "media (PID 7): it is a zombie", "media (PID 7)", Some(HowEnded::Unknown)),
            (ended, "media (PID 7)", "media (PID 7)", Some(HowEnded::Unknown)),
            (
                ended,
                "sh (PID 7): it executed another program",
                "sh (PID 7)",
                Some(HowEnded::Replaced),
            ),
            (
                ended,
                "the command /bin/media (PID 7) ended by signal 9; last lines on stderr: exit code 5",
                "media (PID 7)",
                Some(HowEnded::Signal { number: 9, core: false }),
            ),
        ] {
            assert_eq!(of(kind, detail), Some((label.to_owned(), how)), "{detail}");
        }
        assert_eq!(of(ended, "nothing of the kind"), None);
    }
}
