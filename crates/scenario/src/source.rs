//! What a scenario was read from.

use std::fmt;

use crate::flags::Override;
use crate::secret::Secret;

/// The text of a scenario's file and its overrides, with their secrets, so that another process can
/// read the same scenario. `Debug` shows nothing of it.
#[derive(Clone)]
pub struct Source {
    text: Secret,
    overrides: Vec<Override>,
}

impl Source {
    pub(crate) fn new(text: &str, overrides: &[Override]) -> Self {
        Self { text: Secret::new(text), overrides: overrides.to_vec() }
    }

    /// The text of the file; empty where there was none. Not to be logged, stored or shown.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    /// What overrides it, in order. Not to be logged, stored or shown.
    #[must_use]
    pub fn overrides(&self) -> &[Override] {
        &self.overrides
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// Always: scenarios that say the same are equal, however they were written.
impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::flags::Override;
    use crate::scenario::Scenario;

    #[test]
    fn a_scenario_can_be_read_again_from_its_source_which_shows_no_secret() {
        let text = "[target]\nurl = \"whep+http://127.0.0.1/whep\"\ntoken = \"hunter2\"\n[run]\nduration = \"9s\"";
        let overrides = [Override::parse("crowd.size=7").expect("an override")];
        let scenario = Scenario::parse_with(text, &overrides).expect("a scenario");
        let again = Scenario::parse_with(scenario.source.expose(), scenario.source.overrides());
        assert_eq!(again.as_ref(), Ok(&scenario));
        assert!(!format!("{:?}", scenario.source).contains("hunter2"));
    }
}
