//! HTTP on a thread of its own. Clients are few, slow ones are cut off, and those who ask in a loop
//! wait, so that the crowd keeps its cores.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::answer::Answers;

/// Most connections at a time; further ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 8;
/// The time from a connection to the end of its answer.
const CONNECTION_LASTS: Duration = Duration::from_secs(5);
/// The time between two connections: a hundred a second.
const PAUSE: Duration = Duration::from_millis(10);
/// Most bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Answers on `socket` until the sender of `stopped` is gone.
pub(super) fn start(
    socket: TcpListener,
    answers: Arc<Answers>,
    stopped: oneshot::Receiver<()>,
) -> std::io::Result<JoinHandle<()>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                () = serve(socket, answers) => {}
                _ = stopped => {}
            }
        });
    })
}

async fn serve(socket: TcpListener, answers: Arc<Answers>) {
    // Fails only for a socket of another kind.
    let Ok(listener) = tokio::net::TcpListener::from_std(socket) else { return };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // None comes while this process is out of descriptors.
        if let Some((place, stream)) = next(&listener, &places).await {
            tokio::spawn(answer(stream, Arc::clone(&answers), place));
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

/// One request, and the place of its connection.
async fn answer(stream: TcpStream, answers: Arc<Answers>, place: OwnedSemaphorePermit) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answers.to(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_LASTS)
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(CONNECTION_LASTS, connection).await {
        tracing::debug!(%error, "HTTP connection");
    }
    drop(place);
}
