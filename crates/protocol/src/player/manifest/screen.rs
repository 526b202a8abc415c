//! The renditions that a player of a given size plays.

/// Leaves of the renditions, which are sorted by bitrate, those that a player with room for a
/// picture of `screen_lines` plays: none that is larger than the smallest one that fills it (hls.js
/// `getMaxLevelByMediaSize`, whose levels are sorted by size). Of a better codec the larger picture
/// may have the lower bitrate. Those without a size are left unless their bitrate is higher.
pub(in crate::player) fn keep_fitting<T>(
    renditions: &mut Vec<T>,
    lines_of: impl Fn(&T) -> Option<u32>,
    screen_lines: Option<u32>,
) {
    let Some(screen_lines) = screen_lines else { return };
    let sizes = renditions.iter().filter_map(&lines_of);
    let Some(largest) = sizes.filter(|lines| *lines >= screen_lines).min() else { return };
    let fits = |rendition: &T| lines_of(rendition).is_some_and(|lines| lines <= largest);
    let played = renditions.iter().rposition(fits).map_or(0, |last| last + 1);
    renditions.truncate(played);
    renditions.retain(|rendition| lines_of(rendition).is_none_or(|lines| lines <= largest));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of those of these sizes that are played.
    fn fitting(sizes: &[Option<u32>], screen_lines: Option<u32>) -> Vec<usize> {
        let mut all: Vec<(usize, Option<u32>)> = sizes.iter().copied().enumerate().collect();
        keep_fitting(&mut all, |(_, lines)| *lines, screen_lines);
        all.into_iter().map(|(at, _)| at).collect()
    }

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
            let expect: Vec<usize> = (0..expect).collect();
            assert_eq!(fitting(&LADDER, screen_lines), expect, "{screen_lines:?}");
        }
    }

    #[test]
    fn a_larger_picture_of_a_lower_bitrate_is_no_smaller_one() {
        let hevc_between = [Some(240), Some(720), Some(360), Some(1_080), Some(720)];
        assert_eq!(fitting(&hevc_between, Some(360)), [0, 2]);
        assert_eq!(fitting(&hevc_between, Some(720)), [0, 1, 2, 4]);
        assert_eq!(fitting(&hevc_between, Some(721)), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_has_no_size_is_played_and_fills_nothing() {
        assert_eq!(fitting(&[None, None], Some(360)), [0, 1]);
        assert_eq!(fitting(&[None, Some(720), None, Some(1_080)], Some(360)), [0, 1]);
        assert_eq!(fitting(&[], Some(360)), [0; 0]);
    }
}
