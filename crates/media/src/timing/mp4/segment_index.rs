//! The segment index (`sidx`, ISO/IEC 14496-12 section 8.16.3): where the fragments of a file are,
//! and when.

use std::sync::Arc;

use super::boxes::{BoxError, Head};
use super::table::Table;
use crate::octets::{u16_at, u32_at, u64_at};
use crate::timing::error::Container;
use crate::timing::shared::{Joining, Shared};
use crate::timing::{IndexCache, TimingError, cut, scale};

/// Bytes of a reference.
const REFERENCE_LEN: usize = 12;

/// What was read from the contents of a `sidx` box.
#[derive(Debug)]
pub(in crate::timing) struct SharedSegmentIndex(pub(super) Result<Fields, BoxError>);

/// The fields before the references.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    hz: u32,
    earliest: u64,
    first_offset: u64,
    references: Table,
}

impl SharedSegmentIndex {
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self(Fields::read(bytes))
    }
}

impl Fields {
    fn read(bytes: &[u8]) -> Result<Self, BoxError> {
        let short = || BoxError::new(b"sidx", 0, "ends inside its fields");
        let is_long = bytes.first().is_some_and(|version| *version == 1);
        let hz = u32_at(bytes, 8).ok_or_else(short)?;
        let (earliest, first_offset, at) = if is_long {
            (u64_at(bytes, 12), u64_at(bytes, 20), 28)
        } else {
            (u32_at(bytes, 12).map(u64::from), u32_at(bytes, 16).map(u64::from), 20)
        };
        let (earliest, first_offset) =
            (earliest.ok_or_else(short)?, first_offset.ok_or_else(short)?);
        let count = u16_at(bytes, at + 2).ok_or_else(short)?;
        if hz == 0 {
            return Err(BoxError::new(b"sidx", 0, "has a timescale of 0"));
        }
        let references = Table::at_offset(at + 4, REFERENCE_LEN, count.into());
        let references = references.checked(b"sidx", &(0..bytes.len()))?;
        Ok(Self { hz, earliest, first_offset, references })
    }
}

/// One segment of a file with an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedSegment {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length, bytes.
    pub bytes: u64,
    /// When it begins, microseconds.
    pub time_us: u64,
    /// How long it is, microseconds.
    pub duration_us: u64,
    /// It begins with a frame that a decoder can begin with.
    pub starts_with_key: bool,
    /// It is another index and no media.
    pub is_index: bool,
}

/// The segment index of a file, as the `indexRange` of a DASH manifest leads to it.
#[derive(Clone, Debug)]
pub struct SegmentIndex {
    shared: Arc<Shared<SharedSegmentIndex>>,
    /// The first byte after the box, from which offsets count.
    anchor: u64,
}

impl SegmentIndex {
    pub(super) fn new(shared: Arc<Shared<SharedSegmentIndex>>, anchor: u64) -> Self {
        Self { shared, anchor }
    }

    /// Reads a `sidx` box that begins at `offset` in the file. The same index is kept once for all
    /// that give clones of the same `indexes`.
    ///
    /// # Errors
    /// [`TimingError`] when there is no whole and sound `sidx` box there.
    pub fn parse(indexes: &IndexCache, bytes: &[u8], offset: u64) -> Result<Self, TimingError> {
        let other = || TimingError {
            container: Container::Mp4,
            place: "index range".into(),
            offset,
            problem: "does not begin with a box `sidx`".into(),
            hint: "the manifest's indexRange is wrong, or the server ignored the range",
        };
        let cut = || cut(Container::Mp4, "box `sidx`", offset);
        let head = Head::read(bytes).map_err(|_| other())?.ok_or_else(cut)?;
        if head.kind.0 != *b"sidx" {
            return Err(other());
        }
        let body_len =
            head.body_len.and_then(|len| usize::try_from(len).ok()).unwrap_or(usize::MAX);
        let body = bytes.get(head.len..).and_then(|body| body.get(..body_len)).ok_or_else(cut)?;
        let read = Joining::new(&indexes.segments, body_len).feed(body, SharedSegmentIndex::read);
        let shared = read.ok_or_else(cut)?;
        if let Some((_, SharedSegmentIndex(Err(error)))) = shared.get() {
            return Err(error.in_file(offset.saturating_add(head.len as u64)));
        }
        Ok(Self::new(shared, offset.saturating_add((head.len + body_len) as u64)))
    }

    /// The segments in order.
    pub fn segments(&self) -> impl Iterator<Item = IndexedSegment> + '_ {
        let read = self.shared.get().and_then(|(bytes, read)| Some((bytes, read.0.as_ref().ok()?)));
        read.into_iter().flat_map(move |(bytes, fields)| {
            let mut offset = self.anchor.saturating_add(fields.first_offset);
            let mut time = fields.earliest;
            (0..fields.references.count).map_while(move |index| {
                let field = |field: usize| fields.references.u32(bytes, index, field);
                let (size, ticks, access) = (field(0)?, field(4)?, field(8)?);
                let len = u64::from(size & 0x7fff_ffff);
                let segment = IndexedSegment {
                    offset,
                    bytes: len,
                    time_us: scale::duration_us(time, fields.hz),
                    duration_us: scale::duration_us(ticks.into(), fields.hz),
                    starts_with_key: access & 1 << 31 != 0,
                    is_index: size & 1 << 31 != 0,
                };
                offset = offset.saturating_add(len);
                time = time.saturating_add(ticks.into());
                Some(segment)
            })
        })
    }

    /// The segment that is played at this time: the last one that begins at or before it, or the
    /// first.
    #[must_use]
    pub fn segment_for(&self, time_us: u64) -> Option<IndexedSegment> {
        let mut segments = self.segments();
        let first = segments.next()?;
        Some(segments.take_while(|segment| segment.time_us <= time_us).last().unwrap_or(first))
    }
}
