//! What to monitor, as users write it.

use std::fmt;
use std::path::PathBuf;

/// What to monitor. Descendants of a watched process are watched too, except for [`Target::Pid`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Every process of this name: the kernel's (`comm`, at most 15 bytes), or the file name of the
    /// program or script. Followed across restarts.
    Process(String),
    /// The processes of a systemd unit; `.service` is optional. Followed across restarts.
    Unit(String),
    /// The processes of a control group and its descendants, by its path below the hierarchy's
    /// root.
    Cgroup(String),
    /// One process; not followed.
    Pid(u32),
    /// The process that listens on this TCP port, or is bound to this UDP port, in any network
    /// namespace. Followed.
    Port(u16),
    /// A command (program and arguments) that the watcher starts, and ends when it stops.
    Command(Vec<String>),
}

/// Why a text is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot watch `{text}`: {why}")]
pub struct TargetError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// Maximum length of a name, unit or path.
const NAME_BYTES_MAX: usize = 4096;

impl Target {
    /// Parses the target of a `kind` (`process`, `unit`, `cgroup`, `pid`, `port`). A command is
    /// made from its words instead.
    ///
    /// # Errors
    /// When the kind is unknown, or the text does not fit it.
    pub fn parse(kind: &str, text: &str) -> Result<Self, TargetError> {
        let fail = |why| Err(TargetError { text: text.chars().take(80).collect(), why });
        if text.is_empty() || text.len() > NAME_BYTES_MAX || text.contains('\0') {
            return fail("it is empty, too long, or contains a zero byte");
        }
        match kind {
            "process" if text.contains('/') => fail("name the process, not its path"),
            "process" => Ok(Self::Process(text.to_owned())),
            "unit" if text.contains('/') => fail("name the unit, such as nginx or nginx.service"),
            "unit" => Ok(Self::Unit(text.to_owned())),
            "cgroup" if text.starts_with('/') => {
                Ok(Self::Cgroup(text.strip_prefix("/sys/fs/cgroup").unwrap_or(text).to_owned()))
            }
            "cgroup" => fail("a control group path starts with /, as in /proc/PID/cgroup"),
            "pid" => match text.parse() {
                Ok(pid) if pid > 0 => Ok(Self::Pid(pid)),
                _ => fail("a PID is a number above 0"),
            },
            "port" => match text.parse() {
                Ok(port) if port > 0 => Ok(Self::Port(port)),
                _ => fail("a port is a number from 1 to 65535"),
            },
            _ => fail("watch a process, unit, cgroup, pid, port or command"),
        }
    }

    /// Whether processes that start later may match as well.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        !matches!(self, Self::Pid(_) | Self::Command(_))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(name) => write!(f, "process {name}"),
            Self::Unit(name) => write!(f, "unit {name}"),
            Self::Cgroup(path) => write!(f, "control group {path}"),
            Self::Pid(pid) => write!(f, "PID {pid}"),
            Self::Port(port) => write!(f, "port {port}"),
            Self::Command(words) => {
                let program = words.first().map(PathBuf::from).unwrap_or_default();
                write!(f, "command {}", program.file_name().unwrap_or_default().to_string_lossy())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_of_its_kind_or_says_why_not() {
        for (kind, text, expect) in [
            ("process", "janus", Ok("process janus")),
            ("process", "/usr/bin/janus", Err("name the process")),
            ("unit", "nginx", Ok("unit nginx")),
            ("cgroup", "/sys/fs/cgroup/a/b", Ok("control group /a/b")),
            ("cgroup", "a", Err("starts with /")),
            ("pid", "7", Ok("PID 7")),
            ("pid", "0", Err("above 0")),
            ("pid", "x", Err("above 0")),
            ("port", "8188", Ok("port 8188")),
            ("port", "65536", Err("1 to 65535")),
            ("thread", "x", Err("watch a process")),
            ("process", "", Err("empty")),
        ] {
            match (Target::parse(kind, text), expect) {
                (Ok(target), Ok(name)) => assert_eq!(target.to_string(), name),
                (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{error}"),
                (got, _) => panic!("{kind} {text}: {got:?}"),
            }
        }
    }
}
