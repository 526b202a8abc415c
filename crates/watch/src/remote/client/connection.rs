//! An authenticated connection to an agent.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use rustls::pki_types::ServerName;
use throng_observation::untrusted;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::fingerprint::Fingerprint;
use crate::remote::session::AnyStream;
use crate::remote::tls;
use crate::remote::wire::{
    Consent, Frame, FrameReader, RESPONSE_BYTES_MAX, Request, Response, VERSION, write_message,
};

/// How to reach an agent.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Its address, `host:port`.
    pub address: String,
    /// The token that it expects.
    pub token: String,
    /// Fingerprint of its certificate; `None` means no TLS, allowed on loopback only.
    pub fingerprint: Option<Fingerprint>,
}

/// Why an agent cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Without TLS the traffic could be read and forged.
    #[error(
        "the agent at {0} is not on loopback: give the fingerprint that it prints when it starts"
    )]
    Plain(String),
    /// No connection could be made.
    #[error("no agent answers at {address}: {why}; is `throng watch` running there?")]
    Connect {
        /// Its address.
        address: String,
        /// The error.
        why: String,
    },
    /// The connection was accepted, but nothing was received.
    #[error(
        "the agent at {address} accepted the connection but did not answer within {within_s} s: \
         it is too busy, or stopped"
    )]
    Silent {
        /// Its address.
        address: String,
        /// How long the client waited, seconds.
        within_s: u64,
    },
    /// The connection was closed before anything was received.
    #[error(
        "the agent at {address} closed the connection without an answer: it is busy refusing \
         unauthenticated connections, or the service there is not an agent; try again, or block \
         unwanted connections to its port"
    )]
    Closed {
        /// Its address.
        address: String,
    },
    /// The peer has another certificate or does not use TLS.
    #[error("the agent at {address} is not the one with fingerprint {expected}: {why}")]
    Certificate {
        /// Its address.
        address: String,
        /// The expected fingerprint.
        expected: Fingerprint,
        /// What the peer presented.
        why: String,
    },
    /// The agent refused the session.
    #[error("the agent at {address} refused: {why}")]
    Refused {
        /// Its address.
        address: String,
        /// The reason it gave.
        why: String,
    },
}

/// Without an answer for this long the agent counts as lost (docs/watch.md). A server at its limit
/// may keep it waiting for a CPU for part of that time.
pub(super) const LOST_AFTER: Duration = Duration::from_secs(5);

/// Time limit for name resolution and connecting, and again for TLS and the token.
const WELCOME_WITHIN: Duration = Duration::from_secs(10);
/// Maximum length of texts from an agent, characters.
const WORDS_MAX: usize = 1_000;

/// The agent's description of itself.
#[derive(Clone, Debug)]
pub(super) struct Welcome {
    pub(super) name: String,
    pub(super) targets: Vec<String>,
    pub(super) consent: Option<Consent>,
}

/// A connection after the agent's welcome.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) welcome: Welcome,
    pub(super) reader: ReadHalf<AnyStream>,
    writer: WriteHalf<AnyStream>,
    pub(super) frames: FrameReader,
}

impl Connection {
    pub(super) async fn open(config: &RemoteConfig) -> Result<Self, RemoteError> {
        let address = || config.address.clone();
        let no = |why: String| RemoteError::Connect { address: address(), why };
        let dialled = tokio::time::timeout(WELCOME_WITHIN, Self::dial(&config.address)).await;
        let within_s = WELCOME_WITHIN.as_secs();
        let stream = dialled.map_err(|_| no(format!("no connection within {within_s} s")))?;
        let stream = stream.map_err(|error| no(error.to_string()))?;
        let welcomed = tokio::time::timeout(WELCOME_WITHIN, Self::greet(config, stream)).await;
        welcomed.unwrap_or_else(|_| Err(RemoteError::Silent { address: address(), within_s }))
    }

    /// TLS handshake, token, and welcome.
    async fn greet(config: &RemoteConfig, stream: TcpStream) -> Result<Self, RemoteError> {
        let address = || config.address.clone();
        let no =
            |error: io::Error| RemoteError::Connect { address: address(), why: error.to_string() };
        // If nothing was received, nothing is known about the peer, not even whether it uses TLS.
        let closed = |_: io::Error| RemoteError::Closed { address: address() };
        let peer = stream.peer_addr().map_err(closed)?;
        stream.set_nodelay(true).map_err(closed)?;
        let mut stream: AnyStream = match config.fingerprint {
            None if peer.ip().is_loopback() => Box::new(stream),
            None => return Err(RemoteError::Plain(address())),
            Some(expected) => {
                let failed =
                    |why: String| RemoteError::Certificate { address: address(), expected, why };
                let connector = TlsConnector::from(tls::client(expected).map_err(failed)?);
                let name =
                    ServerName::try_from("throng-watch").map_err(|e| failed(e.to_string()))?;
                let secured =
                    connector.connect(name, stream).await.map_err(|error| match error.kind() {
                        // Data was received, and TLS rejected it.
                        io::ErrorKind::InvalidData => failed(error.to_string()),
                        _ => closed(error),
                    });
                Box::new(secured?)
            }
        };
        let mut out = Vec::new();
        let hello = Request::Hello { version: VERSION, token: config.token.clone() };
        write_message(&mut out, &hello).map_err(no)?;
        stream.write_all(&out).await.map_err(closed)?;
        let mut frames = FrameReader::new(RESPONSE_BYTES_MAX);
        let answer = frames.next(&mut stream).await;
        match answer.map_err(|error| if frames.has_read() { no(error) } else { closed(error) })? {
            Frame::Message(Response::Welcome { name, targets, consent, .. }) => {
                let (reader, writer) = tokio::io::split(stream);
                let welcome = Welcome { name: cut(&name), targets, consent };
                Ok(Self { peer, welcome, reader, writer, frames })
            }
            Frame::Message(Response::Refused { why }) => {
                Err(RemoteError::Refused { address: address(), why: cut(&why) })
            }
            _ => Err(no(io::Error::other("it does not use this protocol"))),
        }
    }

    /// Connects to the first address of the name that accepts.
    async fn dial(address: &str) -> io::Result<TcpStream> {
        let mut error: io::Error = io::ErrorKind::NotFound.into();
        for address in address.to_socket_addrs()? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(refused) => error = refused,
            }
        }
        Err(error)
    }

    /// Sends a request; an agent that does not take it within [`LOST_AFTER`] is lost.
    pub(super) async fn ask(&mut self, request: &Request) -> io::Result<()> {
        let mut out = Vec::new();
        write_message(&mut out, request)?;
        let written = async {
            self.writer.write_all(&out).await?;
            self.writer.flush().await
        };
        tokio::time::timeout(LOST_AFTER, written).await.map_err(|_| io::ErrorKind::TimedOut)?
    }
}

/// Shortens an agent's text and removes control characters.
pub(super) fn cut(text: &str) -> String {
    untrusted::escaped(text, WORDS_MAX).into_owned()
}
