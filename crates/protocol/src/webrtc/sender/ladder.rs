//! One video at one or more rates, of which a sender plays one.

use std::sync::Arc;

use throng_media::source::Clip;

/// One video at one or more rates. Cheap to clone: clips are shared.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// The rung that is played without a rate limit.
    top: Arc<Clip>,
    /// The rungs below it, the lowest first.
    lower: Arc<[Arc<Clip>]>,
}

impl Ladder {
    /// A ladder of these rungs, in any order; `None` if there are none.
    #[must_use]
    pub fn new(mut rungs: Vec<Arc<Clip>>) -> Option<Self> {
        rungs.sort_by(|a, b| a.bitrate_bps().total_cmp(&b.bitrate_bps()));
        let top = rungs.pop()?;
        Some(Self { top, lower: rungs.into() })
    }

    /// The rung that is played without a rate limit.
    #[must_use]
    pub fn top(&self) -> &Arc<Clip> {
        &self.top
    }

    /// All rungs, the highest first.
    pub fn down(&self) -> impl Iterator<Item = &Arc<Clip>> {
        std::iter::once(&self.top).chain(self.lower.iter().rev())
    }

    /// The highest rung of at most `bps`, or the lowest if all are above: video that is sent at all
    /// has some rate.
    pub(super) fn fitting(&self, bps: f64) -> &Arc<Clip> {
        let lowest = self.lower.first().unwrap_or(&self.top);
        self.down().find(|clip| clip.bitrate_bps() <= bps).unwrap_or(lowest)
    }
}

/// A ladder of one rung, as for a file.
impl From<Arc<Clip>> for Ladder {
    fn from(top: Arc<Clip>) -> Self {
        Self { top, lower: Arc::default() }
    }
}
