//! WebSockets, byte streams, processes, HTTP fetches and downloads of the participants of one
//! thread.
//!
//! The event loop submits commands; each open channel is a task with a queue of bounded size;
//! events come back through the loop's inbox. Tasks run on the same thread while the loop waits, so
//! that no message wakes another thread: such wake-ups were most of a join's cost in the kernel.

mod downloads;
pub(crate) use downloads::Serial;

mod process;
use process::Process;

mod send_queue;
use send_queue::{SendQueue, Unsent, send_queue};

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_protocol::participant::{
    Channel, ChannelError, Demand, FetchId, HttpVersion, Message, Open, Opening, Request, Response,
    StreamPeer,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::requests::{OpenRequest, RequestTable};
use crate::sockets::http::{DownloadPart, Pool, download, fetch};
use crate::sockets::{Dialer, Host, websocket};
use crate::upgrades::{Upgrade, Upgrades};
use downloads::{Downloads, PartSender};

/// Capacity of a thread's inbox, events; while it is full, TCP holds the servers back.
const INBOX: usize = 4096;

/// A write that takes so long has waited for the peer.
const BLOCKED_MIN: Duration = Duration::from_millis(20);

/// How long a closed channel may take to send its queued messages.
const GOODBYE: Duration = Duration::from_secs(2);

/// A command of a participant.
#[derive(Debug)]
pub(crate) enum SignallingCommand {
    Open(Channel, Box<Open>),
    Send(Channel, Outgoing),
    Close(Channel),
    Fetch(FetchId, Box<Request>),
    Download(FetchId, Box<Request>, HttpVersion),
    Demand(FetchId, Demand),
    Cancel(FetchId),
    /// The participant has ended: its channels close, its downloads end. Fetches are completed,
    /// such as the DELETE of a session.
    CloseAll,
}

#[derive(Debug)]
pub(crate) enum Outgoing {
    Message(Message),
    Bytes(Vec<u8>),
}

impl Outgoing {
    /// Bytes of its payload.
    fn len(&self) -> usize {
        match self {
            Self::Message(Message::Text(text)) => text.len(),
            Self::Message(Message::Binary(bytes)) | Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn into_message(self) -> Message {
        match self {
            Self::Message(message) => message,
            Self::Bytes(bytes) => Message::Binary(bytes),
        }
    }
}

/// A signalling event for the participant in a slot.
#[derive(Debug)]
pub(crate) struct SlotEvent {
    pub(crate) slot: u32,
    pub(crate) what: SignallingEvent,
}

#[derive(Debug)]
pub(crate) enum SignallingEvent {
    Opened(Channel, Box<Opening>),
    Message(Channel, Message),
    Bytes(Channel, Vec<u8>),
    Blocked(Channel, Duration),
    Closed(Channel, ChannelError),
    Fetched(FetchId, Box<Result<Response, ChannelError>>),
    Download(FetchId, Serial, DownloadPart),
}

/// Sends events to one slot.
#[derive(Clone)]
struct EventSender {
    inbox: mpsc::Sender<SlotEvent>,
    slot: u32,
}

impl EventSender {
    async fn send(&self, what: SignallingEvent) {
        // An event loop that has ended needs no event.
        let _ = self.inbox.send(SlotEvent { slot: self.slot, what }).await;
    }

    /// Sends where waiting is impossible; a full inbox loses the event.
    fn try_send(&self, what: SignallingEvent) {
        let _ = self.inbox.try_send(SlotEvent { slot: self.slot, what });
    }
}

/// The signalling channels of one thread's participants.
pub(crate) struct SignallingChannels {
    dialer: Arc<Dialer>,
    body_bytes_max: usize,
    inbox: mpsc::Sender<SlotEvent>,
    slots: HashMap<u32, SlotChannels>,
    /// Downloads that have ended since they were last taken.
    requests: RequestTable,
    upgrades: Upgrades,
}

/// The channels and idle HTTP connections of one participant.
struct SlotChannels {
    dialer: Arc<Dialer>,
    channels: Vec<(Channel, SendQueue)>,
    downloads: Downloads,
    pool: Pool,
}

/// Those of the participant in `slot`, which begins with none.
fn of_slot<'a>(
    slots: &'a mut HashMap<u32, SlotChannels>,
    dialer: &Dialer,
    slot: u32,
) -> &'a mut SlotChannels {
    slots.entry(slot).or_insert_with(|| SlotChannels {
        dialer: Arc::new(dialer.of_one()),
        channels: Vec::new(),
        downloads: Downloads::default(),
        pool: Pool::default(),
    })
}

impl SignallingChannels {
    /// No channels yet, and the inbox that receives their events.
    pub(crate) fn new(
        dialer: Arc<Dialer>,
        body_bytes_max: usize,
    ) -> (Self, mpsc::Receiver<SlotEvent>) {
        let (inbox, events) = mpsc::channel(INBOX);
        (
            Self {
                dialer,
                body_bytes_max,
                inbox,
                slots: HashMap::new(),
                requests: RequestTable::default(),
                upgrades: Upgrades::default(),
            },
            events,
        )
    }

    /// Performs a command of the participant in `slot`, whose local address is `source`. Needs a
    /// runtime.
    pub(crate) fn submit(&mut self, slot: u32, source: Option<IpAddr>, want: SignallingCommand) {
        match want {
            SignallingCommand::Open(channel, open) => self.open(slot, source, channel, *open),
            SignallingCommand::Send(channel, outgoing) => self.send(slot, channel, outgoing),
            SignallingCommand::Close(channel) => {
                if let Some(slot_channels) = self.slots.get_mut(&slot) {
                    slot_channels.channels.retain(|(open, _)| *open != channel);
                }
            }
            SignallingCommand::Fetch(id, request) => self.fetch(slot, source, id, *request),
            SignallingCommand::Download(id, request, version) => {
                self.download(slot, source, id, request, version);
            }
            SignallingCommand::Demand(id, demand) => {
                if let Some(slot_channels) = self.slots.get(&slot) {
                    slot_channels.downloads.demand(id, demand);
                }
            }
            SignallingCommand::Cancel(id) => {
                if let Some(slot_channels) = self.slots.get_mut(&slot) {
                    slot_channels.downloads.cancel(id, &mut self.requests);
                }
            }
            SignallingCommand::CloseAll => {
                if let Some(mut slot_channels) = self.slots.remove(&slot) {
                    slot_channels.downloads.cancel_all(&mut self.requests);
                }
            }
        }
    }

    /// Whether an event of a download concerns the participant in `slot`: not if it has cancelled
    /// the download.
    pub(crate) fn accepts(
        &mut self,
        slot: u32,
        id: FetchId,
        serial: Serial,
        part: &DownloadPart,
    ) -> bool {
        let Self { slots, requests, .. } = self;
        slots.get_mut(&slot).is_some_and(|slot| slot.downloads.accepts(id, serial, part, requests))
    }

    /// The requests of downloads that have ended since the last call, and those for WebSockets.
    pub(crate) fn take_requests(&mut self) -> RequestTable {
        let mut requests = std::mem::take(&mut self.requests);
        requests.merge(self.upgrades.take());
        requests
    }

    /// Closes all channels; their tasks say goodbye while the thread waits.
    pub(crate) fn close_all(&mut self) {
        for mut channels in std::mem::take(&mut self.slots).into_values() {
            channels.downloads.cancel_all(&mut self.requests);
        }
    }

    fn events(&self, slot: u32) -> EventSender {
        EventSender { inbox: self.inbox.clone(), slot }
    }

    fn open(&mut self, slot: u32, source: Option<IpAddr>, channel: Channel, open: Open) {
        let events = self.events(slot);
        let (sender, outgoing) = send_queue();
        let slot_channels = of_slot(&mut self.slots, &self.dialer, slot);
        slot_channels.channels.retain(|(open, _)| *open != channel);
        slot_channels.channels.push((channel, sender));
        let (dialer, upgrades) = (Arc::clone(&slot_channels.dialer), self.upgrades.clone());
        tokio::spawn(async move {
            let served =
                serve_channel((&dialer, &upgrades), source, channel, open, outgoing, &events).await;
            if let Err(why) = served {
                events.send(SignallingEvent::Closed(channel, why)).await;
            }
        });
    }

    fn send(&mut self, slot: u32, channel: Channel, outgoing: Outgoing) {
        let events = self.events(slot);
        let Some(slot_channels) = self.slots.get_mut(&slot) else { return };
        let Some((_, sender)) =
            slot_channels.channels.iter_mut().find(|(open, _)| *open == channel)
        else {
            return;
        };
        if let Err(full) = sender.push(outgoing) {
            slot_channels.channels.retain(|(open, _)| *open != channel);
            let why = ChannelError::Tcp(full.to_string());
            tokio::spawn(async move { events.send(SignallingEvent::Closed(channel, why)).await });
        }
    }

    fn fetch(&mut self, slot: u32, source: Option<IpAddr>, id: FetchId, request: Request) {
        let events = self.events(slot);
        let slot_channels = of_slot(&mut self.slots, &self.dialer, slot);
        let (dialer, pool) = (Arc::clone(&slot_channels.dialer), slot_channels.pool.clone());
        let body_bytes_max = self.body_bytes_max;
        tokio::spawn(async move {
            let result = fetch(&dialer, &pool, source, request, body_bytes_max).await;
            events.send(SignallingEvent::Fetched(id, Box::new(result))).await;
        });
    }

    fn download(
        &mut self,
        slot: u32,
        source: Option<IpAddr>,
        id: FetchId,
        request: Box<Request>,
        version: HttpVersion,
    ) {
        let events = self.events(slot);
        let SlotChannels { dialer, downloads, pool, .. } =
            of_slot(&mut self.slots, &self.dialer, slot);
        let (dialer, pool) = (Arc::clone(dialer), pool.clone());
        let open = OpenRequest::new(&request.head, Instant::now());
        downloads.begin(id, open, &mut self.requests, |serial, demands| {
            let parts = PartSender::new(events, id, serial);
            let task = async move {
                download(&dialer, &pool, source, &request, version, &demands, &parts).await;
            };
            tokio::spawn(task).abort_handle()
        });
    }
}

/// Opens a channel and serves it until either side closes it; `Ok` if throng closed it.
async fn serve_channel(
    (dialer, upgrades): (&Dialer, &Upgrades),
    source: Option<IpAddr>,
    channel: Channel,
    open: Open,
    outgoing: Unsent,
    events: &EventSender,
) -> Result<(), ChannelError> {
    match open {
        Open::WebSocket { url, protocols, headers } => {
            // Opening needs several times the memory of serving, and a task keeps room for its
            // largest state.
            let mut upgrade = upgrades.begin(&url);
            let opened =
                Box::pin(websocket::open(dialer, source, &url, &protocols, &headers)).await;
            upgrade.answered(opened.as_ref().map(|_| ()));
            let (mut socket, opening) = opened?;
            events.send(SignallingEvent::Opened(channel, Box::new(opening))).await;
            carry_messages((&mut socket, &mut upgrade), channel, outgoing, events).await
        }
        Open::Stream { to, tls } => {
            let name = tls.as_deref().map(Host::parse);
            let tls = name.as_ref().map(|name| (&dialer.tls, name));
            let (host, port) = match &to {
                StreamPeer::Address(address) => (Host::Ip(address.ip()), address.port()),
                StreamPeer::Host { host, port } => (Host::parse(host), *port),
            };
            let (pipe, opening) = Box::pin(dialer.dial(source, &host, port, tls)).await?;
            events.send(SignallingEvent::Opened(channel, Box::new(opening))).await;
            let (reader, writer) = tokio::io::split(pipe);
            carry_bytes((reader, writer), channel, outgoing, events).await
        }
        Open::Process { program, arguments, told, chosen } => {
            let mut process = Process::start(program, &arguments, told.as_ref())?;
            chosen.into_iter().for_each(|address| dialer.chosen.add(address));
            events.send(SignallingEvent::Opened(channel, Box::default())).await;
            let carried = carry_bytes(process.pipes()?, channel, outgoing, events).await;
            process.end(carried, GOODBYE).await
        }
        // Datagram sockets belong to the event loop: a defect, which the participant reports.
        Open::Datagrams { .. } | Open::RtpPair { .. } => {
            Err(ChannelError::Generator("datagrams are not signalling".into()))
        }
    }
}

async fn carry_messages(
    (socket, upgrade): (&mut websocket::WebSocket, &mut Upgrade),
    channel: Channel,
    mut outgoing: Unsent,
    events: &EventSender,
) -> Result<(), ChannelError> {
    loop {
        tokio::select! {
            message = socket.receive() => {
                let message = message?;
                upgrade.received(match &message {
                    Message::Text(text) => text.len(),
                    Message::Binary(bytes) => bytes.len(),
                });
                events.send(SignallingEvent::Message(channel, message)).await;
            }
            first = outgoing.next() => {
                let Some(first) = first else {
                    // The run may end before the server has answered the close frame.
                    upgrade.count_received();
                    let _ = tokio::time::timeout(GOODBYE, socket.close()).await;
                    return Ok(());
                };
                socket.feed(first.into_message()).await?;
                // Messages sent together (an answer and the end of candidates) go into one segment.
                while let Some(more) = outgoing.try_next() {
                    socket.feed(more.into_message()).await?;
                }
                socket.flush().await?;
            }
        }
    }
}

async fn carry_bytes(
    (mut reader, mut writer): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    channel: Channel,
    mut outgoing: Unsent,
    events: &EventSender,
) -> Result<(), ChannelError> {
    let broken = |e: io::Error| ChannelError::Tcp(e.to_string());
    let mut buffer = vec![0; 4096];
    loop {
        tokio::select! {
            read = reader.read(&mut buffer) => match read.map_err(broken)? {
                0 => return Err(ChannelError::ClosedByPeer(None)),
                read => {
                    let bytes = buffer.get(..read).unwrap_or_default().to_vec();
                    events.send(SignallingEvent::Bytes(channel, bytes)).await;
                }
            },
            wanted = outgoing.next() => {
                let bytes = match wanted {
                    Some(Outgoing::Bytes(bytes) | Outgoing::Message(Message::Binary(bytes))) => {
                        bytes
                    }
                    Some(Outgoing::Message(Message::Text(text))) => text.into_bytes(),
                    None => {
                        let _ = tokio::time::timeout(GOODBYE, writer.shutdown()).await;
                        return Ok(());
                    }
                };
                let began = Instant::now();
                writer.write_all(&bytes).await.map_err(broken)?;
                writer.flush().await.map_err(broken)?;
                let waited = began.elapsed();
                if waited >= BLOCKED_MIN {
                    events.send(SignallingEvent::Blocked(channel, waited)).await;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
