//! What happened, in words that hold no secret.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::{AddAssign, Deref};

use serde::{Deserialize, Serialize};

use crate::masked::masked;

/// A sentence of a failure or an event. However it was made, the secrets of the URLs in it are `…`:
/// it is written into run folders and tables, shown, and sent to the coordinator of a fleet.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct Detail(String);

impl Detail {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Detail {
    fn from(text: String) -> Self {
        match masked(&text) {
            Cow::Borrowed(_) => Self(text),
            Cow::Owned(masked) => Self(masked),
        }
    }
}

impl From<&str> for Detail {
    fn from(text: &str) -> Self {
        Self(masked(text).into_owned())
    }
}

impl From<&String> for Detail {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Cow<'_, str>> for Detail {
    fn from(text: Cow<'_, str>) -> Self {
        text.into_owned().into()
    }
}

impl From<Detail> for String {
    fn from(detail: Detail) -> Self {
        detail.0
    }
}

/// The text may end within a URL, so that the whole is looked at.
impl AddAssign<&str> for Detail {
    fn add_assign(&mut self, more: &str) {
        *self = format!("{self}{more}").into();
    }
}

impl Deref for Detail {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Detail {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Detail {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Detail {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Detail {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, FailureReason};

    const SAID: &str = "http://me:hunter2@h/a.mp4?token=hunter2: no answer";
    const SHOWN: &str = "http://…@h/a.mp4?token=…: no answer";

    #[test]
    fn no_way_into_a_failure_keeps_the_secrets_of_a_url() {
        let mut added = Detail::from("http://h/?toke");
        added += "n=hunter2";
        let json = serde_json::to_string(SAID).unwrap();
        for detail in [
            Detail::from(SAID),
            SAID.to_owned().into(),
            Cow::Borrowed(SAID).into(),
            serde_json::from_str(&json).unwrap(),
            added,
        ] {
            let failure = Failure::new(FailureReason::Tcp, detail);
            let text =
                format!("{failure} {failure:?} {}", serde_json::to_string(&failure).unwrap());
            assert!(!text.contains("hunter2"), "{text}");
        }
        assert_eq!(Failure::new(FailureReason::Tcp, SAID).detail, SHOWN);
    }
}
