//! What the participant sends on its channels; datagrams are gathered.

use std::time::Instant;

use throng_net::SEND_BATCH;
use throng_protocol::participant::{Channel, Transmit};

use super::Slot;
use crate::driver::collector_sender::DriverEvent;
use crate::driver::io_context::{IoContext, header_bytes};
use crate::signalling::{Outgoing, SignallingCommand};
use crate::sockets::SendResult;

impl Slot {
    pub(super) fn send(
        &mut self,
        channel: Channel,
        transmit: Transmit,
        now: Instant,
        io: &mut IoContext,
    ) {
        let Some(at) = self.sockets.iter().position(|entry| entry.channel == channel) else {
            let outgoing = Outgoing::Bytes(transmit.bytes);
            return self.submit(SignallingCommand::Send(channel, outgoing), io);
        };
        let is_detour = self.sockets.get_mut(at).is_some_and(|entry| {
            entry.socket.is_detour(transmit.from, transmit.to, now, &mut io.sources)
        });
        if is_detour {
            return;
        }
        if io.outgoing.len() >= SEND_BATCH
            || io.outgoing.last().is_some_and(|(last, _)| *last != at)
        {
            self.flush(now, io);
        }
        io.outgoing.push((at, transmit));
    }

    /// Sends the gathered datagrams; all belong to one socket.
    pub(super) fn flush(&mut self, now: Instant, io: &mut IoContext) {
        let Some(entry) = io.outgoing.first().and_then(|(at, _)| self.sockets.get_mut(*at)) else {
            io.outgoing.clear();
            return;
        };
        let (id, at) = (self.id, now);
        if let [(_, only)] = io.outgoing.as_slice() {
            let to = only.to;
            match entry.socket.send(to, only.from, &only.bytes, &io.reach) {
                SendResult::Sent => io.sent_bytes += only.bytes.len() as u64 + header_bytes(to),
                SendResult::BufferFull => io.drops.sent += 1,
                SendResult::LoopbackOnly => {}
                SendResult::Unreachable(why) => {
                    io.collector.push(DriverEvent::UnreachableSend { id, at, to, why });
                }
                SendResult::Refused => io.collector.push(DriverEvent::RefusedSend { id, at, to }),
            }
        } else {
            let mut datagrams = Vec::with_capacity(io.outgoing.len());
            for (_, transmit) in &io.outgoing {
                if entry.socket.permits(transmit.to, &io.reach) {
                    io.sent_bytes += transmit.bytes.len() as u64 + header_bytes(transmit.to);
                    datagrams.push(entry.socket.outgoing(
                        transmit.to,
                        transmit.from,
                        &transmit.bytes,
                    ));
                } else {
                    io.collector.push(DriverEvent::RefusedSend { id, at, to: transmit.to });
                }
            }
            entry.socket.send_all(&datagrams, |to, bytes, why| {
                io.sent_bytes = io.sent_bytes.saturating_sub(bytes.len() as u64 + header_bytes(to));
                match why {
                    SendResult::LoopbackOnly => {}
                    SendResult::Unreachable(why) => {
                        io.collector.push(DriverEvent::UnreachableSend { id, at, to, why });
                    }
                    _ => io.drops.sent += 1,
                }
            });
        }
        io.outgoing.clear();
    }
}
