//! Names in a target's URL, such as `{n}`: each participant goes to a URL of its own.
//!
//! They stand in the path and the query alone. Scheme, host and port are the same for everybody, so that the consent
//! guard judges the one place that all of them go to.

use std::fmt::Write as _;
use std::ops::Range;

use crate::read::nearest;
use crate::secret::{HIDDEN, Secret, may_be_shown};
use crate::target::TargetError;

/// What can stand between braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `{n}`: the participant's number in its cohort, from 0. Who takes the place of somebody who left has that one's.
    Number,
    /// `{stream}`: the stream that it is dealt, from 0, where its cohort says over how many it is spread.
    Stream,
    /// `{room}`: the number of its room, from 1, as reports count them.
    Room,
    /// `{cohort}`: the cohort's name.
    Cohort,
    /// `{random}`: 16 hexadecimal digits, drawn for each join.
    Random,
}

impl Name {
    const ALL: [Self; 5] = [Self::Number, Self::Stream, Self::Room, Self::Cohort, Self::Random];

    fn word(self) -> &'static str {
        match self {
            Self::Number => "n",
            Self::Stream => "stream",
            Self::Room => "room",
            Self::Cohort => "cohort",
            Self::Random => "random",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.word() == word)
    }
}

/// Whose URL is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    /// The number in the cohort, from 0.
    pub number: u32,
    /// The stream that was dealt, from 0.
    pub stream: u32,
    /// The room's place: 0 is the first.
    pub room: u32,
    /// The cohort's name in the scenario.
    pub cohort: &'a str,
    /// What was drawn for this join; `None` leaves `{random}` as it stands, for showing.
    pub random: Option<u64>,
}

/// A URL with names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlNames {
    /// As the scenario says it.
    written: Secret,
    /// The same without secrets.
    shown: String,
    names: Vec<Name>,
}

/// Two people who have nothing in common: what differs between their URLs is what names can change.
const ONE: Whose<'static> = Whose { number: 0, stream: 0, room: 0, cohort: "a", random: Some(0) };
const OTHER: Whose<'static> =
    Whose { number: 77, stream: 77, room: 77, cohort: "b c", random: Some(u64::MAX) };

impl UrlNames {
    /// The names in `text`; `None` when there are none.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, TargetError> {
        let (mut names, mut at) = (Vec::new(), 0);
        let place_ends = end_of_place(text);
        while let Some(open) = text.get(at..).and_then(|rest| rest.find(['{', '}'])).map(|found| at + found) {
            let close = text.get(open..).and_then(|rest| rest.find('}'));
            at = close.map_or(text.len(), |length| open + length + 1);
            let word = text.get(open..at).and_then(|piece| piece.strip_prefix('{')?.strip_suffix('}'));
            let Some(name) = word.and_then(Name::from_word) else {
                return Err(unknown(word, open..at));
            };
            if open < place_ends {
                return Err(misplaced(name, open..at));
            }
            names.push(name);
        }
        let shown = without_secrets(text);
        Ok((!names.is_empty()).then(|| Self { written: Secret::new(text), shown, names }))
    }

    pub(crate) fn has(&self, name: Name) -> bool {
        self.names.contains(&name)
    }

    /// The URL of one of two who have nothing in common.
    pub(crate) fn examples(&self) -> [String; 2] {
        [self.of(&ONE), self.of(&OTHER)]
    }

    /// The URL of somebody.
    pub(crate) fn of(&self, whose: &Whose<'_>) -> String {
        filled(self.written.expose(), whose)
    }

    /// As the scenario writes it, without secrets.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The URL of somebody, without secrets.
    pub(crate) fn shown_of(&self, whose: &Whose<'_>) -> String {
        filled(&self.shown, whose)
    }

    /// For a URL whose host follows from a name all the same.
    pub(crate) fn misplaced(&self) -> TargetError {
        let end = self.written.expose().len();
        misplaced(self.names.first().copied().unwrap_or(Name::Number), 0..end)
    }
}

