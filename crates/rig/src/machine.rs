//! What of this machine there is once, and a proof shrinks: who shrinks it has it alone, and can
//! see whether it is still as it was left.

use std::fmt;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use crate::journal::Undo;
use crate::shrink;

/// A resource of the machine that [`line_rate_step`](crate::line_rate_step) and
/// [`receive_buffers_step`](crate::receive_buffers_step) shrink. Those of a server's own control
/// group are nobody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineResource {
    /// What this interface sends.
    Line(String),
    /// `net.core.rmem_default` and `rmem_max`.
    ReceiveBuffers,
}

/// A resource that this process has alone until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub struct MachineLock {
    _bound: UnixListener,
}

/// Why a resource cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Another throng shrinks it.
    #[error(
        "another throng shrinks {resource}: wait for its end (`ss -xlp | grep {name}` names it)"
    )]
    Taken {
        /// The resource.
        resource: MachineResource,
        /// The name of its lock.
        name: String,
    },
    /// No lock can be made.
    #[error("{resource} cannot be locked: {error}")]
    Io {
        /// The resource.
        resource: MachineResource,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for MachineResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(interface) => write!(f, "the line of {interface}"),
            Self::ReceiveBuffers => write!(f, "the receive buffers of this machine"),
        }
    }
}

impl MachineResource {
    /// What `undo` puts back; `None` for what is no such resource.
    #[must_use]
    pub fn put_back_by(undo: &Undo) -> Option<Self> {
        match undo {
            Undo::Command { words, .. } => shrink::put_back_by(words),
            Undo::Processes(_) | Undo::ControlGroups(_) => None,
        }
    }

    /// Whether `undo` puts back one that is not as before.
    #[must_use]
    pub fn is_left(undo: &Undo) -> bool {
        match undo {
            Undo::Command { words, .. } => shrink::put_back_by(words)
                .is_some_and(|resource| !shrink::is_put_back(words, &resource.state())),
            Undo::Processes(_) | Undo::ControlGroups(_) => false,
        }
    }

    /// Takes it, if no other throng has it, whoever runs that.
    ///
    /// The lock is an address of unix(7) without a file: it ends with its process, cannot be made
    /// beforehand as a file of `/tmp` can, and each network namespace, which has interfaces and
    /// buffers of its own, has its own addresses.
    ///
    /// # Errors
    /// If another process has it.
    pub fn lock(&self) -> Result<MachineLock, MachineError> {
        let name = self.lock_name();
        let bound = SocketAddr::from_abstract_name(&name)
            .and_then(|address| UnixListener::bind_addr(&address));
        match bound {
            Ok(bound) => Ok(MachineLock { _bound: bound }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(MachineError::Taken { resource: self.clone(), name })
            }
            Err(error) => Err(MachineError::Io { resource: self.clone(), error }),
        }
    }

    fn lock_name(&self) -> String {
        match self {
            Self::Line(interface) => format!("throng-shrinks-line-{interface}"),
            Self::ReceiveBuffers => "throng-shrinks-rmem".to_owned(),
        }
    }

    /// How it is now, in words that are the same as long as nobody changes it.
    #[must_use]
    pub fn state(&self) -> String {
        match self {
            Self::Line(interface) => {
                let shown = Command::new("tc").args(["qdisc", "show", "dev", interface]).output();
                let shown = shown.map(|output| output.stdout).unwrap_or_default();
                disciplines(&String::from_utf8_lossy(&shown))
            }
            Self::ReceiveBuffers => {
                let read = |name: &str| {
                    let path = format!("/proc/sys/net/core/{name}");
                    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
                };
                format!("rmem_default {}, rmem_max {}", read("rmem_default"), read("rmem_max"))
            }
        }
    }
}

/// The queueing disciplines that somebody set up, of the output of `tc qdisc show`. Those of the
/// kernel have handle 0: it makes them again, and perhaps others, when the last one that was set up
/// is removed.
fn disciplines(shown: &str) -> String {
    let set_up = shown.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let handle = words.get(2)?;
        if words.first() != Some(&"qdisc") || *handle == "0:" {
            return None;
        }
        // How many queues refer to it changes by itself.
        let counted = words.iter().position(|word| *word == "refcnt");
        let is_count = |index: usize| counted.is_some_and(|at| index == at || index == at + 1);
        let words = words.iter().enumerate().filter(|(index, _)| !is_count(*index));
        Some(words.map(|(_, word)| *word).collect::<Vec<_>>().join(" "))
    });
    let mut set_up: Vec<String> = set_up.collect();
    set_up.sort();
    if set_up.is_empty() { "no filter".to_owned() } else { set_up.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_had_by_one() {
        let line = |name: &str| MachineResource::Line(format!("{name}-{}", std::process::id()));
        let first = line("a").lock().unwrap();
        let error = line("a").lock().unwrap_err().to_string();
        assert!(error.contains("another throng shrinks the line of a-"), "{error}");
        assert!(line("b").lock().is_ok(), "another line is another resource");
        drop(first);
        assert!(line("a").lock().is_ok());
    }

    #[test]
    fn a_filter_is_seen_and_what_the_kernel_makes_is_not() {
        let plain = "qdisc mq 0: root \nqdisc fq_codel 0: parent :1 limit 10240p flows 1024\n";
        assert_eq!(disciplines(plain), "no filter");
        assert_eq!(disciplines(""), "no filter");
        let shrunk = |count: u32| {
            disciplines(&format!(
                "qdisc tbf 7468: root refcnt {count} rate 14Mbit burst 80000b lat 200ms \n"
            ))
        };
        assert_eq!(shrunk(2), "qdisc tbf 7468: root rate 14Mbit burst 80000b lat 200ms");
        assert_eq!(shrunk(2), shrunk(9));
    }

    #[test]
    fn the_receive_buffers_are_read() {
        let state = MachineResource::ReceiveBuffers.state();
        assert!(state.starts_with("rmem_default "), "{state}");
        assert_eq!(state, MachineResource::ReceiveBuffers.state());
    }
}
