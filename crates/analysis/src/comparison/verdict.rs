//! What a difference means: direction, margin, and the correction for many quantities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Difference, Figure, difference};

/// The probability of a wrong *worse* or *better* among all quantities of a group.
const LEVEL: f64 = 0.05;

/// In which direction a quantity is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Less is better.
    #[default]
    Lower,
    /// More is better.
    Higher,
}

/// How small a difference does not matter: the larger of a share of the base and an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// A share of the base's figure.
    pub relative: f64,
    /// An amount, in the quantity's unit: what no user notices, or no meter resolves.
    pub absolute: f64,
}

impl Tolerance {
    /// The margin around `base`.
    #[must_use]
    pub fn around(self, base: f64) -> f64 {
        (self.relative * base.abs()).max(self.absolute)
    }
}

/// A quantity of both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Its direction.
    pub direction: Direction,
    /// What does not matter.
    pub tolerance: Tolerance,
    /// The step in which it is measured; 0 where it is continuous.
    pub resolution: f64,
    /// A quantity with the same group shares its error probability: the question of the comparison,
    /// and what is measured besides.
    pub group: u8,
    /// Figures of the base, one for each run.
    pub base: Vec<Figure>,
    /// Figures of the new side.
    pub new: Vec<Figure>,
}

/// The verdict on a quantity, or on a comparison.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// Significantly better, by more than the margin.
    Better,
    /// The interval lies within the margin.
    Same,
    /// Neither: longer runs or more of them would decide.
    #[default]
    NotDecided,
    /// Significantly worse, by more than the margin.
    Worse,
}

impl ComparisonVerdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Same => "same",
            Self::NotDecided => "not decided",
            Self::Worse => "worse",
        }
    }
}

/// A difference and its verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The difference.
    pub difference: Difference,
    /// Its margin, in the quantity's unit.
    pub margin: f64,
    /// Its p-value after Holm's correction; `None` without an interval.
    pub p_corrected: Option<f64>,
    /// The verdict.
    pub verdict: ComparisonVerdict,
}

/// Judges quantities together; `None` for those that one side did not measure.
#[must_use]
pub fn judge(questions: &[Question]) -> Vec<Option<Judged>> {
    let differences: Vec<Option<Difference>> = questions
        .iter()
        .map(|question| difference(&question.base, &question.new, question.resolution))
        .collect();
    let p_values: Vec<Option<f64>> = differences
        .iter()
        .map(|difference| difference.as_ref().and_then(Difference::p_value))
        .collect();
    let mut corrected = vec![None; questions.len()];
    let mut groups: Vec<u8> = questions.iter().map(|question| question.group).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let of_group = questions
            .iter()
            .zip(&p_values)
            .enumerate()
            .filter(|(_, (question, _))| question.group == group);
        let known: Vec<(usize, f64)> =
            of_group.filter_map(|(index, (_, p))| Some((index, (*p)?))).collect();
        for (index, p) in holm(known) {
            if let Some(place) = corrected.get_mut(index) {
                *place = Some(p);
            }
        }
    }
    let judged =
        questions.iter().zip(differences).zip(corrected).map(|((question, difference), p)| {
            let difference = difference?;
            let margin = question.tolerance.around(difference.base);
            let verdict = verdict(question.direction, &difference, margin, p);
            Some(Judged { difference, margin, p_corrected: p, verdict })
        });
    judged.collect()
}

fn verdict(
    direction: Direction,
    difference: &Difference,
    margin: f64,
    p: Option<f64>,
) -> ComparisonVerdict {
    let (Some([low, high]), Some(p)) = (difference.interval(), p) else {
        return ComparisonVerdict::NotDecided;
    };
    if low >= -margin && high <= margin {
        return ComparisonVerdict::Same;
    }
    let by = difference.value();
    if p >= LEVEL || by.abs() <= margin {
        return ComparisonVerdict::NotDecided;
    }
    match (direction, by > 0.0) {
        (Direction::Lower, true) | (Direction::Higher, false) => ComparisonVerdict::Worse,
        (Direction::Lower, false) | (Direction::Higher, true) => ComparisonVerdict::Better,
    }
}

/// Holm's step-down correction: the smallest p-value times the number of all, the next times one
/// fewer, none below the one before.
fn holm(mut known: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let count = known.len();
    let mut largest = 0.0_f64;
    for (place, (_, p)) in known.iter_mut().enumerate() {
        largest = largest.max((*p * (count - place) as f64).min(1.0));
        *p = largest;
    }
    known
}
