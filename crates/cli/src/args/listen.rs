//! An address to listen on, as all commands take it that listen on one.

use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;
use std::{fmt, io};

use crate::console::CliError;

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

    /// The first address of its host; `flag` asked for it.
    pub(crate) fn resolved(&self, flag: &str) -> Result<SocketAddr, CliError> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let first = found.and_then(|mut all| all.next().ok_or_else(none));
        first.map_err(|error| self.refused(flag, &error))
    }

    /// That nobody can listen on it, and why; `flag` asked for it.
    pub(crate) fn refused(&self, flag: &str, why: &io::Error) -> CliError {
        CliError::usage(format!(
            "{flag} {self}: {why}\n  help: choose an address of this machine and a port that \
             nobody has; port 0 is any that is free"
        ))
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
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Arguments;
    use crate::console::Exit;

    #[test]
    fn all_commands_that_listen_take_the_same_and_say_the_same_of_it() {
        const SAID: &str =
            "ADDRESS is PORT (of this machine alone) or HOST:PORT; port 0 is any that is free";
        let mut seen = 0;
        for command in Arguments::command().get_subcommands() {
            let listens = |of: &&clap::Arg| {
                let names = of.get_value_names().unwrap_or_default();
                names.iter().any(|name| name.as_str() == "ADDRESS")
            };
            for flag in command.get_arguments().filter(listens) {
                let (name, id) = (command.get_name(), flag.get_id());
                let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains(SAID), "{name} {id}: {help}");
                let of_type = flag.get_value_parser().type_id();
                assert!(of_type == std::any::TypeId::of::<ListenAddress>(), "{name} {id}");
                seen += 1;
            }
        }
        assert!(seen >= 11, "{seen}");
    }

    #[test]
    fn a_name_that_has_no_address_is_said_with_its_flag() {
        let resolved = |text: &str| text.parse::<ListenAddress>().unwrap().resolved("--listen");
        assert_eq!(resolved("7979").unwrap().to_string(), "127.0.0.1:7979");
        assert_eq!(resolved("[::1]:7979").unwrap().to_string(), "[::1]:7979");
        // No name is so long (RFC 1035), so that nobody is asked for it.
        let name = "a".repeat(300);
        let stop = resolved(&format!("{name}:7979")).unwrap_err();
        let said = stop.error.to_string();
        let begins = format!("--listen {name}:7979: ");
        assert!(said.starts_with(&begins) && said.contains("help: "), "{said}");
        assert_eq!(stop.exit, Exit::Usage);
    }

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
