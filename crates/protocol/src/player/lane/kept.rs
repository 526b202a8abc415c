//! The bytes of a segment that is downloaded, for others.

/// No peer takes a longer segment.
const MOST: u64 = 256 << 20;

/// Its bytes so far.
pub(super) struct Kept {
    bytes: Vec<u8>,
    /// How many they are, where the playlist says it.
    length: Option<u64>,
}

impl Kept {
    /// None yet, of this part of a file.
    pub(super) fn of(range: Option<(u64, u64)>) -> Self {
        let length = range.map(|(first, last)| last.saturating_sub(first).saturating_add(1));
        Self { bytes: Vec::new(), length }
    }

    /// Adds what has come, which is `None` where it was not wanted; false if they are of no use to
    /// others: without that part, or since a server that ignores `Range` sends on and on.
    pub(super) fn add(&mut self, content: Option<&[u8]>) -> bool {
        let Some(content) = content else { return false };
        self.bytes.extend_from_slice(content);
        self.bytes.len() as u64 <= self.length.unwrap_or(MOST).min(MOST)
    }

    /// All of them; `None` if some are missing.
    pub(super) fn whole(self) -> Option<Vec<u8>> {
        let Self { bytes, length } = self;
        length.is_none_or(|length| bytes.len() as u64 == length).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What others get of a segment in this range, which came in these pieces.
    fn kept(range: Option<(u64, u64)>, pieces: &[Option<&[u8]>]) -> Option<Vec<u8>> {
        let mut kept = Kept::of(range);
        pieces.iter().all(|piece| kept.add(*piece)).then_some(kept)?.whole()
    }

    #[test]
    fn others_get_what_is_the_segment_and_nothing_else() {
        let range = Some((100, 103));
        let [two, three]: [Option<&[u8]>; 2] = [Some(b"ab"), Some(b"cde")];
        for (range, pieces, expect) in [
            (None, vec![two, three], Some("abcde")),
            (None, vec![two, None], None),
            (range, vec![two, two], Some("abab")),
            (range, vec![two, three], None),
            (range, vec![two], None),
            (Some((0, u64::MAX)), vec![two], None),
        ] {
            let bytes = kept(range, &pieces);
            assert_eq!(bytes.as_deref(), expect.map(str::as_bytes), "{range:?} {pieces:?}");
        }
    }
}
