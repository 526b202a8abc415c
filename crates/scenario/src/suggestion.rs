//! Suggestions for misspelt names.

/// Longer texts are not typing errors of a short name, and comparing them takes quadratic time.
const LENGTH_MAX: usize = 40;

/// The candidate that `input` is probably meant to be.
pub(crate) fn nearest<'c>(
    input: &str,
    candidates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    if input.len() > LENGTH_MAX {
        return None;
    }
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(input, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
