//! Which stream of an MPEG transport stream is its video: program association and program map
//! sections (ISO/IEC 13818-1 sections 2.4.4.3 and 2.4.4.8).

use super::mp2t::TransportPacket;
use crate::octets::{u16_at, u32_at};

/// The stream of the association sections.
pub(crate) const ASSOCIATION_STREAM: u16 = 0;
const ASSOCIATION: u8 = 0x00;
const MAP: u8 = 0x02;

/// Section length, header and checksum; a section has at most 1024 bytes.
const SECTION_LEN_MAX: usize = 1024;

/// Programs looked at; a stream on a network that media servers feed has one.
const PROGRAMS_MAX: usize = 8;

/// How a video stream is coded, as far as its headers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VideoCoding {
    /// MPEG-1 or MPEG-2 video.
    Mpeg,
    /// MPEG-4 Visual.
    Mpeg4Visual,
    /// H.264.
    H264,
    /// H.265.
    H265,
    /// One whose headers are not read.
    Other,
}

impl VideoCoding {
    /// The coding of a stream type (table 2-34); `None` when it is not video.
    pub(crate) fn of(stream_type: u8) -> Option<Self> {
        match stream_type {
            0x01 | 0x02 => Some(Self::Mpeg),
            0x10 => Some(Self::Mpeg4Visual),
            0x1b => Some(Self::H264),
            0x24 => Some(Self::H265),
            0x33 => Some(Self::Other), // H.266
            _ => None,
        }
    }
}

/// Reads the sections of a transport stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs {
    association: Section,
    /// The stream of each program's map, and the section in it.
    maps: Vec<(u16, Section)>,
    /// The first program map with video: its stream, and what it says.
    video: Option<(u16, (u16, VideoCoding))>,
}

impl Programs {
    /// The first video stream, once its program map was seen.
    pub(crate) fn video(&self) -> Option<(u16, VideoCoding)> {
        self.video.map(|(_, video)| video)
    }

    /// Takes a transport packet; those of other streams than sections are ignored.
    pub(crate) fn packet(&mut self, packet: &TransportPacket<'_>) {
        if packet.stream == ASSOCIATION_STREAM {
            for section in self.association.packet(packet) {
                // What is no association, such as zeros that fill the packet, says nothing.
                let Some(maps) = maps(&section) else { continue };
                self.maps.retain(|(stream, _)| maps.contains(stream));
                for stream in maps {
                    if !self.maps.iter().any(|(known, _)| *known == stream) {
                        self.maps.push((stream, Section::default()));
                    }
                }
                self.video =
                    self.video.filter(|(map, _)| self.maps.iter().any(|(known, _)| known == map));
            }
        } else if let Some((stream, section)) =
            self.maps.iter_mut().find(|(map, _)| *map == packet.stream)
            && self.video.is_none_or(|(map, _)| map == *stream)
        {
            for section in section.packet(packet) {
                if elementary_streams(&section).is_some() {
                    self.video = video(&section).map(|video| (*stream, video));
                }
            }
        }
    }
}

/// The streams with the maps of the programs of a whole association section.
pub(crate) fn maps(section: &[u8]) -> Option<Vec<u16>> {
    let programs = body(section, ASSOCIATION)?.chunks_exact(4).filter_map(|entry| {
        let (program, stream) = (u16_at(entry, 0)?, u16_at(entry, 2)? & 0x1fff);
        (program != 0).then_some(stream) // 0 is the network's own
    });
    Some(programs.take(PROGRAMS_MAX).collect())
}

/// The first video stream of a program.
fn video(section: &[u8]) -> Option<(u16, VideoCoding)> {
    elementary_streams(section)?
        .find_map(|found| Some((found.stream, VideoCoding::of(found.stream_type)?)))
}

/// A stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementaryStream<'a> {
    /// What it carries (ISO/IEC 13818-1 table 2-34).
    pub(crate) stream_type: u8,
    /// Its PID.
    pub(crate) stream: u16,
    /// Its descriptors, which say more.
    pub(crate) descriptors: &'a [u8],
}

/// The streams that a whole program map section names; `None` when it is damaged or not in force.
pub(crate) fn elementary_streams(
    section: &[u8],
) -> Option<impl Iterator<Item = ElementaryStream<'_>>> {
    let body = body(section, MAP)?;
    let descriptors = usize::from(u16_at(body, 2)? & 0x0fff);
    let mut rest = body.get(4 + descriptors..)?;
    Some(std::iter::from_fn(move || {
        let (stream, len) = (u16_at(rest, 1)? & 0x1fff, usize::from(u16_at(rest, 3)? & 0x0fff));
        let stream_type = *rest.first()?;
        let (descriptors, after) = rest.get(5..)?.split_at_checked(len)?;
        rest = after;
        Some(ElementaryStream { stream_type, stream, descriptors })
    }))
}

/// What a whole section of this table says, when it is in force now and undamaged.
fn body(section: &[u8], table: u8) -> Option<&[u8]> {
    let is_current = section.get(5)? & 1 != 0;
    let end = section.len().checked_sub(4)?;
    let fits = *section.first()? == table
        && is_current
        && checksum(section.get(..end)?) == u32_at(section, end)?;
    if fits { section.get(8..end) } else { None }
}

/// CRC-32 of annex A, without reflection.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte) << 24, |sum, _| {
            if sum & 1 << 31 == 0 { sum << 1 } else { sum << 1 ^ 0x04c1_1db7 }
        })
    })
}

/// Sections that may be spread over several transport packets, or share one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    bytes: Vec<u8>,
}

