//! The talkspurts of a conversation: alternating talkspurts and pauses, sometimes overlapping, as
//! in the conversation model of ITU-T P.59. There is no floor control: each participant computes
//! the speaker from the seed, the number of the talkspurt and the participants present, and all get
//! the same result, on any machine.

use std::time::Duration;

use throng_observation::seed;

use crate::arrival::exponential;
use crate::keys::Usual::Stored;
use crate::keys::{Keyed, SEED_MAX, Share, Whole, keys, time};
use crate::read::{Fields, Reader};

/// The longest mean talkspurt and pause.
const TALKSPURT_MEAN_MAX: Duration = Duration::from_secs(60 * 60);

/// The shortest talkspurt.
const TALKSPURT_MIN: Duration = Duration::from_millis(500);
/// How far back [`Conversation::last_speakers`] searches, in talkspurts per speaker.
const SEARCH_BACK: u64 = 64;

/// The parameters of a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversation {
    /// Mean length of a talkspurt; exponential, each at least 500 ms.
    pub talkspurt: Duration,
    /// Mean pause between two talkspurts; exponential.
    pub pause: Duration,
    /// Share of talkspurts that the next one overlaps, 0 to 1.
    pub overlap: f64,
    /// The same seed gives the same conversation.
    pub seed: u64,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            talkspurt: Duration::from_secs(6),
            pause: Duration::from_millis(600),
            overlap: 0.1,
            seed: seed::USUAL,
        }
    }
}

impl Keyed for Conversation {
    const NAME: &'static str = "ConversationFile";
    const MEANING: &'static str = "The talkspurts in a conference.";

    keys! {
        /// mean length of a talkspurt, 1 s to 1 h; exponential, each at least 500 ms
        "talkspurt": talkspurt = time("6s"), Stored;
        /// mean pause between two talkspurts, at most 1 h; exponential
        "pause": pause = time("600ms"), Stored;
        /// share of talkspurts that the next speaker interrupts before they end, 0 to 1
        "overlap": overlap = Share("0.1"), Stored;
        /// the same seed gives the same conversation among the same participants
        "seed": seed = Whole(0, SEED_MAX), Stored;
    }

    fn usual() -> Self {
        Self::default()
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if self.talkspurt < Duration::from_secs(1)
            || self.talkspurt > TALKSPURT_MEAN_MAX
            || self.pause > TALKSPURT_MEAN_MAX
        {
            let message = "`conversation.talkspurt` must be from 1 s to 1 h, and \
                           `conversation.pause` at most 1 h";
            let span = fields.span_of("talkspurt").or(fields.span);
            reader.fail(span, message, "write talkspurt = \"6s\"");
        }
    }
}

/// An interval in which one participant speaks (RFC 3551).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Talkspurt {
    /// Numbered from 1.
    pub number: u64,
    /// When it begins, from the start of the run.
    pub begins_at: Duration,
    /// When it ends.
    pub ends_at: Duration,
}

impl Conversation {
    /// All talkspurts in the order of their beginnings; endless.
    pub fn talkspurts(&self) -> impl Iterator<Item = Talkspurt> + use<> {
        let conversation = *self;
        let mut random = fastrand::Rng::with_seed(conversation.seed);
        let mut draw = move |mean: Duration| {
            Duration::try_from_secs_f64(exponential(&mut random, mean.as_secs_f64()))
                .unwrap_or(mean)
        };
        let mut choice = fastrand::Rng::with_seed(!conversation.seed);
        let mut begins_at = Duration::ZERO;
        (1_u64..).map(move |number| {
            let length = draw(conversation.talkspurt).max(TALKSPURT_MIN);
            let talkspurt =
                Talkspurt { number, begins_at, ends_at: begins_at.saturating_add(length) };
            begins_at = if choice.f64() < conversation.overlap {
                // The next speaker begins during the last third.
                begins_at + length.mul_f64(0.66 + 0.3 * choice.f64())
            } else {
                talkspurt.ends_at.saturating_add(draw(conversation.pause))
            };
            talkspurt
        })
    }

