//! What is known while runs are made, in sentences.

use super::{MatrixReport, ProofPair, RunStatus, VariantProof, text};

/// Of each variant of a proof the decision by the pairs that were made, and the last of them; of a
/// matrix the last run. Empty before the first run.
#[must_use]
pub fn so_far(report: &MatrixReport) -> Vec<String> {
    if !report.proofs.is_empty() {
        return report.proofs.iter().map(decision).collect();
    }
    let runs = report.cells.iter().flat_map(|cell| cell.runs.iter().map(move |run| (cell, run)));
    let made = runs.filter(|(_, run)| run.status != RunStatus::Pending);
    let last = made.max_by_key(|(_, run)| run.place);
    let said = last.map(|(cell, run)| {
        format!("last {}, run {}: {}", cell.name, run.repeat, text::run_line(run))
    });
    said.into_iter().collect()
}

fn decision(proof: &VariantProof) -> String {
    let (variant, planned) = (&proof.variant, proof.pairs.len());
    let decided = match &proof.effect {
        Some(effect) => format!(
            "{variant}: {} by {} of {planned} pairs, {}",
            proof.outcome.words(),
            effect.pairs,
            proof.bound.estimate(Some(effect))
        ),
        None => format!("{variant}: none of {planned} pairs counts yet"),
    };
    let is_made = |pair: &&ProofPair| pair.places.iter().all(Option::is_some);
    let Some(last) = proof.pairs.iter().rfind(is_made) else { return decided };
    match (&last.discarded, last.ratio) {
        (Some(why), _) => format!("{decided}; the last pair does not count: {why}"),
        (None, Some(ratio)) => format!("{decided}; the last pair {}", last.bound.factor(ratio)),
        (None, None) => decided,
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof_tests::confirmed;
    use super::super::tests::campus;
    use super::*;

    #[test]
    fn the_last_run_of_a_matrix_is_said_and_nothing_before_it() {
        let mut report = campus();
        for run in report.cells.iter_mut().flat_map(|cell| &mut cell.runs) {
            (run.status, run.place) = (RunStatus::Pending, None);
        }
        assert!(so_far(&report).is_empty());
        let cell = &mut report.cells[2];
        (cell.runs[1].status, cell.runs[1].place) = (RunStatus::Valid, Some(1));
        // It was cut off, and is made again.
        report.cells[0].runs[0].place = Some(2);
        let said = so_far(&report);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("last files=30 storage=disk, run 2: 40.2 % served"),
            "{said:?}"
        );
    }

    #[test]
    fn what_goes_on_is_not_finished_whatever_was_made() {
        let done = campus();
        assert!(!done.partial);
        let headline = format!("{}; not finished", done.headline);
        let open = done.in_progress();
        assert!(open.partial && open.headline == headline, "{}", open.headline);
        assert_eq!(open.clone().in_progress(), open, "said once");
    }

    #[test]
    fn a_proof_says_what_its_pairs_decide_and_the_last_of_them() {
        let mut report = confirmed();
        let proof = &mut report.proofs[0];
        proof.pairs[3].places = [Some(7), None];
        let said = so_far(&report);
        assert!(said[0].starts_with("four: confirmed by 4 of 4 pairs, ×2.0"), "{said:?}");
        assert!(said[0].contains("; the last pair ×2."), "{said:?}");
        let proof = &mut report.proofs[0];
        proof.pairs[2].discarded = Some("invalid".into());
        assert!(so_far(&report)[0].ends_with("; the last pair does not count: invalid"));
        let proof = &mut report.proofs[0];
        (proof.effect, proof.pairs) = (None, vec![ProofPair::default(); 2]);
        assert_eq!(so_far(&report), ["four: none of 2 pairs counts yet"]);
    }
}
