//! HTTP/1.1 (RFC 9112): a connection for one request at a time.

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use throng_protocol::participant::{ChannelError, Opening};
use tokio::task::AbortHandle;

use super::transport::Transport;
use crate::sockets::MaybeTlsStream;

/// Longest read, and longest head of a response, bytes. A connection keeps a buffer of this length once its bodies were
/// longer, also while nothing is under way: of what a viewer of a live stream costs it is the largest part
/// (docs/performance.md).
const READ_MAX: usize = 16 * 1024;

/// An open connection; it is closed when this is dropped.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) transport: Transport,
    /// Addresses only: when a kept connection was opened says nothing about the request that it is used for.
    pub(super) addresses: Opening,
    driver: AbortHandle,
}

impl Http1 {
    pub(super) async fn on(
        mut pipe: MaybeTlsStream,
        number: u32,
        addresses: Opening,
    ) -> Result<Self, ChannelError> {
        let transport = Transport::tcp(number, pipe.probe());
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(READ_MAX)
            .handshake(TokioIo::new(pipe))
            .await
            .map_err(|e| ChannelError::Protocol(format!("HTTP/1.1: {e}")))?;
        let driver = tokio::spawn(async move {
            // Its errors reach the request.
            let _ = driver.await;
        });
        Ok(Self { sender, transport, addresses, driver: driver.abort_handle() })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl Drop for Http1 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
