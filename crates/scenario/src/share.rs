//! A share of the crowd: a run on several machines is the same run with a smaller share on each.

use std::fmt;
use std::str::FromStr;

/// Every `of`-th join, beginning with number `index`. `0/1` is all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    index: u32,
    of: u32,
}

/// Why a text is not a share, with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// Not two numbers.
    #[error("`{0}` is not a share; write `INDEX/OF`, such as `0/4` for the first of four")]
    NotShare(String),
    /// The index is not below the number of shares.
    #[error("share {index} of {of} does not exist; the index runs from 0 to OF − 1")]
    OutOfRange {
        /// The index as given.
        index: u32,
        /// The number of shares as given.
        of: u32,
    },
}

impl Share {
    /// The whole crowd.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// Share number `index` (from 0) of `of`.
    ///
    /// # Errors
    /// When `index` is not below `of`.
    pub fn new(index: u32, of: u32) -> Result<Self, ShareError> {
        if index < of { Ok(Self { index, of }) } else { Err(ShareError::OutOfRange { index, of }) }
    }

    /// Whether the join with this number (its participant's id) is in this share.
    #[must_use]
    pub fn holds(self, number: u32) -> bool {
        number % self.of == self.index
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let wrong = || ShareError::NotShare(text.chars().take(40).collect());
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        Self::new(
            index.trim().parse().map_err(|_| wrong())?,
            of.trim().parse().map_err(|_| wrong())?,
        )
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_split_the_crowd_without_gap_or_overlap() {
        for of in 1..7 {
            let shares: Vec<Share> = (0..of).map(|index| Share::new(index, of).unwrap()).collect();
            for number in 0..100 {
                assert_eq!(shares.iter().filter(|share| share.holds(number)).count(), 1);
            }
        }
        assert!((0..10).all(|number| Share::ALL.holds(number)));
    }

    #[test]
    fn only_existing_shares_are_read() {
        assert_eq!("1/4".parse::<Share>().unwrap().to_string(), "1/4");
        for text in ["4/4", "0/0", "1", "a/b", "-1/2", "1/2/3", ""] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
