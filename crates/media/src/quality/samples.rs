//! Samples of one interval, in bounded memory that is allocated once an interval.

use crate::prefetch::Prefetcher;

/// Most samples of one interval; further ones are left out. Five times those of a second of audio
/// with 5 ms a packet.
const MOST: usize = 1024;

/// Samples since the previous call.
#[derive(Clone, Debug)]
pub(super) struct Samples<T>(Vec<T>);

impl<T> Default for Samples<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Samples<T> {
    /// The last sample, beside which the next one will be.
    pub(super) fn prefetch(&self, prefetcher: &mut Prefetcher<'_>) {
        if let Some(last) = self.0.last() {
            prefetcher.value(last);
        }
    }

    pub(super) fn push(&mut self, sample: T) {
        if self.0.len() < MOST {
            self.0.push(sample);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The samples; reserves memory for an eighth more than them, so that the next interval seldom
    /// has to grow it.
    pub(super) fn take(&mut self) -> Vec<T> {
        let next = Vec::with_capacity(self.0.len() + self.0.len() / 8);
        std::mem::replace(&mut self.0, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_handed_over_once_and_bounded() {
        let mut samples = Samples::default();
        (0..5000).for_each(|i| samples.push(i));
        assert_eq!(samples.take(), (0..MOST).collect::<Vec<_>>());
        assert_eq!(samples.take(), [0_usize; 0]);
    }
}
