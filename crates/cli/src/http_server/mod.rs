//! HTTP for who looks at a command while it runs: the figures for Prometheus, and pages. It answers
//! on a thread of its own, by what a [`Site`] says.

mod connection;
mod counted;
mod events;
mod limits;
mod reply;
mod request_guard;

use std::net::{SocketAddr, TcpListener};

use hyper::Request;

use crate::args::ListenAddress;
use crate::background::{Background, give_way};
use crate::console::CliError;
pub(crate) use events::{Reader, SendOutcome, stream};
use limits::Limits;
pub(crate) use reply::{Reply, document, is_read, only_read, text, whole};

/// What is served at an address.
pub(crate) trait Site: Send + 'static {
    /// Whether its thread leaves the cores to those of the crowd, as who makes pages does.
    const GIVES_WAY: bool = false;

    /// The answer to a request that is meant for this server.
    fn answer(&mut self, request: &Request<()>) -> Reply;

    /// Called about each second, whoever asks.
    fn each_second(&mut self) {}

    /// The server ends: the last that readers of events get.
    fn end(&mut self) {}
}

/// A port that is taken, whose clients wait until there is something to say.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    /// The name by which clients may ask.
    host: String,
}

impl Listener {
    /// Listens on an address; `flag` asked for it.
    pub(crate) fn bind(flag: &str, asked: &ListenAddress) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| asked.refused(flag, &error);
        let socket = TcpListener::bind((asked.host.as_str(), asked.port)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        // Any address of this machine has no name but the machine's own.
        let is_any = address.ip().is_unspecified();
        let host = if is_any { throng_watch::host_name() } else { asked.host.clone() };
        Ok(Self { socket, address, host })
    }

    /// Where it listens, as it is written in a URL: at any address, with the name of this machine.
    pub(crate) fn authority(&self) -> String {
        if self.address.ip().is_unspecified() && !self.host.is_empty() {
            format!("{}:{}", self.host, self.address.port())
        } else {
            self.address.to_string()
        }
    }

    /// Answers as `site` says until the server is dropped; `name` is that of the thread.
    pub(crate) fn serve<S: Site>(self, name: &str, site: S) -> Result<Background, CliError> {
        let Self { socket, host, .. } = self;
        let answer = move |stopped| {
            if S::GIVES_WAY {
                give_way();
            }
            connection::run(socket, host, site, Limits::USUAL, stopped)
        };
        Background::start(name, answer).map_err(CliError::invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_any_address_a_machine_is_asked_by_its_own_name() {
        for (asked, expect) in [
            ("0.0.0.0:0", throng_watch::host_name()),
            ("127.0.0.1:0", "127.0.0.1".to_owned()),
            ("localhost:0", "localhost".to_owned()),
        ] {
            let listener = Listener::bind("--prometheus", &asked.parse().unwrap()).unwrap();
            assert_eq!(listener.host, expect, "{asked}");
            let address = listener.address;
            let named = format!("{expect}:{}", address.port());
            let shown = if asked == "0.0.0.0:0" { named } else { address.to_string() };
            assert_eq!(listener.authority(), shown);
        }
    }
}
