//! URL templates (as RFC 6570 level 1): variables such as `{n}` give each participant its own URL.
//!
//! Variables are allowed in path and query only. All participants have the same scheme, host and
//! port, so that the consent guard checks the one host that all of them connect to.

use std::fmt::Write as _;
use std::ops::Range;

use throng_observation::masked::{Shown, masked_url};
use throng_observation::percent::encoded;

use crate::chat::ChatVariable;
use crate::keys::{Named as _, named};
use crate::secret::{HIDDEN, Secret, may_be_shown};
use crate::suggestion::nearest;

/// A variable of a URL template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlVariable {
    /// `{n}`: the participant's number in its cohort, from 0. A participant that replaces another
    /// has the same number.
    Number,
    /// `{stream}`: the participant's stream, from 0, of those that its cohort is distributed over.
    Stream,
    /// `{room}`: the number of its room, from 1, as in reports.
    Room,
    /// `{cohort}`: the name of its cohort, percent-encoded.
    Cohort,
    /// `{random}`: 16 hexadecimal digits, drawn for each join.
    Random,
}

named! {
    UrlVariable: Number = "n", Stream = "stream", Room = "room", Cohort = "cohort",
    Random = "random",
}

impl UrlVariable {
    /// The word that is probably meant.
    fn nearest(word: &str) -> Option<&'static str> {
        nearest(word, Self::names().into_iter())
    }
}

/// The values of the variables, for one participant.
#[derive(Clone, Copy, Debug)]
pub struct UrlValues<'a> {
    /// Number in the cohort, from 0.
    pub number: u32,
    /// Stream, from 0.
    pub stream: u32,
    /// Index of the room, from 0.
    pub room: u32,
    /// The cohort's name in the scenario.
    pub cohort: &'a str,
    /// The random number of this join; `None` leaves `{random}` in the URL, for display.
    pub random: Option<u64>,
}

/// A URL with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate {
    /// As in the scenario.
    text: Secret,
    /// The same with secrets redacted.
    shown: String,
    variables: Vec<UrlVariable>,
}

/// Two participants with different values of all variables: their URLs differ wherever a variable
/// has an effect.
const ONE: UrlValues<'static> =
    UrlValues { number: 0, stream: 0, room: 0, cohort: "a", random: Some(0) };
const OTHER: UrlValues<'static> =
    UrlValues { number: 77, stream: 77, room: 77, cohort: "b c", random: Some(u64::MAX) };

impl UrlTemplate {
    /// Reads a URL; `None` if it has no variables.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, UrlTemplateError> {
        let (mut variables, mut at) = (Vec::new(), 0);
        let authority_end = authority_end(text);
        while let Some(open) =
            text.get(at..).and_then(|rest| rest.find(['{', '}'])).map(|found| at + found)
        {
            let close = text.get(open..).and_then(|rest| rest.find('}'));
            at = close.map_or(text.len(), |length| open + length + 1);
            let word =
                text.get(open..at).and_then(|piece| piece.strip_prefix('{')?.strip_suffix('}'));
            let Some(variable) = word.and_then(UrlVariable::of_name) else {
                return Err(unknown(word, open..at));
            };
            if open < authority_end {
                return Err(misplaced(variable, open..at));
            }
            variables.push(variable);
        }
        let shown = without_secrets(text);
        Ok((!variables.is_empty()).then(|| Self { text: Secret::new(text), shown, variables }))
    }

    pub(crate) fn has(&self, variable: UrlVariable) -> bool {
        self.variables.contains(&variable)
    }

    /// The URLs of two participants with different values.
    pub(crate) fn examples(&self) -> [String; 2] {
        [self.of(&ONE), self.of(&OTHER)]
    }

    /// The URL of one participant.
    pub(crate) fn of(&self, values: &UrlValues<'_>) -> String {
        expanded(self.text.expose(), values)
    }

    /// As in the scenario, secrets redacted.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The URL of one participant, secrets redacted.
    pub(crate) fn shown_of(&self, values: &UrlValues<'_>) -> String {
        expanded(&self.shown, values)
    }

    /// The error for a URL whose host depends on a variable.
    pub(crate) fn misplaced(&self) -> UrlTemplateError {
        let end = self.text.expose().len();
        misplaced(self.variables.first().copied().unwrap_or(UrlVariable::Number), 0..end)
    }
}

/// Why a URL is not a valid template, with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct UrlTemplateError {
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
    /// The bytes of the text that are wrong.
    pub at: Range<usize>,
}

/// The end of scheme, host and port. The URL standard accepts any number of slashes for two.
fn authority_end(text: &str) -> usize {
    let Some(scheme) = text.find("://") else { return text.len() };
    let slashes = |c: char| c == '/' || c == '\\';
    let host = text
        .get(scheme + 1..)
        .map_or(0, |rest| rest.len() - rest.trim_start_matches(slashes).len());
    let host = scheme + 1 + host;
    text.get(host..)
        .and_then(|rest| rest.find(['/', '\\', '?', '#']))
        .map_or(text.len(), |length| host + length)
}

