//! The media sources of the room, and bursts of their packets as all viewers get them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use throng_media::rtp::NtpTime;

/// The codecs that the stage plays and takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Codec {
    H264,
    Vp8,
    Opus,
}

impl Codec {
    pub(crate) fn is_audio(self) -> bool {
        self == Codec::Opus
    }

    /// RTP clock rate, Hz.
    pub(crate) fn clock_rate(self) -> u32 {
        if self.is_audio() { 48_000 } else { 90_000 }
    }
}

/// A stream of the room, with at most one publisher, by the index of its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Channel(u8);

impl Channel {
    /// Most streams of a room.
    pub(crate) const COUNT: usize = 64;

    /// The channel with that index.
    pub(crate) fn new(place: usize) -> Option<Self> {
        u8::try_from(place).ok().filter(|_| place < Self::COUNT).map(Self)
    }

    pub(crate) fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// A source of the room. The test card has one for each codec and size, a publisher has two live
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    CardH264,
    CardVp8,
    CardLowH264,
    CardLowVp8,
    CardOpus,
    LiveVideo(Channel),
    LiveAudio(Channel),
}

/// Number of test card sources.
const CARDS: usize = 5;

impl Source {
    pub(crate) const COUNT: usize = CARDS + 2 * Channel::COUNT;

    /// All video sources.
    pub(crate) fn pictures() -> impl Iterator<Item = Self> {
        let live = (0..Channel::COUNT).filter_map(Channel::new).map(Self::LiveVideo);
        [Self::CardH264, Self::CardVp8, Self::CardLowH264, Self::CardLowVp8].into_iter().chain(live)
    }

    pub(crate) fn is_live(self) -> bool {
        matches!(self, Source::LiveVideo(_) | Source::LiveAudio(_))
    }

    /// Its index in arrays by source; below [`Self::COUNT`].
    #[inline]
    pub(crate) fn place(self) -> usize {
        match self {
            Self::CardH264 => 0,
            Self::CardVp8 => 1,
            Self::CardLowH264 => 2,
            Self::CardLowVp8 => 3,
            Self::CardOpus => 4,
            Self::LiveVideo(channel) => CARDS + 2 * channel.place(),
            Self::LiveAudio(channel) => CARDS + 2 * channel.place() + 1,
        }
    }
}

/// Viewers of each source, so that frames without viewers are not made.
pub(crate) type Audience = [AtomicU32; Source::COUNT];

/// Consecutive packets of a source with one capture time: a frame of the test card, or a packet of
/// a publisher.
#[derive(Debug)]
pub(crate) struct Burst {
    pub(crate) source: Source,
    /// Number of the first packet since the source began; a gap is a packet that the source itself
    /// lost.
    pub(crate) first_packet: u64,
    /// RTP timestamp on the clock of the source.
    pub(crate) timestamp: u32,
    /// A viewer can begin here.
    pub(crate) key_frame: bool,
    /// The last packet has the marker bit.
    pub(crate) marker: bool,
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Wall clock of its capture.
    pub(crate) captured: NtpTime,
    /// Monotonic time of its capture.
    pub(crate) captured_at: Instant,
}

/// How long packets are kept for retransmission: twice a long round trip. Later ones would miss
/// their playout.
const HISTORY: Duration = Duration::from_millis(1_000);
/// Most bursts kept, whatever their age.
const HISTORY_BURSTS_MAX: usize = 1_024;

/// The recent bursts of a source, for retransmission.
#[derive(Debug, Default)]
pub(crate) struct History {
    bursts: VecDeque<Arc<Burst>>,
}

impl History {
    /// Keeps `burst`, which follows those before it.
    pub(crate) fn keep(&mut self, burst: Arc<Burst>) {
        if self.bursts.back().is_some_and(|last| last.first_packet >= burst.first_packet) {
            self.bursts.clear(); // the source began anew
        }
        while self.bursts.len() >= HISTORY_BURSTS_MAX
            || self
                .bursts
                .front()
                .is_some_and(|first| burst.captured_at.duration_since(first.captured_at) > HISTORY)
        {
            self.bursts.pop_front();
        }
        self.bursts.push_back(burst);
    }

    /// The burst that holds packet `number`, and its place in it.
    pub(crate) fn find(&self, number: u64) -> Option<(&Arc<Burst>, usize)> {
        let after = self.bursts.partition_point(|burst| burst.first_packet <= number);
        let burst = self.bursts.get(after.checked_sub(1)?)?;
        let place = (number - burst.first_packet) as usize;
        (place < burst.payloads.len()).then_some((burst, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(first_packet: u64, packets: usize, at: Instant) -> Arc<Burst> {
        Arc::new(Burst {
            source: Source::CardH264,
            first_packet,
            timestamp: 0,
            key_frame: false,
            marker: true,
            payloads: vec![vec![1]; packets],
            captured: NtpTime(0),
            captured_at: at,
        })
    }

    #[test]
    fn packets_are_found_by_number_for_a_second() {
        let start = Instant::now();
        let mut history = History::default();
        for frame in 0..60 {
            history.keep(burst(frame * 5, 3, start + Duration::from_millis(frame * 33)));
        }
        let found = |number| history.find(number).map(|(burst, place)| (burst.first_packet, place));
        assert_eq!(found(295), Some((295, 0)));
        assert_eq!(found(297), Some((295, 2)));
        assert_eq!(found(298), None, "not in the last burst");
        assert_eq!(found(293), None, "in a gap between two");
        assert_eq!(found(0), None, "more than a second ago");
        assert_eq!(found(150), Some((150, 0)));
    }

    #[test]
    fn a_source_that_begins_anew_forgets() {
        let start = Instant::now();
        let mut history = History::default();
        history.keep(burst(500, 1, start));
        history.keep(burst(0, 1, start));
        assert!(history.find(500).is_none());
        assert!(history.find(0).is_some());
    }
}
