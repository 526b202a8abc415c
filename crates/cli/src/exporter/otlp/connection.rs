//! One request to the collector, on a connection of its own: it follows no redirect, reads a
//! bounded answer, and takes a bounded time.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::answer::{Failure, judge, rejected};
use super::collector::Collector;

/// How long a request may take, as in OpenTelemetry's own exporters.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Longer answers are not read: one that says how much was taken has some hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Posts a document of a signal; how many of its items were not taken.
pub(super) async fn post(to: &Collector, signal: &str, body: String) -> Result<u64, Failure> {
    let request = request(to, signal, body)?;
    match timeout(ANSWERED_WITHIN, exchange(to, request)).await {
        Ok(answer) => answer,
        Err(_) => {
            let s = ANSWERED_WITHIN.as_secs();
            Err(Failure::unanswered(format!("no answer within {s} s")))
        }
    }
}

fn request(to: &Collector, signal: &str, body: String) -> Result<Request<Full<Bytes>>, Failure> {
    let mut headers = HeaderMap::new();
    for (name, secret) in &to.environment.headers {
        let mut value = HeaderValue::from_str(secret.expose()).map_err(unsendable)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    // After those of others: they say what this request is.
    let host = HeaderValue::try_from(to.host()).map_err(unsendable)?;
    let agent = HeaderValue::from_static(concat!("throng/", env!("CARGO_PKG_VERSION")));
    let of_request = [
        (header::HOST, host),
        (header::USER_AGENT, agent),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONNECTION, HeaderValue::from_static("close")),
    ];
    for (name, value) in of_request {
        headers.insert(name, value);
    }
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
    let request = Request::builder().method(Method::POST).uri(to.path(signal));
    let mut request = request.body(Full::new(Bytes::from(body))).map_err(unsendable)?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// A request that cannot be made; its words may be those of a secret.
fn unsendable<E>(_: E) -> Failure {
    Failure::unanswered("the request cannot be made")
}

async fn exchange(to: &Collector, request: Request<Full<Bytes>>) -> Result<u64, Failure> {
    let stream = connect(to).await?;
    let http = |error: hyper::Error| Failure::unanswered(format!("HTTP: {error}"));
    let (mut requests, connection) = handshake(TokioIo::new(stream)).await.map_err(http)?;
    let driver = tokio::spawn(async move {
        // Errors are reported by the request, which waits for the answer.
        let _ = connection.await;
    });
    let answer = match requests.send_request(request).await {
        Ok(answer) => taken(answer).await,
        Err(error) => Err(http(error)),
    };
    driver.abort();
    answer
}

async fn connect(to: &Collector) -> Result<Box<dyn Stream>, Failure> {
    let (host, port) = to.address();
    let connected = TcpStream::connect((host, port)).await;
    let stream = connected.map_err(|error| Failure::unanswered(error.to_string()))?;
    // Sent at once: it is one request.
    let _ = stream.set_nodelay(true);
    let Some(config) = to.tls() else { return Ok(Box::new(stream)) };
    let failed = |error: String| {
        let help = "trust its authority by SSL_CERT_FILE";
        Failure::unanswered(format!("TLS: {error}; {help}"))
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(error.to_string()))?;
    let secured = TlsConnector::from(config).connect(name, stream).await;
    secured.map(|stream| Box::new(stream) as Box<dyn Stream>).map_err(|e| failed(e.to_string()))
}

/// How many items an answer says were not taken.
async fn taken(answer: Response<Incoming>) -> Result<u64, Failure> {
    judge(answer.status(), answer.headers())?;
    // Whatever else it says, it took them.
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    Ok(body.map_or(0, |body| rejected(&body.to_bytes())))
}
