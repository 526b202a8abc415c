//! The renditions that a player of a given size plays.

/// How many of the renditions of these sizes, from that of the lowest bitrate on, a player plays
/// that has room for a picture of `screen_lines`: none that is larger than the smallest one that
/// fills it (hls.js `getMaxLevelByMediaSize`).
pub(in crate::player) fn fitting(
    sizes: impl IntoIterator<Item = Option<u32>>,
    screen_lines: Option<u32>,
) -> usize {
    let sizes: Vec<Option<u32>> = sizes.into_iter().collect();
    let Some(screen_lines) = screen_lines else { return sizes.len() };
    let fills = |at: &usize| {
        let size = sizes.get(*at).copied().flatten();
        // Of several of one size the best is played.
        let is_best = sizes.get(*at + 1).copied().flatten() != size;
        is_best && size.is_some_and(|lines| lines >= screen_lines)
    };
    (0..sizes.len()).find(fills).map_or(sizes.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_fills_the_screen_is_the_largest_that_is_played() {
        const LADDER: [Option<u32>; 4] = [Some(240), Some(360), Some(360), Some(720)];
        for (screen_lines, expect) in [
            (None, 4),
            (Some(100), 1),
            (Some(240), 1),
            // Both of 360 lines.
            (Some(241), 3),
            (Some(361), 4),
            (Some(1_080), 4),
        ] {
            assert_eq!(fitting(LADDER, screen_lines), expect, "{screen_lines:?}");
        }
    }

    #[test]
    fn what_has_no_size_is_played_and_fills_nothing() {
        assert_eq!(fitting([None, None], Some(360)), 2);
        assert_eq!(fitting([None, Some(720), None, Some(1_080)], Some(360)), 2);
        assert_eq!(fitting([], Some(360)), 0);
    }
}
