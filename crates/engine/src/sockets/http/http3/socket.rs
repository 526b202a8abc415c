//! The UDP socket of a QUIC connection. Unlike the library's own it ends when the peer's port is closed (ICMP), as
//! Chromium's does: that is a refusal, not silence.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The error that broke the socket, in words.
pub(super) type Broken = Arc<OnceLock<String>>;

/// A socket that is connected to one peer.
#[derive(Debug)]
pub(super) struct QuicSocket {
    io: UdpSocket,
    state: UdpSocketState,
    broken: Broken,
    /// The task that receives: it ends the connection when a send was refused.
    receiver: AtomicWaker,
}

impl QuicSocket {
    /// Needs a runtime.
    pub(super) fn new(socket: std::net::UdpSocket) -> io::Result<(Self, Broken)> {
        let state = UdpSocketState::new((&socket).into())?;
        let broken = Broken::default();
        let (io, receiver) = (UdpSocket::from_std(socket)?, AtomicWaker::new());
        Ok((Self { io, state, broken: Arc::clone(&broken), receiver }, broken))
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), transmit));
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // The answer to an earlier datagram; the next send or receive is told of it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = self.broken.set(error.to_string());
                self.receiver.wake();
                Ok(())
            }
            // As any lost datagram. Probes of the path's MTU are meant to fail.
            Err(_) | Ok(()) => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.receiver.register(cx.waker());
        loop {
            if let Some(error) = self.broken.get() {
                return Poll::Ready(Err(io::Error::other(error.as_str())));
            }
            ready!(self.io.poll_recv_ready(cx))?;
            let receive = || self.state.recv((&self.io).into(), bufs, meta);
            match self.io.try_io(Interest::READABLE, receive) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The first is the cause; the next turn ends with it.
                Err(error) => drop(self.broken.set(error.to_string())),
                received => return Poll::Ready(received),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Waits until the socket takes datagrams. Only one task does: an endpoint has one connection.
#[derive(Debug)]
struct Writable(Arc<QuicSocket>);

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.io.poll_send_ready(cx)
    }
}
