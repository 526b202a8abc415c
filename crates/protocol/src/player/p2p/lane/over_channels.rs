//! What a lane exchanges with peers of other processes, over data channels.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use throng_media::timing::{TimingReader, WholeSegment};
use throng_scenario::PeerEngine;

use super::{PeerLane, Shelf};
use crate::participant::Output;
use crate::player::lane::Context;
use crate::player::p2p::channels::{ChannelOptions, Channels};
use crate::player::p2p::neighbours::Arrived;
use crate::player::p2p::{Described, Id, PEERS};

/// Most bytes of the segments of a rendition that are there for peers of other processes: a live
/// stream has a few of them, a recording has hours.
const BYTES_MAX: u64 = 256 << 20;

impl PeerLane {
    /// The viewer has a socket, with these addresses, for data channels.
    pub(in crate::player) fn opened(&mut self, locals: &[SocketAddr]) {
        self.locals = Some(locals.to_vec());
        self.reach_out();
    }

    /// Makes data channels possible, where the viewer has a socket.
    pub(super) fn reach_out(&mut self) {
        let (Some(locals), Some((rendition, loader))) = (&self.locals, &mut self.loader) else {
            return;
        };
        let (config, number) = (&self.options.config, self.options.number);
        let options = ChannelOptions {
            engine: config.engine,
            swarm: format!("{}+V{rendition}", self.options.stream),
            may_reach: self.options.may_reach.clone(),
            shares: config.shares(number),
            degree_max: config.degree_max(),
        };
        let seed = config.seed ^ u64::from(number).wrapping_mul(0xd6e8_feb8_6659_fd93);
        loader.neighbours_mut().reach_out(Channels::new(options, locals.clone(), seed));
    }

    /// Describes a connection to a peer that the tracker chooses.
    pub(in crate::player) fn offer(
        &mut self,
        now: Instant,
        swarm: usize,
        offer: Id,
    ) -> Option<String> {
        self.tracked(swarm)?.neighbours_mut().channels()?.offer(now, offer)
    }

    /// Describes the answer to the offer of `peer`.
    pub(in crate::player) fn answer(
        &mut self,
        now: Instant,
        swarm: usize,
        peer: Id,
        offer: &str,
    ) -> Option<Described> {
        self.wake(now);
        Some(self.tracked(swarm)?.neighbours_mut().answer(now, peer, offer))
    }

    /// Whether it looks for more peers in a swarm: engine 4 offers nothing when it has as many as
    /// it keeps.
    pub(in crate::player) fn wants_peers(&mut self, now: Instant, swarm: usize) -> Option<bool> {
        let (engine, degree_max) = (self.options.config.engine, self.options.config.degree_max());
        let degree = self.tracked(swarm)?.neighbours_mut().degree(now);
        Some(engine != PeerEngine::V4 || degree < degree_max)
    }

    /// A datagram came to the viewer's socket.
    pub(in crate::player) fn datagram(
        &mut self,
        now: Instant,
        (source, local): (SocketAddr, Option<IpAddr>),
        bytes: &[u8],
    ) {
        if let Some((_, loader)) = &mut self.loader {
            loader.neighbours_mut().datagram(now, (source, local), bytes);
        }
    }

    /// Sends what the data channels have to send, and reports what is wrong with peers.
    pub(super) fn transmit(&mut self, context: &mut Context<'_>) {
        let Some(channels) =
            self.loader.as_mut().and_then(|(_, loader)| loader.neighbours_mut().channels())
        else {
            return;
        };
        for transmit in channels.take_transmits() {
            context.client.life.push(Output::Send(PEERS, transmit));
        }
        for problem in channels.take_problems() {
            context.client.anomaly(problem);
        }
    }

    /// Goes on with the data channels.
    pub(super) fn exchange(&mut self, now: Instant, context: &mut Context<'_>) {
        if let Some((_, loader)) = &mut self.loader {
            if self.options.config.has_any_channels() {
                loader.neighbours().membership().swarm().limit_bytes(BYTES_MAX);
            }
            loader.neighbours_mut().tick(now);
        }
        self.transmit(context);
    }

    /// Judges what has come over data channels, by its hash, and reads it.
    pub(super) fn judge(&mut self, now: Instant, shelf: &Shelf<'_>) {
        let Some((_, loader)) = &mut self.loader else { return };
        let hashes = &mut self.hashes;
        loader.neighbours_mut().tick(now);
        loader.neighbours_mut().judge(now, &mut |arrived: &Arrived| {
            let Some((segment, _)) = shelf.find(arrived.number) else { return Ok(None) };
            let media = &segment.media;
            if let Some(hashes) = hashes {
                if arrived.is_new {
                    hashes.want(now, media);
                }
                if !hashes.names(media) {
                    return Ok(None);
                }
                if !hashes.match_bytes(media, &arrived.bytes) {
                    return Err(format!(
                        "segment {} is not that of {media}: another SHA-256",
                        arrived.number
                    ));
                }
            }
            read(&arrived.bytes, shelf, segment.discontinuity)
                .map(Some)
                .map_err(|why| format!("segment {}: {why}", arrived.number))
        });
    }
}

/// Reads the timing of a segment that a peer sent.
fn read(bytes: &[u8], shelf: &Shelf<'_>, discontinuity: u64) -> Result<WholeSegment, String> {
    let mut reader = TimingReader::segment(shelf.indexes.clone(), shelf.init);
    let program = shelf.program_of(discontinuity);
    program.into_iter().for_each(|program| reader.go_on_with(program));
    reader.share_alike();
    reader.feed(bytes).and_then(|()| reader.finish()).map_err(|error| error.to_string())?;
    reader.whole().ok_or_else(|| "cannot be shared".into())
}
