//! Confirmation by change of one factor: a verdict says that a resource is the limit; a cell that
//! differs only in having more of that resource must then serve better.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::Relief;

use super::{
    CellValues, Factor, Margin, NamedLimit, Noise, is_relieved, resource_of, resource_of_relief,
};

/// A cell with a verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedCell {
    /// Its number, for the reader.
    pub number: usize,
    /// How well it served: one value for each valid run, more is better.
    pub service: CellValues,
    /// The limit that most of its runs name; `None` if nothing failed or nothing is named.
    pub limit: Option<NamedLimit>,
}

/// What the service of cells is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// How well a crowd of given size was served: with enough of the resource, the verdict goes
    /// away.
    OfCrowd,
    /// How large a crowd could be: some limit always follows, perhaps the same one later.
    Capacity,
}

/// A verdict, and the cell in which its resource was relieved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// The cell with the verdict.
    pub cell: usize,
    /// The cell that differs from it only in `factor`.
    pub other_cell: usize,
    /// The finding.
    pub finding: String,
    /// The resource that the finding is about; of a finding without one, the finding.
    pub resource: String,
    /// The factor that gives more of it.
    pub factor: String,
    /// Its level with the verdict, and the other.
    pub levels: [String; 2],
    /// The service in both cells.
    pub service: [f64; 2],
    /// 95 % interval of the gain; `null` without repeats, where the margin alone decides.
    pub gain_interval: Option<[f64; 2]>,
    /// The finding of the other cell; `null` if there is none.
    pub other_finding: Option<String>,
    /// What follows.
    pub outcome: ConfirmationOutcome,
}

/// What the change of one factor says about a verdict.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationOutcome {
    /// Service is better by more than the margin, and the resource is no longer named. In a search,
    /// where the next limit is always named, a larger capacity is enough.
    Confirmed,
    /// Service is the same, within the margin: the resource was not the limit.
    Refuted,
    /// Neither.
    NotDecided,
}

impl ConfirmationOutcome {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::NotDecided => "not decided",
        }
    }
}

/// All verdicts that a neighbouring cell can confirm or refute. `relieved` says what the step of a
/// factor from one level to another gives more of.
#[must_use]
pub fn confirmations<'r>(
    factors: &[Factor],
    cells: &[JudgedCell],
    relieved: &dyn Fn(usize, usize, usize) -> Option<&'r Relief>,
    service: Service,
    margin: Margin,
) -> Vec<Confirmation> {
    let values: Vec<CellValues> = cells.iter().map(|cell| cell.service.clone()).collect();
    let (noise, margin) = (Noise::of(&values), margin.of(&values));
    let mut all = Vec::new();
    for cell in cells {
        let Some(limit) = &cell.limit else { continue };
        for other in cells {
            let Some((index, from, to)) = one_step(&cell.service, &other.service) else { continue };
            let relief = relieved(index, from, to).filter(|relief| is_relieved(limit, relief));
            let Some(relief) = relief else { continue };
            let (Some(a), Some(b)) = (cell.service.mean(), other.service.mean()) else { continue };
            let runs = [(cell.service.count(), 1.0), (other.service.count(), 1.0)];
            let gain_interval = noise.map(|noise| noise.around(b - a, runs.into_iter()));
            let is_named = other.limit.as_ref().is_some_and(|limit| is_relieved(limit, relief));
            let resource = resource_of(&limit.finding).or_else(|| resource_of_relief(relief));
            let name = |level: usize| {
                factors
                    .get(index)
                    .and_then(|factor| factor.levels.get(level))
                    .cloned()
                    .unwrap_or_default()
            };
            all.push(Confirmation {
                cell: cell.number,
                other_cell: other.number,
                finding: limit.finding.clone(),
                resource: resource.unwrap_or(&limit.finding).to_owned(),
                factor: factors.get(index).map(|factor| factor.name.clone()).unwrap_or_default(),
                levels: [name(from), name(to)],
                service: [a, b],
                gain_interval,
                other_finding: other.limit.as_ref().map(|limit| limit.finding.clone()),
                outcome: outcome(
                    b - a,
                    gain_interval,
                    margin,
                    is_named && service == Service::OfCrowd,
                ),
            });
        }
    }
    all
}

/// The factor in which two cells differ, if it is exactly one, and its levels.
fn one_step(a: &CellValues, b: &CellValues) -> Option<(usize, usize, usize)> {
    let mut steps = a.levels.iter().zip(&b.levels).enumerate().filter(|(_, (from, to))| from != to);
    let (index, (from, to)) = steps.next()?;
    (steps.next().is_none() && a.levels.len() == b.levels.len()).then_some((index, *from, *to))
}

fn outcome(
    gain: f64,
    interval: Option<[f64; 2]>,
    margin: f64,
    is_still_named: bool,
) -> ConfirmationOutcome {
    let [low, high] = interval.unwrap_or([gain, gain]);
    if low > 0.0 && gain > margin && !is_still_named {
        ConfirmationOutcome::Confirmed
    } else if low >= -margin && high <= margin {
        ConfirmationOutcome::Refuted
    } else {
        ConfirmationOutcome::NotDecided
    }
}
