//! Paths of which the run has kept no secret, in a log, which has them whole.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use throng_observation::masked::{HIDDEN, masked_request_path};

/// The paths of a run, as which those of a log are read. Empty where the run has hidden nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KeptPaths {
    all: HashSet<String>,
    shapes: BTreeSet<Shape>,
}

/// The places of what is hidden in a path: few, however many paths there are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    segments: usize,
    /// Those with something hidden, by their places.
    hidden: Vec<(usize, String)>,
}

impl KeptPaths {
    pub(super) fn new<'p>(paths: impl Iterator<Item = &'p str>) -> Self {
        let all: HashSet<String> = paths.map(|path| masked_request_path(path).into()).collect();
        let shapes: BTreeSet<Shape> = all.iter().filter_map(|path| Shape::of(path)).collect();
        if shapes.is_empty() { Self::default() } else { Self { all, shapes } }
    }

    /// A path of a log as the run would have kept it.
    pub(super) fn of<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let path = masked_request_path(path);
        if self.shapes.is_empty() || self.all.contains(&*path) {
            return path;
        }
        let segments: Vec<&str> = path.split('/').collect();
        let mut kept = self.shapes.iter().filter_map(|shape| shape.kept(&segments));
        let kept = kept.find(|kept| self.all.contains(kept));
        kept.map_or(path, Cow::Owned)
    }
}

impl Shape {
    /// Of a path with something hidden.
    fn of(path: &str) -> Option<Self> {
        let segments = || path.split('/').enumerate();
        let hidden = segments().filter(|(_, segment)| segment.contains(HIDDEN));
        let hidden: Vec<_> = hidden.map(|(place, segment)| (place, segment.to_owned())).collect();
        (!hidden.is_empty()).then(|| Self { segments: segments().count(), hidden })
    }

    /// A path of this shape with the same hidden.
    fn kept(&self, segments: &[&str]) -> Option<String> {
        if segments.len() != self.segments {
            return None;
        }
        let mut kept = segments.to_vec();
        for (place, hidden) in &self.hidden {
            let segment = kept.get_mut(*place).filter(|segment| may_be(segment, hidden))?;
            *segment = hidden;
        }
        Some(kept.join("/"))
    }
}

/// Whether a segment may be one of which `hidden` is kept.
fn may_be(segment: &str, hidden: &str) -> bool {
    let begin = hidden.split(HIDDEN).next().unwrap_or_default();
    let end = hidden.rsplit(HIDDEN).next().unwrap_or_default();
    let secret = segment.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    secret.is_some_and(|secret| !secret.is_empty())
}