impl Section {
    /// The sections that this packet completes: mostly none or one.
    pub(crate) fn packet(&mut self, packet: &TransportPacket<'_>) -> Vec<Vec<u8>> {
        let mut data = packet.data;
        let mut sections = Vec::new();
        if packet.starts_unit {
            // The first byte is the number of bytes before the section, which end the one before.
            let Some((&before, rest)) = data.split_first() else { return sections };
            let Some((before, rest)) = rest.split_at_checked(usize::from(before)) else {
                return sections;
            };
            if !self.bytes.is_empty() {
                self.bytes.extend_from_slice(before);
                sections.extend(self.next());
            }
            self.bytes.clear();
            data = rest;
        } else if self.bytes.is_empty() {
            return sections;
        }
        self.bytes.extend_from_slice(data);
        sections.extend(std::iter::from_fn(|| self.next()));
        sections
    }

    /// The first section, when all of it is there.
    fn next(&mut self) -> Option<Vec<u8>> {
        // Stuffing fills the packet after the last section.
        if self.bytes.first() == Some(&0xff) {
            self.bytes.clear();
        }
        let len = 3 + usize::from(u16_at(&self.bytes, 1)? & 0x0fff);
        if len > SECTION_LEN_MAX {
            self.bytes.clear();
        }
        let section = self.bytes.get(..len)?.to_vec();
        self.bytes.drain(..len);
        Some(section)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::mp2t;
    use super::*;

    fn section(table: u8, body: &[u8]) -> Vec<u8> {
        let len = (body.len() + 9) as u16;
        let mut section =
            [&[table][..], &(0xb000 | len).to_be_bytes(), &[0, 1, 0xc1, 0, 0], body].concat();
        section.extend(checksum(&section).to_be_bytes());
        section
    }

    /// The sections of a program with its map in stream 0x1000, and in it these types and streams.
    pub(crate) fn sections(streams: &[(u8, u16)]) -> [Vec<u8>; 2] {
        let mut body = vec![0xe1, 0, 0xf0, 0];
        for (stream_type, stream) in streams {
            body.push(*stream_type);
            body.extend((0xe000 | stream).to_be_bytes());
            body.extend([0xf0, 2, 0x0a, 0]);
        }
        [section(ASSOCIATION, &[0, 0, 0xe0, 0x10, 0, 1, 0xf0, 0]), section(MAP, &body)]
    }

    /// The transport packets of a section.
    pub(crate) fn packets(stream: u16, section: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, piece) in [&[0], section].concat().chunks(184).enumerate() {
            let start = if i == 0 { 0x40 } else { 0 };
            let mut packet = vec![0x47, start | (stream >> 8) as u8, stream as u8, 0x10 | i as u8];
            packet.extend_from_slice(piece);
            packet.resize(mp2t::PACKET_LEN, 0xff);
            out.extend(packet);
        }
        out
    }

    fn read(payload: &[u8]) -> Programs {
        let mut programs = Programs::default();
        mp2t::packets(payload).for_each(|packet| programs.packet(&packet));
        programs
    }

    #[test]
    fn the_first_video_stream_is_found() {
        for (streams, expect) in [
            (&[(0x03, 0x101), (0x02, 0x100)][..], Some((0x100, VideoCoding::Mpeg))),
            (&[(0x1b, 0x65), (0x24, 0x66)], Some((0x65, VideoCoding::H264))),
            (&[(0x0f, 0x65)], None),
            // Two hundred audio streams: the section needs several packets.
            (
                &[&[(0x0f, 0x201); 100][..], &[(0x10, 0x100)]].concat(),
                Some((0x100, VideoCoding::Mpeg4Visual)),
            ),
        ] {
            let [association, map] = sections(streams);
            let payload = [packets(0, &association), packets(0x1000, &map)].concat();
            assert_eq!(read(&payload).video(), expect);
            let unknown = [packets(0x1000, &map), packets(0, &association)].concat();
            assert_eq!(read(&unknown).video(), None, "no association before the map");
        }
    }

    #[test]
    fn zeros_behind_a_section_are_none() {
        // As go2rtc fills its packets.
        let [association, map] = sections(&[(0x1b, 0x65)]);
        let filled = |stream, section: &[u8]| {
            let end = 5 + section.len();
            let mut packet = packets(stream, section);
            packet[end..].fill(0);
            packet
        };
        let payload = [filled(0, &association), filled(0x1000, &map), filled(0, &association)];
        assert_eq!(read(&payload.concat()).video(), Some((0x65, VideoCoding::H264)));
    }

    #[test]
    fn sections_share_a_packet_or_follow_in_the_middle_of_one() {
        let [association, map] = sections(&[(0x1b, 0x65)]);
        let both = packets(0, &[&association[..], &map].concat());
        let packet = mp2t::packets(&both).next().unwrap();
        assert_eq!(Section::default().packet(&packet), [association.clone(), map.clone()]);

        // The end of a long section, before the next one.
        let long = sections(&[(0x0f, 0x201); 30])[1].clone();
        let first = packets(0, &long)[..mp2t::PACKET_LEN].to_vec();
        let rest = &long[183..];
        let mut second = vec![0x47, 0x40, 0, 0x11, rest.len() as u8];
        second.extend([rest, &map[..]].concat());
        second.resize(mp2t::PACKET_LEN, 0xff);
        let mut reader = Section::default();
        assert!(reader.packet(&mp2t::packets(&first).next().unwrap()).is_empty());
        assert_eq!(reader.packet(&mp2t::packets(&second).next().unwrap()), [long, map]);
    }

    #[test]
    fn damaged_sections_are_not_read() {
        let [association, mut map] = sections(&[(0x1b, 0x65)]);
        map[13] ^= 1;
        assert_eq!(read(&[packets(0, &association), packets(0x1000, &map)].concat()).video(), None);
    }
}
