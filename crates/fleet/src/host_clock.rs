//! The latest word of this host about its clock, for whoever tells the other side.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::disciplined::ClockWord;
use crate::steady_clock::SteadyClock;

/// The word of this host, shared with whoever asks its time service. Without one nothing is said.
#[derive(Clone, Debug, Default)]
pub struct HostClock(Arc<Mutex<Option<(ClockWord, Instant)>>>);

impl HostClock {
    fn lock(&self) -> MutexGuard<'_, Option<(ClockWord, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the host's time service says, `None` where it says nothing any more. It was asked
    /// at `asked_at`.
    pub fn says(&self, word: Option<ClockWord>, asked_at: Instant) {
        *self.lock() = word.map(|word| (word, asked_at));
    }

    /// Whether nobody else holds it: it need not be kept up to date any more.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The word about `steady`, by which runs count: that about the wall clock, and how far the two
    /// are apart. They come apart when the wall clock is set; what it is slewed moves both.
    #[must_use]
    pub fn word(&self, steady: &SteadyClock) -> Option<ClockWord> {
        let (word, asked_at) = (*self.lock())?;
        Some(word.aged(asked_at.elapsed()).wider(steady.wall_apart_us()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disciplined::WordSource;

    #[test]
    fn the_word_is_that_of_the_wall_clock_and_what_the_steady_one_is_apart() {
        let (host, steady) = (HostClock::default(), SteadyClock::now_on());
        assert_eq!(host.word(&steady), None);
        let word = ClockWord { bound_us: 1_000, source: WordSource::Declared };
        host.says(Some(word), Instant::now());
        let said = host.word(&steady).expect("a word");
        assert!((1_000..1_000_000).contains(&said.bound_us), "{said:?}");
        let other = host.clone();
        assert!(!host.is_alone());
        other.says(None, Instant::now());
        drop(other);
        assert!(host.is_alone() && host.word(&steady).is_none());
    }
}