fn unknown(word: Option<&str>, at: Range<usize>) -> UrlTemplateError {
    // Anything but a short word may be a part of a secret and is not shown.
    let word =
        word.filter(|word| word.len() <= 20 && word.bytes().all(|b| b.is_ascii_alphanumeric()));
    let near = word.and_then(UrlVariable::nearest);
    let near = near.map_or_else(String::new, |near| format!("did you mean {{{near}}}? Otherwise "));
    let message = match word {
        Some(word) => format!("unknown variable `{{{word}}}`"),
        None => "a brace does not belong to a variable".to_owned(),
    };
    let help = format!(
        "{near}write {{n}} (the participant's number in its cohort), {{stream}}, {{room}}, \
         {{cohort}} or {{random}}, and %7B or %7D for a literal brace"
    );
    UrlTemplateError { message, help, at }
}

fn misplaced(variable: UrlVariable, at: Range<usize>) -> UrlTemplateError {
    let message =
        format!("`{{{}}}` is in the scheme, host or port, which cannot vary", variable.name());
    UrlTemplateError { message, help: "write it into the path or the query".into(), at }
}

/// `text` with its variables replaced by `values`.
fn expanded(text: &str, values: &UrlValues<'_>) -> String {
    let mut url = String::with_capacity(text.len() + 16);
    for (index, piece) in text.split('{').enumerate() {
        let (word, rest) = match piece.split_once('}') {
            Some((word, rest)) if index > 0 => (UrlVariable::of_name(word), rest),
            _ => (None, piece),
        };
        // Writing to a String does not fail.
        let _ = match word {
            Some(UrlVariable::Number) => write!(url, "{}", values.number),
            Some(UrlVariable::Stream) => write!(url, "{}", values.stream),
            Some(UrlVariable::Room) => write!(url, "{}", u64::from(values.room) + 1),
            Some(UrlVariable::Cohort) => url.write_str(&encoded(values.cohort.as_bytes())),
            Some(UrlVariable::Random) => match values.random {
                Some(random) => write!(url, "{random:016x}"),
                None => url.write_str("{random}"),
            },
            None => Ok(()),
        };
        url.push_str(rest);
    }
    url
}

/// How a target is shown: with names in its query, and with variables. Stored, it is read again.
pub(crate) const WITH_NAMES: Shown = Shown { pair: shown_pair, key: around_variables };

/// A URL with user info, key and values of the query redacted that may be secrets; variables stay,
/// a fragment does not.
pub(crate) fn without_secrets(text: &str) -> String {
    // The URL standard takes these for nothing, also within a port.
    let text = text.trim().replace(['\t', '\n', '\r'], "");
    let mut shown = masked_url(&text, WITH_NAMES);
    shown.truncate(shown.find('#').unwrap_or(shown.len()));
    // An empty query is none.
    shown.truncate(shown.trim_end_matches('?').len());
    shown
}

/// A parameter of the query. Variables stay; the text around them is redacted if it may be a
/// secret.
fn shown_pair(pair: &str) -> String {
    let Some((name, value)) = pair.split_once('=') else { return HIDDEN.to_owned() };
    let mut filled = format!("{name}=");
    for (index, piece) in value.split('{').enumerate() {
        match variable_of(piece) {
            Some((_, rest)) if index > 0 => {
                filled.push('0');
                filled.push_str(rest);
            }
            Some(_) | None => {
                // With its brace it is no plain value.
                filled.push_str(if index > 0 { "{" } else { "" });
                filled.push_str(piece);
            }
        }
    }
    if may_be_shown(&filled) {
        pair.to_owned()
    } else {
        let shown = around_variables(value);
        // Whether there is a secret is one too.
        format!("{name}={}", if shown.is_empty() { HIDDEN } else { &shown })
    }
}

/// The variables of `text`; all else is redacted.
fn around_variables(text: &str) -> String {
    let mut shown = String::new();
    for (index, piece) in text.split('{').enumerate() {
        let rest = match variable_of(piece) {
            Some((word, rest)) if index > 0 => {
                // Writing to a String does not fail.
                let _ = write!(shown, "{{{word}}}");
                rest
            }
            Some(_) | None => piece,
        };
        let is_told = rest.is_empty() || shown.ends_with(HIDDEN);
        shown.push_str(if is_told { "" } else { HIDDEN });
    }
    shown
}

/// The word of the variable that a piece behind `{` begins with, of a URL or of a path of a chat,
/// and what follows; also a misspelt one, at which an error points. Other words in braces may be
/// secrets.
fn variable_of(piece: &str) -> Option<(&str, &str)> {
    let is_variable =
        |word: &str| UrlVariable::nearest(word).is_some() || ChatVariable::is_word(word);
    piece.split_once('}').filter(|(word, _)| is_variable(word))
}

/// How the URL of a page is shown: with names in its query. It has no variables.
pub(crate) const OF_PAGES: Shown = Shown { pair: shown_pair_of_page, key: hidden };

fn shown_pair_of_page(pair: &str) -> String {
    match pair.split_once('=') {
        Some(_) if may_be_shown(pair) => pair.to_owned(),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => hidden(pair),
    }
}

fn hidden(_: &str) -> String {
    HIDDEN.to_owned()
}

#[cfg(test)]
#[path = "url_template_tests.rs"]
mod tests;