/// Where scheme, host and port end. The URL standard takes any number of slashes for two.
fn end_of_place(text: &str) -> usize {
    let Some(scheme) = text.find("://") else { return text.len() };
    let slashes = |c: char| c == '/' || c == '\\';
    let host = text.get(scheme + 1..).map_or(0, |rest| rest.len() - rest.trim_start_matches(slashes).len());
    let host = scheme + 1 + host;
    text.get(host..)
        .and_then(|rest| rest.find(['/', '\\', '?', '#']))
        .map_or(text.len(), |length| host + length)
}

fn unknown(word: Option<&str>, at: Range<usize>) -> TargetError {
    // What is no word at all may be a part of a secret.
    let word = word.filter(|word| word.len() <= 20 && word.bytes().all(|b| b.is_ascii_alphanumeric()));
    let near = word.and_then(|word| nearest(word, Name::ALL.into_iter().map(Name::word)));
    let near = near.map_or_else(String::new, |near| format!("did you mean {{{near}}}? Else "));
    let what = match word {
        Some(word) => format!("`{{{word}}}` is no name that a URL can have"),
        None => "a brace that begins no name".to_owned(),
    };
    let help = format!(
        "{near}write {{n}} (the participant's number in its cohort), {{stream}}, {{room}}, {{cohort}} or {{random}}, \
         and %7B or %7D for a brace itself"
    );
    TargetError::Names { what, help, at }
}

fn misplaced(name: Name, at: Range<usize>) -> TargetError {
    let what =
        format!("`{{{}}}` stands in the scheme, host or port, which are the same for everybody", name.word());
    TargetError::Names { what, help: "write it into the path or the query".into(), at }
}

/// `text` with each name in it replaced.
fn filled(text: &str, whose: &Whose<'_>) -> String {
    let mut url = String::with_capacity(text.len() + 16);
    for (index, piece) in text.split('{').enumerate() {
        let (word, rest) = match piece.split_once('}') {
            Some((word, rest)) if index > 0 => (Name::from_word(word), rest),
            _ => (None, piece),
        };
        // Writing to a String does not fail.
        let _ = match word {
            Some(Name::Number) => write!(url, "{}", whose.number),
            Some(Name::Stream) => write!(url, "{}", whose.stream),
            Some(Name::Room) => write!(url, "{}", u64::from(whose.room) + 1),
            Some(Name::Cohort) => write_escaped(&mut url, whose.cohort),
            Some(Name::Random) => match whose.random {
                Some(random) => write!(url, "{random:016x}"),
                None => url.write_str("{random}"),
            },
            None => Ok(()),
        };
        url.push_str(rest);
    }
    url
}

/// Writes `text` so that it is one part of a path and one value of a query (RFC 3986 section 2.3).
fn write_escaped(url: &mut String, text: &str) -> std::fmt::Result {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            _ => write!(url, "%{byte:02X}")?,
        }
    }
    Ok(())
}

/// `text` with user info hidden, and of the query whatever is no name and may sign or authorise.
fn without_secrets(text: &str) -> String {
    let text = text.trim().split('#').next().unwrap_or_default();
    let (head, query) = text.split_once('?').map_or((text, None), |(head, query)| (head, Some(query)));
    let (place, path) = head.split_at_checked(end_of_place(head)).unwrap_or((head, ""));
    let place = match place.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map_or(before, |(scheme, _)| scheme);
            format!("{scheme}://{HIDDEN}@{host}")
        }
        None => place.to_owned(),
    };
    let pairs = query.map(|query| query.split('&').map(shown_pair).collect::<Vec<_>>());
    pairs.map_or_else(|| format!("{place}{path}"), |pairs| format!("{place}{path}?{}", pairs.join("&")))
}

/// A parameter of the query. Names stay; what is around them is hidden if it may be a secret.
fn shown_pair(pair: &str) -> String {
    let Some((key, value)) = pair.split_once('=') else { return HIDDEN.to_owned() };
    let mut shown = format!("{key}=");
    let mut filled = shown.clone();
    for (index, piece) in value.split('{').enumerate() {
        let rest = match piece.split_once('}') {
            Some((word, rest)) if index > 0 => {
                let _ = write!(shown, "{{{word}}}");
                filled.push('0');
                rest
            }
            _ => piece,
        };
        shown.push_str(if rest.is_empty() { "" } else { HIDDEN });
        filled.push_str(rest);
    }
    if may_be_shown(&filled) { pair.to_owned() } else { shown }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
