//! Opens and closes the sockets of a participant's channels.

use std::net::SocketAddr;
use std::time::Instant;

use throng_protocol::participant::{Channel, ChannelError, Input, Opening};

use super::{ChannelSocket, Slot};
use crate::driver::collector_sender::DriverEvent;
use crate::driver::io_context::IoContext;
use crate::signalling::SignallingCommand;
use crate::sockets::{DatagramSocket, PeerAddresses};

/// Datagram sockets that one participant may hold.
const SOCKETS_MAX: usize = 512;

impl Slot {
    pub(super) fn open_sockets(
        &mut self,
        now: Instant,
        channel: Channel,
        toward: &PeerAddresses,
        io: &mut IoContext,
    ) {
        let input = match self.bind(now, channel, toward, io) {
            Ok(locals) => {
                let local = locals.first().copied();
                if let Some(address) = local {
                    io.collector.push(DriverEvent::LocalAddress { id: self.id, address });
                }
                Input::Opened { channel, opening: Opening { local, locals, ..Opening::default() } }
            }
            Err(why) => Input::Closed { channel, why },
        };
        self.participant.handle(now, input);
    }

    /// Opens sockets for RTP and RTCP, in this order.
    pub(super) fn open_pair(
        &mut self,
        now: Instant,
        channels: [Channel; 2],
        toward: SocketAddr,
        io: &mut IoContext,
    ) {
        match self.bind_pair(now, channels, toward, io) {
            Ok(locals) => {
                let [address, _] = locals;
                io.collector.push(DriverEvent::LocalAddress { id: self.id, address });
                for (channel, local) in channels.into_iter().zip(locals) {
                    let opening =
                        Opening { local: Some(local), locals: vec![local], ..Opening::default() };
                    self.participant.handle(now, Input::Opened { channel, opening });
                }
            }
            Err(why) => self.participant.handle(now, Input::Closed { channel: channels[0], why }),
        }
    }

    fn bind_pair(
        &mut self,
        now: Instant,
        channels: [Channel; 2],
        toward: SocketAddr,
        io: &mut IoContext,
    ) -> Result<[SocketAddr; 2], ChannelError> {
        if self.sockets.len() + 2 > SOCKETS_MAX
            || self.sockets.iter().any(|entry| channels.contains(&entry.channel))
        {
            return Err(ChannelError::Generator("too many channels are open".into()));
        }
        let peers = PeerAddresses { peers: vec![toward], otherwise: None, gathers: false };
        let locals = io.sources.locals(now, self.source_ip, &peers, &io.reach)?;
        let ours = |e: std::io::Error| {
            ChannelError::Generator(format!("RTP sockets toward {toward}: {e}"))
        };
        let local = *locals.first().ok_or_else(|| ChannelError::NoRoute(toward.to_string()))?;
        let pair = DatagramSocket::bind_rtp_pair(local, io.rings.ports(), io.receive_buffer_bytes)
            .map_err(ours)?;
        let addresses =
            pair.each_ref().map(|socket| socket.locals().first().copied().unwrap_or(toward));
        for (channel, socket) in channels.into_iter().zip(pair) {
            io.watch(&socket, self.key, channel, self.readiness).map_err(ours)?;
            self.sockets.push(ChannelSocket { channel, socket });
        }
        Ok(addresses)
    }

    fn bind(
        &mut self,
        now: Instant,
        channel: Channel,
        toward: &PeerAddresses,
        io: &mut IoContext,
    ) -> Result<Vec<SocketAddr>, ChannelError> {
        if self.sockets.len() >= SOCKETS_MAX
            || self.sockets.iter().any(|entry| entry.channel == channel)
        {
            return Err(ChannelError::Generator(format!(
                "channel {} is taken, or too many are open",
                channel.0
            )));
        }
        let locals = io.sources.locals(now, self.source_ip, toward, &io.reach)?;
        let ours = |e: std::io::Error| {
            let locals: Vec<_> = locals.iter().map(ToString::to_string).collect();
            ChannelError::Generator(format!("datagram socket at {}: {e}", locals.join(", ")))
        };
        let socket = DatagramSocket::bind(&locals, io.rings.ports(), io.receive_buffer_bytes)
            .map_err(ours)?;
        io.watch(&socket, self.key, channel, self.readiness).map_err(ours)?;
        let locals = socket.locals().to_vec();
        self.sockets.push(ChannelSocket { channel, socket });
        Ok(locals)
    }

    pub(super) fn close_channel(&mut self, channel: Channel, now: Instant, io: &mut IoContext) {
        self.flush(now, io);
        match self.sockets.iter().position(|entry| entry.channel == channel) {
            Some(at) => {
                let entry = self.sockets.remove(at);
                io.dismiss(&entry.socket, self.readiness);
            }
            None => self.submit(SignallingCommand::Close(channel), io),
        }
    }
}
