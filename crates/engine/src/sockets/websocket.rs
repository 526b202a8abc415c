//! A WebSocket (RFC 6455) on throng's own connection, with buffers small enough for thousands of
//! participants.

use futures_util::{SinkExt, StreamExt};
use http::HeaderValue;
use http::header::{HeaderName, SEC_WEBSOCKET_PROTOCOL, USER_AGENT};
use std::net::IpAddr;
use throng_observation::Url;
use throng_protocol::participant::{ChannelError, Close, Message, Opening};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Error, handshake::client::Request};

use super::tls::in_words;
use super::{Dialer, Host, MaybeTlsStream};

/// Longest message accepted from a server, bytes.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Bytes kept of the body of a refused upgrade: more than messages show.
const WORDS_BYTES_MAX: usize = 1024;

/// Size of the read buffer, bytes. Most messages are shorter; for a longer one it grows.
const READ_BYTES: usize = 1024;

/// Bytes buffered before they are written without a flush.
const WRITTEN_BYTES: usize = 4096;

/// An open WebSocket.
pub(crate) struct WebSocket {
    stream: WebSocketStream<MaybeTlsStream>,
}

/// Connects and upgrades; the time limit of connections includes the upgrade.
pub(crate) async fn open(
    dialer: &Dialer,
    source: Option<IpAddr>,
    url: &Url,
    protocols: &[String],
    headers: &[(String, String)],
) -> Result<(WebSocket, Opening), ChannelError> {
    let request = request(url, protocols, headers)?;
    let host = url
        .host_str()
        .map(Host::parse)
        .ok_or_else(|| ChannelError::Protocol(format!("no host in {url}")))?;
    let secure = match url.scheme() {
        "wss" => true,
        "ws" => false,
        other => return Err(ChannelError::Protocol(format!("`{other}:` is not a WebSocket URL"))),
    };
    let port = url.port().unwrap_or(if secure { 443 } else { 80 });
    let tls = secure.then_some((&dialer.tls, &host));
    let (pipe, mut opening) = dialer.dial(source, &host, port, tls).await?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITTEN_BYTES)
        .max_write_buffer_size(MESSAGE_BYTES_MAX)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let upgrade = tokio_tungstenite::client_async_with_config(request, pipe, Some(config));
    let (stream, response) = tokio::time::timeout(dialer.timeout, upgrade)
        .await
        .map_err(|_| ChannelError::Timeout(dialer.timeout))?
        .map_err(failure)?;
    opening.subprotocol = response
        .headers()
        .get(SEC_WEBSOCKET_PROTOCOL)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    Ok((WebSocket { stream }, opening))
}

fn request(
    url: &Url,
    protocols: &[String],
    headers: &[(String, String)],
) -> Result<Request, ChannelError> {
    let odd = |what: &str| ChannelError::Protocol(format!("cannot request {url}: {what}"));
    let mut request =
        url.in_clear().as_str().into_client_request().map_err(|e| odd(&e.to_string()))?;
    let map = request.headers_mut();
    map.insert(USER_AGENT, HeaderValue::from_static(super::USER_AGENT));
    if !protocols.is_empty() {
        let list = HeaderValue::from_str(&protocols.join(", ")).map_err(|e| odd(&e.to_string()))?;
        map.insert(SEC_WEBSOCKET_PROTOCOL, list);
    }
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| odd(&e.to_string()))?;
        map.insert(name, HeaderValue::from_str(value).map_err(|e| odd(&e.to_string()))?);
    }
    Ok(request)
}

impl WebSocket {
    /// The next message; pings are answered by the library.
    pub(crate) async fn receive(&mut self) -> Result<Message, ChannelError> {
        loop {
            match self.stream.next().await {
                Some(Ok(tungstenite::Message::Text(text))) => {
                    return Ok(Message::Text(text.as_str().to_owned()));
                }
                Some(Ok(tungstenite::Message::Binary(bytes))) => {
                    return Ok(Message::Binary(bytes.into()));
                }
                Some(Ok(tungstenite::Message::Close(frame))) => {
                    let close = |frame: tungstenite::protocol::CloseFrame| Close {
                        code: frame.code.into(),
                        reason: frame.reason.as_str().to_owned(),
                    };
                    return Err(ChannelError::ClosedByPeer(frame.map(close)));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(failure(error)),
                None => return Err(ChannelError::ClosedByPeer(None)),
            }
        }
    }

    /// Queues a message; [`Self::flush`] sends it.
    pub(crate) async fn feed(&mut self, message: Message) -> Result<(), ChannelError> {
        let message = match message {
            Message::Text(text) => tungstenite::Message::text(text),
            Message::Binary(bytes) => tungstenite::Message::binary(bytes),
        };
        self.stream.feed(message).await.map_err(failure)
    }

    /// Sends the queued messages.
    pub(crate) async fn flush(&mut self) -> Result<(), ChannelError> {
        self.stream.flush().await.map_err(failure)
    }

    /// Sends a close frame after the queued messages.
    pub(crate) async fn close(&mut self) {
        let _ = self.stream.close(None).await;
    }
}

fn failure(error: Error) -> ChannelError {
    match error {
        Error::Http(response) => {
            let body = response.body().as_deref().unwrap_or_default();
            let body = body.get(..WORDS_BYTES_MAX).unwrap_or(body);
            let words = String::from_utf8_lossy(body);
            ChannelError::not_upgraded(response.status().as_u16(), response.headers(), &words)
        }
        Error::Io(e) => ChannelError::Tcp(e.to_string()),
        Error::Tls(error) => ChannelError::Tls(in_words(&error)),
        Error::ConnectionClosed | Error::AlreadyClosed => ChannelError::ClosedByPeer(None),
        // A server that drops the connection without a close frame broke TCP, not the protocol.
        Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
            ChannelError::Tcp("reset without closing handshake".into())
        }
        other => ChannelError::Protocol(other.to_string()),
    }
}
