//! MPEG transport streams (ISO/IEC 13818-1): every packet is looked at, by its header of four
//! bytes; most of the others go no further.

mod framing;
mod picture;
mod stream;
mod timeline;

use std::collections::VecDeque;

use super::error::{Container, DAMAGED};
use super::{MarkedFrame, TimedFrame, TimingError, TrackInfo, Want, cut};
use crate::codec::mp2t::{self, PACKET_LEN};
use crate::codec::program::{ASSOCIATION_STREAM, Section, elementary_streams, maps};
use crate::octets::u16_at;
pub(super) use framing::Framing;
use stream::{Coding, Stream};
use timeline::Timeline;

/// Bytes without a transport packet after which a file is none.
const LOST_MAX: u64 = 1 << 20;

/// Packets without data, which fill a stream up.
const NULL_STREAM: u16 = 0x1fff;

/// Streams below have tables (ISO/IEC 13818-1 table 2-3, ETSI EN 300 468 table 1).
const FIRST_MEDIA_STREAM: u16 = 0x20;

/// Bytes of streams that no table has named so far, which are kept until one does: a third of a
/// segment of 10 s at 10 Mbit/s.
const UNNAMED_LEN_MAX: usize = 4 << 20;

/// The same once a map was read: the newest of them, since the map that names them, if one does,
/// comes soon.
const UNNAMED_BY_MAP_LEN_MAX: usize = 1_400 * PACKET_LEN;

/// Streams of a program that are read.
const STREAMS_MAX: usize = 32;

/// What was wrong with a transport stream and did not keep it from being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// How often no packet began where one was due.
    pub sync_losses: u64,
    /// Bytes that were passed over to find the next one.
    pub skipped_bytes: u64,
    /// How often the continuity counter of a stream jumped.
    pub continuity_gaps: u64,
    /// Packets with the transport error indicator.
    pub damaged_packets: u64,
    /// Scrambled packets, which are not read.
    pub scrambled_packets: u64,
    /// How often no frame of audio began where one was due.
    pub audio_sync_losses: u64,
}

/// Reads one transport stream.
#[derive(Debug, Default)]
pub(super) struct Ts {
    total_bytes: Option<u64>,
    position: u64,
    framing: Framing,
    /// Bytes of the next packet, or among which it is looked for.
    pending: Vec<u8>,
    /// Packets are looked for since this offset.
    lost_at: Option<u64>,
    association: Section,
    /// The streams of program maps; the first program with media is the one that is read.
    maps: Vec<(u16, Section)>,
    program: Option<u16>,
    /// Its streams are those of the segment before, and no table of this one has named them yet.
    is_inherited: bool,
    /// All streams that the map of the program names, of media or not.
    named: Vec<u16>,
    /// Packets of streams that no table has named so far. A player goes back to them when it knows
    /// the streams, as hls.js.
    unnamed: Vec<u8>,
    tracks: Vec<TrackInfo>,
    streams: Vec<Stream>,
    /// The stream of the last packet: the next one is likely of the same.
    last_stream: usize,
    timeline: Timeline,
    frames: VecDeque<TimedFrame>,
    anomalies: Anomalies,
    rate: Rate,
}

/// The streams of a program. A segment may go on with those of the one before, and have no tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    map: u16,
    streams: Vec<(u16, Coding)>,
}

/// How many bytes pass for how much time.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    first: Option<(u64, i64)>,
    last: (u64, i64),
}

impl Ts {
    pub(super) fn new(framing: Framing, total_bytes: Option<u64>) -> Self {
        let lost_at = (framing.first > 0).then_some(0);
        Self { total_bytes, framing, lost_at, ..Self::default() }
    }

    /// Knows the streams before a table names them.
    pub(super) fn go_on_with(&mut self, program: &Program) {
        (self.program, self.is_inherited) = (Some(program.map), true);
        self.maps = vec![(program.map, Section::default())];
        self.named = program.streams.iter().map(|(pid, _)| *pid).collect();
        program.streams.iter().for_each(|(pid, coding)| self.add_stream(*pid, *coding));
    }

