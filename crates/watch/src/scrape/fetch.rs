//! Sends one query to an endpoint over HTTP or WebSocket, with or without TLS: only to allowed
//! addresses, within a time limit, into a bounded buffer, and without following redirects.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use throng_observation::Url;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use url::Position;

use super::endpoint::{AddressCheck, Credentials, Endpoint};
use super::query::Query;

/// Maximum size of an answer, bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Name resolution failed.
    #[error("{host} cannot be resolved: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// The error.
        reason: String,
    },
    /// The run may not contact this address.
    #[error("{0}")]
    NotAllowed(String),
    /// Connecting failed.
    #[error("no connection to {address}: {reason}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// The error.
        reason: String,
    },
    /// The certificate is not trusted, or TLS failed otherwise.
    #[error("TLS: {0}; pin a self-signed certificate by its SHA-256 fingerprint")]
    Tls(String),
    /// The time limit was exceeded.
    #[error("no answer within {0} ms")]
    TimedOut(u128),
    /// The endpoint redirects. The scenario must name the address that answers.
    #[error("it redirects to {0}; redirects are not followed: name the address that answers")]
    Redirect(String),
    /// The endpoint answered with an error status.
    #[error("it answers {status}{help}")]
    Status {
        /// The HTTP status code.
        status: u16,
        /// How to fix it, after a semicolon; empty if unknown.
        help: &'static str,
    },
    /// The answer is a web page.
    #[error("it answers with a web page (text/html), not with metrics; check the path")]
    WebPage,
    /// The answer exceeds the maximum size.
    #[error("its answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The peer violates the protocol.
    #[error("{0}")]
    Protocol(String),
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection to an endpoint, kept open between queries.
pub(super) enum EndpointConnection {
    Http { requests: SendRequest<Full<Bytes>>, driver: JoinHandle<()> },
    WebSocket(Box<WebSocketStream<Box<dyn Stream>>>),
}

impl Drop for EndpointConnection {
    fn drop(&mut self) {
        if let Self::Http { driver, .. } = self {
            driver.abort();
        }
    }
}

impl EndpointConnection {
    /// Whether another query can be sent.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Http { requests, .. } => !requests.is_closed(),
            Self::WebSocket(_) => true,
        }
    }

    /// Connects to the first allowed address of the endpoint's host that accepts.
    pub(super) async fn open(
        endpoint: &Endpoint,
        allowed: &AddressCheck,
    ) -> Result<Self, FetchError> {
        let url = &endpoint.url;
        let stream = connect(url, allowed).await?;
        let stream: Box<dyn Stream> = match url.scheme() {
            "https" | "wss" => {
                let config =
                    super::tls::client(endpoint.certificate_sha256).map_err(FetchError::Tls)?;
                let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
                let name = rustls::pki_types::ServerName::try_from(host)
                    .map_err(|error| FetchError::Tls(error.to_string()))?;
                let connector = tokio_rustls::TlsConnector::from(config);
                Box::new(
                    connector
                        .connect(name, stream)
                        .await
                        .map_err(|error| FetchError::Tls(error.to_string()))?,
                )
            }
            _ => Box::new(stream),
        };
        if matches!(url.scheme(), "ws" | "wss") {
            return Self::web_socket(endpoint, stream).await;
        }
        let protocol = |error: hyper::Error| FetchError::Protocol(format!("HTTP: {error}"));
        let (requests, connection) = handshake(TokioIo::new(stream)).await.map_err(protocol)?;
        let driver = tokio::spawn(async move {
            // Errors are reported by the query that waits for the answer.
            let _ = connection.await;
        });
        Ok(Self::Http { requests, driver })
    }

    async fn web_socket(endpoint: &Endpoint, stream: Box<dyn Stream>) -> Result<Self, FetchError> {
        let protocol = |error: tokio_tungstenite::tungstenite::Error| {
            FetchError::Protocol(format!("WebSocket: {error}"))
        };
        let mut request =
            endpoint.url.in_clear().as_str().into_client_request().map_err(protocol)?;
        let subprotocol = header::HeaderValue::from_static("janus-admin-protocol");
        request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, subprotocol);
        let mut config = WebSocketConfig::default();
        config.max_message_size = Some(ANSWER_BYTES_MAX);
        config.max_frame_size = Some(ANSWER_BYTES_MAX);
        let (socket, _) =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config))
                .await
                .map_err(protocol)?;
        Ok(Self::WebSocket(Box::new(socket)))
    }

    /// Sends a query and returns the answer.
    pub(super) async fn query(
        &mut self,
        endpoint: &Endpoint,
        query: &Query,
    ) -> Result<Vec<u8>, FetchError> {
        match self {
            Self::Http { requests, .. } => query_http(requests, endpoint, query).await,
            Self::WebSocket(socket) => query_web_socket(socket, query).await,
        }
    }
}

