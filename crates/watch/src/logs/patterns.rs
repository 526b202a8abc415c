//! Compiled log patterns: one pass over a line finds all that match, in linear time.

use regex::bytes::{Regex, RegexSet, RegexSetBuilder};
use throng_observation::pack::{LogPattern, LogValue};

use crate::packs::{REGEX_BYTES_MAX, compile};

/// Maximum number of patterns for one log.
pub const PATTERNS_MAX: usize = 200;

/// Names of [series](super::LineCounter) that are not patterns.
const RESERVED: &[&str] = &["any", "binary"];

/// Why patterns do not compile.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// One pattern is invalid.
    #[error("log pattern `{id}`: {reason}")]
    Pattern {
        /// Id of the pattern.
        id: String,
        /// What is wrong and how to fix it.
        reason: String,
    },
    /// There are too many patterns, or they are too large together.
    #[error("{0}")]
    TooMany(String),
}

/// A compiled set of patterns. Of two patterns with the same id the first counts.
#[derive(Debug, Default)]
pub struct Patterns {
    set: RegexSet,
    patterns: Vec<Compiled>,
}

/// One pattern.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) id: String,
    pub(super) meaning: String,
    pub(super) values: Vec<LogValue>,
    /// The expression with its groups; only patterns with values need it.
    groups: Option<Regex>,
}

impl Patterns {
    /// Compiles patterns; the user's come first.
    ///
    /// # Errors
    /// With the invalid pattern.
    pub fn new<'a>(
        patterns: impl IntoIterator<Item = &'a LogPattern>,
    ) -> Result<Self, PatternError> {
        let mut compiled: Vec<Compiled> = Vec::new();
        let mut sources = Vec::new();
        for pattern in patterns {
            if compiled.iter().any(|known| known.id == pattern.id) {
                continue;
            }
            compiled.push(Compiled::new(pattern)?);
            sources.push(pattern.pattern.as_str());
        }
        if compiled.len() > PATTERNS_MAX {
            let count = compiled.len();
            return Err(PatternError::TooMany(format!(
                "{count} log patterns; at most {PATTERNS_MAX} for one log"
            )));
        }
        let set = RegexSetBuilder::new(sources)
            .size_limit(16 * REGEX_BYTES_MAX)
            .dfa_size_limit(REGEX_BYTES_MAX)
            .build()
            .map_err(|error| {
                PatternError::TooMany(format!("the log patterns together: {error}"))
            })?;
        Ok(Self { set, patterns: compiled })
    }

    /// The indices of the patterns that a line matches, in order.
    pub(super) fn of_line<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        self.set.matches(line).into_iter().collect::<Vec<_>>().into_iter()
    }

    /// All patterns by index.
    pub(super) fn all(&self) -> &[Compiled] {
        &self.patterns
    }
}

impl Compiled {
    fn new(pattern: &LogPattern) -> Result<Self, PatternError> {
        let wrong = |reason: String| PatternError::Pattern { id: pattern.id.clone(), reason };
        if RESERVED.contains(&pattern.id.as_str()) {
            return Err(wrong("this name is reserved".into()));
        }
        let regex = compile(&pattern.pattern).map_err(wrong)?;
        for value in &pattern.values {
            if !regex.capture_names().flatten().any(|name| name == value.group) {
                return Err(wrong(format!("no group `{0}`: write `(?<{0}>…)` in it", value.group)));
            }
        }
        Ok(Self {
            id: pattern.id.clone(),
            meaning: pattern.meaning.clone(),
            values: pattern.values.clone(),
            groups: (!pattern.values.is_empty()).then_some(regex),
        })
    }

    /// The numbers in a matching line, each with its index in [`Self::values`].
    pub(super) fn numbers<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = (usize, f64)> + 'a {
        let captures = self.groups.as_ref().and_then(|regex| regex.captures(line));
        let values = self.values.iter().enumerate();
        values.filter_map(move |(index, value)| {
            let found = captures.as_ref()?.name(&value.group)?;
            let number: f64 = std::str::from_utf8(found.as_bytes()).ok()?.trim().parse().ok()?;
            number.is_finite().then_some((index, number))
        })
    }
}
