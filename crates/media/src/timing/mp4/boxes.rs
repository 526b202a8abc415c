//! Boxes of ISO/IEC 14496-12 section 4.2: a size, a type, and contents that may be boxes again.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::octets::{chunk_at, u32_at, u64_at};
use crate::timing::error::{Container, DAMAGED, TimingError};

/// Size and type.
pub(super) const HEADER_LEN: usize = 8;
/// Size, type, and a size of 64 bits.
pub(super) const LONG_HEADER_LEN: usize = 16;

/// The type of a box, or another four-character code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FourCc(pub(super) [u8; 4]);

impl fmt::Display for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "box `{}`", self.0.escape_ascii())
    }
}

impl fmt::Debug for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The header of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: FourCc,
    /// Bytes of the header itself.
    pub(super) len: usize,
    /// Bytes of the contents; `None`: they go on to the end of the file, or of the box around.
    pub(super) body_len: Option<u64>,
}

impl Head {
    /// Reads a header; `Ok(None)` when more bytes are needed.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let (Some(len), Some(kind)) = (u32_at(bytes, 0), chunk_at(bytes, 4)) else {
            return Ok(None);
        };
        let (len, total) = match len {
            0 => return Ok(Some(Self { kind: FourCc(*kind), len: HEADER_LEN, body_len: None })),
            1 => match u64_at(bytes, HEADER_LEN) {
                Some(total) => (LONG_HEADER_LEN, total),
                None => return Ok(None),
            },
            _ => (HEADER_LEN, u64::from(len)),
        };
        let body_len = total.checked_sub(len as u64).ok_or("is smaller than its own header")?;
        Ok(Some(Self { kind: FourCc(*kind), len, body_len: Some(body_len) }))
    }
}

/// What is wrong with a box inside bytes that begin somewhere in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxError {
    pub(super) kind: FourCc,
    /// Where its contents begin, within those bytes.
    pub(super) at: usize,
    pub(super) problem: Cow<'static, str>,
    pub(super) hint: &'static str,
    /// [`Container::Other`] where nothing is wrong, and it is only not read here.
    pub(super) container: Container,
}

impl BoxError {
    pub(super) fn new(kind: &[u8; 4], at: usize, problem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: FourCc(*kind),
            at,
            problem: problem.into(),
            hint: DAMAGED,
            container: Container::Mp4,
        }
    }

    /// The same, with the offset of those bytes in the file.
    pub(super) fn in_file(&self, base: u64) -> TimingError {
        TimingError {
            container: self.container,
            place: self.kind.to_string(),
            offset: base.saturating_add(self.at as u64),
            problem: self.problem.clone(),
            hint: self.hint,
        }
    }
}

/// A box within bytes that are all there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) kind: FourCc,
    /// Where its contents are.
    pub(super) body: Range<usize>,
}

/// The boxes in `within`, which is a range of `bytes`. Ends after the first error; ignores up to
/// seven bytes at the end, which QuickTime writes after the last entry of its lists.
pub(super) fn children(
    bytes: &[u8],
    within: Range<usize>,
) -> impl Iterator<Item = Result<Child, BoxError>> + '_ {
    let mut at = within.start;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..within.end).filter(|rest| rest.len() >= HEADER_LEN)?;
        let child = child(rest, at);
        at = child.as_ref().map_or(within.end, |child| child.body.end);
        Some(child)
    })
}

fn child(rest: &[u8], at: usize) -> Result<Child, BoxError> {
    let error = |kind: FourCc, problem: &'static str| BoxError::new(&kind.0, at, problem);
    let kind = FourCc(*chunk_at(rest, 4).unwrap_or(b"????"));
    let head = Head::read(rest).map_err(|problem| error(kind, problem))?;
    let head = head.ok_or_else(|| error(kind, "ends inside its header"))?;
    let body_len = head.body_len.unwrap_or((rest.len() - head.len) as u64);
    let body_len = usize::try_from(body_len).ok().filter(|len| *len <= rest.len() - head.len);
    let body_len = body_len.ok_or_else(|| error(kind, "is longer than the box around it"))?;
    let start = at + head.len;
    Ok(Child { kind, body: start..start + body_len })
}

#[cfg(test)]
pub(in crate::timing::mp4) mod tests {
    use super::*;

    /// A box with these contents.
    pub(crate) fn make(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        [&(body.len() as u32 + 8).to_be_bytes()[..], kind, &body].concat()
    }

    #[test]
    fn headers_have_sizes_of_32_or_64_bits_or_none() {
        for (bytes, expect) in [
            (&b"\0\0\0\x10moov"[..], Ok(Some((8, Some(8))))),
            (b"\0\0\0\x08free", Ok(Some((8, Some(0))))),
            (b"\0\0\0\x00mdat", Ok(Some((8, None)))),
            (b"\0\0\0\x01mdat\0\0\0\x01\0\0\0\0", Ok(Some((16, Some(0xffff_fff0))))),
            (b"\0\0\0\x01mdat\0\0\0\x01\0\0\0", Ok(None)),
            (b"\0\0\0\x10moo", Ok(None)),
            (b"\0\0\0\x07moov", Err("is smaller than its own header")),
            (b"\0\0\0\x01moov\0\0\0\0\0\0\0\x0f", Err("is smaller than its own header")),
        ] {
            let read = Head::read(bytes).map(|head| head.map(|head| (head.len, head.body_len)));
            assert_eq!(read, expect, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn children_stay_inside_their_parent() {
        let bytes = [&make(b"aaaa", &[b"12"])[..], &make(b"bbbb", &[]), b"\0\0\0\0"].concat();
        let read: Vec<_> =
            children(&bytes, 0..bytes.len()).map(|child| child.unwrap().body).collect();
        assert_eq!(read, [8..10, 18..18]);
        let long = children(&bytes, 0..9).collect::<Vec<_>>();
        assert_eq!(long, [Err(BoxError::new(b"aaaa", 0, "is longer than the box around it"))]);
        let endless = [&[0; 4][..], b"cccc", b"123"].concat();
        assert_eq!(children(&endless, 0..11).next().unwrap().unwrap().body, 8..11);
    }
}
