//! WebSocket over loopback TCP (tungstenite). As a browser sends it: masked, cut into fragments of
//! 131,072 bytes (Chromium's); or unmasked and whole, to show the cost of masking.

use std::io::Write as _;
use std::net::TcpStream;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use super::{
    End, IoContext, Outgoing, Received, Receiver, Sender, Side, Transport, TransportError, failed,
};

/// Chromium's fragment size: the capacity of the data pipe between its renderer and its network
/// process.
const FRAGMENT_BYTES: usize = 131_072;

/// More bytes than these are written before the next fragment is masked, as tungstenite does.
const WAITING_BYTES: usize = 128 << 10;

fn config(frame_bytes_max: usize) -> WebSocketConfig {
    let most = Some(frame_bytes_max.saturating_add(1));
    WebSocketConfig::default().max_message_size(most).max_frame_size(most)
}

/// The browser's side. A frame is copied once, into the buffer in which it is masked: tungstenite
/// takes only frames that it owns, and making those would be a pass that no browser makes.
pub(super) struct Client {
    stream: TcpStream,
    waiting: Vec<u8>,
    fragment_bytes: usize,
    is_masked: bool,
}

impl Client {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        let end = side.end()?;
        let stream = if side.transport == Transport::WebsocketPython {
            let address = end.address()?;
            let stream =
                TcpStream::connect(address).context("connecting to the Python consumer")?;
            stream.set_nodelay(true).context("setting TCP_NODELAY")?;
            let url = format!("ws://{address}/");
            let config = Some(config(side.frame_bytes_max));
            let (socket, _) = tungstenite::client::client_with_config(url, stream, config)
                .map_err(|error| failed("shaking hands with the Python consumer", error))?;
            socket.into_inner()
        } else {
            end.take_fd()?.into()
        };
        Ok(Self::on(stream, side.transport))
    }

    /// On a stream whose handshake is over.
    fn on(stream: TcpStream, transport: Transport) -> Self {
        // Only a server's frames are unmasked.
        let is_masked = transport != Transport::WebsocketUnmasked;
        let fragment_bytes = if is_masked { FRAGMENT_BYTES } else { usize::MAX };
        Self { stream, waiting: Vec::new(), fragment_bytes, is_masked }
    }

    fn write(&mut self) -> Result<(), TransportError> {
        self.stream.write_all(&self.waiting).context("sending a frame")?;
        self.waiting.clear();
        Ok(())
    }
}

impl Sender for Client {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        let mut fragments = frame.bytes.chunks(self.fragment_bytes).peekable();
        let mut opcode = Data::Binary;
        // Another one for each message; nobody between both ends has to be kept from guessing it.
        let key = (frame.header.sequence as u32).wrapping_mul(0x9e37_79b9).to_ne_bytes();
        while let Some(fragment) = fragments.next() {
            let header = FrameHeader {
                is_final: fragments.peek().is_none(),
                opcode: OpCode::Data(opcode),
                mask: self.is_masked.then_some(key),
                ..FrameHeader::default()
            };
            header
                .format(fragment.len() as u64, &mut self.waiting)
                .map_err(|error| failed("sending a frame", error))?;
            let payload_at = self.waiting.len();
            self.waiting.extend_from_slice(fragment);
            if self.is_masked {
                apply_mask(self.waiting.get_mut(payload_at..).unwrap_or_default(), key);
            }
            if self.waiting.len() > WAITING_BYTES {
                self.write()?;
            }
            opcode = Data::Continue;
        }
        self.write()
    }
}

/// The XOR of RFC 6455, section 5.3, eight bytes at a time.
fn apply_mask(bytes: &mut [u8], key: [u8; 4]) {
    let [a, b, c, d] = key;
    let word_key = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ word_key).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.into_iter().cycle()) {
        *byte ^= key;
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::frame::{FrameHeader as FrameOf, Kind};

    #[test]
    fn each_byte_is_masked_by_its_place() {
        let key = [1, 2, 4, 8];
        for length in 0..40 {
            let mut bytes: Vec<u8> = (0..length).collect();
            apply_mask(&mut bytes, key);
            let expect = (0..length).map(|place| place ^ key[usize::from(place) % 4]);
            assert_eq!(bytes, expect.collect::<Vec<u8>>(), "{length}");
        }
    }

    #[test]
    fn what_is_sent_is_what_a_websocket_receives() {
        for transport in [Transport::Websocket, Transport::WebsocketUnmasked] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let role = match transport {
                Transport::WebsocketUnmasked => Role::Client,
                _ => Role::Server,
            };
            let frames: Vec<Vec<u8>> = [48, 131_072, 131_073, 400_000]
                .map(|bytes: usize| (0..bytes).map(|at| (at % 251) as u8).collect::<Vec<u8>>())
                .to_vec();
            let sent = frames.clone();
            let sending = std::thread::spawn(move || {
                let mut client = Client::on(stream, transport);
                for (sequence, bytes) in (0..).zip(&sent) {
                    let header = FrameOf {
                        kind: Kind::Measured,
                        producer: 0,
                        sequence,
                        bytes: bytes.len() as u64,
                        seed: 0,
                        due_ns: 0,
                    };
                    client.send(&Outgoing { header, bytes, slot: 0 }).unwrap();
                }
            });
            let mut server =
                Server(WebSocket::from_raw_socket(accepted, role, Some(config(1 << 20))));
            for frame in &frames {
                let mut came = Vec::new();
                let received = server.receive(&mut |bytes| came.extend_from_slice(bytes)).unwrap();
                assert!(received == Received::Frame && came == *frame, "{} bytes", frame.len());
            }
            sending.join().unwrap();
        }
    }
}
