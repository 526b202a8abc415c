//! A TCP server on a loopback port of its own, for the browsers of this run.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long reading from or writing to a browser on this machine may take.
pub(super) const IO_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections of all browsers at a time.
const CONNECTIONS_MAX: usize = 512;

/// The thread that accepts connections; it ends when this is dropped, and each connection with its
/// browser.
pub(super) struct LoopbackServer {
    pub(super) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LoopbackServer {
    /// Gives each connection, and the server's address, to `serve`, on a thread of its own called
    /// `name`: browsers open connections in advance, on which nothing comes for seconds.
    pub(super) fn start(
        name: &'static str,
        serve: impl Fn(TcpStream, SocketAddr) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (serve, open) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
        let accept = move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                if open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                    continue;
                }
                open.fetch_add(1, Ordering::Relaxed);
                let (serve, its_open) = (Arc::clone(&serve), Arc::clone(&open));
                let one = move || {
                    serve(stream, address);
                    its_open.fetch_sub(1, Ordering::Relaxed);
                };
                if std::thread::Builder::new().name(name.into()).spawn(one).is_err() {
                    open.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(accept)?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread, which then reads the flag and ends.
        let _ = TcpStream::connect_timeout(&self.address, IO_TIMEOUT);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
