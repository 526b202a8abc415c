//! Secrets behind their names, `token=S3CRET`, also in JSON, and behind commands, `PASS S3CRET`.

use throng_observation::masked::HIDDEN;

use super::flags::is_about_secret;
use super::quotes::{level_of, open_quote, pieces, quote_of, text_end};
use super::{QUOTES, SCHEMES, is_reference, is_secret_at};
use crate::chat::ChatVariable;

/// Words in a text behind which all of the line is what a server knows somebody by.
const COMMANDS: [&str; 6] = ["PASS", "AUTH", "AUTHENTICATE", "IDENTIFY", "Bearer", "bearer"];

/// Values of JSON that are no secrets.
const LITERALS: [&str; 3] = ["true", "false", "null"];

/// What stands before `=` or `:`.
struct Name<'t> {
    name: &'t str,
    /// The quote behind it, of JSON within JSON with its backslashes; empty if none.
    quote: &'t str,
    /// It is a host, or a part of one.
    is_host: bool,
}

impl<'t> Name<'t> {
    /// The name that ends a text.
    fn of(text: &'t str) -> Self {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let quoted = text.trim_end();
        let bare = quoted.trim_end_matches(QUOTES).trim_end_matches('\\');
        let (_, quote) = quoted.split_at(bare.len());
        let name = bare.rsplit(|c: char| !is_word(c)).next().unwrap_or_default();
        let is_host = text.strip_suffix(name).is_some_and(|part| part.ends_with(['/', '@']));
        Self { name, quote, is_host: is_host || name.contains('.') }
    }

    /// The end of its value; `line`: all before it in its line.
    fn value_end(&self, sign: &str, value: &str, line: &str) -> usize {
        if self.has_members(sign, value) {
            return members_end(value, level_of(self.quote));
        }
        if !quote_of(value).is_empty() {
            return text_end(value);
        }
        match sign {
            "=" => pair_end(line, value),
            // The value of a header has blanks and commas.
            _ if self.quote.is_empty() => line_end(line, value),
            _ => bare_end(value, |c| ",}]\n".contains(c)),
        }
    }

    /// Whether its value is a list or a table of JSON.
    fn has_members(&self, sign: &str, value: &str) -> bool {
        let has_brace = value.starts_with(['[', '{']) && variable_len(value) == 0;
        sign == ":" && !self.quote.is_empty() && has_brace
    }

    /// Its value as it is shown, which stays JSON where it is.
    fn shown(&self, sign: &str, value: &str) -> String {
        let has_members = self.has_members(sign, value);
        let is_literal = || !self.quote.is_empty() && LITERALS.contains(&value.trim());
        let is_shown = is_reference(value)
            || (has_members && has_references(value, level_of(self.quote)))
            || (sign == ":" && is_literal());
        let quote = match quote_of(value) {
            _ if is_shown => return value.to_owned(),
            _ if sign == "=" => "",
            "" => self.quote,
            quote => quote,
        };
        format!("{quote}{HIDDEN}{quote}")
    }
}

/// `name=value`, `name: value` and `"name": value` without the values of names of secrets; all else
/// stays.
pub(super) fn without_values(text: &str) -> String {
    let (mut shown, mut at) = (String::with_capacity(text.len()), 0);
    while let Some((before, after)) = split_behind(text, at, &['=', ':']) {
        shown.push_str(before.get(at..).unwrap_or_default());
        at = before.len();
        let (before, sign) = before.split_at(at - 1);
        let name = Name::of(before);
        // Neither a scheme nor a host with a port is the name of a header.
        let is_place = sign == ":" && (name.is_host || after.starts_with("//"));
        if is_place || !is_secret_at(name.name) {
            continue;
        }
        let value = after.trim_start();
        let (blanks, _) = after.split_at(after.len() - value.len());
        let (value, _) = value.split_at(name.value_end(sign, value, last_line(before)));
        let is_flag = sign == "=" && name.name.starts_with('-');
        if is_flag && is_about_secret(name.name, value.trim_matches(QUOTES)) {
            continue;
        }
        shown.push_str(blanks);
        shown.push_str(&name.shown(sign, value));
        at += blanks.len() + value.len();
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    shown
}

/// A text without what follows the words of [`COMMANDS`] in its line.
pub(super) fn without_credentials(text: &str) -> String {
    let (mut shown, mut at) = (String::with_capacity(text.len()), 0);
    while let Some((before, after)) = split_behind(text, at, &[' ']) {
        shown.push_str(before.get(at..).unwrap_or_default());
        at = before.len();
        if before.strip_suffix(' ').is_some_and(ends_with_command) {
            let (value, _) = after.split_at(line_end(last_line(before), after));
            let is_told = is_reference(value) || SCHEMES.contains(&value.trim());
            shown.push_str(if is_told { value } else { HIDDEN });
            at += value.len();
        }
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    shown
}

/// A text before and behind the first of these signs that is at or after `from`; the sign is in the
/// first part.
fn split_behind<'t>(text: &'t str, from: usize, signs: &[char]) -> Option<(&'t str, &'t str)> {
    let found = text.get(from..)?.find(signs)?;
    text.split_at_checked(from + found + 1)
}

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or_default()
}