    /// The speaker of talkspurt `number` among `participants` with their weights: weight 5 speaks
    /// as often as five participants of weight 1, weight 0 never. `None` if no participant speaks.
    pub fn speaker<'p>(
        &self,
        number: u64,
        participants: impl IntoIterator<Item = (&'p str, u32)>,
    ) -> Option<&'p str> {
        // The highest draw wins. Draws are independent, so that a join or leave changes only that
        // participant's talkspurts.
        participants
            .into_iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(name, weight)| (self.draw(number, name).ln() / f64::from(weight), name))
            .max_by(|(a, first), (b, second)| a.total_cmp(b).then_with(|| first.cmp(second)))
            .map(|(_, name)| name)
    }

    /// The draw of a participant for a talkspurt, in (0, 1).
    fn draw(&self, number: u64, name: &str) -> f64 {
        // FNV-1a over the name, then the finalizer of SplitMix64.
        let hash =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        let bits = seed::mixed(name ^ seed::weyl(self.seed, number));
        ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// The last `count` speakers up to talkspurt `number`, the latest first. Virtual talkspurts
    /// precede the first one, so that the list is complete from the start. Participants of weight 0
    /// are never in it.
    #[must_use]
    pub fn last_speakers<'p>(
        &self,
        number: u64,
        count: usize,
        participants: &[(&'p str, u32)],
    ) -> Vec<&'p str> {
        let can_speak = participants.iter().filter(|(_, weight)| *weight > 0).count();
        let wanted = count.min(can_speak);
        let mut speakers: Vec<&str> = Vec::new();
        for back in 0..SEARCH_BACK.saturating_mul(wanted as u64) {
            if speakers.len() >= wanted {
                break;
            }
            match self.speaker(number.wrapping_sub(back), participants.iter().copied()) {
                Some(name) if !speakers.contains(&name) => speakers.push(name),
                _ => {}
            }
        }
        speakers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn class(size: usize) -> Vec<String> {
        (0..size).map(|number| format!("throng-{number}")).collect()
    }

    fn equal(names: &[String]) -> Vec<(&str, u32)> {
        names.iter().map(|name| (name.as_str(), 1)).collect()
    }

    #[test]
    fn turns_have_the_means_that_were_asked_for() {
        let conversation = Conversation { overlap: 0.25, ..Conversation::default() };
        let talkspurts: Vec<Talkspurt> = conversation.talkspurts().take(20_000).collect();
        let mean = |of: &mut dyn Iterator<Item = f64>| {
            let all: Vec<f64> = of.collect();
            (all.iter().sum::<f64>() / all.len() as f64, all.len())
        };
        let (length, _) = mean(
            &mut talkspurts
                .iter()
                .map(|talkspurt| (talkspurt.ends_at - talkspurt.begins_at).as_secs_f64()),
        );
        // TALKSPURT_MIN raises the mean slightly.
        assert!((6.0..6.2).contains(&length), "{length}");
        let gaps = || talkspurts.windows(2).map(|pair| (pair[0].ends_at, pair[1].begins_at));
        let (pause, pauses) = mean(
            &mut gaps()
                .filter(|(end, begin)| begin >= end)
                .map(|(end, begin)| (begin - end).as_secs_f64()),
        );
        assert!((0.57..0.63).contains(&pause), "{pause}");
        let overlapping = 1.0 - pauses as f64 / 19_999.0;
        assert!((0.23..0.27).contains(&overlapping), "{overlapping}");
    }

    #[test]
    fn everybody_speaks_as_often_as_they_weigh() {
        let names = class(10);
        let mut participants = equal(&names);
        (participants[0].1, participants[1].1) = (9, 0);
        let conversation = Conversation::default();
        let mut talkspurts: BTreeMap<&str, u32> = BTreeMap::new();
        (0..17_000).for_each(|n| {
            *talkspurts
                .entry(conversation.speaker(n, participants.iter().copied()).unwrap())
                .or_default() += 1;
        });
        assert!((8_600..9_400).contains(&talkspurts["throng-0"]), "{talkspurts:?}");
        assert!(!talkspurts.contains_key("throng-1"));
        assert!(
            talkspurts.iter().skip(1).all(|(_, count)| (850..1_150).contains(count)),
            "{talkspurts:?}"
        );
    }

    #[test]
    fn a_leave_changes_no_other_turn() {
        let names = class(20);
        let all = equal(&names);
        let fewer: Vec<_> = all.iter().copied().filter(|(name, _)| *name != "throng-7").collect();
        let conversation = Conversation { seed: 9, ..Conversation::default() };
        for number in 0..500 {
            let speaker = conversation.speaker(number, all.iter().copied()).unwrap();
            let then = conversation.speaker(number, fewer.iter().copied()).unwrap();
            assert!(speaker == then || speaker == "throng-7", "{number}");
        }
    }

    #[test]
    fn the_last_speakers_begin_with_the_current_one_and_have_the_requested_count() {
        let names = class(25);
        let participants = equal(&names);
        let conversation = Conversation::default();
        for number in [1, 2, 50] {
            let last = conversation.last_speakers(number, 10, &participants);
            assert_eq!(last.len(), 10);
            assert_eq!(Some(last[0]), conversation.speaker(number, participants.iter().copied()));
        }
        let now: Vec<_> = conversation.last_speakers(50, 10, &participants);
        let then: Vec<_> = conversation.last_speakers(51, 10, &participants);
        // One talkspurt changes one position at most.
        assert!(then.iter().filter(|name| !now.contains(name)).count() <= 1);
        assert_eq!(conversation.last_speakers(5, 10, &participants[..3]).len(), 3);
        assert_eq!(conversation.last_speakers(5, 10, &[]), Vec::<&str>::new());
        assert_eq!(conversation.last_speakers(5, 10, &[("a", 0)]), Vec::<&str>::new());
    }
}
