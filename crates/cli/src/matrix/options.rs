//! What the command line adds to the file of a matrix or a proof.

use serde::{Deserialize, Serialize};
use throng_scenario::{Override, masked_override};

use crate::args::Matrix as Arguments;
use crate::console::CliError;
use crate::kept::Hidden;
use crate::secrets;

/// What the command line adds to the file; kept with the matrix, so that `--resume` has the same.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Options {
    #[serde(default)]
    pub(super) kind: Kind,
    /// `--shrink`.
    #[serde(default)]
    pub(super) shrink: Option<String>,
    pub(super) set: Vec<String>,
    pub(super) allow_target: Vec<String>,
    pub(super) threads: Option<usize>,
    /// How many workers play each run; `None` on one machine. Not their bus: its address may have a
    /// password.
    #[serde(default)]
    pub(super) workers: Option<usize>,
    /// A proof is looked at after each round, and its intervals allow for that; not in folders of
    /// versions that looked once.
    #[serde(default)]
    pub(super) is_sequential: bool,
    /// What `--resume` was given of the copies of the files; it is not kept.
    #[serde(skip)]
    pub(super) again: Again,
}

/// Overrides that complete the copies of the files. They have the place of the file: what overrides
/// a value of it, such as the `set` of a level, overrides theirs.
#[derive(Clone, Debug, Default)]
pub(super) struct Again {
    /// Of the scenario.
    pub(super) scenario: Vec<String>,
    /// Of `[set]` of the matrix.
    pub(super) set: Vec<String>,
}

/// What is hidden in the copies of the files that a folder has.
#[derive(Debug)]
pub(super) struct HiddenOfCopies {
    /// In the scenario.
    pub(super) scenario: Vec<Hidden>,
    /// In `[set]` of the matrix.
    pub(super) set: Vec<Hidden>,
}

/// What the file is one of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    #[default]
    Matrix,
    Proof,
}

impl Kind {
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Proof => "proof",
        }
    }

    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Matrix => "matrix",
            Self::Proof => "prove",
        }
    }
}

impl Options {
    pub(super) fn of(command: &Arguments, kind: Kind, shrink: Option<String>) -> Self {
        Self {
            kind,
            shrink,
            set: command.set.clone(),
            allow_target: command.allow_target.clone(),
            threads: command.threads,
            workers: None,
            is_sequential: true,
            again: Again::default(),
        }
    }

    /// The same without secrets, to be kept.
    pub(super) fn kept(&self) -> Self {
        let set = self.set.iter().map(|set| masked_override(set)).collect();
        Self { set, ..self.clone() }
    }

    /// What was kept, with the secrets that are given again: of it, or of the values that are
    /// `hidden` in the copies of the files. All else of a value is as it was: runs of another
    /// experiment cannot be compared with those that were made.
    pub(super) fn with_secrets(
        mut self,
        given: &[String],
        hidden: &HiddenOfCopies,
    ) -> Result<Self, CliError> {
        for given in given {
            let text = secrets::override_text(given)?;
            let parsed = Override::parse(&text).ok();
            let gives =
                |hidden: &Hidden| parsed.as_ref().is_some_and(|set| hidden.is_given_by(set));
            let again = self
                .set
                .iter_mut()
                .find(|set| Hidden::of_set(set.as_str()).is_some_and(|hidden| gives(&hidden)));
            match again {
                Some(again) => given.clone_into(again),
                None if hidden.set.iter().any(gives) => self.again.set.push(given.clone()),
                None if hidden.scenario.iter().any(gives) => {
                    self.again.scenario.push(given.clone());
                }
                None => {
                    return Err(CliError::usage(format!(
                        "--set {}: with --resume it can only give a secret again; nothing else \
                         may change",
                        masked_override(&text)
                    )));
                }
            }
        }
        // Also of what was given with `…`, as it is shown.
        let all = self.set.iter().chain(&self.again.set).chain(&self.again.scenario);
        let missing = all.filter_map(|set| Hidden::of_set(set));
        let flags: Vec<String> = missing.map(|hidden| hidden.flag()).collect();
        if flags.is_empty() {
            return Ok(self);
        }
        Err(CliError::usage(format!(
            "secrets are not kept in a folder; give --resume them again: {}",
            flags.join(" ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_again_is_a_secret_and_changes_nothing_else() {
        let set = ["target.token=…", "target.url=http://…@h/x?token=…", "crowd.size=5"];
        let options = Options { set: set.map(str::to_owned).to_vec(), ..Options::default() };
        let hidden = HiddenOfCopies {
            scenario: Hidden::of_file("[target]\nturn_password = \"…\"\nturn = \"turn://…@h\"\n"),
            set: Vec::new(),
        };
        let with = |given: &[&str]| {
            let all = ["target.token=a", "target.url=http://me:b@h/x?token=c"];
            let given = all.iter().chain(given).map(|set| (*set).to_owned()).collect::<Vec<_>>();
            options.clone().with_secrets(&given, &hidden)
        };
        let kept = with(&[]).unwrap_or_else(|stop| panic!("{:#}", stop.error));
        let shown = ["target.token=a", "target.url=http://me:b@h/x?token=c", "crowd.size=5"];
        assert_eq!(kept.set, shown);
        for (given, is_secret) in [
            ("target.turn_password=d", true),
            ("target.turn=turn://me:d@h", true),
            ("target.turn=turn://me:d@other", false),
            ("room.admin_key=d", false),
            ("crowd.size=6", false),
        ] {
            assert_eq!(with(&[given]).is_ok(), is_secret, "{given}");
        }
        let other = ["target.token=a", "target.url=http://me:b@other/x?token=c"];
        assert!(options.with_secrets(&other.map(str::to_owned), &hidden).is_err());
    }
}
