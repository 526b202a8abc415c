//! One service over HTTP/1.1, HTTP/2 and HTTP/3, whose path says what the response is like; and
//! servers that speak bytes.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use hyper_util::rt::{TokioExecutor, TokioIo};
use throng_protocol::participant::HttpVersion;

use crate::echo::{certified, serve};

/// The byte at `offset` of every body.
pub(crate) fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

/// Bytes `range` of every body.
pub(crate) fn bytes(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(byte).collect()
}

/// What a service has done.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Bytes of bodies that the transport has taken.
    pub(crate) sent: AtomicU64,
    /// Bodies that end early do so once this is set, so that what came before was read.
    released: AtomicBool,
    waiting: Mutex<Option<Waker>>,
    /// Bodies that were given up before their end.
    pub(crate) abandoned: AtomicUsize,
    /// Connections that are open, and the most that were.
    pub(crate) open: AtomicUsize,
    pub(crate) open_max: AtomicUsize,
    pub(crate) connections: AtomicUsize,
}

impl Served {
    /// Lets bodies end that end early.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
        self.waiting.lock().unwrap().take().into_iter().for_each(Waker::wake);
    }
}

/// A body of [`byte`]s that ends after `left` bytes, with an error or without.
pub(crate) struct Pattern {
    offset: u64,
    left: u64,
    ends: Ends,
    is_over: bool,
    served: Arc<Served>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Complete,
    Short,
    Broken,
}

const PIECE: u64 = 16 * 1024;

impl Body for Pattern {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let this = self.get_mut();
        let length = this.left.min(PIECE);
        if length == 0 {
            *this.served.waiting.lock().unwrap() = Some(cx.waker().clone());
            if this.ends != Ends::Complete && !this.served.released.load(Ordering::SeqCst) {
                return Poll::Pending;
            }
            this.is_over = true;
            let is_broken = this.ends == Ends::Broken;
            return Poll::Ready(is_broken.then(|| Err(std::io::Error::other("planted"))));
        }
        let piece = bytes(this.offset..this.offset + length);
        this.offset += length;
        this.left -= length;
        this.served.sent.fetch_add(length, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        if self.left > 0 && !self.is_over {
            self.served.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// `/fixed/N` has N bytes, `/chunked/N` too without saying so, `/short/N` says N and ends after
/// half, `/broken/N` fails after half, both once they are released, `/redirect` leads elsewhere;
/// `/silent` is never answered.
async fn respond(path: &str, served: Arc<Served>) -> http::Response<Pattern> {
    let mut words = path.trim_start_matches('/').split('/');
    let (kind, length) =
        (words.next().unwrap(), words.next().and_then(|n| n.parse().ok()).unwrap_or(0));
    if kind == "silent" {
        std::future::pending::<()>().await;
    }
    let (status, left) = match kind {
        "redirect" => (302, 0),
        "short" | "broken" => (200, length / 2),
        _ => (200, length),
    };
    let mut response = http::Response::builder().status(status);
    if kind != "chunked" {
        response = response.header("content-length", length);
    }
    if kind == "redirect" {
        response = response.header("location", "/elsewhere");
    }
    let ends = match kind {
        "short" => Ends::Short,
        "broken" => Ends::Broken,
        _ => Ends::Complete,
    };
    response.body(Pattern { offset: 0, left, ends, is_over: left == 0, served }).unwrap()
}

/// A server of all three versions, on ports of its own.
pub(crate) struct Service {
    pub(crate) served: Arc<Served>,
    http1: SocketAddr,
    http2: SocketAddr,
    http3: SocketAddr,
    /// Its certificate for HTTP/3 (PEM).
    pub(crate) certificate: Vec<u8>,
}

impl Service {
    pub(crate) fn start() -> Self {
        let served = Arc::new(Served::default());
        let (tls, certificate) = certified();
        let http3 = http3_server(tls, Arc::clone(&served));
        Self {
            http1: hyper_server(Arc::clone(&served), false),
            http2: hyper_server(Arc::clone(&served), true),
            http3,
            certificate,
            served,
        }
    }

    pub(crate) fn url(&self, version: HttpVersion, path: &str) -> String {
        match version {
            HttpVersion::Http3 => format!("https://{}{path}", self.http3),
            HttpVersion::Http2 => format!("http://{}{path}", self.http2),
            _ => format!("http://{}{path}", self.http1),
        }
    }

    /// Trusts its certificate.
    pub(crate) fn trusted(&self) -> impl FnOnce(&mut throng_engine::RunConfig) + use<> {
        let pem = self.certificate.clone();
        move |config| config.tls.extra_ca_pem = Some(pem)
    }
}

/// The versions, with what responses say.
pub(crate) const VERSIONS: [(HttpVersion, http::Version); 3] = [
    (HttpVersion::Http1, http::Version::HTTP_11),
    (HttpVersion::Http2, http::Version::HTTP_2),
    (HttpVersion::Http3, http::Version::HTTP_3),
];

fn hyper_server(served: Arc<Served>, is_http2: bool) -> SocketAddr {
    serve(move |stream| {
        let served = Arc::clone(&served);
        async move {
            served.connections.fetch_add(1, Ordering::SeqCst);
            let open = served.open.fetch_add(1, Ordering::SeqCst) + 1;
            served.open_max.fetch_max(open, Ordering::SeqCst);
            let answers = Arc::clone(&served);
            let answer = hyper::service::service_fn(
                move |request: hyper::Request<hyper::body::Incoming>| {
                    let (path, served) = (request.uri().path().to_owned(), Arc::clone(&answers));
                    async move { Ok::<_, Infallible>(respond(&path, served).await) }
                },
            );
            let io = TokioIo::new(stream);
            if is_http2 {
                let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(io, answer)
                    .await;
            } else {
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await;
            }
            served.open.fetch_sub(1, Ordering::SeqCst);
        }
    })
}

fn http3_server(mut tls: rustls::ServerConfig, served: Arc<Served>) -> SocketAddr {
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let (bound, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let endpoint =
                quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
            bound.send(endpoint.local_addr().unwrap()).unwrap();
            while let Some(incoming) = endpoint.accept().await {
                let served = Arc::clone(&served);
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        served.connections.fetch_add(1, Ordering::SeqCst);
                        serve_http3(connection, served).await;
                    }
                });
            }
        });
    });
    address.recv().unwrap()
}

