//! HTTP/2 (RFC 9113): one connection for all requests of a participant to an origin.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use throng_protocol::participant::{ChannelError, Opening};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;

use super::transport::Transport;
use crate::sockets::MaybeTlsStream;

/// Flow-control windows of a stream and a connection, bytes: those of Chromium
/// (`kSpdyStreamMaxRecvWindowSize` and `kSpdySessionMaxRecvWindowSize` in
/// net/http/http_network_session.cc). A body that is not read makes the server stop after so many
/// bytes.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;

/// Longest head of a response, bytes (Chromium's `kSpdyMaxHeaderListSize`).
pub(super) const HEAD_MAX: u32 = 256 * 1024;

/// Bytes that are read before those who wait for them have their turn. The library reads for as
/// long as there is something, which with these windows is megabytes that have left the caches when
/// they are used.
const TURN: usize = 64 * 1024;

/// An open connection; it is closed when this is dropped.
pub(super) struct Http2 {
    pub(super) sender: http2::SendRequest<Full<Bytes>>,
    pub(super) transport: Transport,
    pub(super) addresses: Opening,
    tasks: Tasks,
}

impl Http2 {
    pub(super) async fn on(
        mut pipe: MaybeTlsStream,
        number: u32,
        addresses: Opening,
    ) -> Result<Self, ChannelError> {
        let transport = Transport::tcp(number, pipe.probe());
        let tasks = Tasks::default();
        let (sender, driver) = http2::Builder::new(tasks.clone())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD_MAX)
            .handshake(TokioIo::new(Turns { pipe, read: 0 }))
            .await
            .map_err(|e| ChannelError::Protocol(format!("HTTP/2: {e}")))?;
        tasks.spawn(driver);
        Ok(Self { sender, transport, addresses, tasks })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

/// The tasks of a connection. hyper's own executor would leave them running until the server has
/// read the goodbye.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn spawn<F: Future<Output: Send> + Send + 'static>(&self, task: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            task.await;
        });
    }

    fn abort(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

/// A connection that is read in turns.
struct Turns {
    pipe: MaybeTlsStream,
    /// Bytes read in this turn.
    read: usize,
}

impl AsyncRead for Turns {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read >= TURN {
            this.read = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut this.pipe).poll_read(cx, buf);
        match read {
            Poll::Pending => this.read = 0,
            Poll::Ready(_) => this.read += buf.filled().len() - before,
        }
        read
    }
}

impl AsyncWrite for Turns {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().pipe).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_shutdown(cx)
    }
}
