//! Whether a difference is one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a difference between two levels says.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EffectVerdict {
    /// The 95 % interval lies within the margin: too small a difference to matter.
    Same,
    /// Neither: more repeats would decide. Always without repeats.
    NotDecided,
    /// The 95 % interval lies on one side of 0, and not within the margin.
    Differs,
}

impl EffectVerdict {
    pub(super) fn of(interval: Option<[f64; 2]>, margin: f64) -> Self {
        match interval {
            Some([low, high]) if low >= -margin && high <= margin => Self::Same,
            Some([low, high]) if low > 0.0 || high < 0.0 => Self::Differs,
            _ => Self::NotDecided,
        }
    }

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "no effect",
            Self::NotDecided => "not decided",
            Self::Differs => "effect",
        }
    }
}
