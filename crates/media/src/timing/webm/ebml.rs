//! EBML (RFC 8794): elements of an id, a size, and contents that may be elements again.

/// The longest id and size: four and eight bytes.
pub(super) const HEADER_LEN_MAX: usize = 12;

/// The header of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: u32,
    /// Bytes of the header itself.
    pub(super) len: usize,
    /// Bytes of the contents; `None`: unknown, they end where an element begins that cannot be in
    /// them.
    pub(super) body_len: Option<u64>,
}

/// A variable-length number with its marker removed, and its own length; `Ok(None)` when bytes are
/// missing. All ones are `None`.
pub(super) fn number(
    bytes: &[u8],
    len_max: usize,
) -> Result<Option<(Option<u64>, usize)>, &'static str> {
    let Some(&first) = bytes.first() else { return Ok(None) };
    let len = first.leading_zeros() as usize + 1;
    if len > len_max {
        return Err("has a number of more bytes than allowed");
    }
    let Some(all) = bytes.get(..len) else { return Ok(None) };
    let marked = all.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let mask = (1_u64 << (7 * len)) - 1;
    let value = marked & mask;
    Ok(Some(((value != mask).then_some(value), len)))
}

impl Head {
    /// Reads a header; `Ok(None)` when more bytes are needed.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let Some((_, id_len)) = number(bytes, 4)? else { return Ok(None) };
        let id = bytes.get(..id_len).unwrap_or_default();
        let id = id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let Some((body_len, len_len)) = number(bytes.get(id_len..).unwrap_or_default(), 8)? else {
            return Ok(None);
        };
        Ok(Some(Self { id, len: id_len + len_len, body_len }))
    }
}

/// The elements in contents that are all there, until one does not fit.
pub(super) fn children(mut bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let head = Head::read(bytes).ok()??;
        let body_len = usize::try_from(head.body_len?).ok()?;
        let (body, after) = bytes.get(head.len..)?.split_at_checked(body_len)?;
        bytes = after;
        Some((head.id, body))
    })
}

/// An unsigned integer of up to eight bytes.
pub(super) fn unsigned(body: &[u8]) -> u64 {
    body.iter().rev().take(8).rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A float of four or eight bytes.
pub(super) fn float(body: &[u8]) -> Option<f64> {
    match *body {
        [a, b, c, d] => Some(f32::from_be_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Some(f64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An element with these contents.
    pub(crate) fn make(id: u32, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let size = (1 << 56 | body.len() as u64).to_be_bytes();
        [&id_bytes(id), &size[..], &body].concat()
    }

    pub(crate) fn id_bytes(id: u32) -> Vec<u8> {
        id.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect()
    }

    #[test]
    fn headers_have_ids_and_sizes_of_any_length() {
        for (bytes, expect) in [
            (&[0xa3, 0x81][..], Ok(Some((0xa3, 2, Some(1))))),
            (&[0x42, 0x82, 0x40, 0x7f], Ok(Some((0x4282, 4, Some(127))))),
            (&[0x1f, 0x43, 0xb6, 0x75, 0xff], Ok(Some((0x1f43_b675, 5, None)))),
            (&[0xae, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Ok(Some((0xae, 9, None)))),
            (&[0xae, 1, 0, 0, 0, 0, 0, 0, 9], Ok(Some((0xae, 9, Some(9))))),
            (&[0xae, 1, 0, 0], Ok(None)),
            (&[0x1f, 0x43], Ok(None)),
            (&[0x08, 0, 0, 0, 0, 0], Err("has a number of more bytes than allowed")),
            (&[0xae, 0], Err("has a number of more bytes than allowed")),
        ] {
            let read =
                Head::read(bytes).map(|head| head.map(|head| (head.id, head.len, head.body_len)));
            assert_eq!(read, expect, "{bytes:x?}");
        }
    }

    #[test]
    fn children_stay_inside() {
        let bytes = [make(0xae, &[b"12"]), make(0xd7, &[]), vec![0x83, 0x89, 1]].concat();
        assert_eq!(children(&bytes).collect::<Vec<_>>(), [(0xae, &b"12"[..]), (0xd7, b"")]);
        assert_eq!(
            (unsigned(&[1, 0]), unsigned(&[]), float(&[0x3f, 0x80, 0, 0])),
            (256, 0, Some(1.0))
        );
    }
}
