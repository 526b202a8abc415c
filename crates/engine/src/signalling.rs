//! The signalling thread: one tokio runtime for the WebSockets, streams and fetches of all participants.
//!
//! Workers ask over one bounded queue; each open channel is a task with a bounded queue of its own; what happens goes
//! back to the worker's inbox, and its waker is rung.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use throng_protocol::participant::{
    Channel, ChannelError, FetchId, Message, Open, Opening, Request, Response,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::control::Waker;
use crate::sockets::http::{Pool, fetch};
use crate::sockets::{Dialler, Host, Pipe, websocket};

/// Messages that wait for a server that does not read; beyond it the channel is given up.
const CHANNEL_QUEUE: usize = 256;

/// Questions of all workers under way to the signalling thread.
const ASK_QUEUE: usize = 4096;

/// Events under way to one worker; servers wait (TCP) while it is full.
const INBOX: usize = 4096;

/// How long a closed channel may take to send what it still has.
const GOODBYE: Duration = Duration::from_secs(2);

/// A participant as the signalling thread knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SeatId {
    pub(crate) worker: u16,
    pub(crate) seat: u32,
}

/// What a worker asks for.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) seat: SeatId,
    /// The local address that the participant was dealt, if any.
    pub(crate) source: Option<IpAddr>,
    pub(crate) what: Want,
}

#[derive(Debug)]
pub(crate) enum Want {
    Open(Channel, Box<Open>),
    Send(Channel, Outgoing),
    Close(Channel),
    Fetch(FetchId, Box<Request>),
    /// The participant is gone; its channels close.
    Gone,
}

#[derive(Debug)]
pub(crate) enum Outgoing {
    Message(Message),
    Bytes(Vec<u8>),
}

/// What a worker is told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) seat: u32,
    pub(crate) what: Tidings,
}

#[derive(Debug)]
pub(crate) enum Tidings {
    Opened(Channel, Opening),
    Message(Channel, Message),
    Bytes(Channel, Vec<u8>),
    Closed(Channel, ChannelError),
    Fetched(FetchId, Box<Result<Response, ChannelError>>),
}

/// The way back to one worker.
#[derive(Clone)]
struct Back {
    inbox: mpsc::Sender<Told>,
    waker: Arc<Waker>,
    seat: u32,
}

impl Back {
    async fn tell(&self, what: Tidings) {
        // A worker that is gone needs no answer.
        let _ = self.inbox.send(Told { seat: self.seat, what }).await;
        self.waker.wake();
    }
}

/// The ends that workers hold.
pub(crate) struct Signalling {
    pub(crate) ask: mpsc::Sender<Ask>,
    pub(crate) inboxes: Vec<mpsc::Receiver<Told>>,
    pub(crate) thread: JoinHandle<()>,
}

/// Starts the thread; it ends when every sender of `ask` is gone.
pub(crate) fn start(
    dialler: Dialler,
    body_bytes_max: usize,
    wakers: &[Arc<Waker>],
) -> io::Result<Signalling> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build()?;
    let (ask, asked) = mpsc::channel(ASK_QUEUE);
    let (senders, inboxes): (Vec<_>, Vec<_>) = wakers.iter().map(|_| mpsc::channel(INBOX)).unzip();
    let workers = senders.into_iter().zip(wakers.iter().cloned()).collect();
    let switchboard =
        Switchboard { dialler: Arc::new(dialler), body_bytes_max, workers, seats: HashMap::new() };
    let thread = std::thread::Builder::new().name("signalling".into()).spawn(move || {
        runtime.block_on(switchboard.serve(asked));
        // Last goodbyes (close frames, DELETE) get a moment; a silent server does not hold the run.
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
        runtime.shutdown_timeout(Duration::from_millis(200));
    })?;
    Ok(Signalling { ask, inboxes, thread })
}

struct Switchboard {
    dialler: Arc<Dialler>,
    body_bytes_max: usize,
    workers: Vec<(mpsc::Sender<Told>, Arc<Waker>)>,
    seats: HashMap<SeatId, Lines>,
}

/// The lines of one participant.
#[derive(Default)]
struct Lines {
    channels: Vec<(Channel, mpsc::Sender<Outgoing>)>,
    pool: Pool,
}

impl Switchboard {
    async fn serve(mut self, mut asked: mpsc::Receiver<Ask>) {
        while let Some(Ask { seat, source, what }) = asked.recv().await {
            let Some((inbox, waker)) = self.workers.get(usize::from(seat.worker)) else { continue };
            let back = Back { inbox: inbox.clone(), waker: Arc::clone(waker), seat: seat.seat };
            match what {
                Want::Open(channel, open) => self.open(seat, source, channel, *open, back),
                Want::Send(channel, outgoing) => self.send(seat, channel, outgoing, back),
                Want::Close(channel) => {
                    if let Some(lines) = self.seats.get_mut(&seat) {
                        lines.channels.retain(|(open, _)| *open != channel);
                    }
                }
                Want::Fetch(id, request) => self.fetch(seat, source, id, *request, back),
                Want::Gone => {
                    self.seats.remove(&seat);
                }
            }
        }
    }

