//! The UDP socket of a QUIC connection. It differs from the library's own in two ways. It ends when
//! the peer's port is closed (ICMP), as Chromium's does: that is a refusal, not silence. And it
//! receives into memory that all sockets of a thread share: the library would reserve 3 MB for
//! each, room for 32 receives of 64 datagrams.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use quinn::udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Most bytes of one receive: datagrams that the kernel has joined (UDP_GRO of udp(7)).
const RECEIVE_MAX: usize = 64 * 1024;

/// Most datagrams of one receive (`UDP_GRO_CNT_MAX` in net/ipv4/udp_offload.c).
const JOINED_MAX: usize = 64;

/// Datagrams that the library has room for in each of its [`BATCH_SIZE`] buffers, so that one
/// receive fits.
const DATAGRAMS_PER_BUFFER: usize = JOINED_MAX.div_ceil(BATCH_SIZE);

thread_local! {
    static RECEIVED: RefCell<Vec<u8>> = RefCell::new(vec![0; RECEIVE_MAX]);
}

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

    /// Waits until the peer's port is known to be closed: an ICMP error alone does not make a
    /// socket readable.
    pub(super) async fn refused(&self) {
        let error = || self.io.take_error()?.ok_or_else(|| io::ErrorKind::WouldBlock.into());
        let (Ok(error) | Err(error)) = self.io.async_io(Interest::ERROR, error).await;
        let _ = self.broken.set(error.to_string());
    }

    /// Receives once, and distributes what the kernel has joined over the library's buffers;
    /// returns how many it used.
    fn receive(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        RECEIVED.with_borrow_mut(|received| {
            let mut joined = [RecvMeta::default()];
            let mut whole = [IoSliceMut::new(received)];
            if self.state.recv((&self.io).into(), &mut whole, &mut joined)? == 0 {
                return Ok(0);
            }
            let [joined] = joined;
            Ok(distribute(received.get(..joined.len).unwrap_or_default(), joined, bufs, meta))
        })
    }
}

/// Copies joined datagrams to as many buffers as they need. What has no room is lost, as if the
/// network had lost it.
fn distribute(
    received: &[u8],
    joined: RecvMeta,
    bufs: &mut [IoSliceMut<'_>],
    meta: &mut [RecvMeta],
) -> usize {
    let mut used = 0;
    let mut left = received;
    for (buf, meta) in bufs.iter_mut().zip(meta) {
        // Only whole datagrams; one that is longer than the buffer is more than the peer was
        // allowed to send.
        let datagrams = buf.len().checked_div(joined.stride).unwrap_or(0);
        let length = (datagrams * joined.stride).min(left.len());
        let (now, later) = left.split_at(length);
        let Some(room) = buf.get_mut(..length).filter(|room| !room.is_empty()) else { break };
        room.copy_from_slice(now);
        *meta = RecvMeta { len: length, ..joined };
        left = later;
        used += 1;
    }
    used
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent =
            self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), transmit));
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
            match self.io.try_io(Interest::READABLE, || self.receive(bufs, meta)) {
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
        DATAGRAMS_PER_BUFFER
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Distributes `length` bytes, joined from datagrams of `stride`, over buffers of `room`.
    fn distributed(length: usize, stride: usize, room: usize) -> (Vec<usize>, Vec<u8>) {
        let received: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let mut memory = vec![0; room * BATCH_SIZE];
        let mut bufs: Vec<_> = memory.chunks_mut(room).map(IoSliceMut::new).collect();
        let mut meta = vec![RecvMeta::default(); BATCH_SIZE];
        let mut joined = RecvMeta::default();
        (joined.len, joined.stride) = (length, stride);
        let used = distribute(&received, joined, &mut bufs, &mut meta);
        let lengths = meta[..used].iter().map(|meta| meta.len).collect();
        let bytes = bufs.iter().zip(&meta[..used]).flat_map(|(buf, meta)| buf[..meta.len].to_vec());
        (lengths, bytes.collect())
    }

    #[test]
    fn joined_datagrams_keep_their_order_and_boundaries() {
        let sent = |length: usize| (0..length).map(|at| (at % 251) as u8).collect::<Vec<_>>();
        for (length, stride, expect) in [
            (1200, 1200, vec![1200]),
            (3000, 1200, vec![2400, 600]),
            (45 * 1452, 1452, vec![2904; 22].into_iter().chain([1452]).collect()),
            (64 * 1000, 1000, vec![2000; 32]),
            (0, 0, vec![]),
        ] {
            let (lengths, bytes) = distributed(length, stride, 2 * 1472);
            assert_eq!((lengths, bytes), (expect, sent(length)), "{length} of {stride}");
        }
    }

    #[test]
    fn what_has_no_room_is_lost_and_nothing_is_cut() {
        assert_eq!(distributed(9000, 9000, 2944), (vec![], vec![]));
        let (lengths, _) = distributed(100 * 640, 640, 1280);
        assert_eq!(lengths, vec![1280; BATCH_SIZE]);
    }
}
