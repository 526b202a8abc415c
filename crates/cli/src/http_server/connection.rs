//! Connections. Clients are few, those that hardly read are cut off, and those who ask in a loop
//! wait, so that the crowd keeps its cores. Who waits for one thing keeps nobody from another: a
//! connection has a place among those that ask, and takes one of another kind with its answer.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
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
use super::counted::Counted;
use super::limits::Limits;
use super::reply::{Body, Make, Reply, Whole, of_stream, of_whole, text};
use super::request_guard::refusal;

/// Answers on `socket`, for which a host was asked, until the sender of `stopped` is gone.
pub(super) async fn run(
    socket: TcpListener,
    host: String,
    site: impl Site,
    limits: Limits,
    stopped: oneshot::Receiver<()>,
) {
    let places = |most: usize| Arc::new(Semaphore::new(most));
    let shared = Arc::new(Shared {
        site: Mutex::new(site),
        host,
        limits,
        answers: places(limits.answers_max),
        long_answers: places(limits.long_answers_max),
        streams: places(limits.streams_max as usize),
        turn: places(1),
    });
    tokio::select! {
        () = serve(socket, &shared) => {}
        () = each_second(&shared) => {}
        _ = stopped => {}
    }
    shared.site().end();
    let all_have_left = shared.streams.acquire_many(limits.streams_max);
    let _ = timeout(limits.end_lasts, all_have_left).await;
}

/// What all connections share.
struct Shared<S> {
    site: Mutex<S>,
    /// The name by which clients may ask.
    host: String,
    limits: Limits,
    /// Places of answers of one piece.
    answers: Arc<Semaphore>,
    /// Places of those that take long.
    long_answers: Arc<Semaphore>,
    /// Places of readers of events.
    streams: Arc<Semaphore>,
    /// Whose answer that takes long is made.
    turn: Arc<Semaphore>,
}

/// What a connection has until its answer was read.
struct Held {
    _place: Option<OwnedSemaphorePermit>,
    /// Of a stream of events: when its reader was dropped.
    gone: Option<oneshot::Receiver<()>>,
}

impl<S: Site> Shared<S> {
    fn site(&self) -> MutexGuard<'_, S> {
        self.site.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request, once it has a place; `waiting` is the one that it had until then.
    async fn reply(
        &self,
        request: &Request<()>,
        waiting: Option<OwnedSemaphorePermit>,
    ) -> (Response<Body>, Held) {
        // It is never closed.
        let place = Arc::clone(&self.answers).acquire_owned().await.ok();
        drop(waiting);
        let whole = |response, place| (of_whole(response), Held { _place: place, gone: None });
        if let Some(help) = refusal(request, &self.host) {
            return whole(text(StatusCode::FORBIDDEN, help), place);
        }
        let reply = self.site().answer(request);
        match reply {
            Reply::Whole(response) => whole(response, place),
            Reply::Later(make) => match Arc::clone(&self.long_answers).try_acquire_owned() {
                Ok(own) => {
                    drop(place);
                    whole(self.later(make).await, Some(own))
                }
                Err(_) => whole(too_many("wait for such a page already; ask again later"), place),
            },
            Reply::Events(events) => match Arc::clone(&self.streams).try_acquire_owned() {
                Ok(own) => {
                    let (response, gone) = of_stream(events);
                    (response, Held { _place: Some(own), gone: Some(gone) })
                }
                Err(_) => whole(too_many("look at this already; close a page"), place),
            },
        }
    }

    /// Makes an answer while others are given: one at a time, so that it takes one core at most.
    /// Neither the end nor a reader that has left waits for it.
    async fn later(&self, make: Make) -> Whole {
        // It is never closed.
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        let making = tokio::task::spawn_blocking(move || {
            let made = make();
            drop(turn);
            made
        });
        let failed = "This could not be made; the log of throng says why.\n";
        making.await.unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, failed.into()))
    }
}

/// The answer to one more than there are places for; `what` the others do.
fn too_many(what: &str) -> Whole {
    text(StatusCode::SERVICE_UNAVAILABLE, format!("Too many {what}.\n"))
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
    let places = Arc::new(Semaphore::new(shared.limits.waiting_max));
    loop {
        // None comes while this process is out of descriptors.
        if let Some((place, stream)) = next(&listener, &places, shared.limits.pause).await {
            tokio::spawn(answer(stream, Arc::clone(shared), place));
        }
    }
}

async fn next(
    listener: &tokio::net::TcpListener,
    places: &Arc<Semaphore>,
    pause: Duration,
) -> Option<(OwnedSemaphorePermit, TcpStream)> {
    let place = Arc::clone(places).acquire_owned().await.ok();
    let accepted = listener.accept().await.ok();
    sleep(pause).await;
    let (stream, _) = accepted?;
    Some((place?, stream))
}

/// One request; `waiting` is the place of its connection until it has one for its answer.
async fn answer<S: Site>(stream: TcpStream, shared: Arc<Shared<S>>, waiting: OwnedSemaphorePermit) {
    let (asks, asked) = oneshot::channel();
    let (tells, answered) = oneshot::channel();
    let begun = Mutex::new(Some((asks, (tells, waiting))));
    let limits = shared.limits;
    let (stream, written) = Counted::new(stream);
    let service = service_fn(|request: Request<Incoming>| {
        let (asks, rest) = begun.lock().unwrap_or_else(PoisonError::into_inner).take().unzip();
        let (tells, waiting) = rest.unzip();
        let shared = Arc::clone(&shared);
        async move {
            // Who is told lasts as long as the connection.
            let _ = asks.map(|asks| asks.send(()));
            let (response, held) = shared.reply(&request.map(drop), waiting).await;
            let _ = tells.map(|tells| tells.send(held));
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.step_lasts)
        .keep_alive(false)
        .max_buf_size(limits.head_bytes_max)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // What has come while a page was made is read before its time is judged.
        biased;
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "HTTP connection");
            }
        }
        why = limit(asked, answered, &written, &limits) => {
            tracing::debug!(why, "HTTP connection cut off");
        }
    }
}

/// Lasts as long as a connection may: until its client takes too long, or the reader of a stream of
/// events was dropped and had the time to read the rest. Why it is cut off then.
async fn limit(
    asked: oneshot::Receiver<()>,
    answered: oneshot::Receiver<Held>,
    written: &AtomicUsize,
    limits: &Limits,
) -> &'static str {
    let Ok(Ok(())) = timeout(limits.step_lasts, asked).await else { return "no request came" };
    // How long an answer waits and is made is not its client's doing.
    let Ok(held) = answered.await else { return "it got no answer" };
    match held.gone {
        None => {
            stalled(written, limits).await;
            "its answer is read too slowly"
        }
        Some(gone) => {
            // That its sender is gone is what it tells.
            let _ = gone.await;
            sleep(limits.step_lasts).await;
            "the last of its events is not read"
        }
    }
}

/// Lasts until too little was written for so long. Who took the rest has ended its connection.
async fn stalled(written: &AtomicUsize, limits: &Limits) {
    let mut before = written.load(Relaxed);
    loop {
        sleep(limits.stall_lasts).await;
        let now = written.load(Relaxed);
        if now.saturating_sub(before) < limits.stall_bytes_min {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
