//! The bad seconds of a load whose users are bad by a pattern: of a path that loses packets, of a
//! source that sends in bursts, or of the server itself.

use throng_observation::{Clause, Unloaded};

/// A load whose bad user-seconds are bad by patterns alone, but for this share of them, is bad by a
/// pattern.
const OTHERWISE_RATIO_MAX: f64 = 0.05;

/// The bad seconds of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct BadSeconds {
    media: Vec<Unloaded>,
    /// Bad user-seconds, and of these those that are bad by patterns alone.
    bad: f64,
    by_patterns: f64,
    /// How many of these seconds were bad by each clause.
    by_clause: [usize; Clause::ALL.len()],
}

impl BadSeconds {
    /// Adds a second with so many bad users, of whom so many are bad by patterns alone. One without
    /// bad users is none.
    pub(crate) fn add(
        &mut self,
        bad: f64,
        by_patterns: f64,
        clauses: [u64; Clause::ALL.len()],
        media: Unloaded,
    ) {
        if bad <= 0.0 {
            return;
        }
        self.media.push(media);
        self.bad += bad;
        self.by_patterns += by_patterns;
        for (seconds, users) in self.by_clause.iter_mut().zip(clauses) {
            *seconds += usize::from(users > 0);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.media.len()
    }

    /// Their media, if they are bad by a pattern: one that stays the same throughout, and beyond
    /// which worse can be seen.
    pub(crate) fn pattern(&self) -> Option<Unloaded> {
        let otherwise = self.bad - self.by_patterns;
        if self.by_patterns <= 0.0 || otherwise > OTHERWISE_RATIO_MAX * self.bad {
            return None;
        }
        let is_usual = |clause: Clause| {
            let seconds = self.by_clause.get(clause as usize).copied().unwrap_or(0);
            // Freezes come now and then. What else is bad in fewer seconds has a median within its
            // bound.
            if clause == Clause::Freeze { seconds > 0 } else { seconds * 2 >= self.count() }
        };
        let usual = |seconds: &[Unloaded]| Unloaded::usual(seconds).of_clauses(is_usual);
        let (early, late) = self.media.split_at(self.count() / 2);
        // A queue that fills, or a backlog that is served, is the load's work.
        let is_constant = usual(early).is_about(&usual(late));
        let pattern = usual(&self.media);
        (is_constant && pattern.leaves_room() && pattern != Unloaded::default()).then_some(pattern)
    }
}
