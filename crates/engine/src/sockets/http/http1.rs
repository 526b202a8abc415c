//! HTTP/1.1 (RFC 9112): a connection for one request at a time.

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use throng_protocol::participant::{ChannelError, Opening};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

use super::transport::Transport;
use crate::sockets::MaybeTlsStream;

/// Longest read, and longest head of a response, bytes. A connection keeps a buffer of this length
/// once its bodies were longer, also while nothing is under way: of what a viewer of a live stream
/// costs it is the largest part (docs/measurements/hls-viewers.md).
const READ_MAX: usize = 16 * 1024;

/// An open connection; it is closed when this is dropped.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) transport: Transport,
    /// Addresses only: when a kept connection was opened says nothing about the request that it is
    /// used for.
    pub(super) addresses: Opening,
    driver: Task,
    /// Asks the driver for the stream.
    stop: oneshot::Sender<ToSender>,
}

/// Where a task sends its stream, and bytes that were read of it too early.
type ToSender = oneshot::Sender<(MaybeTlsStream, Bytes)>;

impl Http1 {
    pub(super) async fn on(
        mut pipe: MaybeTlsStream,
        number: u32,
        addresses: Opening,
    ) -> Result<Self, ChannelError> {
        let transport = Transport::tcp(number, pipe.probe());
        Self::over(pipe, transport, addresses).await
    }

    async fn over(
        pipe: MaybeTlsStream,
        transport: Transport,
        addresses: Opening,
    ) -> Result<Self, ChannelError> {
        let (sender, mut driver) = http1::Builder::new()
            .max_buf_size(READ_MAX)
            .handshake(TokioIo::new(pipe))
            .await
            .map_err(|e| ChannelError::Protocol(format!("HTTP/1.1: {e}")))?;
        let (stop, stopped) = oneshot::channel::<ToSender>();
        let driver = tokio::spawn(async move {
            let to = tokio::select! {
                // Its errors reach the request.
                _ = &mut driver => return,
                Ok(to) = stopped => to,
            };
            let parts = driver.into_parts();
            let _ = to.send((parts.io.into_inner(), parts.read_buf));
        });
        Ok(Self { sender, transport, addresses, driver: Task::of(&driver), stop })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// The connection without what is needed only while a request is under way, which is most of
    /// its memory: that is freed soon after. Nothing may be under way. It does not wait, so that
    /// the pool can park a connection under its lock.
    pub(super) fn parked(self) -> Parked {
        let Self { sender, transport, addresses, driver, stop: stop_driver } = self;
        let (stop, stopped) = oneshot::channel::<ToSender>();
        let watcher = tokio::spawn(async move {
            let Some(mut pipe) = given_back(stop_driver).await else { return };
            // Not sooner: without either of them the connection is closed.
            drop((sender, driver));
            let mut unasked = [0; 1];
            let to = tokio::select! {
                // A connection that was asked for before this point may have been closed meanwhile.
                biased;
                // The server closes it, or breaks the protocol: then it is of no more use.
                _ = pipe.read(&mut unasked) => return,
                Ok(to) = stopped => to,
            };
            let _ = to.send((pipe, Bytes::new()));
        });
        Parked { transport, addresses, watcher: Task::of(&watcher), stop }
    }
}

/// The stream of a task that is asked for it, if nothing was read of it that belongs to nobody.
async fn given_back(stop: oneshot::Sender<ToSender>) -> Option<MaybeTlsStream> {
    let (to, stream) = oneshot::channel();
    stop.send(to).ok()?;
    let (pipe, unasked) = stream.await.ok()?;
    unasked.is_empty().then_some(pipe)
}

/// An open connection that has not been used for a while; it is closed when this is dropped.
pub(super) struct Parked {
    transport: Transport,
    addresses: Opening,
    watcher: Task,
    stop: oneshot::Sender<ToSender>,
}

impl Parked {
    /// The server closed it, or it was closed already when it was to be parked.
    pub(super) fn is_closed(&self) -> bool {
        self.watcher.0.is_finished()
    }

    /// The connection for another request, also if the watcher does not have the stream yet; `None`
    /// if it was closed.
    pub(super) async fn resumed(self) -> Option<Http1> {
        let Self { transport, addresses, watcher: _watcher, stop } = self;
        Http1::over(given_back(stop).await?, transport, addresses).await.ok()
    }
}

/// A task that ends when this is dropped.
struct Task(AbortHandle);

impl Task {
    fn of(task: &JoinHandle<()>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::sockets::stream::Socket;

    /// Answers this many requests on one connection, and closes it then.
    async fn answers(listener: TcpListener, requests: usize) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        for _ in 0..requests {
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
        }
    }

    async fn ask(connection: &mut Http1) -> Bytes {
        connection.sender.ready().await.unwrap();
        let request = http::Request::get("/").body(Full::default()).unwrap();
        let response = connection.sender.send_request(request).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    }

    /// A connection to a server that answers this many requests.
    async fn open(requests: usize) -> (Http1, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(answers(listener, requests));
        let stream = MaybeTlsStream::Plain(Socket::new(TcpStream::connect(address).await.unwrap()));
        (Http1::on(stream, 7, Opening::default()).await.unwrap(), server)
    }

    #[tokio::test]
    async fn a_parked_connection_serves_again_until_the_server_closes_it() {
        let (mut connection, server) = open(3).await;
        for _ in 0..2 {
            assert_eq!(ask(&mut connection).await, "hi");
            let parked = connection.parked();
            // The watcher has the stream by then.
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!parked.is_closed());
            connection = parked.resumed().await.expect("open");
        }
        assert_eq!(ask(&mut connection).await, "hi");
        server.await.unwrap();
        let parked = connection.parked();
        for _ in 0..100 {
            if parked.is_closed() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the server's close is not seen");
    }

    #[tokio::test]
    async fn a_connection_that_is_resumed_before_the_watcher_ran_serves_again() {
        let (mut connection, _server) = open(3).await;
        for _ in 0..2 {
            assert_eq!(ask(&mut connection).await, "hi");
            // Tests run on one thread: the watcher has its first turn when this waits.
            connection = connection.parked().resumed().await.expect("open");
        }
        assert_eq!(ask(&mut connection).await, "hi");
    }
}
