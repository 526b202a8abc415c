//! Participants whose received video another process decodes.

use serde_json::json;

use crate::keys::Usual::{Required, Stored};
use crate::keys::{By, Flag, Keyed, keys};
use crate::read::{Fields, Node, Reader, Value};

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

impl Keyed for Tap {
    const NAME: &'static str = "TapFile";
    const MEANING: &'static str = "Participants whose received video another process decodes.";

    keys! {
        /// the first N participants to join (1 to 1,000), or a list of participant numbers, in the
        /// order of joins from 0, such as `[0, 17]`
        "participants": selection = TAPPED, Required("write under [tap] participants = 3");
        /// decode during the run; with `false`, `throng tap RUN` may attach
        "decode": decode = Flag, Stored;
        /// keep the coded streams in the run folder
        "keep": keep = Flag, Stored;
        /// compare decoded pictures of the test card, up to 720p, with their source (SSIM)
        "ssim": ssim = Flag, Stored;
    }

    fn usual() -> Self {
        Self { selection: TapSelection::default(), decode: true, keep: false, ssim: false }
    }
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
const LISTED_MAX: u32 = 1_000;

const TAPPED: By<TapSelection> = By {
    read: tapped,
    write: |selection| {
        Some(match selection {
            TapSelection::First(count) => (*count).into(),
            TapSelection::These(numbers) => numbers.clone().into(),
        })
    },
    schema: |_| {
        let number = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": LISTED_MAX },
            { "type": "array", "minItems": 1, "maxItems": LISTED_MAX, "items": number },
        ] })
    },
};

fn tapped(reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<TapSelection> {
    let number = |node: &Node| match node.value {
        Value::Integer(value) => u32::try_from(value).ok(),
        _ => None,
    };
    let node = fields.get(key)?;
    let selection = match &node.value {
        Value::List(nodes) if (1..=LISTED_MAX as usize).contains(&nodes.len()) => {
            nodes.iter().map(number).collect::<Option<Vec<_>>>().map(TapSelection::These)
        }
        _ => number(node).filter(|count| (1..=LISTED_MAX).contains(count)).map(TapSelection::First),
    };
    if selection.is_none() {
        let message = format!(
            "`{}` is not a whole number from 1 to {LISTED_MAX} (the first to join), or a list \
             such as [0, 17]",
            fields.path_of(key)
        );
        reader.fail(node.span, message, "write participants = 3");
    }
    selection
}

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
