//! What the pairs of a proof measure, once a search of the baseline has chosen it.

use serde::{Deserialize, Serialize};
use throng_analysis::experiment::Choice;

/// How often the search is made where it says nothing: the generator was the limit, or nothing
/// could be decided, which may be otherwise another time.
pub(super) const TRIES: u32 = 2;

/// How many searches choose at most: the last one may be continued between its ends.
pub(super) const SEARCHES_MAX: u32 = TRIES + 1;

/// What the pairs measure, as the folder keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Chosen {
    pub(super) choice: Choice,
    /// The choice and what it is from, in a sentence.
    pub(super) why: String,
}
