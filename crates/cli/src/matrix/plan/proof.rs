//! What a proof compares.

use throng_analysis::experiment::Choice;
use throng_report::matrix::{ProofInput, ProofShrink, ProofVariant};
use throng_scenario::matrix::Pair;

use super::MatrixPlan;

impl MatrixPlan {
    /// What a proof compares; `None` for a matrix.
    pub(crate) fn proof(&self, repeated: &[Pair]) -> Option<ProofInput> {
        let levels = &self.matrix.factors.first().filter(|_| self.matrix.is_proof())?.levels;
        let variant = |(cell, level): (usize, &throng_scenario::matrix::Level)| {
            // A filter at the full rate is no change.
            let shrink = level.shrink.iter().find(|shrink| shrink.to < 1.0);
            ProofVariant {
                cell,
                relieves: level.relieves.clone(),
                more: level.more,
                shrink: shrink.map(|shrink| ProofShrink {
                    resource: shrink.resource.key().to_owned(),
                    to: shrink.to,
                    is_placebo: shrink.is_placebo,
                }),
            }
        };
        let variants = levels.iter().enumerate().skip(1).map(variant).collect();
        let blocks = self.matrix.blocks().into_iter();
        let blocks = blocks
            .map(|block| (block.variant, block.runs.map(|run| (run.cell, run.repeat))))
            .collect();
        let busy_difference = self.matrix.busy_difference;
        let again = repeated
            .iter()
            .map(|pair| (pair.variant, pair.runs.each_ref().map(|run| (run.cell, run.repeat))))
            .collect();
        // Before pairs are made once more there is a further look.
        let looks = self.looks.len() + usize::from(!repeated.is_empty());
        let (no_limit_up_to, beyond) = match self.chosen.as_ref().map(|chosen| chosen.choice) {
            Some(Choice::NoLimit { users }) => (Some(users), None),
            Some(Choice::Hold { users, passing }) => {
                (None, Some(f64::from(users) / f64::from(passing.max(1))))
            }
            Some(Choice::Search(_)) | None => (None, None),
        };
        Some(ProofInput {
            variants,
            blocks,
            repeated: again,
            looks,
            demands: Vec::new(),
            busy_difference,
            chosen: self.chosen.as_ref().map(|chosen| chosen.why.clone()),
            no_limit_up_to,
            beyond,
        })
    }
}
