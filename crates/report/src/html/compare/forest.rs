//! A row of a forest plot: the difference and its interval against the margin.

use std::fmt::Write as _;

use crate::compare::ComparedQuantity;

/// The part of the width that the margin takes on each side, where nothing needs more.
const MARGIN_SHARE: f64 = 0.25;

/// The plot of a quantity; empty without an interval. The scale is the row's own: the margin, or
/// what the interval needs.
pub(super) fn one(row: &ComparedQuantity, class: &str) -> String {
    let (Some(by), Some([low, high])) = (row.difference, row.interval) else {
        return String::new();
    };
    let largest =
        [by, low, high].map(f64::abs).into_iter().fold(row.margin / MARGIN_SHARE / 2.0, f64::max);
    if !largest.is_finite() || largest <= 0.0 {
        return String::new();
    }
    // The middle is no difference; 46 of 50 leaves room for the round ends.
    let x = |value: f64| 50.0 + (value / largest).clamp(-1.0, 1.0) * 46.0;
    let mut out = format!(
        "<svg class=\"forest {class}\" viewBox=\"0 0 100 20\" preserveAspectRatio=\"none\" \
         role=\"img\"><title>difference and 95 % interval</title>"
    );
    let (from, until) = (x(-row.margin), x(row.margin));
    let _ = write!(
        out,
        "<rect class=\"zone\" x=\"{from:.1}\" y=\"2\" width=\"{:.1}\" height=\"16\"/>",
        until - from
    );
    out.push_str("<path class=\"zero\" d=\"M50 0V20\"/>");
    let _ = write!(out, "<path class=\"span\" d=\"M{:.1} 10H{:.1}\"/>", x(low), x(high));
    let _ = write!(out, "<path class=\"at\" d=\"M{:.1} 10h0.01\"/></svg>", x(by));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_point_lies_in_its_interval_and_the_zone_around_the_middle() {
        let row = ComparedQuantity {
            difference: Some(4.0),
            interval: Some([2.0, 6.0]),
            margin: 1.0,
            ..ComparedQuantity::default()
        };
        let plot = one(&row, "worse");
        for part in [
            "class=\"forest worse\"",
            "M65.3 10H96.0",
            "M80.7 10h0.01",
            "x=\"42.3\"",
            "width=\"15.3\"",
        ] {
            assert!(plot.contains(part), "{part}: {plot}");
        }
    }

    #[test]
    fn nothing_is_drawn_where_there_is_nothing_to_draw() {
        for (difference, interval, margin) in [
            (None, None, 1.0),
            (Some(1.0), None, 1.0),
            (Some(0.0), Some([0.0, 0.0]), 0.0),
            (Some(f64::NAN), Some([f64::NEG_INFINITY, 1.0]), 1.0),
        ] {
            let row =
                ComparedQuantity { difference, interval, margin, ..ComparedQuantity::default() };
            assert_eq!(one(&row, ""), "", "{row:?}");
        }
    }
}
