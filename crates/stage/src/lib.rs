//! The embedded media server: the target of the demo, of calibration and of quick tests.
//!
//! One room: `POST /whep` to view, `POST /whip` to publish; without a publisher it plays a test
//! card. With `?stream=NAME` it has several streams, each with a publisher. [`StageConfig`] makes
//! it saturate as real servers do (few workers, a narrow link, costly packets) or emulate another
//! server ([`EmulatedServer`]).
//!
//! ```text
//! stage-clock ──bursts──> stage-worker-N ── number, seal, sendmmsg ──> viewers
//! stage-http  ──commands──>     │  publisher's packets ──bursts──> all workers
//! ```
//! Each worker has one UDP socket. A viewer's picture begins with the next key frame; the test card
//! has one each second.

mod config;
pub use config::{Card, EmulatedServer, StageConfig};

mod error;
pub use error::StageError;

mod no_rtx;
mod planted;
pub use planted::Planted;

mod stats;
pub use stats::{StageStats, WorkerStats};

mod room;

mod http;

mod srs;

mod peer;

mod source;

mod card;

mod publisher;

mod inbox;

mod receive_limiter;

mod worker;

mod sessions;

mod session;

mod viewer;

mod egress;

mod link;

mod work;

mod media_files;

mod stun;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use tokio::sync::watch;

use crate::inbox::{Inbox, WorkerCommand};
use crate::media_files::MediaFolder;
use crate::room::{Room, Worker};

/// A running stage; stops when dropped.
pub struct Stage {
    http_addr: SocketAddr,
    media_ip: IpAddr,
    room: Arc<Room>,
    stop_clock: Arc<AtomicBool>,
    stop_http: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("http_addr", &self.http_addr).finish_non_exhaustive()
    }
}

impl Stage {
    /// Starts listening and playing on threads of its own.
    ///
    /// # Errors
    /// When the configuration is invalid, or a socket or thread cannot be had.
    pub fn start(config: StageConfig) -> Result<Stage, StageError> {
        config.validate()?;
        let tracks = card::tracks().map_err(StageError::TestCard)?;
        let identity = peer::Identity::new().map_err(StageError::Crypto)?;
        let address = config.http_listen;
        let media_ip = config.media_ip();
        let cannot_listen = |source| StageError::Listen { address, source };
        let listener = config.planted.listen(address).map_err(cannot_listen)?;
        listener.set_nonblocking(true).map_err(cannot_listen)?;
        let http_addr = listener.local_addr().map_err(cannot_listen)?;
        let (workers, sockets): (Vec<Worker>, Vec<UdpSocket>) = (0..config.workers)
            .map(|index| worker_at(media_ip, index, &config.planted))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|source| StageError::Listen { address: SocketAddr::new(media_ip, 0), source })?
            .into_iter()
            .unzip();

        let (library, asked) = match &config.planted.media_folder {
            Some(folder) => {
                let cannot = |source| StageError::MediaFolder { folder: folder.clone(), source };
                MediaFolder::open(folder)
                    .map(|(library, asked)| (Some(library), Some(asked)))
                    .map_err(cannot)?
            }
            None => (None, None),
        };
        let (stop_http, http_stopped) = watch::channel(false);
        let mut stage = Stage {
            http_addr,
            media_ip,
            room: Arc::new(Room::new(config, identity, workers, library)),
            stop_clock: Arc::default(),
            stop_http,
            threads: Vec::new(),
        };
        for (index, socket) in sockets.into_iter().enumerate() {
            let worker = worker::Worker::new(index, Arc::clone(&stage.room), socket);
            let name = stage.room.workers[index].name.clone();
            stage.spawn(name, move || worker.run())?;
        }
        if let Some(asked) = asked {
            let stop = Arc::clone(&stage.stop_clock);
            stage.spawn("stage-reader".into(), move || media_files::read_all(&asked, &stop))?;
        }
        let (room, stop) = (Arc::clone(&stage.room), Arc::clone(&stage.stop_clock));
        stage.spawn("stage-clock".into(), move || {
            card::play(tracks, &room.audience, &stop, |burst| room.play(&burst));
        })?;
        let room = Arc::clone(&stage.room);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| StageError::Start { what: "the HTTP runtime".into(), source })?;
        stage.spawn("stage-http".into(), move || {
            if let Err(error) = runtime.block_on(http::serve(listener, room, http_stopped)) {
                tracing::error!(%error, "HTTP ended");
            }
        })?;
        Ok(stage)
    }

    /// Where viewers `POST` their offers.
    #[must_use]
    pub fn whep_url(&self) -> String {
        self.url(if self.room.config.emulates.is_srs() { srs::WHEP } else { "/whep" })
    }

    /// Where a publisher `POST`s its offer.
    #[must_use]
    pub fn whip_url(&self) -> String {
        self.url(if self.room.config.emulates.is_srs() { srs::WHIP } else { "/whip" })
    }

    /// A page that plays the room in a browser.
    #[must_use]
    pub fn player_url(&self) -> String {
        self.url("/player")
    }

    /// The HTTP address, with the port that was taken.
    #[must_use]
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> StageStats {
        self.room.stats()
    }

    /// Ends all sessions and threads, and waits for them. Dropping does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn spawn(
        &mut self,
        name: String,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), StageError> {
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(work)
            .map_err(|source| StageError::Start { what: name, source })?;
        self.threads.push(thread);
        Ok(())
    }

    fn url(&self, path: &str) -> String {
        let ip = match self.http_addr.ip() {
            // HTTP listens on every address of the machine: that of media is one of them.
            any if any.is_unspecified() => self.media_ip,
            ip => ip,
        };
        format!("http://{}{path}", SocketAddr::new(ip, self.http_addr.port()))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop_clock.store(true, Relaxed);
        let _ = self.stop_http.send(true);
        for worker in &self.room.workers {
            worker.inbox.send(WorkerCommand::Stop);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn worker_at(ip: IpAddr, index: usize, planted: &Planted) -> io::Result<(Worker, UdpSocket)> {
    let socket = egress::media_socket(ip, planted)?;
    let worker = Worker {
        inbox: Inbox::new()?,
        counters: stats::WorkerCounters::default(),
        local: socket.local_addr()?,
        name: format!("stage-worker-{index}"),
    };
    Ok((worker, socket))
}
