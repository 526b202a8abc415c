//! Names of sources and their leaving: SDES and BYE (RFC 3550 sections 6.5 and 6.6).

use super::frame::{self, write_words};
use crate::octets::{u32_at, words};

const CNAME: u8 = 1;

/// Most sources in one BYE or SDES (their count has five bits).
pub(super) const SOURCES_MAX: usize = 31;

/// A source description; of its items only the canonical names are read.
#[derive(Clone, Copy, Debug)]
pub struct SourceDescription<'a> {
    chunks: &'a [u8],
    count: u8,
}

impl<'a> SourceDescription<'a> {
    pub(super) fn parse(count: u8, body: &'a [u8]) -> Result<Self, &'static str> {
        let mut rest = body;
        for _ in 0..count {
            rest = chunk(rest).ok_or("source description item")?.1;
        }
        Ok(Self { chunks: body, count })
    }

    /// The sources with their canonical names, for those that have one.
    pub fn cnames(&self) -> impl Iterator<Item = (u32, &'a [u8])> + Clone + 'a {
        let mut rest = self.chunks;
        (0..self.count).filter_map(move |_| {
            let (named, after) = chunk(rest)?;
            rest = after;
            Some((named.0, named.1?))
        })
    }
}

/// A source and its canonical name, if it has one.
type Chunk<'a> = (u32, Option<&'a [u8]>);

/// The first chunk, and the chunks after it.
fn chunk(chunks: &[u8]) -> Option<(Chunk<'_>, &[u8])> {
    let ssrc = u32_at(chunks, 0)?;
    let mut at = 4;
    let mut cname = None;
    loop {
        let kind = *chunks.get(at)?;
        if kind == 0 {
            // The list ends with a zero byte and zeros up to the next word.
            return Some(((ssrc, cname), chunks.get((at + 1).next_multiple_of(4)..)?));
        }
        let start = at + 2;
        let end = start + usize::from(*chunks.get(at + 1)?);
        let text = chunks.get(start..end)?;
        if kind == CNAME {
            cname = Some(text);
        }
        at = end;
    }
}

/// Writes an SDES with one chunk and one item; a name is cut at the 255 bytes that an item can
/// hold.
pub(super) fn write_cname(out: &mut Vec<u8>, ssrc: u32, cname: &str) {
    let name = cname.as_bytes();
    let name = name.get(..255).unwrap_or(name);
    frame::write(out, frame::SOURCE_DESCRIPTION, 1, |out| {
        write_words(out, [ssrc]);
        out.extend_from_slice(&[CNAME, name.len() as u8]);
        out.extend_from_slice(name);
        out.push(0); // at least one: it ends the list
    });
}

/// Sources that leave.
#[derive(Clone, Copy, Debug)]
pub struct Bye<'a> {
    sources: &'a [u8],
    /// The reason as text, if one was sent.
    pub reason: Option<&'a [u8]>,
}

impl<'a> Bye<'a> {
    pub(super) fn parse(count: u8, body: &'a [u8]) -> Result<Self, &'static str> {
        let (sources, rest) =
            body.split_at_checked(4 * usize::from(count)).ok_or("source count")?;
        let reason = match rest {
            [] => None,
            [len, text @ ..] => Some(text.get(..usize::from(*len)).ok_or("reason")?),
        };
        Ok(Self { sources, reason })
    }

    /// The sources that leave.
    pub fn ssrcs(&self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        words(self.sources)
    }
}

/// Writes a BYE for the first [`SOURCES_MAX`] of `ssrcs`.
pub(super) fn write_bye(out: &mut Vec<u8>, ssrcs: &[u32]) {
    let ssrcs = ssrcs.get(..SOURCES_MAX).unwrap_or(ssrcs);
    frame::write(out, frame::BYE, ssrcs.len() as u8, |out| write_words(out, ssrcs.iter().copied()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp, RtcpError};

    fn cnames(bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, RtcpError> {
        match Compound::new(bytes).next().unwrap()? {
            Rtcp::SourceDescription(sdes) => {
                Ok(sdes.cnames().map(|(s, name)| (s, name.to_vec())).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn canonical_names_survive_whatever_their_length() {
        for len in 0..=9 {
            let name = "abcdefghi".get(..len).unwrap();
            let mut out = Vec::new();
            write_cname(&mut out, 5, name);
            assert!(out.len() % 4 == 0 && out.last() == Some(&0));
            assert_eq!(cnames(&out).unwrap(), [(5, name.as_bytes().to_vec())]);
        }
        let mut out = Vec::new();
        write_cname(&mut out, 5, &"x".repeat(300));
        assert_eq!(cnames(&out).unwrap()[0].1.len(), 255);
    }

    #[test]
    fn chunks_with_other_items_and_without_a_name() {
        let bytes = [
            0x83, 202, 0, 7, // three chunks
            0, 0, 0, 1, 2, 1, b'n', 1, 2, b'a', b'b', 0, // NAME, CNAME
            0, 0, 0, 2, 0, 0, 0, 0, // no items
            0, 0, 0, 3, 1, 0, 0, 0, // an empty name
        ];
        assert_eq!(cnames(&bytes).unwrap(), [(1, b"ab".to_vec()), (3, vec![])]);
    }

    #[test]
    fn items_that_run_past_the_end_are_refused() {
        for bytes in [
            &[0x81, 202, 0, 2, 0, 0, 0, 1, 1, 9, b'a', 0][..],
            &[0x81, 202, 0, 2, 0, 0, 0, 1, 1, 2, b'a', b'b'], // no end of the list
            &[0x82, 202, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0],       // one chunk of two
        ] {
            assert!(matches!(cnames(bytes), Err(RtcpError::Malformed { .. })), "{bytes:?}");
        }
    }

    #[test]
    fn goodbyes() {
        let mut out = Vec::new();
        write_bye(&mut out, &[1, 0xffff_ffff]);
        assert_eq!(out, [0x82, 203, 0, 2, 0, 0, 0, 1, 255, 255, 255, 255]);
        let with_reason = [0x81, 203, 0, 2, 0, 0, 0, 1, 3, b'e', b'n', b'd'];
        for (bytes, ssrcs, reason) in
            [(&out[..], &[1, 0xffff_ffff][..], None), (&with_reason, &[1], Some(&b"end"[..]))]
        {
            let Some(Ok(Rtcp::Bye(bye))) = Compound::new(bytes).next() else { panic!("{bytes:?}") };
            assert_eq!((bye.ssrcs().collect::<Vec<_>>(), bye.reason), (ssrcs.to_vec(), reason));
        }
        for bad in [&[0x82, 203, 0, 1, 0, 0, 0, 1][..], &[0x81, 203, 0, 2, 0, 0, 0, 1, 4, 1, 2, 3]]
        {
            assert!(matches!(Compound::new(bad).next(), Some(Err(RtcpError::Malformed { .. }))));
        }
    }

    #[test]
    fn application_packets_are_passed_by() {
        let bytes = [0x83, 204, 0, 3, 0, 0, 0, 1, b't', b'e', b's', b't', 1, 2, 3, 4];
        assert!(matches!(Compound::new(&bytes).next(), Some(Ok(Rtcp::Application))));
    }
}
