//! Participants whose received video another process decodes.

/// The tap of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// The participants.
    pub selection: TapSelection,
    /// Decode during the run; otherwise `throng tap` may attach.
    pub decode: bool,
    /// Keep the coded streams in the run folder.
    pub keep: bool,
    /// Compare decoded pictures of the test card with their source (SSIM).
    pub ssim: bool,
}

/// Which participants are tapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TapSelection {
    /// The first N to join.
    First(u32),
    /// By their numbers in the order of joins, from 0.
    These(Vec<u32>),
}

/// Most tapped participants: each needs a decoder.
pub(crate) const LISTED_MAX: usize = 1_000;

impl Default for TapSelection {
    /// None.
    fn default() -> Self {
        Self::First(0)
    }
}

impl TapSelection {
    /// Whether participant `number` is tapped.
    #[must_use]
    pub fn holds(&self, number: u32) -> bool {
        match self {
            Self::First(count) => number < *count,
            Self::These(numbers) => numbers.contains(&number),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, TapSelection};

    fn tap(toml: &str) -> Result<Option<super::Tap>, String> {
        let text =
            format!("[target]\nurl = \"whep+http://127.0.0.1/whep\"\n[crowd]\nsize = 9\n{toml}");
        let scenario = Scenario::parse(&text).map_err(|error| error.to_string())?;
        let again = Scenario::parse(&scenario.to_toml()).map_err(|error| error.to_string())?;
        assert_eq!(again.tap, scenario.tap, "{}", scenario.to_toml());
        Ok(scenario.tap)
    }

    #[test]
    fn a_tap_is_read_and_written_again() {
        assert_eq!(tap(""), Ok(None));
        let first = tap("[tap]\nparticipants = 3\n").unwrap().unwrap();
        assert_eq!(
            (first.selection.clone(), first.decode, first.keep, first.ssim),
            (TapSelection::First(3), true, false, false)
        );
        assert!(first.selection.holds(2) && !first.selection.holds(3));
        let these = tap("[tap]\nparticipants = [0, 7]\ndecode = false\nkeep = true\nssim = true\n")
            .unwrap()
            .unwrap();
        assert!(these.selection.holds(7) && !these.selection.holds(1));
        assert_eq!((these.decode, these.keep, these.ssim), (false, true, true));
    }

    #[test]
    fn a_tap_without_participants_gets_a_hint() {
        for (toml, expect) in [
            ("[tap]\n", "participants = 3"),
            ("[tap]\nparticipants = 0\n", "a whole number"),
            ("[tap]\nparticipants = []\n", "participants"),
            ("[tap]\nparticipants = [-1]\n", "participants"),
            ("[tap]\nparticipants = \"all\"\n", "participants"),
            ("[tap]\nparticipants = 1\nkept = true\n", "kept"),
        ] {
            let error = tap(toml).unwrap_err();
            assert!(error.contains(expect), "{toml}: {error}");
        }
    }
}
