//! What a ratio says where a side counts as more than it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::experiment::RatioEstimate;

use super::proof_text::{estimate, factor};

/// What the true ratio of variant to baseline is: a share of user-seconds that is below the least
/// one counts as the least.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RatioBound {
    /// As measured.
    #[default]
    Exact,
    /// At least that: the baseline counts as more than it is.
    AtLeast,
    /// At most that: the variant does.
    AtMost,
    /// Not known: both do.
    Unknown,
}

impl RatioBound {
    /// By whether baseline and variant count as more than they are.
    pub(super) fn of(raised: [bool; 2]) -> Self {
        match raised {
            [false, false] => Self::Exact,
            [true, false] => Self::AtLeast,
            [false, true] => Self::AtMost,
            [true, true] => Self::Unknown,
        }
    }

    /// That of a mean over ratios with these bounds.
    pub(super) fn of_all(bounds: impl Iterator<Item = Self>) -> Self {
        let raised = bounds.fold([false; 2], |[baseline, variant], bound| {
            [
                baseline || matches!(bound, Self::AtLeast | Self::Unknown),
                variant || matches!(bound, Self::AtMost | Self::Unknown),
            ]
        });
        Self::of(raised)
    }

    /// A ratio: `×2.10`, `≥ ×10.0`.
    pub(crate) fn factor(self, ratio: f64) -> String {
        match self {
            Self::Exact => factor(ratio),
            Self::AtLeast => format!("≥ {}", factor(ratio)),
            Self::AtMost => format!("≤ {}", factor(ratio)),
            Self::Unknown => "–".to_owned(),
        }
    }

    /// An estimate: `×2.10 (1.80 to 2.45)`, `≥ ×9.88`, by the end of its interval.
    pub(crate) fn estimate(self, one: Option<&RatioEstimate>) -> String {
        match (self, one) {
            (Self::Exact, _) | (_, None) => estimate(one),
            (bound, Some(one)) => bound.factor(bound.end(one)),
        }
    }

    /// The end of the interval that holds, whatever the raised side was.
    pub(super) fn end(self, one: &RatioEstimate) -> f64 {
        let [low, high] = one.interval.unwrap_or([one.ratio; 2]);
        if self == Self::AtMost { high } else { low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_bounded_as_its_ratios_are() {
        use RatioBound::{AtLeast, AtMost, Exact, Unknown};
        for (bounds, expect) in [
            (vec![], Exact),
            (vec![Exact, Exact], Exact),
            (vec![Exact, AtLeast], AtLeast),
            (vec![AtMost, Exact], AtMost),
            (vec![AtMost, AtLeast], Unknown),
            (vec![Exact, Unknown], Unknown),
        ] {
            assert_eq!(RatioBound::of_all(bounds.iter().copied()), expect, "{bounds:?}");
        }
    }

    #[test]
    fn what_is_bounded_is_said_by_the_end_that_holds() {
        let one = RatioEstimate { ratio: 10.0, interval: Some([9.88, 10.12]), pairs: 4 };
        let said = |bound: RatioBound| bound.estimate(Some(&one));
        assert_eq!(said(RatioBound::Exact), "×10.0 (9.88 to 10.12)");
        assert_eq!(said(RatioBound::AtLeast), "≥ ×9.88");
        assert_eq!(said(RatioBound::AtMost), "≤ ×10.1");
        assert_eq!(said(RatioBound::Unknown), "–");
        assert_eq!(RatioBound::AtLeast.estimate(None), "–");
    }
}
