//! A TCP connection, with or without TLS, as signalling and HTTP read and write it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use throng_net::TcpInfo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection, with or without TLS.
#[derive(Debug)]
pub(crate) enum MaybeTlsStream {
    Plain(Socket),
    Secured(Box<TlsStream<Socket>>),
}

impl MaybeTlsStream {
    /// The protocol that the server chose by ALPN (RFC 7301).
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Secured(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// Gives access to the kernel's figures of the connection for as long as it is open.
    pub(crate) fn probe(&mut self) -> TcpProbe {
        match self {
            Self::Plain(socket) => socket.probe(),
            Self::Secured(stream) => stream.get_mut().0.probe(),
        }
    }
}

/// A TCP socket whose figures can be read by others.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    probe: Option<TcpProbe>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, probe: None }
    }

    fn probe(&mut self) -> TcpProbe {
        let open = || TcpProbe(Arc::new(Mutex::new(Probed::Open(self.stream.as_raw_fd()))));
        self.probe.get_or_insert_with(open).clone()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(probe) = &self.probe {
            let last = probe.info();
            *probe.0.lock().unwrap_or_else(PoisonError::into_inner) = Probed::Closed(last);
        }
    }
}

/// Reads the kernel's figures of a connection that belongs to somebody else: hyper, in most cases.
#[derive(Clone, Debug)]
pub(crate) struct TcpProbe(Arc<Mutex<Probed>>);

#[derive(Debug)]
enum Probed {
    Open(RawFd),
    /// With the last figures.
    Closed(Option<TcpInfo>),
}

impl TcpProbe {
    /// The figures of this moment, or the last ones of a connection that is closed.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Probed::Open(descriptor) => {
                // SAFETY: `Socket` takes the descriptor out of here, under this lock, before it
                // closes it.
                let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
                throng_net::tcp_info(socket).ok()
            }
            Probed::Closed(last) => last,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl AsyncRead for MaybeTlsStream {
    /// Over TLS, fills `buf` with as many records as have arrived; the library returns one at a
    /// time.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = match self.get_mut() {
            Self::Plain(socket) => return Pin::new(socket).poll_read(cx, buf),
            Self::Secured(stream) => stream,
        };
        let begin = buf.filled().len();
        loop {
            let before = buf.filled().len();
            let read = Pin::new(&mut *stream).poll_read(cx, buf);
            let is_over = buf.remaining() == 0 || buf.filled().len() == before;
            match read {
                Poll::Ready(Ok(())) if !is_over => {}
                // An error or an end after some bytes is met again by the next read.
                Poll::Pending | Poll::Ready(Err(_)) if before > begin => {
                    return Poll::Ready(Ok(()));
                }
                read => return read,
            }
        }
    }
}

impl AsyncWrite for MaybeTlsStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Secured(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secured(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secured(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