/// Whether a text ends with a command. One that begins a message may be in any case; elsewhere
/// small letters are those of a sentence.
fn ends_with_command(text: &str) -> bool {
    let before = text.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
    let word = text.get(before.len()..).unwrap_or_default();
    let is_begin = || {
        let line = before.trim_end_matches([' ', '\t']);
        line.is_empty() || line.ends_with('\n') || before.ends_with(':')
    };
    COMMANDS.contains(&word)
        || (COMMANDS.iter().any(|one| one.eq_ignore_ascii_case(word)) && is_begin())
}

/// The end of a value that goes on to the end of its line, or of the quotes around it.
fn line_end(line: &str, value: &str) -> usize {
    let value = value.split('\n').next().unwrap_or_default();
    open_quote(line, value).unwrap_or(value.len())
}

/// The end of a value among others, or of the quotes around it.
fn pair_end(line: &str, value: &str) -> usize {
    let end = bare_end(value, |c| c.is_whitespace() || ",&;}".contains(c));
    let (value, _) = value.split_at(end);
    open_quote(line, value).unwrap_or(end)
}

/// The end of a value without quotes. The brace of a variable is none.
fn bare_end(value: &str, is_end: impl Fn(char) -> bool) -> usize {
    let (variable, after) = value.split_at(variable_len(value));
    variable.len() + after.find(is_end).unwrap_or(after.len())
}

/// How long the variable of a chat is that a text begins with; 0: it begins with none.
fn variable_len(text: &str) -> usize {
    let word = text.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(word, _)| word);
    word.filter(|word| ChatVariable::is_word(word)).map_or(0, |word| word.len() + 2)
}

/// The end of a list or table of JSON whose texts have quotes of this level.
fn members_end(value: &str, level: u32) -> usize {
    let mut depth = 0_usize;
    for (begin, outside) in pieces(value, level).step_by(2) {
        for (at, bracket) in outside.match_indices(['[', '{', ']', '}']) {
            let is_begin = matches!(bracket, "[" | "{");
            depth = if is_begin { depth + 1 } else { depth.saturating_sub(1) };
            if depth == 0 {
                return begin + at + 1;
            }
        }
    }
    value.len()
}

/// Whether all texts in a list or table of JSON say where secrets are, and nothing else in it may
/// be one, such as a number.
fn has_references(members: &str, level: u32) -> bool {
    let is_known = |word: &str| {
        word.is_empty() || word == HIDDEN || LITERALS.contains(&word) || ChatVariable::is_word(word)
    };
    let is_sign = |c: char| c.is_whitespace() || "[]{}:,".contains(c);
    let is_plain = |outside: &str| outside.split(is_sign).all(is_known);
    let mut pieces = pieces(members, level).map(|(_, piece)| piece).peekable();
    while let Some(outside) = pieces.next() {
        let Some(text) = pieces.next() else { return is_plain(outside) };
        let is_name = pieces.peek().is_some_and(|after| after.trim_start().starts_with(':'));
        if !is_plain(outside) || !(is_name || is_reference(text)) {
            return false;
        }
    }
    true
}
