//! An address to listen on.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Where to listen: on this machine alone, unless another host is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    /// An address or a name.
    pub(crate) host: String,
    /// 0 for any that is free.
    pub(crate) port: u16,
}

/// The host of a port alone.
const THIS_MACHINE: &str = "127.0.0.1";

impl ListenAddress {
    /// A port of this machine alone.
    pub(crate) fn of_this_machine(port: u16) -> Self {
        Self { host: THIS_MACHINE.to_owned(), port }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let help = || "write a port, such as 9464, or HOST:PORT, such as 127.0.0.1:9464".to_owned();
        let (host, port) = text.rsplit_once(':').unwrap_or((THIS_MACHINE, text));
        let port = port.parse().map_err(|_| help())?;
        let in_brackets = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_good = match in_brackets {
            Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(is_name),
        };
        is_good
            .then(|| Self { host: in_brackets.unwrap_or(host).to_owned(), port })
            .ok_or_else(help)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine_and_another_host_is_written() {
        for (text, expect) in [
            ("9464", Some("127.0.0.1:9464")),
            ("0.0.0.0:9464", Some("0.0.0.0:9464")),
            ("[::1]:0", Some("[::1]:0")),
            ("loadgen.lan:9464", Some("loadgen.lan:9464")),
            (":9464", None),
            ("::1:9464", None),
            ("[1.2.3.4]:9464", None),
            ("127.0.0.1", None),
            ("127.0.0.1:65536", None),
            ("http://127.0.0.1:9464", None),
            ("a b:9464", None),
            ("", None),
        ] {
            let read = text.parse::<ListenAddress>().ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), expect, "{text}");
        }
    }
}
