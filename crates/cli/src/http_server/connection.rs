//! Connections. Clients are few, slow ones are cut off, and those who ask in a loop wait, so that
//! the crowd keeps its cores.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::Site;
use super::host_header::is_meant;
use super::reply::{Body, Reply, of_stream, of_whole, text};

/// Most connections at a time that wait for an answer; further ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 8;
/// Most readers of events at a time.
const STREAMS_MAX: u32 = 16;
/// The time from a connection to its request, and from there to the end of the answer.
const STEP_LASTS: Duration = Duration::from_secs(5);
/// How long the end waits for those who read events.
const END_LASTS: Duration = Duration::from_secs(1);
/// The time between two connections: a hundred a second.
const PAUSE: Duration = Duration::from_millis(10);
/// Most bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Answers on `socket`, for which a host was asked, until the sender of `stopped` is gone.
pub(super) async fn run(
    socket: TcpListener,
    host: String,
    site: impl Site,
    stopped: oneshot::Receiver<()>,
) {
    let streams = Arc::new(Semaphore::new(STREAMS_MAX as usize));
    let shared = Arc::new(Shared { site: Mutex::new(site), host, streams });
    tokio::select! {
        () = serve(socket, &shared) => {}
        () = each_second(&shared) => {}
        _ = stopped => {}
    }
    shared.site().end();
    let all_have_left = shared.streams.acquire_many(STREAMS_MAX);
    let _ = timeout(END_LASTS, all_have_left).await;
}

/// What all connections share.
struct Shared<S> {
    site: Mutex<S>,
    /// The name by which clients may ask.
    host: String,
    /// Places of readers of events.
    streams: Arc<Semaphore>,
}

/// The end of a stream of events, and its place.
struct Streaming {
    gone: oneshot::Receiver<()>,
    place: OwnedSemaphorePermit,
}

impl<S: Site> Shared<S> {
    fn site(&self) -> MutexGuard<'_, S> {
        self.site.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, request: &Request<()>) -> (Response<Body>, Option<Streaming>) {
        if !is_meant(request, &self.host) {
            let help = format!(
                "This server is asked by address, as localhost, or as {}: listen on the name by \
                 which it is asked.\n",
                self.host
            );
            return (of_whole(text(StatusCode::FORBIDDEN, help)), None);
        }
        match self.site().answer(request) {
            Reply::Whole(response) => (of_whole(response), None),
            Reply::Events(events) => match Arc::clone(&self.streams).try_acquire_owned() {
                Ok(place) => {
                    let (response, gone) = of_stream(events);
                    (response, Some(Streaming { gone, place }))
                }
                Err(_) => {
                    let help = "Too many look at this already; close a page.\n".to_owned();
                    (of_whole(text(StatusCode::SERVICE_UNAVAILABLE, help)), None)
                }
            },
        }
    }
}

async fn each_second<S: Site>(shared: &Shared<S>) {
    loop {
        sleep(Duration::from_secs(1)).await;
        shared.site().each_second();
    }
}

async fn serve<S: Site>(socket: TcpListener, shared: &Arc<Shared<S>>) {
    // Fails only for a socket of another kind.
    let Ok(listener) = tokio::net::TcpListener::from_std(socket) else { return };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // None comes while this process is out of descriptors.
        if let Some((place, stream)) = next(&listener, &places).await {
            tokio::spawn(answer(stream, Arc::clone(shared), place));
        }
    }
}

async fn next(
    listener: &tokio::net::TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(OwnedSemaphorePermit, TcpStream)> {
    let place = Arc::clone(places).acquire_owned().await.ok();
    let accepted = listener.accept().await.ok();
    sleep(PAUSE).await;
    let (stream, _) = accepted?;
    Some((place?, stream))
}

/// One request, and the place of its connection until it is known to be a stream of events.
async fn answer<S: Site>(stream: TcpStream, shared: Arc<Shared<S>>, place: OwnedSemaphorePermit) {
    let (told, answered) = oneshot::channel();
    let told = Mutex::new(Some(told));
    let service = service_fn(|request: Request<Incoming>| {
        let (response, streaming) = shared.reply(&request.map(drop));
        if let Some(told) = told.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Who is told lasts as long as the connection.
            let _ = told.send(streaming);
        }
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(STEP_LASTS)
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "HTTP connection");
            }
        }
        () = limit(answered, place) => {}
    }
}

/// Lasts as long as a connection may: until a step takes too long, or the reader of a stream of
/// events was dropped and had the time to read the rest.
async fn limit(answered: oneshot::Receiver<Option<Streaming>>, place: OwnedSemaphorePermit) {
    let Ok(Ok(streaming)) = timeout(STEP_LASTS, answered).await else { return };
    let place = match streaming {
        None => place,
        Some(Streaming { gone, place: of_stream }) => {
            drop(place);
            // That its sender is gone is what it tells.
            let _ = gone.await;
            of_stream
        }
    };
    sleep(STEP_LASTS).await;
    drop(place);
}
