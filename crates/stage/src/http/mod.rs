//! The stage's HTTP: WHEP (draft-ietf-wish-whep), WHIP (RFC 9725), a player page and the counters.

mod resource;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;

use crate::config::EmulatedServer;
use crate::peer::Role;
use crate::room::Room;
use crate::srs;

/// Longest body of a request, bytes: ten times what a browser offers.
const BODY_MAX: usize = 64 * 1024;
/// Time limit for the head and for the body of a request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Most connections at a time; further ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 4_096;

type Answer = Response<Full<Bytes>>;

/// Serves until `stop` is set.
pub(crate) async fn serve(
    listener: TcpListener,
    room: Arc<Room>,
    mut stop: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let pause = Duration::from_millis(room.config.planted.accept_pause_ms.into());
    let places = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return Ok(()),
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, most likely: give the sessions time to end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let room = Arc::clone(&room);
        let mut stop = stop.clone();
        tokio::task::spawn(async move {
            let service = service_fn(|request| answer(&room, request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_MAX)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                served = connection => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "HTTP connection");
                    }
                }
                _ = stop.changed() => {}
            }
            drop(place);
        });
    }
}

/// Closes the connection without an answer, as the emulated server does.
#[derive(Debug, thiserror::Error)]
#[error("closed without an answer, as the emulated server does")]
struct NoAnswer;

async fn answer(room: &Room, request: Request<Incoming>) -> Result<Answer, NoAnswer> {
    let is_srs = room.config.emulates.is_srs();
    let mut response = route(room, request).await;
    if room.config.emulates == EmulatedServer::SrsSilent && !response.status().is_success() {
        return Err(NoAnswer);
    }
    if is_srs {
        // SRS closes the connection after each request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Close"));
        response.headers_mut().insert(header::SERVER, HeaderValue::from_static("SRS/7.0.121(Kai)"));
    }
    // Players live on other origins.
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Location, ETag, Link, Accept-Patch"),
    );
    Ok(response)
}

async fn route(room: &Room, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    let known = |content_type, body: String| match *request.method() {
        Method::GET | Method::HEAD => reply(StatusCode::OK, content_type, body),
        Method::OPTIONS => preflight("GET, OPTIONS"),
        _ => not_allowed("GET, OPTIONS"),
    };
    match path.as_str() {
        "/" => known("text/plain; charset=utf-8", front_page(room)),
        "/player" => known("text/html; charset=utf-8", include_str!("player.html").to_owned()),
        "/stats" => known(
            "application/json",
            serde_json::to_string_pretty(&room.stats()).unwrap_or_default(),
        ),
        srs::WHEP if room.config.emulates.is_srs() => {
            resource::of_srs(room, Role::Viewer, request).await
        }
        srs::WHIP if room.config.emulates.is_srs() => {
            resource::of_srs(room, Role::Publisher, request).await
        }
        "/whep" => resource::endpoint(room, Role::Viewer, request).await,
        "/whip" => resource::endpoint(room, Role::Publisher, request).await,
        other => {
            let session = [("/whep/", Role::Viewer), ("/whip/", Role::Publisher)]
                .into_iter()
                .find_map(|(prefix, role)| Some((role, other.strip_prefix(prefix)?.to_owned())));
            match session {
                Some((role, id)) => resource::session(room, role, &id, request).await,
                None => text(
                    StatusCode::NOT_FOUND,
                    "there is one room: /whep to view, /whip to publish",
                ),
            }
        }
    }
}

fn front_page(room: &Room) -> String {
    format!(
        "throng stage {}: a small media server for load tests.\n\nPOST /whep    view (WHEP); \
         ?card=standard or ?card=low picks the test card\nPOST /whip    publish (WHIP); without a \
         publisher the test card plays\n\x20             ?stream=NAME, with either: one of \
         several streams, each with a publisher\nGET  /player  view in a browser\nGET  /stats   \
         counters, JSON\n\n{} worker(s), room for {} viewers\n",
        env!("CARGO_PKG_VERSION"),
        room.config.workers,
        room.config.max_viewers
    )
}

/// The body of a request, or the answer to one without a valid body.
async fn body_of(request: Request<Incoming>) -> Result<String, Answer> {
    let collected =
        tokio::time::timeout(REQUEST_MAX, Limited::new(request.into_body(), BODY_MAX).collect())
            .await;
    match collected {
        Err(_) => Err(text(StatusCode::REQUEST_TIMEOUT, "the body did not come")),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(text(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 64 KiB"))
        }
        Ok(Err(_)) => Err(text(StatusCode::BAD_REQUEST, "the body broke off")),
        Ok(Ok(body)) => String::from_utf8(body.to_bytes().into())
            .map_err(|_| text(StatusCode::BAD_REQUEST, "the body is not UTF-8")),
    }
}

fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn text(status: StatusCode, body: impl std::fmt::Display) -> Answer {
    reply(status, "text/plain; charset=utf-8", format!("{body}\n"))
}

fn with(mut response: Answer, name: HeaderName, value: &str) -> Answer {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

fn not_allowed(allow: &'static str) -> Answer {
    with(
        text(StatusCode::METHOD_NOT_ALLOWED, format_args!("here only {allow}")),
        header::ALLOW,
        allow,
    )
}

fn preflight(methods: &'static str) -> Answer {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let response = with(response, header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    with(response, header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, If-Match")
}
