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
use super::meant::refusal;
use super::reply::{Body, Make, Reply, Whole, of_stream, of_whole, text};

/// Most connections at a time that wait for an answer; further ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 8;
/// Most readers of events at a time.
const STREAMS_MAX: u32 = 16;
/// The time from a connection to its request, and from the last event to the end of its stream.
const STEP_LASTS: Duration = Duration::from_secs(5);
/// The time in which an answer is read: the page of a long run has some megabytes.
const READ_LASTS: Duration = Duration::from_secs(30);
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
    let turn = Arc::new(Semaphore::new(1));
    let shared = Arc::new(Shared { site: Mutex::new(site), host, streams, turn });
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
    /// Whose answer that takes long is made.
    turn: Arc<Semaphore>,
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

    async fn reply(&self, request: &Request<()>) -> (Response<Body>, Option<Streaming>) {
        if let Some(help) = refusal(request, &self.host) {
            return (of_whole(text(StatusCode::FORBIDDEN, help)), None);
        }
        let reply = self.site().answer(request);
        match reply {
            Reply::Whole(response) => (of_whole(response), None),
            Reply::Later(make) => (of_whole(self.later(make).await), None),
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
    let (asks, asked) = oneshot::channel();
    let (tells, answered) = oneshot::channel();
    let told = Mutex::new(Some((asks, tells)));
    let service = service_fn(|request: Request<Incoming>| {
        let (asks, tells) = told.lock().unwrap_or_else(PoisonError::into_inner).take().unzip();
        let shared = Arc::clone(&shared);
        async move {
            // Who is told lasts as long as the connection.
            let _ = asks.map(|asks| asks.send(()));
            let (response, streaming) = shared.reply(&request.map(drop)).await;
            let _ = tells.map(|tells| tells.send(streaming));
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(STEP_LASTS)
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // What has come while a page was made is read before its time is judged.
        biased;
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "HTTP connection");
            }
        }
        () = limit(asked, answered, place) => {}
    }
}

/// Lasts as long as a connection may: until its client takes too long, or the reader of a stream of
/// events was dropped and had the time to read the rest.
async fn limit(
    asked: oneshot::Receiver<()>,
    answered: oneshot::Receiver<Option<Streaming>>,
    place: OwnedSemaphorePermit,
) {
    let Ok(Ok(())) = timeout(STEP_LASTS, asked).await else { return };
    // How long an answer is made is not its client's doing.
    let Ok(streaming) = answered.await else { return };
    let (place, lasts) = match streaming {
        None => (place, READ_LASTS),
        Some(Streaming { gone, place: of_stream }) => {
            drop(place);
            // That its sender is gone is what it tells.
            let _ = gone.await;
            (of_stream, STEP_LASTS)
        }
    };
    sleep(lasts).await;
    drop(place);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// `/long` is made until `/short` was asked for.
    struct Both {
        make: Option<Make>,
        short: mpsc::Sender<()>,
    }

    impl Site for Both {
        fn answer(&mut self, request: &Request<()>) -> Reply {
            if request.uri().path() == "/long"
                && let Some(make) = self.make.take()
            {
                return Reply::Later(make);
            }
            self.short.send(()).unwrap();
            text(StatusCode::OK, "short".into()).into()
        }
    }

    #[test]
    fn what_takes_long_holds_no_other_answer() {
        let (short, asked) = mpsc::channel();
        let make: Make = Box::new(move || {
            asked.recv().unwrap();
            text(StatusCode::ACCEPTED, "long".into())
        });
        let shared = Shared {
            site: Mutex::new(Both { make: Some(make), short }),
            host: "127.0.0.1".into(),
            streams: Arc::new(Semaphore::new(1)),
            turn: Arc::new(Semaphore::new(1)),
        };
        let [long, short] = ["/long", "/short"]
            .map(|path| Request::get(path).header("host", "127.0.0.1").body(()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ((long, _), (short, _)) =
            runtime.block_on(async { tokio::join!(shared.reply(&long), shared.reply(&short)) });
        assert_eq!((long.status().as_u16(), short.status().as_u16()), (202, 200));
    }
}
