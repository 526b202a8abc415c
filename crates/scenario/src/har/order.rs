//! Which request of a recording waited for which.
//!
//! A recording does not say it. A request is taken to follow the one that had ended last before it
//! began: what it needed, a script, a style sheet, a free connection, had come by then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::After;

/// Begin and end, microseconds on any clock; the end is not before the begin.
pub(super) type Span = (i64, i64);

/// What each of `begins`, in ascending order, follows among the `spans`, which are in the order of
/// their begins; `base` is when the page began. Where `begins` are those of the spans themselves,
/// none follows itself or a later one.
pub(super) fn followed(
    spans: &[Span],
    begins: impl IntoIterator<Item = i64>,
    base_us: i64,
) -> Vec<After> {
    let mut ends = BinaryHeap::new();
    let mut ended: Option<(i64, usize)> = None;
    let mut spans = spans.iter().enumerate();
    let mut followed = Vec::new();
    for begin_us in begins {
        while let Some(Reverse((end_us, index))) =
            ends.peek().copied().filter(|Reverse((us, _))| *us <= begin_us)
        {
            ends.pop();
            ended = Some((end_us, index));
        }
        let (request, since_us) =
            ended.map_or((None, base_us), |(end_us, index)| (Some(index), end_us));
        let delay =
            Duration::from_micros(u64::try_from(begin_us.saturating_sub(since_us)).unwrap_or(0));
        followed.push(After { request, delay });
        // Itself is known to those that come after it.
        ends.extend(spans.next().map(|(index, (_, end_us))| Reverse((*end_us, index))));
    }
    followed
}

/// What a begin follows among all `spans`.
pub(super) fn followed_by(spans: &[Span], begin_us: i64, base_us: i64) -> After {
    let last = spans.iter().enumerate().filter(|(_, (_, end_us))| *end_us <= begin_us);
    let last = last.max_by_key(|(_, (_, end_us))| *end_us);
    let (request, since_us) =
        last.map_or((None, base_us), |(index, (_, end_us))| (Some(index), *end_us));
    let delay =
        Duration::from_micros(u64::try_from(begin_us.saturating_sub(since_us)).unwrap_or(0));
    After { request, delay }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_follows_what_ended_last_before_it_began() {
        let spans =
            [(0, 100), (110, 300), (110, 200), (250, 260), (305, 400), (400, 400), (400, 400)];
        let order: Vec<_> = followed(&spans, spans.map(|(begin, _)| begin), 0)
            .into_iter()
            .map(|after| (after.request, after.delay.as_micros()))
            .collect();
        assert_eq!(
            order,
            [
                (None, 0),
                (Some(0), 10),
                (Some(0), 10),
                (Some(2), 50),
                (Some(1), 5),
                // At once: the second of two that took no time follows the first, never the other
                // way round.
                (Some(4), 0),
                (Some(5), 0),
            ]
        );
        assert_eq!(
            followed_by(&spans, 270, 0),
            After { request: Some(3), delay: Duration::from_micros(10) }
        );
        assert_eq!(
            followed_by(&spans, 50, 0),
            After { request: None, delay: Duration::from_micros(50) }
        );
    }
}
