//! The run's end: connects to an agent, keeps the clocks aligned, takes rows, and knows at once when it is gone.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use throng_observation::RunTime;
use throng_observation::host::{HostEvent, HostEventKind, HostId, HostRow, HostSample, SeriesId};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use super::Fingerprint;
use super::clock::AgentClock;
use super::session::AnyStream;
use super::tls;
use super::wire::{ANSWER_BYTES_MAX, Answer, Consent, Frame, FrameReader, Request, VERSION, write_message};
use crate::rows::RowSender;

/// Which agent.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Where it listens: `host:port`.
    pub address: String,
    /// What it asks of whoever connects.
    pub token: String,
    /// Its certificate's; `None`: without TLS, which only a loopback address may be.
    pub fingerprint: Option<Fingerprint>,
}

/// Why an agent cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Without TLS anybody between could read and forge.
    #[error("the agent at {0} is not on loopback: give the fingerprint that it prints when it starts")]
    Plain(String),
    /// Nobody answers there.
    #[error("no agent answers at {address}: {why}; is `throng watch` running there?")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        why: String,
    },
    /// Somebody else answers there, or nobody who speaks TLS.
    #[error("the agent at {address} is not the one with fingerprint {expected}: {why}")]
    Certificate {
        /// Where.
        address: String,
        /// Whom we asked for.
        expected: Fingerprint,
        /// What was there.
        why: String,
    },
    /// It does not serve this run.
    #[error("the agent at {address} refused: {why}")]
    Refused {
        /// Where.
        address: String,
        /// Its words.
        why: String,
    },
}

/// Name, connection, TLS and token together.
const WELCOME_WITHIN: Duration = Duration::from_secs(10);
/// The sign of life; and the first ones, closer together, to align the clocks.
const PING_EVERY: Duration = Duration::from_secs(1);
const FIRST_PINGS: u32 = 10;
const FIRST_PING_EVERY: Duration = Duration::from_millis(20);
/// Without an answer for so long the agent is lost: its presence is asked within 5 s (docs/watch.md).
const LOST_AFTER: Duration = Duration::from_secs(3);
const RECONNECT_EVERY: Duration = Duration::from_secs(1);
/// An agent that shows more series than this is not believed.
const SERIES_MAX: usize = 1 << 20;
/// An agent's words are cut.
const WORDS_MAX: usize = 1_000;

/// A connected agent. Dropping it ends the connection.
#[derive(Debug)]
pub struct Remote {
    peer: SocketAddr,
    name: String,
    targets: Vec<String>,
    consent: Option<Consent>,
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

/// What the run knows of the agent at the moment.
#[derive(Debug)]
struct Shared {
    heard_at: Mutex<Instant>,
    is_connected: AtomicBool,
    clock_error_us: AtomicU64,
}

/// What the run wants of the connection's thread.
enum Order {
    Begin { host: HostId, zero: Instant, rows: RowSender, name: Option<String> },
    Profile { moment: String, duration: Duration },
}

impl Remote {
    /// Connects, checks that it is the right agent, shows the token, and waits to be welcomed.
    ///
    /// # Errors
    /// When one of these fails.
    pub fn connect(config: &RemoteConfig) -> Result<Self, RemoteError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let no = |why: String| RemoteError::Connect { address: config.address.clone(), why };
        let runtime = runtime.map_err(|error| no(error.to_string()))?;
        let connection = runtime.block_on(Connection::open(config))?;
        let (orders, receiver) = mpsc::channel(64);
        let shared = Arc::new(Shared {
            heard_at: Mutex::new(Instant::now()),
            is_connected: AtomicBool::new(true),
            clock_error_us: AtomicU64::new(u64::MAX),
        });
        let (peer, welcome) = (connection.peer, connection.welcome.clone());
        let link = Link { config: config.clone(), shared: shared.clone(), sink: None };
        let thread = std::thread::Builder::new()
            .name("watch-remote".into())
            .spawn(move || runtime.block_on(link.run(connection, receiver)))
            .map_err(|error| no(error.to_string()))?;
        let Welcome { name, targets, consent } = welcome;
        Ok(Self { peer, name, targets, consent, shared, orders, thread: Some(thread) })
    }

    /// The address at which it answered: the one that its consent is for.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The watched host's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it watches, for people.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// What load its owner agrees to, if any, as long as [`Self::is_present`].
    #[must_use]
    pub fn consent(&self) -> Option<&Consent> {
        self.consent.as_ref()
    }