    /// The streams, once a table has named them.
    pub(super) fn streams(&self) -> Option<Program> {
        let streams = self.streams.iter().map(|stream| (stream.pid, stream.coding)).collect();
        Some(Program { map: self.program?, streams })
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn want(&self) -> Want {
        match self.total_bytes {
            Some(total) if self.position >= total => Want::Done,
            Some(total) => Want::Deliver(total - self.position),
            None => Want::Deliver(u64::MAX),
        }
    }

    pub(super) fn tracks(&self) -> Option<&[TrackInfo]> {
        self.program.map(|_| &self.tracks[..])
    }

    pub(super) fn anomalies(&self) -> Anomalies {
        let audio_sync_losses = self.streams.iter().map(Stream::audio_losses).sum();
        Anomalies { audio_sync_losses, ..self.anomalies }
    }

    pub(super) fn take_marked(&mut self) -> Option<MarkedFrame> {
        self.streams.iter_mut().find_map(|stream| stream.marked.take())
    }

    pub(super) fn next_frame(&mut self) -> Option<TimedFrame> {
        self.frames.pop_front()
    }

    /// Where this time is when the rest of the file has the rate of what was read: at least a
    /// second of it.
    pub(super) fn offset_for(&self, time_us: u64) -> Option<(u64, u64)> {
        let total = self.total_bytes?;
        let (first, last) = (self.rate.first?, self.rate.last);
        let (bytes, us) = (last.0.checked_sub(first.0)?, last.1.checked_sub(first.1)?);
        let ahead = i64::try_from(time_us).ok()?.saturating_sub(first.1).max(0);
        if us < 1_000_000 {
            return None;
        }
        let offset = i128::from(ahead) * i128::from(bytes) / i128::from(us);
        let offset = u64::try_from(offset).ok()?.min(total.saturating_sub(1));
        Some((offset - offset % self.framing.stride as u64, time_us))
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), TimingError> {
        while !bytes.is_empty() {
            if self.lost_at.is_some() || !self.pending.is_empty() {
                let wanted = if self.lost_at.is_some() {
                    self.framing.search_len()
                } else {
                    self.framing.stride
                };
                let taken = wanted.saturating_sub(self.pending.len()).min(bytes.len());
                self.pending.extend_from_slice(&bytes[..taken]);
                self.position += taken as u64;
                bytes = &bytes[taken..];
                if self.pending.len() >= wanted {
                    self.pending()?;
                }
                continue;
            }
            // The usual case: whole packets, without a copy.
            let Some(packet) = bytes.get(..self.framing.stride) else {
                self.position += bytes.len() as u64;
                self.pending.extend_from_slice(bytes);
                return Ok(());
            };
            let packet = self.framing.packet(packet);
            if packet.first() != Some(&mp2t::SYNC) {
                self.lose();
                continue;
            }
            self.packet(packet);
            self.position += self.framing.stride as u64;
            bytes = &bytes[self.framing.stride..];
        }
        Ok(())
    }

    fn lose(&mut self) {
        self.anomalies.sync_losses += 1;
        self.lost_at = Some(self.position - self.pending.len() as u64);
    }

    /// A packet was put together from pieces, or enough bytes to look for one.
    fn pending(&mut self) -> Result<(), TimingError> {
        if let Some(lost_at) = self.lost_at {
            let found = self.framing.search(&self.pending);
            let passed = found.unwrap_or(self.pending.len() - self.framing.search_len() / 2);
            self.anomalies.skipped_bytes += passed as u64;
            self.pending.drain(..passed);
            if found.is_some() {
                self.lost_at = None;
            } else if self.position - lost_at > LOST_MAX {
                return Err(TimingError {
                    container: Container::TransportStream,
                    place: "packet".into(),
                    offset: lost_at,
                    problem: "does not begin with a sync byte, nor does one in the next mebibyte"
                        .into(),
                    hint: DAMAGED,
                });
            }
        }
        let stride = self.framing.stride;
        while self.lost_at.is_none() && self.pending.len() >= stride {
            let pending = std::mem::take(&mut self.pending);
            let packet = self.framing.packet(pending.get(..stride).unwrap_or_default());
            let is_packet = packet.first() == Some(&mp2t::SYNC);
            if is_packet {
                self.packet(packet);
            }
            self.pending = pending;
            if is_packet {
                self.pending.drain(..stride);
            } else {
                self.lose();
            }
        }
        Ok(())
    }

    /// Takes one transport packet, which begins with a sync byte.
    #[inline]
    fn packet(&mut self, bytes: &[u8]) {
        let &[_, flags, low, control, ..] = bytes else { return };
        let pid = u16::from_be_bytes([flags & 0x1f, low]);
        if pid == NULL_STREAM {
            return;
        }
        if flags & 0x80 != 0 {
            self.anomalies.damaged_packets += 1;
            return;
        }
        let stream = match self.streams.get(self.last_stream) {
            Some(stream) if stream.pid == pid => Some(self.last_stream),
            _ => self.streams.iter().position(|stream| stream.pid == pid),
        };
        let is_table = stream.is_none()
            && (pid == ASSOCIATION_STREAM || self.maps.iter().any(|(map, _)| *map == pid));
        if stream.is_none() && !is_table {
            return self.keep_unnamed(pid, bytes);
        }
        if control & 0xc0 != 0 {
            self.anomalies.scrambled_packets += 1;
            return;
        }
        let Some(packet) = mp2t::packet(bytes) else { return };
        let Some(number) = stream else { return self.table(&packet) };
        self.last_stream = number;
        let Some(stream) = self.streams.get_mut(number) else { return };
        let before = self.frames.len();
        let missing = stream.packet(&packet, &mut self.timeline, &mut self.frames);
        self.anomalies.continuity_gaps += u64::from(missing > 0);
        if let Some(frame) = self.frames.back().filter(|_| self.frames.len() > before) {
            stream.tell_size(&mut self.tracks);
            let at = (self.position, frame.decode_us);
            self.rate.first.get_or_insert(at);
            self.rate.last = at;
        }
    }

    /// Keeps a packet of a stream that the program may turn out to have.
    fn keep_unnamed(&mut self, pid: u16, bytes: &[u8]) {
        // Of several programs one is read: most streams are of the others.
        let is_wanted = pid >= FIRST_MEDIA_STREAM && self.maps.len() <= 1;
        if !is_wanted || self.named.contains(&pid) || mp2t::packet(bytes).is_none() {
            return;
        }
        if self.program.is_some() && !self.is_inherited {
            if self.unnamed.len() >= UNNAMED_BY_MAP_LEN_MAX {
                self.unnamed.drain(..UNNAMED_BY_MAP_LEN_MAX / 2);
            }
        } else if self.unnamed.len() >= UNNAMED_LEN_MAX {
            return;
        }
        self.unnamed.extend_from_slice(bytes);
    }

    /// Goes back to the packets of streams that are known by now.
    fn read_unnamed(&mut self) {
        let unnamed = std::mem::take(&mut self.unnamed);
        for packet in unnamed.chunks_exact(PACKET_LEN) {
            let pid = u16_at(packet, 1).unwrap_or_default() & 0x1fff;
            if self.named.contains(&pid) {
                self.packet(packet);
            } else {
                self.unnamed.extend_from_slice(packet);
            }
        }
        let too_many = self.unnamed.len().saturating_sub(UNNAMED_BY_MAP_LEN_MAX);
        self.unnamed.drain(..too_many);
        self.unnamed.shrink_to(UNNAMED_BY_MAP_LEN_MAX);
    }

    /// Takes a packet of program association or of a program map.
    fn table(&mut self, packet: &mp2t::TransportPacket<'_>) {
        if packet.stream == ASSOCIATION_STREAM {
            for section in self.association.packet(packet) {
                // What is no association, such as zeros that fill the packet, says nothing.
                let Some(maps) = maps(&section) else { continue };
                if self.is_inherited && self.program.is_some_and(|map| !maps.contains(&map)) {
                    self.forget_program();
                }
                // An association of several sections has some programs in each; those that leave
                // cost nothing.
                for map in maps {
                    if self.maps.len() < STREAMS_MAX
                        && !self.maps.iter().any(|(known, _)| *known == map)
                    {
                        self.maps.push((map, Section::default()));
                    }
                }
            }
            return;
        }
        let Some((map, section)) = self.maps.iter_mut().find(|(map, _)| *map == packet.stream)
        else {
            return;
        };
        let map = *map;
        if self.program.is_some_and(|program| program != map) {
            return;
        }
        for section in section.packet(packet) {
            self.program_map(map, &section);
        }
    }

    /// The segment before was of another program.
    fn forget_program(&mut self) {
        (self.program, self.is_inherited) = (None, false);
        self.maps.clear();
        self.named.clear();
        self.streams.clear();
        self.tracks.clear();
    }

    /// Takes a whole program map section: a new version of it may add and remove streams.
    fn program_map(&mut self, map: u16, section: &[u8]) {
        let Some(streams) = elementary_streams(section) else { return };
        let all: Vec<_> = streams.collect();
        let streams: Vec<_> = all
            .iter()
            .filter_map(|stream| Some((stream.stream, Coding::of(stream)?)))
            .take(STREAMS_MAX)
            .collect();
        if streams.is_empty() {
            return; // a program of data; another may have media
        }
        let is_same = |known: &Stream| streams.contains(&(known.pid, known.coding));
        if self.is_inherited && !self.streams.iter().all(is_same) {
            // Its tracks are numbered anew, as those of the segment before were.
            self.forget_program();
            self.maps.push((map, Section::default()));
        }
        (self.program, self.is_inherited) = (Some(map), false);
        let named = all.iter().map(|stream| stream.stream).collect();
        let has_other_names = std::mem::replace(&mut self.named, named) != self.named;
        let frames = &mut self.frames;
        self.streams.retain_mut(|known| {
            let stays = streams.contains(&(known.pid, known.coding));
            if !stays {
                known.finish(frames);
            }
            stays
        });
        streams.into_iter().for_each(|(pid, coding)| self.add_stream(pid, coding));
        // The same map comes several times a second.
        if has_other_names && !self.unnamed.is_empty() {
            self.read_unnamed();
        }
    }

    fn add_stream(&mut self, pid: u16, coding: Coding) {
        let is_known = self.streams.iter().any(|known| known.pid == pid);
        if !is_known && self.tracks.len() < usize::from(u16::MAX) {
            self.streams.push(Stream::new(pid, coding, self.tracks.len() as u16));
            self.tracks.push(coding.info());
        }
    }

    pub(super) fn jumped(&mut self, offset: u64) {
        self.position = offset;
        self.pending.clear();
        self.unnamed.clear();
        self.lost_at = Some(offset);
        self.association = Section::default();
        self.maps.iter_mut().for_each(|(_, section)| *section = Section::default());
        self.streams.iter_mut().for_each(Stream::restart);
    }

    pub(super) fn finish(&mut self) -> Result<(), TimingError> {
        let result = self.end();
        self.unnamed = Vec::new();
        result
    }

    fn end(&mut self) -> Result<(), TimingError> {
        let error = |place: &str, offset| Err(cut(Container::TransportStream, place, offset));
        if self.lost_at.is_some() {
            // The last packets of a file have none after them to be recognised by.
            let found = self.framing.search_to_end(&self.pending);
            self.anomalies.skipped_bytes += found.unwrap_or(self.pending.len()) as u64;
            self.pending.drain(..found.unwrap_or(self.pending.len()));
            self.lost_at = None;
            self.pending()?;
            if self.lost_at.take().is_some() {
                self.pending.clear();
            }
        }
        // The tail of 204 bytes, or of the last 192, may be missing.
        if self.pending.len() >= self.framing.lead + PACKET_LEN {
            self.pending.resize(self.framing.stride, 0);
            self.pending()?;
        }
        let is_cut = !self.pending.is_empty();
        let mut inside = None;
        for stream in &mut self.streams {
            if !stream.finish(&mut self.frames) {
                inside.get_or_insert(stream.pid);
            }
            stream.tell_size(&mut self.tracks);
        }
        if self.program.is_none() {
            return Err(TimingError {
                container: Container::TransportStream,
                place: "program map".into(),
                offset: self.position,
                problem: "never came".into(),
                hint: "a transport stream without PAT and PMT, or with data only, cannot be played",
            });
        }
        match inside {
            _ if is_cut => error("packet", self.position - self.pending.len() as u64),
            Some(pid) => error(&format!("frame of stream {pid}"), self.position),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
