//! WebSocket over loopback TCP (tungstenite). As a browser sends it: masked, cut into fragments of
//! 131,072 bytes (Chromium's); or unmasked and whole, to show the cost of masking.

use std::net::TcpStream;

use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Message, WebSocket};

use super::{
    End, IoContext, Outgoing, Received, Receiver, Sender, Side, Transport, TransportError,
};

/// Chromium's fragment size: the capacity of the data pipe between its renderer and its network
/// process.
const FRAGMENT_BYTES: usize = 131_072;

fn config(frame_bytes_max: usize) -> WebSocketConfig {
    let most = Some(frame_bytes_max.saturating_add(1));
    WebSocketConfig::default().max_message_size(most).max_frame_size(most)
}

fn failed(operation: &'static str, error: impl std::fmt::Display) -> TransportError {
    TransportError::Library { operation, reason: error.to_string() }
}

/// The browser's side.
pub(super) struct Client {
    socket: WebSocket<TcpStream>,
    fragment_bytes: usize,
}

impl Client {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        let config = Some(config(side.frame_bytes_max));
        let end = side.end()?;
        let socket = match side.transport {
            Transport::WebsocketPython => {
                let address = end.address()?;
                let stream =
                    TcpStream::connect(address).context("connecting to the Python consumer")?;
                stream.set_nodelay(true).context("setting TCP_NODELAY")?;
                let url = format!("ws://{address}/");
                let (socket, _) = tungstenite::client::client_with_config(url, stream, config)
                    .map_err(|error| failed("shaking hands with the Python consumer", error))?;
                socket
            }
            // Only a server's frames are unmasked.
            Transport::WebsocketUnmasked => {
                WebSocket::from_raw_socket(end.take_fd()?.into(), Role::Server, config)
            }
            _ => WebSocket::from_raw_socket(end.take_fd()?.into(), Role::Client, config),
        };
        let is_whole = side.transport == Transport::WebsocketUnmasked;
        Ok(Self { socket, fragment_bytes: if is_whole { usize::MAX } else { FRAGMENT_BYTES } })
    }
}

impl Sender for Client {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        let mut fragments = frame.bytes.chunks(self.fragment_bytes).peekable();
        let mut opcode = Data::Binary;
        while let Some(fragment) = fragments.next() {
            // SAFETY: `write` copies the payload into the socket's own buffer (that is where it
            // masks) and drops it before it returns, so nothing outlives `fragment`. A `Bytes` made
            // by copying would add a pass that no browser makes.
            let payload: &'static [u8] =
                unsafe { std::slice::from_raw_parts(fragment.as_ptr(), fragment.len()) };
            let is_last = fragments.peek().is_none();
            let part = Frame::message(Bytes::from_static(payload), OpCode::Data(opcode), is_last);
            self.socket
                .write(Message::Frame(part))
                .map_err(|error| failed("sending a frame", error))?;
            opcode = Data::Continue;
        }
        self.socket.flush().map_err(|error| failed("sending a frame", error))
    }
}

/// The side that the browser talks to.
pub(super) struct Server(WebSocket<TcpStream>);

impl Server {
    pub(super) fn open(end: &End, side: &Side) -> Result<Self, TransportError> {
        let role = if side.transport == Transport::WebsocketUnmasked {
            Role::Client
        } else {
            Role::Server
        };
        let config = Some(config(side.frame_bytes_max));
        Ok(Self(WebSocket::from_raw_socket(end.take_fd()?.into(), role, config)))
    }
}

impl Receiver for Server {
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Received, TransportError> {
        use tungstenite::error::{Error, ProtocolError};
        loop {
            match self.0.read() {
                Ok(Message::Binary(frame)) => {
                    take(&frame);
                    return Ok(Received::Frame);
                }
                Ok(Message::Close(_))
                | Err(
                    Error::ConnectionClosed
                    | Error::AlreadyClosed
                    | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
                ) => return Ok(Received::Closed),
                Ok(_) => {}
                Err(error) => return Err(failed("receiving a frame", error)),
            }
        }
    }
}