    fn open(&mut self, seat: SeatId, source: Option<IpAddr>, channel: Channel, open: Open, back: Back) {
        let (sender, outgoing) = mpsc::channel(CHANNEL_QUEUE);
        let lines = self.seats.entry(seat).or_default();
        lines.channels.retain(|(open, _)| *open != channel);
        lines.channels.push((channel, sender));
        let dialler = Arc::clone(&self.dialler);
        tokio::spawn(async move {
            if let Err(why) = serve_channel(&dialler, source, channel, open, outgoing, &back).await {
                back.tell(Tidings::Closed(channel, why)).await;
            }
        });
    }

    fn send(&mut self, seat: SeatId, channel: Channel, outgoing: Outgoing, back: Back) {
        let Some(lines) = self.seats.get_mut(&seat) else { return };
        let Some((_, sender)) = lines.channels.iter().find(|(open, _)| *open == channel) else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = sender.try_send(outgoing) {
            lines.channels.retain(|(open, _)| *open != channel);
            let why = ChannelError::Tcp(format!("the server left {CHANNEL_QUEUE} messages unread"));
            tokio::spawn(async move { back.tell(Tidings::Closed(channel, why)).await });
        }
    }

    fn fetch(&mut self, seat: SeatId, source: Option<IpAddr>, id: FetchId, request: Request, back: Back) {
        let pool = self.seats.entry(seat).or_default().pool.clone();
        let (dialler, body_bytes_max) = (Arc::clone(&self.dialler), self.body_bytes_max);
        tokio::spawn(async move {
            let result = fetch(&dialler, &pool, source, request, body_bytes_max).await;
            back.tell(Tidings::Fetched(id, Box::new(result))).await;
        });
    }
}

/// Opens a channel and carries it until either side closes; `Ok` when ours did.
async fn serve_channel(
    dialler: &Dialler,
    source: Option<IpAddr>,
    channel: Channel,
    open: Open,
    outgoing: mpsc::Receiver<Outgoing>,
    back: &Back,
) -> Result<(), ChannelError> {
    match open {
        Open::WebSocket { url, protocols, headers } => {
            let (socket, opening) = websocket::open(dialler, source, &url, &protocols, &headers).await?;
            back.tell(Tidings::Opened(channel, opening)).await;
            carry_messages(socket, channel, outgoing, back).await
        }
        Open::Stream { to, tls } => {
            let name = tls.as_deref().map(Host::parse);
            let tls = name.as_ref().map(|name| (&dialler.tls, name));
            let (pipe, opening) = dialler.dial(source, &Host::Ip(to.ip()), to.port(), tls).await?;
            back.tell(Tidings::Opened(channel, opening)).await;
            carry_bytes(pipe, channel, outgoing, back).await
        }
        // Workers own datagram sockets; one that asks here has a fault that its participant should hear of.
        Open::Datagrams { .. } => Err(ChannelError::Generator("datagrams are not signalling".into())),
    }
}

async fn carry_messages(
    mut socket: websocket::WebSocket,
    channel: Channel,
    mut outgoing: mpsc::Receiver<Outgoing>,
    back: &Back,
) -> Result<(), ChannelError> {
    loop {
        tokio::select! {
            message = socket.receive() => back.tell(Tidings::Message(channel, message?)).await,
            message = outgoing.recv() => match message {
                Some(Outgoing::Message(message)) => socket.send(message).await?,
                Some(Outgoing::Bytes(bytes)) => socket.send(Message::Binary(bytes)).await?,
                None => {
                    let _ = tokio::time::timeout(GOODBYE, socket.close()).await;
                    return Ok(());
                }
            },
        }
    }
}

async fn carry_bytes(
    pipe: Pipe,
    channel: Channel,
    mut outgoing: mpsc::Receiver<Outgoing>,
    back: &Back,
) -> Result<(), ChannelError> {
    let broken = |e: io::Error| ChannelError::Tcp(e.to_string());
    let (mut reader, mut writer) = tokio::io::split(pipe);
    let mut buffer = vec![0; 4096];
    loop {
        tokio::select! {
            read = reader.read(&mut buffer) => match read.map_err(broken)? {
                0 => return Err(ChannelError::ClosedByPeer(None)),
                read => {
                    let bytes = buffer.get(..read).unwrap_or_default().to_vec();
                    back.tell(Tidings::Bytes(channel, bytes)).await;
                }
            },
            wanted = outgoing.recv() => match wanted {
                Some(Outgoing::Bytes(bytes) | Outgoing::Message(Message::Binary(bytes))) => {
                    writer.write_all(&bytes).await.map_err(broken)?;
                    writer.flush().await.map_err(broken)?;
                }
                Some(Outgoing::Message(Message::Text(text))) => {
                    writer.write_all(text.as_bytes()).await.map_err(broken)?;
                    writer.flush().await.map_err(broken)?;
                }
                None => {
                    let _ = tokio::time::timeout(GOODBYE, writer.shutdown()).await;
                    return Ok(());
                }
            },
        }
    }
}
