//! HTTP/3 (RFC 9114): one QUIC connection for all requests of a participant to an origin, on a UDP
//! socket of its own, as a browser's.

mod socket;

mod quic;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, StreamError};
use http_body_util::BodyExt;
use quinn::VarInt;
use rustls::ClientConfig;
use throng_protocol::participant::{ChannelError, Opening};
use tokio::task::AbortHandle;

use super::failure::Goodbye;
use super::http2::HEAD_MAX;
use super::origin::Origin;
use super::request::Sent;
use super::transport::Transport;
use crate::sockets::Dialer;
use quic::Quic;

/// A request in progress.
pub(super) type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// Informational responses (RFC 9110 section 15.2) before the final one.
const INFORMATIONAL_MAX: usize = 8;

/// An open connection; it is closed when this is dropped.
pub(super) struct Http3 {
    sender: SendRequest<h3_quinn::OpenStreams, Bytes>,
    quic: Quic,
    pub(super) transport: Transport,
    pub(super) addresses: Opening,
    driver: AbortHandle,
}

impl Http3 {
    /// Connects; returns the addresses and moments too.
    pub(super) async fn open(
        dialer: &Dialer,
        source: Option<IpAddr>,
        origin: &Origin,
        tls: Arc<ClientConfig>,
        number: u32,
    ) -> Result<(Self, Opening), ChannelError> {
        let (quic, opening) = quic::connect(dialer, source, origin, tls).await?;
        let mut builder = h3::client::builder();
        builder.max_field_section_size(HEAD_MAX.into());
        let (mut driver, sender) = builder
            .build::<_, _, Bytes>(h3_quinn::Connection::new(quic.connection.clone()))
            .await
            .map_err(|e| ChannelError::Protocol(format!("HTTP/3 with {origin}: {e}")))?;
        let driver = tokio::spawn(async move {
            // Its errors reach the requests.
            std::future::poll_fn(|cx| driver.poll_close(cx)).await;
        });
        let addresses =
            Opening { local: opening.local, remote: opening.remote, ..Opening::default() };
        let transport = Transport::quic(number, quic.connection.clone());
        Ok((Self { sender, quic, transport, addresses, driver: driver.abort_handle() }, opening))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.quic.connection.close_reason().is_some()
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(
        &self,
        request: Sent,
    ) -> Result<(http::response::Parts, Stream), StreamError> {
        let (head, body) = request.into_parts();
        let mut sender = self.sender.clone();
        let mut stream = sender.send_request(http::Request::from_parts(head, ())).await?;
        // A body in memory cannot fail.
        let body =
            body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        if !body.is_empty() {
            stream.send_data(body).await?;
        }
        stream.finish().await?;
        let mut response = stream.recv_response().await?;
        for _ in 0..INFORMATIONAL_MAX {
            if !response.status().is_informational() {
                break;
            }
            response = stream.recv_response().await?;
        }
        Ok((response.into_parts().0, stream))
    }

    /// The failure of a request or body; `when` says how far it had come.
    pub(super) fn failure(&self, error: &StreamError, origin: &Origin, when: &str) -> ChannelError {
        if let Some(failure) = self.quic.failure(origin, when) {
            return failure;
        }
        let what = match error {
            StreamError::RemoteTerminate { code, .. } => {
                format!("{origin} reset the stream {when}: {code}")
            }
            StreamError::StreamError { code, reason, .. } => {
                format!("{origin}, {when}: {code}: {reason}")
            }
            StreamError::HeaderTooBig { actual_size, max_size, .. } => {
                format!("{origin}: a head of {actual_size} bytes, longer than {max_size}")
            }
            StreamError::RemoteClosing { .. } => {
                format!("{origin} closed the connection (GOAWAY) {when}")
            }
            other => format!("{origin}, {when}: {other}"),
        };
        ChannelError::Protocol(format!("HTTP/3: {what}"))
    }

    /// How `error` says that the server did not begin to process the request (RFC 9114 sections
    /// 4.1.1 and 5.2), if it does.
    pub(super) fn goodbye(error: &StreamError) -> Option<Goodbye> {
        match error {
            StreamError::RemoteClosing { .. } => Some(Goodbye::Connection),
            StreamError::RemoteTerminate { code, .. } if *code == Code::H3_REQUEST_REJECTED => {
                Some(Goodbye::Stream)
            }
            _ => None,
        }
    }
}

impl Drop for Http3 {
    fn drop(&mut self) {
        self.driver.abort();
        let code = VarInt::from_u64(Code::H3_NO_ERROR.value()).unwrap_or_default();
        self.quic.connection.close(code, b"");
    }
}