    /// Whether it was heard from within the last 3 s and has not ended the connection.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.shared.is_present()
    }

    /// Something by which others can ask [`Self::is_present`].
    #[must_use]
    pub fn presence(&self) -> Presence {
        Presence(self.shared.clone())
    }

    /// Begins to stream rows: they are of `host`, named `name` if given, and their times count from `zero`.
    #[must_use]
    pub fn begin(self, host: HostId, name: Option<String>, zero: Instant, rows: RowSender) -> RemoteWatching {
        let _ = self.orders.try_send(Order::Begin { host, zero, rows, name });
        RemoteWatching(self)
    }

    fn end(&mut self) {
        // The thread ends when its last order giver is gone.
        let (nobody, _) = mpsc::channel(1);
        self.orders = nobody;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tells whether an agent is there; cheap, and good on any thread.
#[derive(Clone, Debug)]
pub struct Presence(Arc<Shared>);

impl Presence {
    /// As [`Remote::is_present`].
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.is_present()
    }
}

impl Shared {
    fn is_present(&self) -> bool {
        let heard_at = *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_connected.load(Relaxed) && heard_at.elapsed() < LOST_AFTER
    }

    fn heard(&self) {
        *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// An agent whose rows come. Dropping it ends that.
#[derive(Debug)]
pub struct RemoteWatching(Remote);

impl RemoteWatching {
    /// The agent.
    #[must_use]
    pub fn remote(&self) -> &Remote {
        &self.0
    }

    /// Asks for a profile of the watched processes: it comes as a row, `duration` and a little later.
    pub fn profile(&self, moment: &str, duration: Duration) {
        let _ = self.0.orders.try_send(Order::Profile { moment: moment.to_owned(), duration });
    }

    /// How far its times may be off this run's at the moment, microseconds.
    #[must_use]
    pub fn clock_error_us(&self) -> u64 {
        self.0.shared.clock_error_us.load(Relaxed)
    }

    /// Ends it.
    pub fn stop(self) {}
}

#[derive(Clone, Debug)]
struct Welcome {
    name: String,
    targets: Vec<String>,
    consent: Option<Consent>,
}

/// A connection that was welcomed.
struct Connection {
    peer: SocketAddr,
    welcome: Welcome,
    reader: ReadHalf<AnyStream>,
    writer: WriteHalf<AnyStream>,
    frames: FrameReader,
}

impl Connection {
    async fn open(config: &RemoteConfig) -> Result<Self, RemoteError> {
        let address = || config.address.clone();
        match tokio::time::timeout(WELCOME_WITHIN, Self::try_open(config)).await {
            Ok(opened) => opened,
            Err(_) => Err(RemoteError::Connect {
                address: address(),
                why: format!("nothing within {WELCOME_WITHIN:?}"),
            }),
        }
    }

    async fn try_open(config: &RemoteConfig) -> Result<Self, RemoteError> {
        let address = || config.address.clone();
        let no = |error: io::Error| RemoteError::Connect { address: address(), why: error.to_string() };
        let mut addresses = config.address.to_socket_addrs().map_err(no)?;
        let peer = addresses.next().ok_or_else(|| no(io::ErrorKind::NotFound.into()))?;
        let stream = TcpStream::connect(peer).await.map_err(no)?;
        stream.set_nodelay(true).map_err(no)?;
        let mut stream: AnyStream = match config.fingerprint {
            None if peer.ip().is_loopback() => Box::new(stream),
            None => return Err(RemoteError::Plain(address())),
            Some(expected) => {
                let failed = |why: String| RemoteError::Certificate { address: address(), expected, why };
                let connector = TlsConnector::from(tls::client(expected).map_err(failed)?);
                let name = ServerName::try_from("throng-watch").map_err(|e| failed(e.to_string()))?;
                Box::new(connector.connect(name, stream).await.map_err(|e| failed(e.to_string()))?)
            }
        };
        let mut out = Vec::new();
        let hello = Request::Hello { version: VERSION, token: config.token.clone() };
        write_message(&mut out, &hello).map_err(no)?;
        stream.write_all(&out).await.map_err(no)?;
        let mut frames = FrameReader::new(ANSWER_BYTES_MAX);
        match frames.next(&mut stream).await.map_err(no)? {
            Frame::Message(Answer::Welcome { name, targets, consent, .. }) => {
                let (reader, writer) = tokio::io::split(stream);
                Ok(Self {
                    peer,
                    welcome: Welcome { name: cut(name), targets, consent },
                    reader,
                    writer,
                    frames,
                })
            }
            Frame::Message(Answer::Refused { why }) => {
                Err(RemoteError::Refused { address: address(), why: cut(why) })
            }
            _ => Err(no(io::Error::other("it does not speak this protocol"))),
        }
    }

    async fn ask(&mut self, request: &Request) -> io::Result<()> {
        let mut out = Vec::new();
        write_message(&mut out, request)?;
        let written = async {
            self.writer.write_all(&out).await?;
            self.writer.flush().await
        };
        tokio::time::timeout(LOST_AFTER, written).await.map_err(|_| io::ErrorKind::TimedOut)?
    }
}

fn cut(text: String) -> String {
    if text.len() <= WORDS_MAX { text } else { text.chars().take(WORDS_MAX).collect() }
}

/// Where rows go, once the run has begun.
struct Sink {
    host: HostId,
    name: Option<String>,
    zero: Instant,
    rows: RowSender,
    /// The agent's numbers of series and ours.
    series: HashMap<u32, SeriesId>,
    dropped_before: u64,
}

/// Keeps the connection, and makes it again when it is lost.
struct Link {
    config: RemoteConfig,
    shared: Arc<Shared>,
    sink: Option<Sink>,
}

/// Why a connection is no longer served.
enum Over {
    /// The run wants no more.
    Done,
    Lost(String),
}

impl Link {
    async fn run(mut self, first: Connection, mut orders: mpsc::Receiver<Order>) {
        let mut connection = first;
        loop {
            let over = self.serve(&mut connection, &mut orders).await;
            self.shared.is_connected.store(false, Relaxed);
            drop(connection);
            let why = match over {
                Over::Done => return self.end_series(),
                Over::Lost(why) => why,
            };
            self.end_series();
            self.tell(&format!("the watcher at {} is lost: {why}", self.config.address));
            connection = loop {
                tokio::time::sleep(RECONNECT_EVERY).await;
                // Orders that came meanwhile are for a connection that is not there; the end of orders is the end.
                loop {
                    match orders.try_recv() {
                        Ok(order) => self.take_up(order),
                        Err(mpsc::error::TryRecvError::Empty) => break,
                        Err(mpsc::error::TryRecvError::Disconnected) => return,
                    }
                }
                if let Ok(connection) = Connection::open(&self.config).await {
                    break connection;
                }
            };
            self.shared.heard();
            self.shared.is_connected.store(true, Relaxed);
            self.tell(&format!("the watcher at {} is back", self.config.address));
        }
    }

    /// Serves one connection to its end.
    async fn serve(&mut self, connection: &mut Connection, orders: &mut mpsc::Receiver<Order>) -> Over {
        let lost = |error: io::Error| Over::Lost(error.to_string());
        let base = Instant::now();
        let now_us = || i64::try_from(base.elapsed().as_micros()).unwrap_or(i64::MAX);
        let mut clock = AgentClock::default();
        let (mut number, mut asked) = (0_u32, None);
        let mut ping_at = tokio::time::Instant::now();
        if self.sink.is_some()
            && let Err(error) = connection.ask(&Request::Begin).await
        {
            return lost(error);
        }
        loop {
            tokio::select! {
                order = orders.recv() => {
                    let request = match order {
                        None => return Over::Done,
                        Some(Order::Profile { moment, duration }) => {
                            let duration_ms = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
                            Request::Profile { moment, duration_ms }
                        }
                        Some(order) => {
                            self.take_up(order);
                            Request::Begin
                        }
                    };
                    if let Err(error) = connection.ask(&request).await {
                        return lost(error);
                    }
                }
                () = tokio::time::sleep_until(ping_at) => {
                    let heard_at = *self.shared.heard_at.lock().unwrap_or_else(PoisonError::into_inner);
                    if heard_at.elapsed() >= LOST_AFTER {
                        return Over::Lost(format!("nothing was heard for {LOST_AFTER:?}"));
                    }
                    number = number.wrapping_add(1);
                    asked = Some((number, now_us()));
                    if let Err(error) = connection.ask(&Request::Ping { number }).await {
                        return lost(error);
                    }
                    ping_at += if number < FIRST_PINGS { FIRST_PING_EVERY } else { PING_EVERY };
                }
                frame = connection.frames.next::<Answer>(&mut connection.reader) => match frame {
                    Err(error) => return lost(error),
                    Ok(Frame::Samples(samples)) => self.samples(&samples, &clock, base),
                    Ok(Frame::Message(Answer::Row(row))) => self.row(row, &clock, base),
                    Ok(Frame::Message(Answer::Pong { number, agent_us, rows_dropped })) => {
                        self.shared.heard();
                        if let Some((_, sent_us)) = asked.take_if(|(asked, _)| *asked == number) {
                            clock.heard(sent_us, agent_us, now_us());
                            self.shared.clock_error_us.store(clock.error_us(), Relaxed);
                        }
                        if let Some(sink) = &mut self.sink {
                            sink.rows.count_dropped(rows_dropped.saturating_sub(sink.dropped_before));
                            sink.dropped_before = rows_dropped;
                        }
                    }
                    Ok(Frame::Message(Answer::Refused { why })) => return Over::Lost(cut(why)),
                    Ok(Frame::Message(Answer::Welcome { .. })) => return Over::Lost("it lost its place".into()),
                },
            }
        }
    }

    fn take_up(&mut self, order: Order) {
        if let Order::Begin { host, zero, rows, name } = order {
            self.sink = Some(Sink { host, name, zero, rows, series: HashMap::new(), dropped_before: 0 });
        }
    }

    fn samples(&mut self, samples: &[HostSample], clock: &AgentClock, base: Instant) {
        let Some(sink) = &self.sink else { return };
        for sample in samples {
            // A sample of a series whose announcement was lost on the way cannot be placed.
            if let Some(series) = sink.series.get(&sample.series.0) {
                let at = sink.ours(sample.at, clock, base);
                sink.rows.send(HostRow::Sample(HostSample { series: *series, at, value: sample.value }));
            }
        }
    }

    fn row(&mut self, row: HostRow, clock: &AgentClock, base: Instant) {
        let Some(sink) = &mut self.sink else { return };
        let row = match row {
            HostRow::Sample(sample) => return self.samples(&[sample], clock, base),
            HostRow::Series(mut series) => {
                if sink.series.len() >= SERIES_MAX && !sink.series.contains_key(&series.id.0) {
                    return;
                }
                let ours = *sink.series.entry(series.id.0).or_insert_with(|| sink.rows.new_series());
                (series.id, series.host) = (ours, sink.host);
                HostRow::Series(series)
            }
            HostRow::Info(mut info) => {
                info.host = sink.host;
                info.clock_error_us = clock.error_us();
                if let Some(name) = &sink.name {
                    info.name.clone_from(name);
                }
                HostRow::Info(info)
            }
            HostRow::Event(mut event) => {
                (event.host, event.at) = (sink.host, sink.ours(event.at, clock, base));
                HostRow::Event(event)
            }
            HostRow::Profile(mut profile) => {
                (profile.host, profile.started_at) = (sink.host, sink.ours(profile.started_at, clock, base));
                HostRow::Profile(profile)
            }
        };
        sink.rows.send(row);
    }

    /// Ends all series: from here on nothing is known of them. The agent numbers anew after a loss.
    fn end_series(&mut self) {
        let Some(sink) = &mut self.sink else { return };
        let at = sink.now();
        for (_, series) in sink.series.drain() {
            sink.rows.send(HostRow::Sample(HostSample { series, at, value: f64::NAN }));
        }
        sink.dropped_before = 0;
    }

    fn tell(&self, detail: &str) {
        let Some(sink) = &self.sink else { return };
        let event = HostEvent {
            host: sink.host,
            at: sink.now(),
            kind: HostEventKind::Watcher,
            detail: detail.to_owned(),
        };
        sink.rows.send(HostRow::Event(event));
    }
}

impl Sink {
    /// The run's time of a moment of the agent's; `base` is the moment from which the clock's own times count.
    fn ours(&self, agent: RunTime, clock: &AgentClock, base: Instant) -> RunTime {
        RunTime(clock.ours_us(agent.0).saturating_add(since(self.zero, base)))
    }

    fn now(&self) -> RunTime {
        RunTime(since(self.zero, Instant::now()))
    }
}

/// Microseconds from `zero` to `moment`.
fn since(zero: Instant, moment: Instant) -> i64 {
    let us = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    moment.checked_duration_since(zero).map_or_else(|| -us(zero.duration_since(moment)), us)
}
