//! One participant on real sockets, without the engine: for what a scenario does not have, such as
//! leaving at the end of a recording.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use throng_media::quality::WallClock;
use throng_observation::{MediaKind, Observation, Outcome, TrackCounters, TrackInterval};
use throng_protocol::participant::{
    Channel, ChannelError, Input, Open, Opening, Output, Participant, StreamPeer,
};
use throng_protocol::webrtc::{ParticipantOptions, StepTimeouts};

/// What a participant reported until its end.
pub(crate) struct Watched {
    pub(crate) outcome: Outcome,
    /// Each with its time.
    pub(crate) observed: Vec<(Instant, Observation)>,
}

impl Watched {
    /// The intervals of received tracks.
    pub(crate) fn intervals(&self, kind: MediaKind) -> impl Iterator<Item = &TrackInterval> {
        let intervals = self.observed.iter().filter_map(|(_, observation)| match observation {
            Observation::Interval(interval) => Some(&**interval),
            _ => None,
        });
        intervals.filter(move |interval| interval.kind == kind)
    }

    /// The sum of their counters.
    pub(crate) fn counters(&self, kind: MediaKind) -> TrackCounters {
        let mut sum = TrackCounters::default();
        self.intervals(kind).for_each(|interval| sum += interval.counters);
        sum
    }

    /// What broke the protocol.
    pub(crate) fn anomalies(&self) -> Vec<&str> {
        let details = self.observed.iter().filter_map(|(_, observation)| match observation {
            Observation::ProtocolAnomaly { detail, .. } => Some(detail.as_str()),
            _ => None,
        });
        details.collect()
    }
}

/// Options of a participant on loopback.
pub(crate) fn options() -> ParticipantOptions {
    let unix_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    ParticipantOptions {
        may_reach: Arc::new(|_, to| to.ip().is_loopback()),
        clock: WallClock { at: Instant::now(), unix_ns: u64::try_from(unix_ns).unwrap() },
        toward: None,
        seed: 1,
        timeouts: StepTimeouts::default(),
        is_tapped: false,
        relay_only: false,
        stun: None,
        turn: None,
    }
}

/// Drives `participant` until it ends by itself, at most for `limit`.
pub(crate) fn drive(participant: impl Participant, limit: Duration) -> Watched {
    drive_with(participant, Sockets::default(), None, limit)
}

/// Drives `participant` until it is asked to leave after `stay`, and loses one in `lose_one_in` of
/// its datagrams.
pub(crate) fn drive_lossy(
    participant: impl Participant,
    stay: Duration,
    lose_one_in: u32,
) -> Watched {
    let sockets = Sockets { lose_one_in: Some(lose_one_in), ..Sockets::default() };
    drive_with(participant, sockets, Some(stay), stay + Duration::from_secs(10))
}

fn drive_with(
    mut participant: impl Participant,
    mut sockets: Sockets,
    mut stay: Option<Duration>,
    limit: Duration,
) -> Watched {
    let began = Instant::now();
    let mut observed = Vec::new();
    participant.handle(began, Input::Start { intended_at: began });
    while began.elapsed() < limit {
        let deadline = loop {
            let now = Instant::now();
            match participant.poll_output(now) {
                Output::Open(channel, open) => sockets.open(&mut participant, channel, open),
                Output::Send(channel, transmit) => {
                    sockets.send(channel, transmit.to, &transmit.bytes);
                }
                Output::Close(channel) => sockets.close(channel),
                Output::Observed(observation) => observed.push((now, observation)),
                Output::Ended(outcome) => return Watched { outcome, observed },
                Output::Timeout(at, _) => break at,
                other => panic!("not part of RTSP: {other:?}"),
            }
        };
        if stay.take_if(|stay| began.elapsed() >= *stay).is_some() {
            participant.handle(Instant::now(), Input::Leave { others_follow: false });
            continue;
        }
        if !sockets.receive(&mut participant) {
            let wait =
                deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(1));
            std::thread::sleep(wait);
            participant.handle(Instant::now(), Input::Timeout);
        }
    }
    panic!("it has not ended within {limit:?}");
}

#[derive(Default)]
struct Sockets {
    streams: HashMap<u16, TcpStream>,
    datagrams: HashMap<u16, UdpSocket>,
    lose_one_in: Option<u32>,
    sent: u32,
}

impl Sockets {
    fn open(&mut self, participant: &mut impl Participant, channel: Channel, open: Open) {
        match open {
            Open::Stream { to: StreamPeer::Host { host, port }, tls: None } => {
                let stream = TcpStream::connect((host.as_str(), port)).unwrap();
                stream.set_nonblocking(true).unwrap();
                let opening = Opening { remote: stream.peer_addr().ok(), ..Opening::default() };
                self.streams.insert(channel.0, stream);
                participant.handle(Instant::now(), Input::Opened { channel, opening });
            }
            Open::RtpPair { rtcp, toward } => {
                let pair = std::iter::repeat_with(|| neighbours(toward)).flatten().next().unwrap();
                for (channel, socket) in [channel, rtcp].into_iter().zip(pair) {
                    socket.set_nonblocking(true).unwrap();
                    let opening = Opening { local: socket.local_addr().ok(), ..Opening::default() };
                    self.datagrams.insert(channel.0, socket);
                    participant.handle(Instant::now(), Input::Opened { channel, opening });
                }
            }
            other => panic!("not part of RTSP: {other:?}"),
        }
    }

    fn send(&mut self, channel: Channel, to: SocketAddr, bytes: &[u8]) {
        if let Some(socket) = self.datagrams.get(&channel.0) {
            self.sent += 1;
            if self.lose_one_in.is_none_or(|one_in| !self.sent.is_multiple_of(one_in)) {
                socket.send_to(bytes, to).unwrap();
            }
        } else if let Some(stream) = self.streams.get_mut(&channel.0) {
            stream.set_nonblocking(false).unwrap();
            stream.write_all(bytes).unwrap();
            stream.set_nonblocking(true).unwrap();
        }
    }

    fn close(&mut self, channel: Channel) {
        self.streams.remove(&channel.0);
        self.datagrams.remove(&channel.0);
    }

    /// Passes on what has arrived; whether anything has.
    fn receive(&mut self, participant: &mut impl Participant) -> bool {
        let mut buffer = [0; 65_536];
        let mut has_come = false;
        for (channel, stream) in &mut self.streams {
            let channel = Channel(*channel);
            match stream.read(&mut buffer) {
                Ok(0) => {
                    let why = ChannelError::ClosedByPeer(None);
                    participant.handle(Instant::now(), Input::Closed { channel, why });
                    has_come = true;
                }
                Ok(read) => {
                    participant
                        .handle(Instant::now(), Input::Bytes { channel, bytes: &buffer[..read] });
                    has_come = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        for (channel, socket) in &self.datagrams {
            while let Ok((read, source)) = socket.recv_from(&mut buffer) {
                let (channel, bytes) = (Channel(*channel), &mut buffer[..read]);
                let now = Instant::now();
                let input =
                    Input::Datagram { channel, source, local: None, arrived_at: now, bytes };
                participant.handle(now, input);
                has_come = true;
            }
        }
        has_come
    }
}

/// Sockets with neighbouring ports, the lower one even; `None` if these are taken.
fn neighbours(toward: SocketAddr) -> Option<[UdpSocket; 2]> {
    let ip = toward.ip();
    let first = UdpSocket::bind((ip, 0)).ok()?;
    let port = first.local_addr().ok()?.port();
    let second = UdpSocket::bind((ip, port.checked_add(1)?)).ok()?;
    port.is_multiple_of(2).then_some([first, second])
}