async fn connect(url: &Url, allowed: &AddressCheck) -> Result<TcpStream, FetchError> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let unresolved = |reason: String| FetchError::Resolve { host: host.clone(), reason };
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => {
            let found = tokio::net::lookup_host((host.as_str(), port)).await;
            found.map_err(|error| unresolved(error.to_string()))?.take(16).collect()
        }
    };
    let mut why = unresolved("no address".into());
    for address in addresses {
        // Checks the very address that is connected to, so that a name cannot resolve differently
        // in between.
        if let Err(refusal) = allowed(address.ip()) {
            why = FetchError::NotAllowed(refusal);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => why = FetchError::Connect { address, reason: error.to_string() },
        }
    }
    Err(why)
}

async fn query_http(
    requests: &mut SendRequest<Full<Bytes>>,
    endpoint: &Endpoint,
    query: &Query,
) -> Result<Vec<u8>, FetchError> {
    let protocol = |error: &dyn std::fmt::Display| FetchError::Protocol(format!("HTTP: {error}"));
    let request = request(endpoint, query).map_err(|error| protocol(&error))?;
    requests.ready().await.map_err(|error| protocol(&error))?;
    let response = requests.send_request(request).await.map_err(|error| protocol(&error))?;
    let status = response.status();
    let text = |name| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let content_type = text(header::CONTENT_TYPE).to_ascii_lowercase();
    if status.is_redirection() {
        return Err(FetchError::Redirect(super::query::beginning(text(header::LOCATION))));
    }
    // OvenMediaEngine explains errors in JSON, so its answer is read whatever the status.
    let explains_errors = endpoint.kind == throng_observation::pack::EndpointKind::OvenMediaEngine
        && content_type.starts_with("application/json");
    if !status.is_success() && !explains_errors {
        let help = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                "; give its credentials, or allow this host's address on the server"
            }
            StatusCode::NOT_FOUND => "; check the path and the host name",
            _ => "",
        };
        return Err(FetchError::Status { status: status.as_u16(), help });
    }
    if content_type.starts_with("text/html") {
        return Err(FetchError::WebPage);
    }
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    match body {
        Ok(body) => Ok(body.to_bytes().to_vec()),
        Err(error) if error.is::<LengthLimitError>() => Err(FetchError::TooLong),
        Err(error) => Err(protocol(&error)),
    }
}

fn request(endpoint: &Endpoint, query: &Query) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let url = &endpoint.url;
    let path = match &query.path {
        Some(path) => path.as_str(),
        None => &url.in_clear()[Position::BeforePath..Position::AfterQuery],
    };
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let method = if query.body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, host)
        .header(header::USER_AGENT, concat!("throng/", env!("CARGO_PKG_VERSION")))
        .header(
            header::ACCEPT,
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        );
    if query.body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let authorization = match &endpoint.credentials {
        // OvenMediaEngine's access token is the complete credential of HTTP Basic.
        Credentials::Basic(pair) => Some(format!("Basic {}", STANDARD.encode(pair))),
        Credentials::Bearer(token) => Some(format!("Bearer {token}")),
        Credentials::None | Credentials::Secret(_) => None,
    };
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    request.body(Full::new(Bytes::from(query.body.clone().unwrap_or_default())))
}

async fn query_web_socket(
    socket: &mut WebSocketStream<Box<dyn Stream>>,
    query: &Query,
) -> Result<Vec<u8>, FetchError> {
    let protocol =
        |error: &dyn std::fmt::Display| FetchError::Protocol(format!("WebSocket: {error}"));
    let question = query.body.clone().unwrap_or_default();
    socket.send(Message::text(question)).await.map_err(|error| protocol(&error))?;
    loop {
        match socket.next().await {
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => {
                return Ok(message.into_data().to_vec());
            }
            Some(Ok(Message::Close(_))) | None => return Err(protocol(&"closed")),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(protocol(&error)),
        }
    }
}
