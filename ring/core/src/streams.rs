//! Per-stream state of a producer: the next frame's sequence number, and whether frames are
//! missing.

/// State of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    number: u32,
    next_sequence: u64,
    /// A frame was dropped since the last one that was claimed.
    pub(crate) lost: bool,
}

/// All streams of a producer, sorted by number; the one used last is found without a search.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    last: usize,
}

impl Streams {
    /// The stream of that number; added if it is new.
    #[inline]
    pub(crate) fn get(&mut self, number: u32) -> &mut Stream {
        if self.streams.get(self.last).is_none_or(|stream| stream.number != number) {
            self.last = match self.streams.binary_search_by_key(&number, |stream| stream.number) {
                Ok(index) => index,
                Err(index) => {
                    self.streams.insert(index, Stream { number, next_sequence: 0, lost: false });
                    index
                }
            };
        }
        &mut self.streams[self.last]
    }
}

impl Stream {
    /// The sequence number of the next frame; dropped frames use one up too.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        sequence
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_stream_counts_for_itself() {
        let mut streams = Streams::default();
        for (number, expect) in [(7, 0), (7, 1), (3, 0), (7, 2), (3, 1), (9, 0)] {
            assert_eq!(streams.get(number).next_sequence(), expect, "stream {number}");
        }
    }
}
