//! Names of a run's participants in rooms that other runs may use too.

/// A suffix of the names of a run's participants on the wire, so that two runs in one room neither
/// replace each other's participants nor count them as their own. Within the run names have no
/// suffix. The default adds none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunMark(Option<String>);

impl RunMark {
    /// A suffix of these letters and digits.
    #[must_use]
    pub fn new(letters: &str) -> Self {
        Self(Some(format!("-{letters}")))
    }

    /// Its letters and digits; `throng` if it adds none.
    #[must_use]
    pub fn letters(&self) -> &str {
        self.0.as_deref().and_then(|mark| mark.strip_prefix('-')).unwrap_or("throng")
    }

    /// The name on the wire of participant `name` of this run.
    #[must_use]
    pub fn put(&self, name: &str) -> String {
        [name, self.0.as_deref().unwrap_or_default()].concat()
    }

    /// The name within the run of the participant `called` on the wire; a name without the suffix
    /// is unchanged.
    #[must_use]
    pub fn take<'a>(&self, called: &'a str) -> &'a str {
        self.0.as_deref().and_then(|mark| called.strip_suffix(mark)).unwrap_or(called)
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::run::ParticipantId;

    use super::*;

    #[test]
    fn a_run_recognises_its_own_participants_only() {
        let (ours, theirs) = (RunMark::new("k3f9"), RunMark::new("x7aa"));
        let name = ParticipantId(7).name();
        assert_eq!(ours.put(&name), "throng-7-k3f9");
        assert_eq!(ours.take(&ours.put(&name)), name);
        assert_eq!(ParticipantId::from_name(ours.take(&theirs.put(&name))), None);
        assert_eq!(ours.take("Ada"), "Ada");
        assert_eq!(RunMark::default().put(&name), name);
        assert_eq!(RunMark::default().take(&name), name);
    }
}