async fn serve_http3(connection: quinn::Connection, served: Arc<Served>) {
    let connection = h3_quinn::Connection::new(connection);
    let Ok(mut connection) = h3::server::Connection::<_, Bytes>::new(connection).await else {
        return;
    };
    while let Ok(Some(resolver)) = connection.accept().await {
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            let Ok((request, mut stream)) = resolver.resolve_request().await else { return };
            let (head, mut body) = respond(request.uri().path(), served).await.into_parts();
            if stream.send_response(http::Response::from_parts(head, ())).await.is_err() {
                return;
            }
            while let Some(piece) = body.frame().await {
                let Ok(piece) = piece else {
                    stream.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
                    return;
                };
                if stream.send_data(piece.into_data().unwrap()).await.is_err() {
                    return;
                }
            }
            let _ = stream.finish().await;
        });
    }
}

/// A server whose `answer` gets each connection after the head of its first request, and the number
/// of the connection from 0.
pub(crate) fn raw_server(answer: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut stream = stream;
                if read_head(&mut stream) {
                    answer(stream, number);
                }
            });
        }
    });
    address
}

/// Reads the head of a request; false when the client closed the connection.
pub(crate) fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut next = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut next).unwrap_or(0) == 0 {
            return false;
        }
        head.extend_from_slice(&next);
    }
    true
}

/// Writes `text`; a client that has gone is no failure of the test.
pub(crate) fn write(stream: &mut TcpStream, text: impl AsRef<[u8]>) {
    let _ = stream.write_all(text.as_ref());
}
